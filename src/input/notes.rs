//! What is said of an input where nothing failed: tensors that are left out of several, an index that does
//! not agree with its shards.

use std::fmt;
use std::sync::Arc;

/// What takes a note, a line of text.
type TakeNote = dyn Fn(&str) + Send + Sync;

/// Where notes of inputs go; nowhere by default. An input that is opened again says the same again.
#[derive(Clone, Default)]
pub struct Notes(Option<Arc<TakeNote>>);

impl Notes {
    /// Hand every note to `take`.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Notes {
        Notes(Some(Arc::new(take)))
    }

    pub(crate) fn add(&self, note: impl fmt::Display) {
        if let Some(take) = &self.0 {
            take(&note.to_string());
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notes(taken)" } else { "Notes(not taken)" })
    }
}
