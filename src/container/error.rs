//! Errors of containers: which file, which tensor, and why.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::{
    EditFault, FieldFault, IntegersFault, JoinFault, LayoutFault, ListFault, PartFault,
    PictureFault, RawFault, ReadFault, SelectFault, ShardsFault, SplitFault,
};
use crate::cast::CastError;
use crate::execute::ExecuteError;
use crate::format::{FormatError, shortened};
use crate::gather::GatherError;
use crate::index::numpy::ParseError;
use crate::index::resolve::ResolveError;
use crate::permutation::PermutationError;
use crate::sink::{Destination, SinkError};
use crate::source::remote::Address;
use crate::source::{OpenError, SourceError};
use crate::view::ViewError;

/// A file, or a standard stream, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// A path.
    Path(PathBuf),
    /// A remote file, which is shown without secrets.
    Remote(Address),
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Stdin => f.write_str("standard input"),
            FileName::Stdout => f.write_str("standard output"),
            FileName::Path(path) => write!(f, "{}", path.display()),
            FileName::Remote(address) => address.fmt(f),
        }
    }
}

impl From<&Path> for FileName {
    fn from(path: &Path) -> FileName {
        FileName::Path(path.to_owned())
    }
}

impl From<&Destination> for FileName {
    fn from(target: &Destination) -> FileName {
        match target {
            Destination::Stdout => FileName::Stdout,
            Destination::Path(path) => FileName::Path(path.clone()),
        }
    }
}

/// What went wrong with a container, in which file, and with which tensor.
#[derive(Debug)]
pub struct ContainerError {
    /// The file, where one is at fault.
    pub file: Option<FileName>,
    /// The tensor, where it is one of several.
    pub tensor: Option<String>,
    /// What went wrong.
    pub cause: Box<Cause>,
}

impl fmt::Display for ContainerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(tensor) = &self.tensor {
            write!(f, "tensor {:?}: ", shortened(tensor))?;
        }
        write!(f, "{}", self.cause)
    }
}

impl std::error::Error for ContainerError {}

impl<C: Into<Cause>> From<C> for ContainerError {
    fn from(cause: C) -> ContainerError {
        ContainerError { file: None, tensor: None, cause: Box::new(cause.into()) }
    }
}

impl ContainerError {
    /// An error about a file.
    pub(super) fn file(file: impl Into<FileName>, cause: impl Into<Cause>) -> ContainerError {
        let cause = match cause.into() {
            // one of several files, which it names itself
            Cause::Sink(SinkError::File { path, error }) => {
                return ContainerError::file(path.as_path(), *error);
            }
            Cause::Sink(SinkError::InputIsOutput) => Cause::InputIsOutput,
            cause => cause,
        };
        let file = match cause {
            // these name the stream themselves
            Cause::Open(OpenError::StdinClosed) | Cause::Sink(SinkError::StdoutClosed) => None,
            // another file is at fault, which only the caller knows
            Cause::Sink(SinkError::Positions(_)) => None,
            _ => Some(file.into()),
        };
        ContainerError { file, tensor: None, cause: Box::new(cause) }
    }

    /// Say whether several tensors may be chosen, where one has to be named.
    #[must_use]
    pub fn of_several(mut self, holds_several: bool) -> ContainerError {
        if let Cause::Select(SelectFault::NotNamed { holds_several: known, .. }) =
            self.cause.as_mut()
        {
            *known = holds_several;
        }
        self
    }

    /// Name the tensor that it is about.
    #[must_use]
    pub fn of_tensor(self, name: &str) -> ContainerError {
        ContainerError { tensor: Some(name.to_owned()), ..self }
    }
}

/// What went wrong with a container.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The input could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A header breaks the rules of its format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The header of a member of a `.npz` breaks the rules.
    #[error("member {:?}: {error}", shortened(name))]
    Member {
        /// The member.
        name: String,
        /// What is wrong with it.
        error: FormatError,
    },
    /// The output is an open descriptor of a file that is read.
    #[error("input file is output file")]
    InputIsOutput,
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes of an input could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The output could not be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The files of a sharded checkpoint cannot be opened.
    #[error(transparent)]
    Shards(#[from] ShardsFault),
    /// A text is no index tensor.
    #[error(transparent)]
    Integers(#[from] IntegersFault),
    /// A list of an index cannot be used.
    #[error(transparent)]
    List(#[from] ListFault),
    /// Raw bytes are not what was said of them.
    #[error(transparent)]
    Raw(#[from] RawFault),
    /// The tensors that were asked for cannot be chosen.
    #[error(transparent)]
    Select(#[from] SelectFault),
    /// The fields cannot be taken.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// The output cannot hold what is to be written.
    #[error(transparent)]
    Layout(#[from] LayoutFault),
    /// The file cannot be changed.
    #[error(transparent)]
    Edit(#[from] EditFault),
    /// The output cannot be written in parts.
    #[error(transparent)]
    Part(#[from] PartFault),
    /// The slice cannot be read into memory.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// A picture cannot be drawn.
    #[error(transparent)]
    Picture(#[from] PictureFault),
    /// The text is no index.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    /// The index does not fit the shape.
    #[error(transparent)]
    Index(#[from] ResolveError),
    /// The selection has no layout in bytes.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The elements cannot be cast.
    #[error(transparent)]
    Cast(#[from] CastError),
    /// The axes cannot be put in that order.
    #[error(transparent)]
    Transpose(#[from] PermutationError),
    /// The indices do not fit the tensor.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// Inputs do not fit together.
    #[error(transparent)]
    Join(#[from] JoinFault),
    /// The input cannot be split.
    #[error(transparent)]
    Split(#[from] SplitFault),
    /// The job stopped.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}
