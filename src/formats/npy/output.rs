//! `.npy` as an output, and bytes after the array of an input.

use crate::dtype::stored_by_numpy;
use crate::formats::headed::{Header, PLAIN, behind_header};
use crate::formats::npy;
use crate::input::Input;
use crate::output::layout::{OutputFormat, only};

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "npy",
    about: "NumPy's .npy",
    extensions: &["npy"],
    has_orders: true,
    stored_dtype: stored_by_numpy,
    lay_out: |request| {
        let only = only(request.tensors, OUTPUT.name)?;
        let header = npy::header(&only.dtype, &only.shape, request.order)?;
        behind_header(Header::Bytes(header), request)
    },
    ..PLAIN
};

impl Input {
    /// The bytes after the array of a `.npy`, as several calls of np.save to one file leave them: their
    /// number, and whether they begin another array. np.load ignores them.
    pub fn following(&self) -> Option<(u64, bool)> {
        let source = self.random().filter(|_| self.contents.format == &npy::FORMAT)?;
        let end = self.contents.tensors.at(0).data().end;
        let bytes = source.len().checked_sub(end).filter(|bytes| *bytes > 0)?;
        let first = end..end.saturating_add(npy::MAGIC.len() as u64).min(source.len());
        let mut scratch = Vec::new();
        let begins = source.window(first, &mut scratch).is_ok_and(|first| first == npy::MAGIC);
        Some((bytes, begins))
    }
}
