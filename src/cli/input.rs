//! Opening an input: its bytes, its header, and the tensor that was asked for.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tslice::dtype::DType;
use tslice::format::{self, Contents, FileKind, Format, FormatError, MAGIC_LEN, Tensor, shards};
use tslice::source::{self, OpenError, Source, SourceError, Stream};

use super::archive::Packed;
use super::args;
use super::choose::Pattern;
use super::declared::Declared;
use super::report::{Failure, shown};

/// An input whose header has been read.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Where the bytes of the tensors are.
    pub(crate) bytes: source::Opened,
    /// What there is to know of a sharded checkpoint besides.
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
    /// The deflated members of an archive: tensors of part n are in number n - 1.
    pub(crate) packed: Vec<Packed>,
}

/// The index of a sharded checkpoint, and the `__metadata__` of each of its files.
pub(crate) struct Checkpoint {
    /// The name of the index file.
    pub(crate) name: String,
    pub(crate) index: shards::ShardIndex,
    pub(crate) metadata: Vec<BTreeMap<String, String>>,
    /// Where each of the files begins in the bytes of the input.
    pub(crate) starts: Vec<u64>,
}

/// What is wanted of an input, as far as that makes a difference to how it is opened.
pub(crate) struct Wanted<'a> {
    pub(crate) io: args::Io,
    /// The values of `-t`.
    pub(crate) patterns: &'a [String],
    /// Whether the other tensors are wanted too.
    pub(crate) rest: bool,
    pub(crate) declared: Declared,
}

impl Input {
    /// Open a file that tells all about itself, or standard input for `-`, and read its header.
    pub(crate) fn open(path: &Path, io: args::Io) -> Result<Input, Failure> {
        Input::open_wanted(
            path,
            &Wanted { io, patterns: &[], rest: true, declared: Declared::default() },
        )
    }

    /// A file that was opened, and what its header says.
    pub(crate) fn of_file(path: &Path, bytes: source::Opened, contents: Contents) -> Input {
        Input { path: path.to_owned(), contents, bytes, checkpoint: None, packed: Vec::new() }
    }

    /// Open what is wanted of a file, or of standard input for `-`.
    pub(crate) fn open_wanted(path: &Path, wanted: &Wanted<'_>) -> Result<Input, Failure> {
        let mut bytes = open_bytes(path, wanted.io)?;
        let first = first_bytes(&mut bytes).map_err(|error| Failure::io(path, &error))?;
        let kind = format::detect(&first);
        if let Some(dtype) = wanted.declared.raw(kind) {
            return Input::raw(path, bytes, dtype, &wanted.declared);
        }
        let mut input = match kind {
            Some(FileKind::Json) => super::shards::open(path, bytes, wanted)?,
            Some(FileKind::Zip) => super::archive::open(path, bytes)?,
            _ => Input::with_header(path, bytes)?,
        };
        let at_fault = |failure: Failure| failure.in_file(path);
        wanted.declared.refuse_layout(input.contents.format).map_err(at_fault)?;
        if wanted.declared.says_dtype() {
            for number in input.find(wanted.patterns)? {
                wanted.declared.apply(&mut input.contents.tensors[number]).map_err(at_fault)?;
            }
        }
        Ok(input)
    }

    /// Open a file whose first bytes tell all: no archive, no index.
    pub(crate) fn open_with_header(path: &Path, io: args::Io) -> Result<Input, Failure> {
        Input::with_header(path, open_bytes(path, io)?)
    }

    /// The file that holds a tensor, where there are several, and where in it the tensor begins;
    /// nowhere where it is compressed.
    pub(crate) fn whereabouts(&self, tensor: &Tensor) -> (Option<&str>, Option<u64>) {
        match &self.checkpoint {
            Some(checkpoint) => {
                let file = checkpoint.index.files.get(tensor.part).map(String::as_str);
                let start = checkpoint.starts.get(tensor.part).copied().unwrap_or(0);
                (file, tensor.offset.checked_sub(start))
            }
            None if tensor.part > 0 => (None, None),
            None => (None, Some(tensor.offset)),
        }
    }

    /// A file whose first bytes tell all.
    fn with_header(path: &Path, mut bytes: source::Opened) -> Result<Input, Failure> {
        let contents = match &mut bytes {
            source::Opened::Random(source) => {
                let mut reader = source::Reader::new(source.as_ref());
                let contents = format::read_contents(&mut reader, Some(source.len()));
                // a file cut short in the meantime is the reason for whatever its header seems to say
                source.verify().map_err(|error| failed_source(path, &error))?;
                contents
            }
            source::Opened::Forward(stream) => format::read_contents(stream, None),
        };
        let contents = contents.map_err(|error| {
            let failure = Failure::file(path, &error);
            match error {
                FormatError::Unrecognised(_) => {
                    failure.hint("--dtype, with --shape and --offset, reads raw bytes")
                }
                _ => failure,
            }
        })?;
        Ok(Input::of_file(path, bytes, contents))
    }

    /// Bytes of which the command line tells all.
    fn raw(
        path: &Path,
        mut bytes: source::Opened,
        dtype: &DType,
        declared: &Declared,
    ) -> Result<Input, Failure> {
        if let source::Opened::Forward(stream) = bytes {
            bytes = match declared.needs_len() {
                true => source::Opened::Random(
                    source::spool(stream).map_err(|error| failed_source(path, &error))?,
                ),
                false => source::Opened::Forward(stream),
            };
        }
        let len = match &bytes {
            source::Opened::Random(source) => Some(source.len()),
            source::Opened::Forward(_) => None,
        };
        let contents = declared.contents(dtype, len).map_err(|failure| failure.in_file(path))?;
        if let Some(len) = len.filter(|&len| len < contents.expected_len()) {
            let asked = contents.expected_len();
            let message =
                format!("{asked} bytes are asked for by --shape and --offset, {len} are there");
            return Err(Failure::file(path, message));
        }
        Ok(Input::of_file(path, bytes, contents))
    }

    /// The one tensor that is meant by `-t`, or the only one of the file.
    pub(crate) fn tensor(&self, patterns: &[String]) -> Result<&Tensor, Failure> {
        self.tensor_by("-t", patterns)
    }

    /// The same, chosen by another flag.
    pub(crate) fn tensor_by(&self, flag: &str, patterns: &[String]) -> Result<&Tensor, Failure> {
        match self.find_by(flag, patterns)?.as_slice() {
            &[only] => Ok(&self.contents.tensors[only]),
            several => Err(Failure::usage(format_args!(
                "{flag} chooses {} tensors of {}, and one is needed",
                several.len(),
                shown(&self.path)
            ))),
        }
    }

    /// The numbers of the tensors that are meant by `-t`, ascending; without it, of the only one.
    pub(crate) fn find(&self, patterns: &[String]) -> Result<Vec<usize>, Failure> {
        self.find_by("-t", patterns)
    }

    fn find_by(&self, flag: &str, patterns: &[String]) -> Result<Vec<usize>, Failure> {
        let tensors = &self.contents.tensors;
        match (patterns, tensors.as_slice()) {
            ([], [_]) => Ok(vec![0]),
            ([], []) => Err(Failure::file(&self.path, "the file holds no tensors")),
            ([], several) => {
                let count = several.len();
                let message =
                    format!("the file holds {count} tensors, choose one with {flag} NAME");
                Err(Failure::file(&self.path, message).hint(self.names()))
            }
            ([first, ..], [Tensor { name: None, .. }]) => Err(Failure::usage(format_args!(
                "{flag} {first}: the tensor of {} has no name",
                shown(&self.path)
            ))),
            (patterns, _) => {
                let names = tensors.iter().map(|tensor| tensor.name.as_deref().unwrap_or_default());
                let mut found = Vec::new();
                for pattern in patterns {
                    let numbers = Pattern::new(pattern).find(names.clone())?;
                    if numbers.is_empty() {
                        return Err(unnamed(&self.path, pattern).hint(self.names()));
                    }
                    found.extend(numbers);
                }
                found.sort_unstable();
                found.dedup();
                Ok(found)
            }
        }
    }

    /// The bytes of a pipe that were read already, and will not be in its source.
    pub(crate) fn gone(&self) -> u64 {
        match &self.bytes {
            source::Opened::Random(_) => 0,
            source::Opened::Forward(stream) => stream.position(),
        }
    }

    /// Its bytes in any order: what is left of a pipe is kept in a temporary file.
    pub(crate) fn into_source(self) -> Result<(PathBuf, Box<dyn Source>), Failure> {
        let source = match self.bytes {
            source::Opened::Random(source) => source,
            source::Opened::Forward(stream) => spool(&self.path, stream, &self.contents)?.0,
        };
        Ok((self.path, source))
    }

    fn names(&self) -> String {
        names(self.contents.tensors.iter().map(|tensor| tensor.name.as_deref().unwrap_or("-")))
    }
}

/// The names of a file's tensors, as far as people read.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    const MOST: usize = 20;
    let first: Vec<&str> = names.clone().take(MOST).collect();
    match names.count() {
        0 => "it holds no tensors".to_owned(),
        count if count > MOST => {
            format!("it holds {}, and {} more", first.join(", "), count - MOST)
        }
        _ => format!("it holds {}", first.join(", ")),
    }
}

/// What is to be said where a pattern is nobody's name.
pub(crate) fn unnamed(path: &Path, pattern: &str) -> Failure {
    Failure::file(path, format_args!("no tensor is named {pattern:?}"))
}

fn open_bytes(path: &Path, io: args::Io) -> Result<source::Opened, Failure> {
    let io = match io {
        args::Io::Auto => source::IoMode::Auto,
        args::Io::Mmap => source::IoMode::Mmap,
        args::Io::Read => source::IoMode::Read,
    };
    let opened =
        if path == Path::new("-") { source::open_stdin(io) } else { source::open(path, io) };
    opened.map_err(|error| match error {
        OpenError::Io(error) => Failure::io(path, &error),
        OpenError::StdinClosed => Failure::new(OpenError::StdinClosed),
        error => Failure::file(path, error),
    })
}

/// The bytes by which a format is recognised; a pipe has them still to come.
fn first_bytes(bytes: &mut source::Opened) -> io::Result<Vec<u8>> {
    match bytes {
        source::Opened::Forward(stream) => stream.peek(MAGIC_LEN),
        source::Opened::Random(source) => {
            let mut first = Vec::new();
            let reader = source::Reader::new(source.as_ref());
            reader.take(MAGIC_LEN as u64).read_to_end(&mut first)?;
            Ok(first)
        }
    }
}

/// Read a pipe to the end of what its format promises, so that a short one is found out.
pub(crate) fn finish(path: &Path, mut stream: Stream, contents: &Contents) -> Result<(), Failure> {
    let rest = contents.expected_len().saturating_sub(stream.position());
    stream.skip(rest).map_err(|error| failed_stream(path, &stream, contents, &error))?;
    if !contents.allows_trailing_bytes()
        && stream.read(&mut [0]).map_err(|error| Failure::io(path, &error))? > 0
    {
        // how many follow is known only to whoever reads them all
        let there = stream.position();
        return check_len(path, there, contents);
    }
    Ok(())
}

/// Keep the rest of a pipe in a temporary file; returns it and the number of bytes before it.
pub(crate) fn spool(
    path: &Path,
    stream: Stream,
    contents: &Contents,
) -> Result<(Box<dyn Source>, u64), Failure> {
    let gone = stream.position();
    let source = source::spool(stream).map_err(|error| failed_source(path, &error))?;
    check_len(path, gone + source.len(), contents)?;
    Ok((source, gone))
}

fn check_len(path: &Path, len: u64, contents: &Contents) -> Result<(), Failure> {
    contents.check_len(len).map_err(|error| Failure::file(path, error))
}

/// What is to be said when the bytes of a pipe could not be had: where it ended too early, the
/// same as of a file that is cut short.
pub(crate) fn failed_stream(
    path: &Path,
    stream: &Stream,
    contents: &Contents,
    error: &SourceError,
) -> Failure {
    let ended = matches!(error, SourceError::UnexpectedEnd(_) | SourceError::Truncated);
    match check_len(path, stream.position(), contents) {
        Err(short) if ended && contents.format != Format::Raw => short,
        _ => failed_source(path, error),
    }
}

/// What is to be said when the bytes of an input could not be had.
pub(crate) fn failed_source(path: &Path, error: &SourceError) -> Failure {
    match error {
        SourceError::Io(error) => Failure::io(path, error),
        error => Failure::file(path, error),
    }
}
