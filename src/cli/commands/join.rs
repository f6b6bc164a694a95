//! `tslice concat INPUT...` and `tslice stack INPUT...`: files into one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use tslice::internals::index::resolve::Rules;
use tslice::internals::input::{Location, OpenOptions};
use tslice::internals::job::{Along, JoinOptions, Joining};
use tslice::internals::source::note_read;

use super::index::Index;
use super::{input, output, part, result};
use crate::cli::args::JoinArgs;
use crate::cli::report::Failure;

/// Join along an axis that the inputs have, or a new one.
pub(super) fn run(args: &JoinArgs, along: Along) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let rules = Rules { keepdims: args.keepdims, outer: args.outer };
    let index = Index::of_text(args.index.as_deref(), rules)?;
    if let Some(list) = &args.names.files_from {
        index.refuse_stdin("--files-from", list)?;
    }
    let workers = output::workers(args.to.threads);
    let output = output::open(&args.to, &workers)?;
    let locations = locations(args)?;
    if locations.contains(&Location::Stdin) {
        index.refuse_stdin("INPUT", Path::new("-"))?;
    }
    let index = index.open_lists(args.from.io, &workers, args.to.quiet)?;
    let options = JoinOptions {
        along,
        axes: input::axes(&args.axis)?,
        open: OpenOptions { rest: args.keep_rest, ..input::options_of_several(&args.from)? },
        fields: args.field.field.clone(),
        index: index.of_job(),
        casts: result::casts(&args.cast)?,
        workers,
    };
    let failed = |error| index.failure(error);
    let mut job = Joining::new(&locations, options, output).map_err(failed)?;
    output::run(&mut job, &args.to, &share, failed)
}

/// The inputs, named one by one or in a file.
fn locations(args: &JoinArgs) -> Result<Vec<Location>, Failure> {
    let Some(list) = &args.names.files_from else {
        return Ok(args.names.inputs.iter().map(|path| input::location(path)).collect());
    };
    let failed = |error: io::Error| Failure::file(list, error);
    let mut text = Vec::new();
    match list == Path::new("-") {
        true => {
            note_read(io::stdin(), || "standard input".to_owned());
            io::stdin().lock().read_to_end(&mut text)
        }
        false => File::open(list).and_then(|mut file| {
            note_read(&file, || list.display().to_string());
            file.read_to_end(&mut text)
        }),
    }
    .map_err(failed)?;
    let (end, ends) = if args.null { (0, "NUL") } else { (b'\n', "line") };
    let text = text.strip_suffix(&[end]).unwrap_or(&text);
    if text.is_empty() {
        return Err(Failure::file(list, "no input is named in it"));
    }
    let mut locations = Vec::new();
    for (number, name) in text.split(|&byte| byte == end).enumerate() {
        if name.is_empty() {
            let number = number + 1;
            return Err(Failure::file(list, format_args!("{ends} {number} is empty")));
        }
        let location = input::location(Path::new(&OsString::from_vec(name.to_vec())));
        if location == Location::Stdin && list == Path::new("-") {
            let words = "standard input holds the names, and cannot be one of the inputs";
            return Err(Failure::usage(words));
        }
        locations.push(location);
    }
    Ok(locations)
}
