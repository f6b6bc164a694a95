//! `tslice info --digest` and `--check`: digests of tensors, and whether they are those of a manifest.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tslice::digest::Digest;
use tslice::execute::Workers;
use tslice::format::printable;
use tslice::input::{Input, Pattern};
use tslice::job;

use super::output;
use crate::cli::args::InfoArgs;
use crate::cli::report::{Exit, Failure, print, watch};

/// Tensors that are hashed before a line of them is printed: so many digests are held.
const TOGETHER: usize = 1 << 12;

pub(super) struct Digests<'a> {
    pub(super) args: &'a InfoArgs,
    workers: Workers,
}

impl Digests<'_> {
    pub(super) fn new(args: &InfoArgs) -> Digests<'_> {
        Digests { args, workers: output::workers(args.threads) }
    }

    /// Hand each tensor's number and digest to `visit`, in order.
    pub(super) fn each(
        &self,
        input: &mut Input,
        numbers: &[usize],
        mut visit: impl FnMut(&Input, &[(usize, Digest)]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for some in numbers.chunks(TOGETHER) {
            let bytes = some.iter().map(|&number| input.contents().tensors.at(number).bytes());
            let digests = watch(bytes.sum(), self.args.quiet, |progress| {
                job::digests(input, some, &self.workers, progress)
            })?;
            let digests: Vec<_> = some.iter().copied().zip(digests).collect();
            visit(input, &digests)?;
        }
        Ok(())
    }

    pub(super) fn print(&self, input: &mut Input, numbers: &[usize]) -> Result<(), Failure> {
        self.each(input, numbers, |input, digests| {
            let line = |&(number, digest): &(usize, Digest)| {
                format!("{digest}  {}\n", name(input, number))
            };
            print(&digests.iter().map(line).collect::<String>())
        })
    }
}

/// The name of a tensor in a manifest.
fn name(input: &Input, number: usize) -> Cow<'_, str> {
    input.contents().tensors.name(number).map_or("-".into(), printable)
}

/// Refuse what cannot be compared with a manifest.
pub(super) fn only_input<'a>(args: &'a InfoArgs, manifest: &Path) -> Result<&'a Path, Failure> {
    match &args.inputs[..] {
        [path] if path == Path::new("-") && manifest == path => {
            Err(Failure::usage("standard input cannot be both INPUT and --check"))
        }
        [path] => Ok(path),
        _ => Err(Failure::usage("--check is for one INPUT")),
    }
}

/// Compare the tensors with these numbers with a manifest; what is missing, extra or another is named on a line.
pub(super) fn check(
    args: &InfoArgs,
    manifest: &Path,
    input: &mut Input,
    numbers: &[usize],
) -> Result<Exit, Failure> {
    let mut by_name = numbers.to_vec();
    by_name.sort_unstable_by_key(|&number| name(input, number));
    let mut expected: Vec<Option<Digest>> = vec![None; numbers.len()];
    let mut exit = Exit::Done;
    let mut tell = |text: String| {
        exit = Exit::Different;
        print(&text)
    };
    let is_asked_for = asked_for(args)?;
    each_line(manifest, |digest, of| {
        match by_name.binary_search_by(|&number| name(input, number).as_ref().cmp(of)) {
            Ok(at) => {
                let earlier = expected[at].replace(digest);
                return Ok(earlier.is_none_or(|earlier| earlier == digest));
            }
            Err(_) if is_asked_for(of) => tell(format!("{of}: missing\n"))?,
            Err(_) => {}
        }
        Ok(true)
    })?;
    Digests::new(args).each(input, numbers, |input, digests| {
        for (number, digest) in digests {
            let of = name(input, *number);
            let at = by_name.binary_search_by(|&other| name(input, other).cmp(&of));
            match at.ok().and_then(|at| expected[at]) {
                None => tell(format!("{of}: extra\n"))?,
                Some(expected) if expected != *digest => tell(format!("{of}: another\n"))?,
                Some(_) => {}
            }
        }
        Ok(())
    })?;
    Ok(exit)
}

/// Whether -t and --exclude mean a name.
fn asked_for(args: &InfoArgs) -> Result<impl Fn(&str) -> bool, Failure> {
    fn patterns(texts: &[String]) -> Result<Vec<Pattern<'_>>, Failure> {
        texts.iter().map(|text| Pattern::new(text).map_err(Failure::usage)).collect()
    }
    let chosen = patterns(&args.from.tensor)?;
    let excluded = patterns(&args.from.exclude)?;
    Ok(move |name: &str| {
        let is_one = |patterns: &[Pattern<'_>]| patterns.iter().any(|one| one.is_match(name));
        (chosen.is_empty() || is_one(&chosen)) && !is_one(&excluded)
    })
}

/// Visit the lines of a manifest, `DIGEST  NAME`; false where a line contradicts an earlier one.
fn each_line(
    manifest: &Path,
    mut visit: impl FnMut(Digest, &str) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let unreadable = |what: &dyn Display| {
        let message = format!("{}: {what}", printable(&manifest.display().to_string()));
        Failure { exit: Exit::Usage, ..Failure::new(message) }
    };
    let read = |error: io::Error| unreadable(&error);
    let file: Box<dyn Read> = if manifest == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(fs::File::open(manifest).map_err(read)?)
    };
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(read)?;
        let parsed = line.split_once("  ");
        let parsed = parsed.and_then(|(digest, name)| Some((digest.parse().ok()?, name)));
        let Some((digest, name)) = parsed else {
            return Err(unreadable(&format!(
                "line {number} is not a digest, two spaces and a name"
            )));
        };
        if !visit(digest, name)? {
            return Err(unreadable(&format!("line {number} has a second digest of {name}")));
        }
    }
    Ok(())
}
