//! `tslice info INPUT...`: what is in these files.

use std::path::Path;

use serde_json::{Value, json};
use tslice::container::{self, Input, OpenOptions, Unreadable};
use tslice::format::Tensor;
use tslice::shape::AsTuple;

use super::input;
use crate::cli::args::InfoArgs;
use crate::cli::report::{Align, Exit, Failure, human_bytes, print, printable, table};

/// Describe every file; one that cannot be read does not keep the others from being shown.
pub(super) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let mut failed = None;
    let mut described = Vec::new();
    for path in &args.inputs {
        let (input, shown) = match open(path, &args.tensor) {
            Ok(opened) => opened,
            Err(failure) => {
                if let Some(earlier) = failed.replace(failure) {
                    Failure::print(&earlier);
                }
                continue;
            }
        };
        if args.json {
            described.push(as_json(&input, &shown));
        } else {
            print(&as_text(&input, &shown))?;
        }
    }
    if args.json {
        print(&format!("{}\n", Value::Array(described)))?;
    }
    failed.map_or(Ok(()), |failure| Err(Failure { exit: Exit::Failed, ..failure }))
}

/// What is shown of a file.
struct Shown {
    tensors: Vec<Tensor>,
    unreadable: Vec<Unreadable>,
}

/// Open a file, and find the tensors that are shown: those that the patterns mean, or all.
fn open(path: &Path, patterns: &[String]) -> Result<(Input, Shown), Failure> {
    let tensors = patterns.to_vec();
    let input = container::open(
        &input::location(path),
        &OpenOptions { tensors, ..OpenOptions::default() },
    )?;
    let all = &input.contents().tensors;
    let numbers = match patterns {
        [] => (0..all.len() + input.unreadable().len()).collect(),
        patterns => input.find_named(patterns)?,
    };
    // what cannot be read has the numbers after those of the tensors
    let tensors = numbers.iter().filter_map(|&number| all.get(number).cloned()).collect();
    let beyond = numbers.iter().filter_map(|number| number.checked_sub(all.len()));
    let unreadable = beyond.map(|number| input.unreadable()[number].clone()).collect();
    let shown = Shown { tensors, unreadable };
    Ok((input, shown))
}

fn as_text(input: &Input, shown: &Shown) -> String {
    let contents = input.contents();
    let total: u64 = shown.tensors.iter().map(|tensor| tensor.bytes).sum();
    // of a checkpoint only the files that hold what is shown were opened
    let opened = contents.tensors.len() + input.unreadable().len();
    let all = input.checkpoint().map_or(opened, |it| it.index.tensors().len());
    let count = shown.tensors.len();
    let mut text = format!(
        "{}: {}, {}{all} tensor{}, {}\n",
        printable(&input.location().to_string()),
        contents.format,
        if count < all { format!("{count} of ") } else { String::new() },
        if all == 1 { "" } else { "s" },
        human_bytes(total)
    );
    // the last column is for the files of a sharded checkpoint
    let file = if input.checkpoint().is_some() { "file" } else { "" };
    let heading = ["name", "dtype", "shape", "bytes", "order", "offset", file].map(str::to_owned);
    let rows = shown.tensors.iter().map(|tensor| row(input, tensor));
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let (left, right) = (Align::Left, Align::Right);
    let align = [left, left, left, right, left, right, left];
    text.push_str(&table(&rows, align, 2));
    for Unreadable { name, error } in &shown.unreadable {
        text.push_str(&format!("  {} cannot be read: {error}\n", printable(name)));
    }
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

fn as_json(input: &Input, shown: &Shown) -> Value {
    let contents = input.contents();
    let tensors: Vec<Value> = shown
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
    let mut value = json!({
        "file": input.location().path().unwrap_or(Path::new("-")).display().to_string(),
        "format": contents.format.to_string(),
        "tensors": tensors,
        "metadata": contents.metadata,
    });
    if !shown.unreadable.is_empty() {
        let reason = |it: &Unreadable| json!({ "name": it.name, "reason": it.error.to_string() });
        value["unreadable"] = shown.unreadable.iter().map(reason).collect();
    }
    value
}
