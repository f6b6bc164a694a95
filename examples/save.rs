//! Write an array that is in memory, unless its file is there.
//!
//! `cargo run --example save -- squares.npy 100`

use std::io::{self, Write};

use tslice::{Error, ErrorKind, WriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, output, count] => {
            let squares: Vec<u64> = (0..count.parse()?).map(|number: u64| number.pow(2)).collect();
            let is_new = save(output, &squares)?;
            let what = if is_new { "is written" } else { "was there" };
            Ok(writeln!(io::stdout(), "{output} {what}")?)
        }
        _ => Err("usage: save OUTPUT COUNT".into()),
    }
}

/// Write numbers, and say whether the file is new.
pub(crate) fn save(output: &str, numbers: &[u64]) -> Result<bool, Error> {
    let shape = [numbers.len() as u64];
    match tslice::save(output, &shape, numbers, &WriteOptions::default()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Exists => Ok(false),
        Err(error) => Err(error),
    }
}
