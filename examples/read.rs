//! Read part of a tensor into memory, and compute with it.
//!
//! `cargo run --example read -- model.safetensors embed.weight '[0]'`

use std::io::{self, Write};

use half::{bf16, f16};
use tslice::{DType, Error, Scalar, Slice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, model, name, index] => {
            let slice = tslice::open(model)?.tensor(name)?.slice(index)?;
            Ok(writeln!(io::stdout().lock(), "{}", mean(&slice)?)?)
        }
        _ => Err("usage: read MODEL TENSOR INDEX".into()),
    }
}

/// The mean of the elements, whatever kind of float they are.
pub(crate) fn mean(slice: &Slice) -> Result<f64, Error> {
    let floats: Vec<f32> = match slice.dtype() {
        DType::Scalar(Scalar::F16, _) => {
            slice.read::<f16>()?.iter().map(|it| it.to_f32()).collect()
        }
        DType::Scalar(Scalar::BF16, _) => {
            slice.read::<bf16>()?.iter().map(|it| it.to_f32()).collect()
        }
        _ => slice.read()?,
    };
    Ok(floats.iter().map(|&it| f64::from(it)).sum::<f64>() / floats.len() as f64)
}
