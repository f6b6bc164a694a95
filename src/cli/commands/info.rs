//! `tslice info INPUT...`: what is in these files.

use std::path::Path;

use serde_json::{Value, json};
use tslice::container::Input;
use tslice::format::Tensor;
use tslice::shape::AsTuple;

use super::input;
use crate::cli::args::{InfoArgs, Io};
use crate::cli::report::{Align, Exit, Failure, human_bytes, print, printable, table};

/// Describe every file; one that cannot be read does not keep the others from being shown.
pub(super) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let mut failed = None;
    let mut described = Vec::new();
    for path in &args.inputs {
        let input = match input::open(path, Io::Auto) {
            Ok(input) => input,
            Err(failure) => {
                if let Some(earlier) = failed.replace(failure) {
                    Failure::print(&earlier);
                }
                continue;
            }
        };
        if args.json {
            described.push(as_json(&input));
        } else {
            print(&as_text(&input))?;
        }
    }
    if args.json {
        print(&format!("{}\n", Value::Array(described)))?;
    }
    failed.map_or(Ok(()), |failure| Err(Failure { exit: Exit::Failed, ..failure }))
}

fn as_text(input: &Input) -> String {
    let contents = input.contents();
    let total: u64 = contents.tensors.iter().map(|tensor| tensor.bytes).sum();
    let count = contents.tensors.len();
    let mut text = format!(
        "{}: {}, {count} tensor{}, {}\n",
        printable(&input.location().to_string()),
        contents.format,
        if count == 1 { "" } else { "s" },
        human_bytes(total)
    );
    // the last column is for the files of a sharded checkpoint
    let file = if input.checkpoint().is_some() { "file" } else { "" };
    let heading = ["name", "dtype", "shape", "bytes", "order", "offset", file].map(str::to_owned);
    let rows = contents.tensors.iter().map(|tensor| row(input, tensor));
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let (left, right) = (Align::Left, Align::Right);
    let align = [left, left, left, right, left, right, left];
    text.push_str(&table(&rows, align, 2));
    for (key, value) in &contents.metadata {
        text.push_str(&format!("  metadata {key:?}: {value:?}\n"));
    }
    text
}

fn row(input: &Input, tensor: &Tensor) -> [String; 7] {
    let (file, offset) = input.whereabouts(tensor);
    [
        tensor.name.as_deref().map_or_else(|| "-".to_owned(), printable),
        tensor.dtype.to_string(),
        AsTuple(&tensor.shape).to_string(),
        tensor.bytes.to_string(),
        tensor.order.to_string(),
        offset.map_or_else(|| "deflated".to_owned(), |offset| offset.to_string()),
        file.map_or_else(String::new, printable),
    ]
}

fn as_json(input: &Input) -> Value {
    let contents = input.contents();
    let tensors: Vec<Value> = contents
        .tensors
        .iter()
        .map(|tensor| {
            let (file, offset) = input.whereabouts(tensor);
            let mut entry = json!({
                "name": tensor.name,
                "dtype": tensor.dtype.to_string(),
                "shape": tensor.shape,
                "bytes": tensor.bytes,
                "order": tensor.order.to_string(),
                "offset": offset,
            });
            if let Some(file) = file {
                entry["file"] = file.into();
            }
            entry
        })
        .collect();
    json!({
        "file": input.location().path().unwrap_or(Path::new("-")).display().to_string(),
        "format": contents.format.to_string(),
        "tensors": tensors,
        "metadata": contents.metadata,
    })
}
