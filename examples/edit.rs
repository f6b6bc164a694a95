//! Overwrite rows of a tensor in its file with numbers that are in memory.
//!
//! `cargo run --example edit -- model.safetensors embed.weight 17 3`

use tslice::Error;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, model, name, rows @ ..] => {
            let rows: Vec<i64> = rows.iter().map(|row| row.parse()).collect::<Result<_, _>>()?;
            Ok(scale(model, name, &rows, 0.5)?)
        }
        _ => Err("usage: edit MODEL TENSOR ROW...".into()),
    }
}

/// Multiply rows of a float32 tensor by a factor.
pub(crate) fn scale(model: &str, name: &str, rows: &[i64], factor: f32) -> Result<(), Error> {
    let tensor = tslice::open(model)?.tensor(name)?;
    for &row in rows {
        let slice = tensor.slice(row)?;
        let mut numbers: Vec<f32> = slice.read()?;
        numbers.iter_mut().for_each(|number| *number *= factor);
        let scaled = tslice::tensor("", slice.shape(), numbers)?;
        tensor.edit(row)?.assign(&scaled.all())?.in_place()?;
    }
    Ok(())
}
