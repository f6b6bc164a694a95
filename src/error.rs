//! Errors that say which file, which tensor, and why.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::cast::CastError;
use crate::element::ElementError;
use crate::execute::{ExecuteError, FillError};
use crate::gather::GatherError;
use crate::index::numpy::ParseError;
use crate::index::resolve::ResolveError;
use crate::scatter::ScatterError;
use crate::shape::{ArrangeError, PermutationError};
use crate::sink::{Destination, SinkError};
use crate::source::remote::{Address, RemoteError};
use crate::source::{OpenError, SourceError};
use crate::tensor::shortened;
use crate::view::ViewError;

/// A file or standard stream, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    Stdin,
    Stdout,
    Path(PathBuf),
    /// A remote file, shown without the secrets in its address.
    Remote(Address),
    /// A tensor in memory, which has no file.
    Memory,
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Stdin => f.write_str("standard input"),
            FileName::Stdout => f.write_str("standard output"),
            FileName::Path(path) => write!(f, "{}", path.display()),
            FileName::Remote(address) => address.fmt(f),
            FileName::Memory => f.write_str("a tensor in memory"),
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

/// An error of the library: what went wrong, in which file, and with which tensor.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    /// `None` if no single file is at fault.
    pub file: Option<FileName>,
    /// `None` if the file has only one tensor, or the tensor no name.
    pub tensor: Option<String>,
    pub cause: Cause,
}

impl fmt::Display for Error {
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

impl std::error::Error for Error {
    /// The next error below the cause, whose words are those of this error; in the end the error of the operating
    /// system, where there is one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.cause.downcast_ref::<io::Error>() {
            Some(error) => Some(error),
            None => self.cause.error.source(),
        }
    }
}

/// A kind of error, for programs that go on after some errors. More kinds may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file is not there, or one of several that are one input.
    FileMissing,
    /// An output exists, and was not to be replaced.
    Exists,
    /// No tensor has the name.
    NoSuchTensor,
    /// An index, a position or an axis that does not fit the shape, or a text that is no index.
    Index,
    /// A dtype that elements cannot be read, converted or written as.
    DType,
    /// A file is cut short, breaks the rules of its format, or was changed while it was read.
    Damaged,
    /// A file of a kind that is not read, or with something in it that is not read.
    Unsupported,
    /// The operating system or a server refused, or failed.
    Io,
    /// Any other thing that cannot be done with these inputs and options.
    Invalid,
}

impl<C: Into<Cause>> From<C> for Error {
    fn from(cause: C) -> Error {
        Error { file: None, tensor: None, cause: cause.into() }
    }
}

impl Error {
    /// The kind, for programs that go on after some errors.
    pub fn kind(&self) -> ErrorKind {
        self.cause.kind
    }

    pub(crate) fn file(file: impl Into<FileName>, cause: impl Into<Cause>) -> Error {
        let cause = match cause.into().downcast::<SinkError>() {
            // one of several files is at fault, and the error names it
            Ok(SinkError::File { path, error }) => {
                return Error::file(path.as_path(), *error);
            }
            Ok(SinkError::InputIsOutput) => InputIsOutput.into(),
            Ok(error) => Cause::from(error),
            Err(cause) => cause,
        };
        // these name the stream themselves, or only the caller knows which file is at fault
        let unnamed = matches!(cause.downcast_ref(), Some(OpenError::StdinClosed))
            || matches!(
                cause.downcast_ref(),
                Some(SinkError::StdoutClosed | SinkError::Positions(_))
            );
        let file = (!unnamed).then(|| file.into());
        Error { file, tensor: None, cause }
    }

    /// Make an error about `file`, or one that names no file.
    pub(crate) fn of_file(file: Option<&FileName>, cause: impl Into<Cause>) -> Error {
        match file {
            Some(file) => Error::file(file.clone(), cause),
            None => cause.into().into(),
        }
    }

    /// Name the file, unless the error names one already.
    #[must_use]
    pub(crate) fn in_file(self, file: impl Into<FileName>) -> Error {
        match self.file {
            Some(_) => self,
            None => Error { tensor: self.tensor, ..Error::file(file, self.cause) },
        }
    }

    /// Name the tensor, if it has a name and is one of `several`.
    #[must_use]
    pub(crate) fn of_tensor(self, name: Option<&str>, several: bool) -> Error {
        let tensor = name.filter(|_| several).map(str::to_owned);
        Error { tensor: tensor.or(self.tensor), ..self }
    }
}

/// The reason of an [`Error`]: the error of one of the library's modules. Each module has its own
/// types; to treat one specially, ask for its type with [`downcast_ref`](Cause::downcast_ref).
#[derive(Debug)]
pub struct Cause {
    /// [`Fault::OF`] of the error.
    of: &'static str,
    pub(crate) kind: ErrorKind,
    error: Box<dyn std::error::Error + Send + Sync>,
}

/// An error that can be the [`Cause`] of an [`Error`]. `Error` itself cannot, so that no file is
/// named twice.
pub(crate) trait Fault: std::error::Error + Send + Sync + 'static {
    /// The part of a file at fault, which messages name before the error, as in `npy header`; empty
    /// if the error names it.
    const OF: &'static str = "";

    fn kind(&self) -> ErrorKind {
        if Self::OF.is_empty() { ErrorKind::Invalid } else { ErrorKind::Damaged }
    }
}

impl Fault for io::Error {
    fn kind(&self) -> ErrorKind {
        match self.kind() {
            io::ErrorKind::NotFound => ErrorKind::FileMissing,
            io::ErrorKind::AlreadyExists => ErrorKind::Exists,
            _ => ErrorKind::Io,
        }
    }
}

impl Fault for RemoteError {
    fn kind(&self) -> ErrorKind {
        match self {
            RemoteError::NotFound => ErrorKind::FileMissing,
            RemoteError::NotBuilt | RemoteError::NotMappable => ErrorKind::Unsupported,
            RemoteError::Address(_) | RemoteError::Configuration(_) => ErrorKind::Invalid,
            RemoteError::Changed => ErrorKind::Damaged,
            _ => ErrorKind::Io,
        }
    }
}

impl Fault for OpenError {
    fn kind(&self) -> ErrorKind {
        match self {
            OpenError::Io(error) => Fault::kind(error),
            OpenError::Remote(error) => error.kind(),
            _ => ErrorKind::Invalid,
        }
    }
}

impl Fault for SourceError {
    fn kind(&self) -> ErrorKind {
        match self {
            SourceError::Io(error) => Fault::kind(error),
            SourceError::Remote(error) => error.kind(),
            SourceError::File { error, .. } => error.kind(),
            SourceError::Spool { .. } => ErrorKind::Io,
            _ => ErrorKind::Damaged,
        }
    }
}

impl Fault for SinkError {
    fn kind(&self) -> ErrorKind {
        match self {
            SinkError::AlreadyExists | SinkError::FolderNotEmpty | SinkError::OtherFolder => {
                ErrorKind::Exists
            }
            SinkError::Truncated | SinkError::OriginalTruncated => ErrorKind::Damaged,
            SinkError::File { error, .. } | SinkError::NotUndone { error, .. } => error.kind(),
            SinkError::Io(error) | SinkError::Os { error, .. } => Fault::kind(error),
            SinkError::BrokenPipe | SinkError::StdoutClosed => ErrorKind::Io,
            _ => ErrorKind::Invalid,
        }
    }
}

impl Fault for ExecuteError {
    fn kind(&self) -> ErrorKind {
        match self {
            ExecuteError::Fill { error, .. } => match error {
                FillError::Source(error) | FillError::Indices { error, .. } => error.kind(),
                FillError::Position(_) => ErrorKind::Index,
            },
            ExecuteError::Sink(error) => error.kind(),
            ExecuteError::Threads { .. } => ErrorKind::Io,
            ExecuteError::Panicked => ErrorKind::Invalid,
        }
    }
}

/// Faults that are all of one kind.
macro_rules! faults {
    ($kind:ident: $($fault:ty),*) => {$(
        impl $crate::error::Fault for $fault {
            fn kind(&self) -> $crate::error::ErrorKind {
                $crate::error::ErrorKind::$kind
            }
        }
    )*};
}

pub(crate) use faults;

faults!(Index: ParseError, ResolveError, GatherError, ScatterError, PermutationError, ArrangeError);
faults!(DType: CastError, ElementError);

impl Fault for ViewError {}

/// The output is the open descriptor of a file that is also read.
#[derive(Debug, thiserror::Error)]
#[error("input file is output file")]
pub struct InputIsOutput;

impl Fault for InputIsOutput {}

impl<F: Fault> From<F> for Cause {
    fn from(fault: F) -> Cause {
        Cause { of: F::OF, kind: fault.kind(), error: Box::new(fault) }
    }
}

impl Cause {
    /// Return the error, if it is a `T`.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.error.downcast_ref()
    }

    pub(crate) fn downcast_mut<T: std::error::Error + 'static>(&mut self) -> Option<&mut T> {
        self.error.downcast_mut()
    }

    /// Return the error, if it is a `T`.
    ///
    /// # Errors
    /// This cause unchanged, if it is of another type.
    pub fn downcast<T: std::error::Error + 'static>(self) -> Result<T, Cause> {
        let Cause { of, kind, error } = self;
        error.downcast().map(|error| *error).map_err(|error| Cause { of, kind, error })
    }

    /// Whether the error is a `T`.
    pub(crate) fn is<T: std::error::Error + 'static>(&self) -> bool {
        self.error.is::<T>()
    }

    /// The error in its own words, without what of the file is at fault.
    pub(crate) fn words(&self) -> String {
        self.error.to_string()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            "" => self.error.fmt(f),
            of => write!(f, "{of}: {}", self.error),
        }
    }
}

impl std::error::Error for Cause {}
