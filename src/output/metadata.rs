//! What becomes of the metadata of inputs.

use std::collections::BTreeMap;

/// What becomes of the metadata of inputs, where the format of the output has such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Whether those of the inputs are left out.
    pub drop: bool,
    /// Texts that are added to those of the inputs, or replace them.
    pub add: BTreeMap<String, String>,
}

impl MetadataChange {
    /// Whether metadata are others than those of the inputs.
    pub fn is_any(&self) -> bool {
        self.drop || !self.add.is_empty()
    }

    /// Whether the text of a key is that of the inputs.
    pub(super) fn keeps(&self, key: &str) -> bool {
        !self.drop && !self.add.contains_key(key)
    }

    /// What becomes of the metadata of an input.
    pub(super) fn of(&self, input: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = if self.drop { BTreeMap::new() } else { input.clone() };
        all.extend(self.add.iter().map(|(key, value)| (key.clone(), value.clone())));
        all
    }
}
