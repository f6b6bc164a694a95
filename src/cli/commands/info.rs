//! `tslice info INPUT...`: list the contents of files, each as `listing` says it.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};
use tslice::digest::Digest;
use tslice::error::Cause;
use tslice::execute::Workers;
use tslice::formats::gguf::MetadataError;
use tslice::input::{Input, Location, MissingChunks, OpenOptions, remote_folder};
use tslice::job::reindex;
use tslice::source::note_will_read;
use tslice::source::remote::{Address, FolderEntry};
use tslice::tensor::{printable, shortened};

use super::digest::{Check, Digests};
use super::input;
use super::listing::{ShownFile, key, lacking_chunks, row, write_json, write_text};
use super::tensors::Totals;
use crate::cli::args::{InfoArgs, InfoColumn};
use crate::cli::report::{
    Align, Exit, Failure, Json, SortKey, Table, counted, print, print_by, sort_rows,
};

/// Files that need one line each, and their total: held until all inputs are read, or until one
/// needs more lines, when each is printed in full.
#[derive(Default)]
struct OneLineFiles {
    rows: Vec<OneLine>,
    totals: Totals,
}

struct OneLine {
    cells: [String; 7],
    key: Option<SortKey<'static>>,
    /// The full text, in case another file needs more lines.
    block: String,
}

impl OneLineFiles {
    fn hold(&mut self, input: &Input, number: usize, block: String, sort: Option<InfoColumn>) {
        self.totals.add(&input.contents().tensors.at(number));
        let [name, dtype, shape, bytes, order, offset, _] = row(input, number).map(Cow::into_owned);
        let file = printable(&input.location().to_string()).into_owned();
        let key = sort.map(|column| match key(input, number, column) {
            SortKey::Text(text) => SortKey::Text(text.into_owned().into()),
            SortKey::Shape(shape) => SortKey::Shape(shape),
            SortKey::LargestShape(shape) => SortKey::LargestShape(shape),
            SortKey::Amount(amount) => SortKey::Amount(amount),
            SortKey::Number(number) => SortKey::Number(number),
        });
        let cells = [name, dtype, shape, bytes, order, offset, file];
        self.rows.push(OneLine { cells, key, block });
    }

    fn print_blocks(&mut self) -> Result<(), Failure> {
        self.rows.drain(..).try_for_each(|row| print(&row.block))
    }

    fn print_lines(mut self, columns: &[InfoColumn]) -> Result<(), Failure> {
        if self.rows.len() < 2 {
            return self.print_blocks();
        }
        self.rows.sort_by(|one, other| match (&one.key, &other.key) {
            (Some(one), Some(other)) => one.order(other),
            _ => std::cmp::Ordering::Equal,
        });
        let has_names = self.rows.iter().any(|row| row.cells[0] != "-");
        let heading = ["name", "dtype", "shape", "bytes", "order", "offset", "file"];
        let heading = [heading.map(str::to_owned)];
        let lines = || heading.iter().chain(self.rows.iter().map(|row| &row.cells));
        let left = Align::Left;
        let right = Align::Right;
        let table = Table::of(lines(), [left, left, left, right, left, right, left], 0);
        let file = InfoColumn::File as usize;
        let mut shown = vec![file];
        if columns.is_empty() {
            shown.extend(
                (usize::from(!has_names)..file).filter(|at| *at != InfoColumn::Offset as usize),
            );
        } else {
            shown.extend(columns.iter().map(|&column| column as usize).filter(|at| *at != file));
        }
        let table = table.columns(shown);
        let text: String = lines().map(|line| table.line(line)).collect();
        print(&format!("{text}{}\n", self.totals))
    }
}

/// The most inputs that stay open until they are printed: more could exceed the limit on descriptors.
const MOST_HELD: usize = 64;

/// Describe every file; the others are shown even if one cannot be read.
pub(super) fn run(args: &InfoArgs) -> Result<Exit, Failure> {
    let mut args = args.clone();
    args.inputs.names.inputs = input::paths(&args.inputs)?;
    let columns = args.split_columns();
    if args.json && !columns.is_empty() {
        return Err(Failure::usage("--json cannot be used with --columns"));
    }
    let options = input::options_of_several(&args.from, None, &Workers::default())?;
    if let Some(manifest) = &args.check {
        let mut check = Check::new(&args, manifest)?;
        let mut held = Vec::new();
        for path in args.paths() {
            let opened = open(path, &options, &args)?;
            check.meet(&opened.0, &opened.1.tensors);
            let is_held = held.len() < MOST_HELD || path == Path::new("-");
            held.push(is_held.then_some(opened));
        }
        check.tell_missing()?;
        for (path, opened) in args.paths().iter().zip(held) {
            let (mut input, shown) = opened.map_or_else(|| open(path, &options, &args), Ok)?;
            check.compare(&mut input, &shown.tensors)?;
        }
        return Ok(check.exit());
    }
    let mut listing = Listing {
        options,
        columns,
        described: 0,
        uses_raw_flags: false,
        one_liners: OneLineFiles::default(),
        are_one_liners: !args.json && !args.digest && !args.tree && args.paths().len() > 1,
        failed: None,
        args: &args,
    };
    args.paths().iter().for_each(|path| note_will_read(path));
    for path in args.paths() {
        listing.describe(path)?;
    }
    listing.finish().map(|()| Exit::Done)
}

struct Listing<'a> {
    args: &'a InfoArgs,
    columns: Vec<InfoColumn>,
    options: OpenOptions,
    described: usize,
    uses_raw_flags: bool,
    one_liners: OneLineFiles,
    are_one_liners: bool,
    failed: Option<Failure>,
}

impl Listing<'_> {
    /// Store this failure, and print the one before: the command ends with the last one.
    fn fail(&mut self, failure: Failure) {
        if let Some(earlier) = self.failed.replace(failure) {
            earlier.print();
        }
    }

    fn describe(&mut self, path: &Path) -> Result<(), Failure> {
        if let Location::Remote(address) = input::location(path)
            && address.is_folder()
            && !address.is_zarr()
        {
            self.one_liners.print_blocks()?;
            self.are_one_liners = false;
            match list(&address, self.described, self.args.json) {
                Ok(()) => self.described += 1,
                Err(failure) => self.fail(failure),
            }
            return Ok(());
        }
        match self.open(path) {
            Ok((mut input, shown)) => self.show(&mut input, &shown),
            Err(failure) => {
                self.fail(failure);
                Ok(())
            }
        }
    }

    fn open(&self, path: &Path) -> Result<(Input, ShownFile), Failure> {
        if self.args.reindex {
            reindex(&input::location(path), &self.options)?;
        }
        open(path, &self.options, self.args)
    }

    fn show(&mut self, input: &mut Input, shown: &ShownFile) -> Result<(), Failure> {
        self.are_one_liners &= shown.needs_one_line(input);
        if self.are_one_liners {
            if let [number] = *shown.tensors {
                let mut block = Vec::new();
                // memory takes all, and nothing is read for this
                let _ = write_text(&mut block, input, shown, &self.columns, self.args.tree);
                let block = String::from_utf8_lossy(&block).into_owned();
                self.one_liners.hold(input, number, block, self.args.sort);
            }
        } else {
            self.one_liners.print_blocks()?;
            match self.digests(input, shown) {
                Ok(_) if self.args.digest && !self.args.json => {}
                Ok(digests) => self.print(input, shown, &digests)?,
                Err(failure) => {
                    self.fail(failure);
                    return Ok(());
                }
            }
            if let Some(failure) = incomplete(input, shown) {
                self.fail(failure);
            }
            if self.options.missing_chunks == MissingChunks::Error
                && let Some(failure) = refuse_lacking_chunks(input, shown)
            {
                self.fail(failure);
            }
        }
        self.uses_raw_flags |= self.options.raw.check_used([&*input]).is_ok();
        self.described += 1;
        Ok(())
    }

    /// The digests that are shown beside the tensors. A list of them alone is printed.
    fn digests(&self, input: &mut Input, shown: &ShownFile) -> Result<Vec<Digest>, Failure> {
        let mut digests = Vec::new();
        if self.args.digest && self.args.json {
            Digests::new(self.args).each(input, &shown.tensors, |_, some| {
                digests.extend(some.iter().map(|(_, digest)| *digest));
                Ok(())
            })?;
        } else if self.args.digest {
            Digests::new(self.args).print(input, &shown.tensors)?;
        }
        Ok(digests)
    }

    fn print(&self, input: &Input, shown: &ShownFile, digests: &[Digest]) -> Result<(), Failure> {
        let mut unread: Option<Cause> = None;
        print_by(|out| {
            let written = if self.args.json {
                out.write_all(if self.described == 0 { b"[" } else { b"," })?;
                write_json(out, input, shown, digests)
            } else {
                write_text(out, input, shown, &self.columns, self.args.tree)
            };
            written.or_else(|error| match error {
                MetadataError::Write(error) => Err(error),
                MetadataError::Read(error) => {
                    unread = Some(error);
                    Ok(())
                }
            })
        })?;
        match unread {
            Some(error) => Err(Failure::new(format_args!("{}: {error}", input.location()))),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        self.one_liners.print_lines(&self.columns)?;
        let mut failed = self.failed;
        if !self.uses_raw_flags && self.described > 0 {
            failed = failed.or_else(|| self.options.raw.check_used([]).err().map(Failure::from));
        }
        if self.args.json {
            print(if self.described == 0 { "[]\n" } else { "]\n" })?;
        }
        failed.map_or(Ok(()), |failure| Err(Failure { exit: Exit::Failed, ..failure }))
    }
}

/// The error of a tensor that lacks chunks.
fn refuse_lacking_chunks(input: &Input, shown: &ShownFile) -> Option<Failure> {
    shown.tensors(input).find_map(|tensor| {
        let chunks = lacking_chunks(&tensor)?;
        let of = tensor.name.as_deref().map(|name| format!("tensor {:?}: ", shortened(name)));
        Some(Failure::new(format_args!("{}: {}{chunks}", input.location(), of.unwrap_or_default())))
    })
}

/// The most files with missing tensors that are named.
const MOST_SHARDS: usize = 3;

fn incomplete(input: &Input, shown: &ShownFile) -> Option<Failure> {
    let mut tensors = 0;
    let mut files = 0;
    let mut shards: Vec<&str> = Vec::new();
    for it in shown.missing(input) {
        if it.tensor.is_none() {
            files += 1;
            continue;
        }
        tensors += 1;
        if shards.len() <= MOST_SHARDS && !shards.contains(&it.file) {
            shards.push(it.file);
        }
    }
    let are_few = (1..=MOST_SHARDS).contains(&shards.len());
    let of = if are_few { format!(" of {}", shards.join(", ")) } else { String::new() };
    let said = [
        (shown.unreadable.len() as u64, "tensor", "cannot be read"),
        (tensors, "tensor", "missing"),
        (files, "file", "missing"),
    ];
    let said = said.into_iter().filter(|(count, ..)| *count > 0).map(|(count, what, how)| {
        let is = match (how, count) {
            ("missing", 1) => " is",
            ("missing", _) => " are",
            _ => "",
        };
        let of = if how == "missing" && what == "tensor" { &*of } else { "" };
        format!("{}{of}{is} {how}", counted(count, what))
    });
    let said: Vec<String> = said.collect();
    let failure = || Failure::new(format_args!("{}: {}", input.location(), said.join(", ")));
    (!said.is_empty()).then(failure)
}

/// List the entries of a folder in an object store; `described` is the number of inputs before it.
fn list(address: &Address, described: usize, json: bool) -> Result<(), Failure> {
    let entries = remote_folder(address)?;
    print_by(|out| {
        if json {
            let entry = |it: &FolderEntry| json!({ "name": it.name, "bytes": it.bytes });
            let entries: Vec<Value> = entries.iter().map(entry).collect();
            let folder = json!({ "folder": address.to_string(), "entries": entries });
            return write!(out, "{}{}", if described == 0 { "[" } else { "," }, Json(&folder));
        }
        let folders = entries.iter().filter(|entry| entry.bytes.is_none()).count() as u64;
        let files = counted(entries.len() as u64 - folders, "file");
        let shown = printable(&address.to_string()).into_owned();
        writeln!(out, "{shown}: {files}, {}", counted(folders, "folder"))?;
        let bytes = |it: &FolderEntry| it.bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let row = |it: &FolderEntry| [printable(&it.name).into_owned(), bytes(it)];
        let rows: Vec<[String; 2]> = std::iter::once(["name".to_owned(), "bytes".to_owned()])
            .chain(entries.iter().map(row))
            .collect();
        let table = Table::of(rows.iter().cloned(), [Align::Left, Align::Right], 2);
        rows.iter().try_for_each(|row| out.write_all(table.line(row).as_bytes()))
    })?;
    Ok(())
}

/// Open a file, and choose the tensors to show, in the order asked for.
fn open(
    path: &Path,
    options: &OpenOptions,
    args: &InfoArgs,
) -> Result<(Input, ShownFile), Failure> {
    let input = tslice::formats::open(&input::location(path), options)?;
    let count = input.contents().tensors.len();
    let chooses = !options.tensors.is_empty() || !options.exclude.is_empty();
    let mut tensors = if chooses {
        input.find_named(&options.tensors)?
    } else {
        (0..count + input.unreadable().len() + input.missing_count()).collect()
    };
    // the numbers of unreadable entries follow the numbers of the tensors
    let beyond = tensors.partition_point(|&number| number < count);
    let mut unreadable = Vec::new();
    let mut missing = Vec::new();
    for number in tensors.split_off(beyond) {
        match (number - count).checked_sub(input.unreadable().len()) {
            None => unreadable.push(number - count),
            Some(number) => missing.push(number),
        }
    }
    let missing = chooses.then_some(missing);
    let all = &input.contents().tensors;
    if let Some(least) = args.min_bytes {
        tensors.retain(|&number| all.at(number).bytes() >= least);
    }
    if let Some(column) = args.sort {
        sort_rows(&mut tensors, |number| key(&input, number, column));
    }
    Ok((input, ShownFile { tensors, unreadable, missing }))
}
