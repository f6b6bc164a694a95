//! The index of a checkpoint: the file of each tensor.

use serde_json::{Map, Value};

/// A parsed index with valid file names.
///
/// An index may list millions of tensors: their names are concatenated in one text, and all else is
/// a number for each.
#[derive(Clone, Debug, Default)]
pub struct ShardIndex {
    /// The index's `metadata` entry, unchanged.
    pub metadata: Map<String, Value>,
    pub files: Vec<String>,
    pub(crate) listed: Listed,
    /// The numbers of the tensors, sorted by name.
    pub(crate) sorted: Vec<u32>,
}

/// The tensors in the order of the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) names: String,
    /// The end of each name in `names`.
    pub(crate) ends: Vec<u32>,
    /// The number of each tensor's file.
    pub(crate) files: Vec<u32>,
}

impl Listed {
    pub(crate) fn name(&self, number: u32) -> &str {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start as usize..self.ends[at] as usize]
    }
}

impl ShardIndex {
    /// An index of these files that lists no tensors.
    pub fn of_files(files: Vec<String>) -> ShardIndex {
        ShardIndex { files, ..ShardIndex::default() }
    }

    /// The name of each tensor and the number of its file in [`files`](ShardIndex::files), in the
    /// order of the index.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (&str, usize)> + Clone {
        (0..self.sorted.len()).map(|number| self.tensor(number))
    }

    /// The entry with this number in [`tensors`](ShardIndex::tensors).
    pub fn tensor(&self, number: usize) -> (&str, usize) {
        (self.listed.name(number as u32), self.listed.files[number] as usize)
    }

    pub fn number_of(&self, tensor: &str) -> Option<usize> {
        let found = self.sorted.binary_search_by(|&at| self.listed.name(at).cmp(tensor)).ok()?;
        Some(self.sorted[found] as usize)
    }

    /// The number of the file that holds a tensor.
    pub fn file_of(&self, tensor: &str) -> Option<usize> {
        Some(self.tensor(self.number_of(tensor)?).1)
    }
}
