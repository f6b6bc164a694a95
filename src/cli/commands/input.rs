//! From the arguments of an input to an opened one.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::formats::safetensors::texts_of_json;
use tslice::formats::text::ROUNDED;
use tslice::input::{
    Input, Location, Notes, OpenOptions, RawLayout, ReadAs, TextOptions, UseOfIndex,
};
use tslice::job::{Axes, NewName};
use tslice::region::MASK_MEANT;
use tslice::shape;
use tslice::shape::AskedAxis;
use tslice::sink::{expanded, name_of};
use tslice::source::note_read;

use super::index;
use super::index::list;
use crate::cli::args::{AxisArg, CheckpointArgs, InputArgs, InputsArgs};
use crate::cli::report::{Failure, plain, watch};

/// `-` is standard input.
pub(super) fn location(path: &Path) -> Location {
    match path.to_str() {
        Some("-") => Location::Stdin,
        _ => Location::of(path),
    }
}

pub(super) fn locations(args: &InputsArgs) -> Result<Vec<Location>, Failure> {
    Ok(paths(args)?.iter().map(|path| location(path)).collect())
}

/// The names of inputs, typed or in a list.
pub(super) fn paths(args: &InputsArgs) -> Result<Vec<PathBuf>, Failure> {
    match &args.names.files_from {
        Some(list) => listed(list, args.null),
        None => Ok(args.names.inputs.iter().flat_map(|path| expanded(path)).collect()),
    }
}

/// The names in a list, which end with NUL bytes or are one a line.
pub(super) fn listed(list: &Path, null: bool) -> Result<Vec<PathBuf>, Failure> {
    let text = read_text(list).map_err(|error| Failure::file(list, error))?;
    let (end, ends) = if null { (0, "NUL") } else { (b'\n', "line") };
    let text = if null { &text[..] } else { text.strip_prefix(BOM).unwrap_or(&text) };
    if !null && text.contains(&0) {
        let failure = Failure::file(list, "its names end with NUL bytes, not with lines");
        return Err(failure.hint("-0 reads such a list"));
    }
    let text = text.strip_suffix(&[end]).unwrap_or(text);
    if text.is_empty() {
        return Err(Failure::file(list, "no input is named in it"));
    }
    let mut paths = Vec::new();
    for (number, name) in text.split(|&byte| byte == end).enumerate() {
        let name = if null { name } else { without_return(name) };
        if name.is_empty() {
            let number = number + 1;
            return Err(Failure::file(list, format_args!("{ends} {number} is empty")));
        }
        let path = PathBuf::from(name_of(name.to_vec()));
        if path == Path::new("-") && list == Path::new("-") {
            let words = "standard input holds the names, and cannot be one of the inputs";
            return Err(Failure::usage(words));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The byte order mark that editors of Windows put at the beginning of a text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line without a carriage return at its end, as lines of Windows have, unless that is part of a
/// file's name.
fn without_return(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\r") {
        Some(short) if !Path::new(&name_of(line.to_vec())).exists() => short,
        _ => line,
    }
}

/// `-` is standard input.
pub(super) fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if path == Path::new("-") {
        note_read(io::stdin(), || "standard input".to_owned());
        io::stdin().lock().read_to_end(&mut text)?;
    } else {
        let mut file = File::open(path)?;
        note_read(&file, || path.display().to_string());
        file.read_to_end(&mut text)?;
    }
    Ok(text)
}

/// Open an input, with a progress bar: the end of a pipe may have to be read first.
pub(super) fn open_watched(
    location: &Location,
    options: &OpenOptions,
    quiet: bool,
) -> Result<Input, Error> {
    watch(0, quiet, |progress| tslice::formats::open_watched(location, options, progress))
}

pub(super) fn options(
    from: &InputArgs,
    field: Option<&str>,
    workers: &Workers,
) -> Result<OpenOptions, Failure> {
    let io = from.io;
    let mut raw = raw(from)?;
    let tensors = from.tensor.clone();
    raw.text.fields = field.map(str::to_owned);
    let read_as = from.read_as.as_deref().map(|text| {
        let (from, to) = text.split_once(':').map_or((None, text), |(from, to)| (Some(from), to));
        let from = from.map(|from| index::dtype("--as", from)).transpose()?;
        let fields = field.map(str::to_owned);
        Ok(ReadAs { dtype: index::dtype("--as", to)?, from, tensors: tensors.clone(), fields })
    });
    let read_as = read_as.transpose().map_err(|failure: Failure| failure)?;
    Ok(OpenOptions {
        io,
        raw,
        tensors,
        exclude: from.exclude.clone(),
        read_as,
        unpack: from.unpack,
        drain: from.drain,
        index: use_of_index(from.index),
        notes: notes(),
        missing_chunks: from.missing_chunks,
        workers: workers.clone(),
        ..OpenOptions::default()
    })
}

fn use_of_index(args: CheckpointArgs) -> UseOfIndex {
    match args {
        CheckpointArgs { strict: true, .. } => UseOfIndex::Strict,
        CheckpointArgs { no_index: true, .. } => UseOfIndex::Ignored,
        CheckpointArgs { index_only: true, .. } => UseOfIndex::Only,
        _ => UseOfIndex::Followed,
    }
}

/// Print each note once, on standard error.
pub(super) fn notes() -> Notes {
    let said = Mutex::new(HashSet::new());
    Notes::to(move |note| {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(note.to_owned()) {
            let hint = match note {
                note if note.ends_with(ROUNDED) => Some("--dtype int64 keeps them"),
                note if note.ends_with(MASK_MEANT) => {
                    Some("`tslice FILE --as bool -o MASK.npy` makes a mask of it")
                }
                _ => None,
            };
            Failure::new(plain(note)).hint_if(hint).print_note();
        }
    })
}

/// The options for one of several inputs, of which only some may be raw bytes.
pub(super) fn options_of_several(
    from: &InputArgs,
    field: Option<&str>,
    workers: &Workers,
) -> Result<OpenOptions, Failure> {
    let mut options = options(from, field, workers)?;
    options.raw.several = true;
    Ok(options)
}

pub(super) fn axes(args: &[AxisArg]) -> Result<Axes, Failure> {
    let mut plain = args.iter().filter(|arg| arg.pattern.is_none());
    let default = plain.next().map_or_else(AskedAxis::default, |arg| arg.axis.clone());
    if plain.next().is_some() {
        return Err(Failure::usage("--axis is given twice for all tensors")
            .hint("--axis NAME=AXIS is for the tensors of a name or glob"));
    }
    let named = args.iter().filter_map(|arg| Some((arg.pattern.clone()?, arg.axis.clone())));
    Ok(Axes { default, named: named.collect() })
}

/// The new names in a file, `OLD=NEW` a line or a JSON object, then the new names of the command line.
pub(super) fn renames(typed: &[String], from: Option<&Path>) -> Result<Vec<NewName>, Failure> {
    let mut names = Vec::new();
    if let Some(path) = from {
        let failed =
            |error: &dyn Display| Failure::file(path, format_args!("--rename-from: {error}"));
        let text = read_text(path).map_err(|error| failed(&error))?;
        let text = String::from_utf8(text).map_err(|_| failed(&"it is not UTF-8"))?;
        let inside = text.trim_start().strip_prefix('{').map(str::trim_start);
        if inside.is_some_and(|inside| inside.starts_with(['"', '}'])) {
            let pairs = texts_of_json(text.as_bytes()).map_err(|error| failed(&error))?;
            names.extend(pairs.iter().map(|(old, new)| NewName::of_pair(old, new)));
        } else {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                if !line.contains('=') {
                    return Err(failed(&format_args!("line {}: OLD=NEW is needed", at + 1)));
                }
                names.push(NewName::from(line.to_owned()));
            }
        }
        names.iter_mut().for_each(|name| name.in_table = true);
    }
    names.extend(typed.iter().cloned().map(NewName::from));
    Ok(names)
}

fn raw(from: &InputArgs) -> Result<RawLayout, Failure> {
    let args = &from.raw;
    let text = &from.text;
    Ok(RawLayout {
        dtype: args.dtype.as_deref().map(|text| index::dtype("--dtype", text)).transpose()?,
        shape: args.shape.as_deref().map(parse_shape).transpose()?,
        offset: args.offset,
        order: args.input_order,
        several: false,
        text: TextOptions {
            format: text.from_text,
            delimiter: text.delimiter.as_deref().map(parse_delimiter).transpose()?,
            skip_rows: text.skip_rows,
            missing: text
                .missing
                .iter()
                .flat_map(|words| words.split(','))
                .map(str::to_owned)
                .collect(),
            names: text.names_columns,
            fields: None,
            columns: text.columns.as_deref().map(parse_columns).transpose()?,
        },
    })
}

fn parse_delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'#' | b'\n' | b'\r'] => Err(Failure::usage(format_args!(
            "--delimiter: {text:?} cannot separate columns: it begins a comment or ends a line"
        ))),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Failure::usage(format_args!("--delimiter: '{text}' is not one ASCII character"))),
    }
}

fn parse_columns(words: &[String]) -> Result<Vec<i64>, Failure> {
    let number = |word: &String| {
        let number = word.trim().parse();
        number.map_err(|_| {
            Failure::usage(format_args!("--columns: '{word}' is not the number of a column"))
                .hint("columns are counted from 0, negative ones from the end: --columns 0,-1")
        })
    };
    words.iter().map(number).collect()
}

fn parse_shape(text: &str) -> Result<Vec<Option<u64>>, Failure> {
    let list = list("--shape", text)?;
    if list.len() > shape::MAX_NDIM {
        return Err(Failure::usage(format_args!(
            "--shape: {} axes, at most {} are possible",
            list.len(),
            shape::MAX_NDIM
        )));
    }
    if list.iter().filter(|&&len| len == -1).count() > 1 {
        return Err(Failure::usage("--shape: one length may be -1, not several"));
    }
    let length = length("--shape", "an axis");
    list.into_iter().map(|len| (len != -1).then(|| length(len)).transpose()).collect()
}

/// Check that a number is a length; messages name `flag`, and call the number `what`.
pub(super) fn length(flag: &str, what: &str) -> impl Fn(i64) -> Result<u64, Failure> {
    move |len| {
        let wrong = |_| Failure::usage(format_args!("{flag}: {len} is not a length of {what}"));
        u64::try_from(len).map_err(wrong)
    }
}
