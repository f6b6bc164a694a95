//! Open a file, and list its tensors.
//!
//! `cargo run --example list -- model.safetensors`

use std::error::Error;
use std::io::{self, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, model] => list(model, &mut io::stdout().lock()),
        _ => Err("usage: list MODEL".into()),
    }
}

/// A line for each tensor: its name, dtype, shape and bytes.
pub(crate) fn list(model: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    for tensor in tslice::open(model)?.tensors() {
        let name = tensor.name().unwrap_or("-");
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        writeln!(out, "{name} {dtype} {shape:?} {} bytes", tensor.nbytes())?;
    }
    Ok(())
}
