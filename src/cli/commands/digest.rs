//! `tslice info --digest` and `--check`: print digests of tensors, or compare them with a manifest.
//!
//! A line is `DIGEST  NAME`, as `sha256sum` writes it. A line that begins with a backslash has escapes in its name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use tslice::digest::Digest;
use tslice::execute::Workers;
use tslice::input::{Input, Pattern};
use tslice::job;
use tslice::tensor::printable;

use super::{output, tensors};
use crate::cli::args::InfoArgs;
use crate::cli::report::{Exit, Failure, plain, print, watch};

/// The number of tensors that are hashed before their lines are printed.
const TOGETHER: usize = 1 << 12;

pub(super) struct Digests<'a> {
    pub(super) args: &'a InfoArgs,
    workers: Workers,
}

impl Digests<'_> {
    pub(super) fn new(args: &InfoArgs) -> Digests<'_> {
        Digests { args, workers: output::workers(args.threads) }
    }

    /// Pass each tensor's number and digest to `visit`, in order.
    pub(super) fn each(
        &self,
        input: &mut Input,
        numbers: &[usize],
        mut visit: impl FnMut(&Input, &[(usize, Digest)]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        tensors::note_packed(tensors::of_numbers(input, numbers));
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
                let name = self.name(input, number);
                let (mark, name) = escaped(&name);
                format!("{mark}{digest}  {}\n", shown(&name))
            };
            print(&digests.iter().map(line).collect::<String>())
        })
    }

    /// The name of a tensor in a manifest: after the name of its file if there are several.
    fn name<'i>(&self, input: &'i Input, number: usize) -> Cow<'i, str> {
        let name = input.contents().tensors.name(number);
        let file = input.location();
        match name {
            _ if self.args.paths().len() > 1 => match name {
                Some(name) => format!("{file}#{name}").into(),
                None => file.to_string().into(),
            },
            None => "-".into(),
            // a tensor whose name is `-`, which stands for a tensor without a name
            Some(name) if name.trim_start_matches("./") == "-" => format!("./{name}").into(),
            Some(name) => name.into(),
        }
    }
}

/// The mark of a line with escapes, and the name as it is written there.
fn escaped(name: &str) -> (&'static str, Cow<'_, str>) {
    if !name.contains(['\\', '\n', '\r']) {
        return ("", name.into());
    }
    ("\\", name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").into())
}

/// The name from which [`escaped`] made `text`; `None` for other escapes.
fn unescaped(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        name.push(match char {
            '\\' => match chars.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            char => char,
        });
    }
    Some(name)
}

/// A name: printable for a terminal, unchanged for programs.
fn shown(name: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { printable(name) } else { name.into() }
}

/// A manifest with which tensors are compared: missing tensors are named first, then extra and
/// different ones.
pub(super) struct Check<'a> {
    digests: Digests<'a>,
    expected: HashMap<String, Expected>,
    is_same: bool,
}

struct Expected {
    digest: Digest,
    line: usize,
    is_met: bool,
}

impl<'a> Check<'a> {
    pub(super) fn new(args: &'a InfoArgs, manifest: &Path) -> Result<Check<'a>, Failure> {
        let names = args.inputs.names.files_from.iter();
        if manifest == Path::new("-")
            && args.paths().iter().chain(names).any(|path| path == manifest)
        {
            return Err(Failure::usage("standard input cannot be both INPUT and --check"));
        }
        let digests = Digests::new(args);
        Ok(Check { digests, expected: read(manifest)?, is_same: true })
    }

    fn tell(&mut self, name: &str, what: &str) -> Result<(), Failure> {
        self.is_same = false;
        print(&format!("{}: {what}\n", printable(name)))
    }

    /// Note that there are tensors with these numbers.
    pub(super) fn meet(&mut self, input: &Input, numbers: &[usize]) {
        for &number in numbers {
            let name = self.digests.name(input, number);
            if let Some(expected) = self.expected.get_mut(name.as_ref()) {
                expected.is_met = true;
            }
        }
    }

    /// Name the missing tensors, as far as -t and --exclude choose them.
    pub(super) fn tell_missing(&mut self) -> Result<(), Failure> {
        let is_asked_for = asked_for(self.digests.args)?;
        let missing = self.expected.extract_if(|name, it| !it.is_met && is_asked_for(name));
        let mut missing: Vec<_> = missing.map(|(name, it)| (it.line, name)).collect();
        missing.sort_unstable();
        missing.iter().try_for_each(|(_, name)| self.tell(name, "missing"))
    }

    /// Compare the tensors with these numbers.
    pub(super) fn compare(&mut self, input: &mut Input, numbers: &[usize]) -> Result<(), Failure> {
        let args = self.digests.args;
        Digests::new(args).each(input, numbers, |input, digests| {
            for (number, digest) in digests {
                let name = self.digests.name(input, *number);
                match self.expected.get(name.as_ref()) {
                    None => self.tell(&name, "extra")?,
                    Some(expected) if expected.digest != *digest => self.tell(&name, "another")?,
                    Some(_) => {}
                }
            }
            Ok(())
        })
    }

    pub(super) fn exit(&self) -> Exit {
        if self.is_same { Exit::Done } else { Exit::Different }
    }
}

/// Whether -t and --exclude choose the tensor of a line.
fn asked_for(args: &InfoArgs) -> Result<impl Fn(&str) -> bool, Failure> {
    fn patterns(texts: &[String]) -> Result<Vec<Pattern<'_>>, Failure> {
        texts.iter().map(|text| Pattern::new(text).map_err(Failure::usage)).collect()
    }
    let chosen = patterns(&args.from.tensor)?;
    let excluded = patterns(&args.from.exclude)?;
    Ok(move |name: &str| {
        let name = match name.split_once('#') {
            Some((_, name)) if args.paths().len() > 1 => name,
            _ => name,
        };
        let is_one = |patterns: &[Pattern<'_>]| patterns.iter().any(|one| one.is_match(name));
        (chosen.is_empty() || is_one(&chosen)) && !is_one(&excluded)
    })
}

/// The lines of a manifest by their names.
fn read(manifest: &Path) -> Result<HashMap<String, Expected>, Failure> {
    let unreadable = |what: &dyn Display| {
        let message = format!("{}: {what}", printable(&manifest.display().to_string()));
        Failure { exit: Exit::Usage, ..Failure::new(message) }
    };
    let failed = |error: io::Error| unreadable(&plain(error));
    let file: Box<dyn Read> = if manifest == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(fs::File::open(manifest).map_err(failed)?)
    };
    let mut expected: HashMap<String, Expected> = HashMap::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(failed)?;
        let Some((digest, name)) = parsed(&line) else {
            return Err(unreadable(&format!(
                "line {number} is not a digest, two spaces and a name"
            )));
        };
        let one = Expected { digest, line: number, is_met: false };
        match expected.get(&name) {
            Some(earlier) if earlier.digest != digest => {
                let name = printable(&name);
                return Err(unreadable(&format!("line {number} has a second digest of {name}")));
            }
            _ => expected.insert(name, one),
        };
    }
    Ok(expected)
}

fn parsed(line: &str) -> Option<(Digest, String)> {
    let bare = line.strip_prefix('\\');
    let (digest, name) = bare.unwrap_or(line).split_once("  ")?;
    let name = if bare.is_some() { unescaped(name)? } else { name.to_owned() };
    Some((digest.parse().ok()?, name))
}
