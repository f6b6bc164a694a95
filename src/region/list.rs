//! Index tensors with their bytes, and what is gathered by them.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Cause, Error, FileName};
use crate::execute::{BadPosition, ExecuteError, FillError};
use crate::gather::Gather;
use crate::source::Source;

/// Positions that index tensors name.
#[derive(Clone)]
pub struct Gathered {
    /// What to gather.
    pub gather: Gather,
    /// The index tensors.
    pub lists: Vec<GatheredList>,
}

/// The bytes of an index tensor.
#[derive(Clone)]
pub struct GatheredList {
    /// The bytes.
    pub source: Arc<dyn Source>,
    /// The file that they lie in, for errors; `None` for indices that were typed.
    pub file: Option<FileName>,
}

impl Gathered {
    /// The sources of the index tensors.
    pub(crate) fn sources(&self) -> Vec<&dyn Source> {
        GatheredList::sources(&self.lists)
    }
}

impl GatheredList {
    /// The sources of index tensors.
    pub(crate) fn sources(lists: &[GatheredList]) -> Vec<&dyn Source> {
        lists.iter().map(|list| list.source.as_ref()).collect()
    }

    /// Check that none of these was cut short while it was read.
    pub(crate) fn verify_all(lists: &[GatheredList]) -> Result<(), Error> {
        lists.iter().try_for_each(|list| list.source.verify().map_err(|error| list.error(error)))
    }

    /// The error of index tensors that are bad, or could not be read.
    pub fn failed(lists: &[GatheredList], error: FillError) -> Error {
        // a file that was cut short is the reason for whatever else is wrong with it
        if let Err(error) = GatheredList::verify_all(lists) {
            return error;
        }
        let of = |list: usize, cause: Cause| match lists.get(list) {
            Some(list) => list.error(cause),
            None => cause.into(),
        };
        match error {
            FillError::Indices { list, error } => of(list, error.into()),
            FillError::Source(error) => of(0, error.into()),
            error @ FillError::Position(BadPosition::Listed { list, .. }) => {
                of(list, ExecuteError::Fill { transfer: 0, error }.into())
            }
            error => ExecuteError::Fill { transfer: 0, error }.into(),
        }
    }

    /// An error that is about it.
    fn error(&self, cause: impl Into<Cause>) -> Error {
        Error::of_file(self.file.as_ref(), cause)
    }

    /// The file that it lies in, by its path.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.file {
            Some(FileName::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// Add all bytes of indices that have no file of their own.
    pub(crate) fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if self.path().is_some() {
            return Ok(());
        }
        let indices = self.source.as_ref();
        let mut scratch = Vec::new();
        let limit = indices.window_limit().unwrap_or(u64::MAX).clamp(1, 1 << 20);
        let mut start = 0;
        while start < indices.len() {
            let end = (start + limit).min(indices.len());
            add(indices.window(start..end, &mut scratch)?);
            start = end;
        }
        Ok(())
    }
}
