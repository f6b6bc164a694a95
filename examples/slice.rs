//! Take part of a tensor and write it to a file of its own.
//!
//! `cargo run --example slice -- model.safetensors embed.weight '[:32000]' embed.npy`

use tslice::{Error, WriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, model, name, index, output] => Ok(slice(model, name, index, output)?),
        _ => Err("usage: slice MODEL TENSOR INDEX OUTPUT".into()),
    }
}

/// Write `model[name][index]`; the name of the output tells its format.
pub(crate) fn slice(model: &str, name: &str, index: &str, output: &str) -> Result<(), Error> {
    let file = tslice::open(model)?;
    let rows = file.tensor(name)?.slice(index)?;
    rows.write_with(output, &WriteOptions::default().force(true))
}
