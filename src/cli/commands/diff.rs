//! `tslice diff A B`: compare two files, and show where they differ.

use serde_json::{Value, json};
use tslice::compare::{Findings, Largest, Rule, same_dtype};
use tslice::dtype::{DType, Endian};
use tslice::input::{Location, OpenOptions};
use tslice::job::{CompareOptions, Compared, Comparing, Differences, position_of};
use tslice::print;
use tslice::shape::{AsList, AsTuple};
use tslice::tensor::printable;

use super::index::Index;
use super::stats::shown;
use super::{index, input, output, tensors};
use crate::cli::args::DiffArgs;
use crate::cli::report::{
    Align, Exit, Failure, Json, Table, counted, percent_encoded, print, watch,
};

/// Compare two files; any failure to do so is [`Exit::Trouble`].
pub(super) fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    let trouble = |failure| Failure { exit: Exit::Trouble, ..failure };
    let differences = differences(args).map_err(trouble)?;
    let text =
        if args.json { format!("{}\n", Json(&differences.json())) } else { differences.text() };
    print(&text).map_err(trouble)?;
    Ok(if differences.found.any() { Exit::Different } else { Exit::Done })
}

struct Found {
    files: [Location; 2],
    found: Differences,
}

fn differences(args: &DiffArgs) -> Result<Found, Failure> {
    let index = Index::parse(&args.index)?;
    index.refuse_stdin("A", &args.first)?;
    let workers = output::workers(args.threads);
    let index = index.open(&args.from, &workers, args.quiet, "B", &args.second)?;
    // one of the files may lack a tensor
    let options = OpenOptions {
        tensors: vec![],
        ..input::options_of_several(&args.from, args.field.field.as_deref(), &workers)?
    };
    let locations = [&args.first, &args.second].map(|path| input::location(path));
    if locations == [Location::Stdin, Location::Stdin] {
        return Err(Failure::usage("standard input can be read once, and is both A and B"));
    }
    let [first, second] = &locations;
    let a = input::open_watched(first, &options, args.quiet)?;
    let b = input::open_watched(second, &options, args.quiet)?;
    options.raw.check_used([&a, &b])?;
    let compared = [&a, &b].map(|input| match args.from.tensor.as_slice() {
        [] => Vec::from_iter(0..input.contents().tensors.len()),
        // a name that one file lacks is reported by the comparison
        patterns => input.find(patterns).unwrap_or_default(),
    });
    let both = tensors::of_numbers(&a, &compared[0]);
    tensors::note_packed(both.chain(tensors::of_numbers(&b, &compared[1])));
    let rule = Rule {
        tolerance: match (args.rule.atol, args.rule.rtol) {
            (None, None) => None,
            (atol, rtol) => Some((atol.unwrap_or(0.0), rtol.unwrap_or(0.0))),
        },
        equal_nan: args.rule.equal_nan,
    };
    if args.rule.dtypes && rule.tolerance.is_none() {
        let message = "--dtypes has no effect: without --atol or --rtol dtypes must be the same";
        return Err(Failure::usage(message));
    }
    let options = CompareOptions {
        tensors: args.from.tensor.clone(),
        transform: index::transform(Some(&args.field), &args.index.reshape, None)?,
        index: index.of_job(),
        renames: input::renames(&args.rename, args.rename_from.as_deref())?,
        rule,
        dtypes: args.rule.dtypes,
        workers,
    };
    let failed = |error| index.failure(error);
    let comparing = Comparing::new([a, b], &options).map_err(failed)?;
    let found = watch(comparing.bytes(), args.quiet, |progress| comparing.run(progress));
    Ok(Found { files: locations, found: found.map_err(failed)? })
}

fn called(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("the tensor without a name")
}

impl Found {
    fn text(&self) -> String {
        let mut text = String::new();
        for (file, names) in self.files.iter().zip(&self.found.only) {
            for name in names {
                text.push_str(&printable(&format!("only in {file}: {}", called(name))));
                text.push('\n');
            }
        }
        let tensors = &self.found.tensors;
        let differing = tensors.iter().filter(|it| it.findings.is_some() && it.differs());
        let differing: Vec<&Compared> = differing.collect();
        let in_full = differing.len() <= MOST_IN_FULL;
        for tensor in tensors {
            text.push_str(&kinds_as_text(tensor));
            if in_full && tensor.differs() {
                text.push_str(&elements_as_text(tensor));
            }
        }
        if !in_full {
            text.push_str(&as_table(&differing));
        }
        text
    }

    fn json(&self) -> Value {
        let Differences { only, tensors } = &self.found;
        let only = only.each_ref().map(|names| names.iter().map(called).collect::<Vec<_>>());
        let mut value = json!({
            "same": !self.found.any(),
            "files": self.files.each_ref().map(ToString::to_string),
            "only_in_a": only[0],
            "only_in_b": only[1],
            "tensors": tensors.iter().map(as_json).collect::<Vec<_>>(),
        });
        let encoded = |file: &Location| file.path().and_then(percent_encoded);
        let encoded = self.files.each_ref().map(encoded);
        if encoded.iter().any(Option::is_some) {
            value["files_percent"] = json!(encoded);
        }
        value
    }
}

fn count(tensor: &Compared) -> u64 {
    tensor.shapes[0].iter().product()
}

fn values(tensor: &Compared, found: &Largest) -> [String; 2] {
    if let Some((_, texts)) = tensor.large.iter().find(|(position, _)| *position == found.position)
    {
        return texts.clone();
    }
    // the other file may name the type of a void
    let known = |own: &DType, other: &DType| match (own, other) {
        (DType::Npy(_), DType::Scalar(scalar, _)) if same_dtype(own, other) => {
            DType::Scalar(*scalar, Endian::Little)
        }
        _ => own.clone(),
    };
    let [a, b] = &tensor.dtypes;
    [print::element(&known(a, b), &found.values.0), print::element(&known(b, a), &found.values.1)]
}

/// If more tensors differ, each is a row of a table.
const MOST_IN_FULL: usize = 4;

fn prefix(tensor: &Compared) -> String {
    let name = tensor.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    printable(&name).into_owned()
}

fn kinds_as_text(tensor: &Compared) -> String {
    let prefix = prefix(tensor);
    let mut text = String::new();
    let [a, b] = &tensor.shapes;
    if a != b {
        text.push_str(&format!("{prefix}shape {} and {}\n", AsTuple(a), AsTuple(b)));
    }
    let [a, b] = &tensor.dtypes;
    if !same_dtype(a, b) && tensor.findings.is_none() {
        text.push_str(&format!("{prefix}dtype {a} and {b}\n"));
    }
    text
}

fn as_table(tensors: &[&Compared]) -> String {
    let heading =
        ["name", "differ", "of", "nan/inf", "first", "largest", "at", "a", "b", "relative"];
    let row = |tensor: &&Compared| {
        let findings = tensor.findings.as_ref()?;
        let most = findings.absolute.as_ref().or(findings.first.as_ref())?;
        let [a, b] = values(tensor, most);
        let difference = |found: &Option<Largest>| {
            found.as_ref().map_or_else(|| "-".to_owned(), |found| print::short(found.difference))
        };
        let at =
            |found: &Largest| AsList(&position_of(&tensor.shapes[0], found.position)).to_string();
        Some([
            tensor.name.clone().unwrap_or_else(|| "-".to_owned()),
            findings.differing.to_string(),
            count(tensor).to_string(),
            findings.not_finite.to_string(),
            findings.first_not_finite.as_ref().map_or_else(|| "-".to_owned(), at),
            difference(&findings.absolute),
            at(most),
            a,
            b,
            difference(&findings.relative),
        ])
    };
    let rows =
        tensors.iter().filter_map(row).map(|row| row.map(|cell| printable(&cell).into_owned()));
    let rows: Vec<[String; 10]> = std::iter::once(heading.map(str::to_owned)).chain(rows).collect();
    let left = Align::Left;
    let right = Align::Right;
    let align = [left, right, right, right, left, right, left, right, right, right];
    let any = |tensor: &&Compared| tensor.findings.as_ref().is_some_and(|it| it.not_finite > 0);
    let shown = if tensors.iter().any(any) {
        (0..heading.len()).collect()
    } else {
        [0, 1, 2].into_iter().chain(5..heading.len()).collect()
    };
    let table = Table::of(&rows, align, 0).columns(shown);
    rows.iter().map(|row| table.line(row)).collect()
}

fn elements_as_text(tensor: &Compared) -> String {
    let Some(findings) = &tensor.findings else { return String::new() };
    let prefix = prefix(tensor);
    let mut text = String::new();
    let differing = findings.differing;
    let count = count(tensor);
    let differ = if differing == 1 { "differs" } else { "differ" };
    let elements = counted(count, "element");
    text.push_str(&format!("{prefix}{differing} of {elements} {differ}\n"));
    for (what, found) in found(findings) {
        let at = position_of(&tensor.shapes[0], found.position);
        let [a, b] = values(tensor, found).map(|value| printable(&value).into_owned());
        let label = match what {
            FIRST => what.to_owned(),
            NOT_FINITE => format!("{} with nan or inf, first", findings.not_finite),
            _ => format!("{what} {}", shown(found.difference)),
        };
        let are_nan = what == NOT_FINITE && [&*a, &*b] == ["nan", "nan"];
        let hint = if are_nan { " (--equal-nan takes them for equal)" } else { "" };
        text.push_str(&format!("  {label} at {}: {a} and {b}{hint}\n", AsList(&at)));
    }
    text
}

/// Labels for differences that are not numbers.
const FIRST: &str = "first";
const NOT_FINITE: &str = "nan or inf";

fn found(findings: &Findings) -> Vec<(&'static str, &Largest)> {
    let first = findings.first.iter().map(|found| (FIRST, found));
    let not_finite = findings.first_not_finite.iter().map(|found| (NOT_FINITE, found));
    let absolute = findings.absolute.iter().map(|found| ("largest absolute difference", found));
    let relative = findings.relative.iter().map(|found| ("largest relative difference", found));
    first.chain(not_finite).chain(absolute).chain(relative).collect()
}

fn as_json(tensor: &Compared) -> Value {
    let mut value = json!({
        "name": tensor.name,
        "same": !tensor.differs(),
        "shapes": tensor.shapes,
        "dtypes": tensor.dtypes.each_ref().map(ToString::to_string),
    });
    let Some(findings) = &tensor.findings else { return value };
    value["elements"] = count(tensor).into();
    value["differing"] = findings.differing.into();
    for (what, found) in found(findings) {
        let [a, b] = values(tensor, found);
        let mut entry = match what {
            FIRST => json!({}),
            NOT_FINITE => json!({ "differing": findings.not_finite }),
            _ if found.difference.is_finite() => json!({ "difference": found.difference }),
            _ => json!({ "difference": "Infinity" }),
        };
        entry["place"] = json!(position_of(&tensor.shapes[0], found.position));
        entry["values"] = json!([a, b]);
        value[what.replace(' ', "_")] = entry;
    }
    value
}
