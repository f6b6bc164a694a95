//! Convert the floats of a file to another dtype, in a file of any format that is written.
//!
//! `cargo run --example convert -- model.safetensors bfloat16 model.gguf`

use tslice::{Casting, DType, Error, Scalar, Slice, WriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, input, dtype, output] => Ok(convert(input, dtype, output)?),
        _ => Err("usage: convert INPUT DTYPE OUTPUT".into()),
    }
}

/// Write all tensors of the input; float32 and float64 are cast.
pub(crate) fn convert(input: &str, dtype: &str, output: &str) -> Result<(), Error> {
    let to = tslice::parse_dtype(dtype)?;
    let mut slices: Vec<Slice> = Vec::new();
    for tensor in tslice::open(input)?.tensors() {
        slices.push(match tensor.dtype() {
            DType::Scalar(Scalar::F32 | Scalar::F64, _) => {
                tensor.all().cast(&to, Casting::SameKind)?
            }
            _ => tensor.all(),
        });
    }
    tslice::write_merged(output, &slices, &WriteOptions::default())
}
