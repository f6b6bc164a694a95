//! `tslice concat INPUT...` and `tslice stack INPUT...`: files into one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use tslice::cast::CastError;
use tslice::error::ContainerError;
use tslice::execute::Progress;
use tslice::input::{Location, OpenOptions};
use tslice::job::{Along, JoinOptions, Joined};
use tslice::region::IndexRules;
use tslice::sink::Part;
use tslice::source::note_read;

use super::cast;
use super::index::Index;
use super::part::{self, Share};
use super::{input, output};
use crate::cli::args::JoinArgs;
use crate::cli::report::{Failure, print, watch};

/// Join along an axis that the inputs have.
pub(super) fn concat(args: &JoinArgs) -> Result<(), Failure> {
    run(args, Along::Existing)
}

/// Join along a new axis.
pub(super) fn stack(args: &JoinArgs) -> Result<(), Failure> {
    run(args, Along::New)
}

fn run(args: &JoinArgs, along: Along) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let rules = IndexRules { keepdims: args.keepdims, outer: args.outer };
    let index = Index::of_text(args.index.as_deref(), rules)?;
    if let Some(list) = &args.names.files_from {
        index.refuse_stdin(("--files-from", list))?;
    }
    let workers = output::workers(args.to.threads);
    let output = output::open(&args.to, &workers)?;
    let locations = locations(args)?;
    if locations.contains(&Location::Stdin) {
        index.refuse_stdin(("INPUT", Path::new("-")))?;
    }
    let index = index.open_lists(args.from.io, &workers, args.to.quiet)?;
    let options = JoinOptions {
        along,
        axes: input::axes(&args.axis)?,
        open: OpenOptions {
            rest: args.keep_rest,
            fields: args.field.field.clone(),
            ..input::options_of_several(&args.from)?
        },
        index: index.of_job(),
        casts: cast::parse(&args.cast)?,
        workers,
    };
    let failed = |error: ContainerError| match error.cause.downcast_ref::<CastError>() {
        Some(_) => cast::advised(error),
        None => index.failure(error),
    };
    let holds_several = output.format().holds_several;
    let joined = Joined::open(&locations, options);
    let mut joined = joined.map_err(|error| failed(error.of_several(holds_several)))?;
    cast::refuse_unused(joined.casts(), joined.dtypes())?;
    let prepared = joined.prepare(&output).map_err(failed)?;
    if !args.to.dry_run {
        output::refuse_binary_terminal(&output)?;
    }
    let quiet = args.to.quiet;
    if let (Share::Part(Part { count, .. }) | Share::Plan(count), false) = (&share, args.to.dry_run)
    {
        let parts = joined.parts(&output, &prepared, *count).map_err(failed)?;
        return part::run(parts, &share, quiet, failed);
    }
    let (progress, bytes) = (Progress::default(), joined.rest_bytes()?);
    watch(&progress, bytes, quiet, || joined.check(&output, &prepared, &progress))
        .map_err(failed)?;
    if args.to.dry_run {
        return print(&match share {
            Share::Part(one) => {
                let parts = joined.parts(&output, &prepared, one.count).map_err(failed)?;
                output::planned_part(&parts, one).map_err(failed)?
            }
            Share::Whole | Share::Plan(_) => {
                let requests = output::requests(|| joined.announced(&output, &prepared));
                let requests = requests.map_err(failed)?;
                let shared = joined.shared(&output, &prepared).map_err(failed)?;
                output::planned(&output, &prepared, shared) + &requests
            }
        });
    }
    let progress = Progress::default();
    watch(&progress, prepared.bytes, quiet, || joined.write(&output, &prepared, &progress))
        .map_err(failed)
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
