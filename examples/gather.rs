//! Gather rows of a tensor, such as the vectors of tokens.
//!
//! `cargo run --example gather -- model.safetensors embed.weight vectors.npy 17 3 17`

use tslice::Error;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, model, name, output, rows @ ..] => {
            let rows: Vec<i64> = rows.iter().map(|row| row.parse()).collect::<Result<_, _>>()?;
            Ok(gather(model, name, &rows, output)?)
        }
        _ => Err("usage: gather MODEL TENSOR OUTPUT ROW...".into()),
    }
}

/// Write the rows at these positions, in this order, a position any number of times.
pub(crate) fn gather(model: &str, name: &str, rows: &[i64], output: &str) -> Result<(), Error> {
    let vectors = tslice::open(model)?.tensor(name)?.take(rows, 0)?;
    vectors.write(output)
}
