//! Join the arrays of several files along their first axis.
//!
//! `cargo run --example join -- all.npy part-0.npy part-1.npy part-2.npy`

use std::io::{self, Write};

use tslice::{Error, WriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, output, inputs @ ..] => Ok(join(inputs, output, show)?),
        _ => Err("usage: join OUTPUT INPUT...".into()),
    }
}

fn show(percent: u64) {
    // who cannot be shown it is not told
    let _ = write!(io::stderr(), "\r{percent} % ");
}

/// Write the join; `show` is told how many percent of it are written.
pub(crate) fn join(
    inputs: &[String],
    output: &str,
    show: impl Fn(u64) + Send + Sync + 'static,
) -> Result<(), Error> {
    let slices = inputs.iter().map(|input| Ok(tslice::open(input)?.only()?.all()));
    let slices = slices.collect::<Result<Vec<_>, Error>>()?;
    let all: u64 = slices.iter().map(|slice| slice.nbytes()).sum();
    let options = WriteOptions::default().progress(move |written| show(written * 100 / all.max(1)));
    tslice::write_concatenated(output, &slices, 0, &options)
}
