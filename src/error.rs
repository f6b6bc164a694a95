//! Errors that say which file, which tensor, and why.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::cast::CastError;
use crate::element::ElementError;
use crate::execute::ExecuteError;
use crate::gather::GatherError;
use crate::index::numpy::ParseError;
use crate::index::resolve::ResolveError;
use crate::scatter::ScatterError;
use crate::shape::{ArrangeError, PermutationError};
use crate::sink::{Destination, SinkError};
use crate::source::remote::Address;
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

impl std::error::Error for Error {}

impl<C: Into<Cause>> From<C> for Error {
    fn from(cause: C) -> Error {
        Error { file: None, tensor: None, cause: cause.into() }
    }
}

impl Error {
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
    error: Box<dyn std::error::Error + Send + Sync>,
}

/// An error that can be the [`Cause`] of an [`Error`]. `Error` itself cannot, so that no file is
/// named twice.
pub(crate) trait Fault: std::error::Error + Send + Sync + 'static {
    /// What of a file is at fault, which messages say before the error, as in `npy header`; empty where the
    /// error says it.
    const OF: &'static str = "";
}

impl Fault for io::Error {}
impl Fault for CastError {}
impl Fault for ElementError {}
impl Fault for ExecuteError {}
impl Fault for GatherError {}
impl Fault for OpenError {}
impl Fault for ParseError {}
impl Fault for PermutationError {}
impl Fault for ArrangeError {}
impl Fault for ResolveError {}
impl Fault for ScatterError {}
impl Fault for SinkError {}
impl Fault for SourceError {}
impl Fault for ViewError {}

/// The output is the open descriptor of a file that is also read.
#[derive(Debug, thiserror::Error)]
#[error("input file is output file")]
pub struct InputIsOutput;

impl Fault for InputIsOutput {}

impl<F: Fault> From<F> for Cause {
    fn from(fault: F) -> Cause {
        Cause { of: F::OF, error: Box::new(fault) }
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
        let of = self.of;
        self.error.downcast().map(|error| *error).map_err(|error| Cause { of, error })
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
