//! `model.safetensors.index.json`: which of several `.safetensors` files holds which tensor.
//!
//! ```text
//! {"metadata": {"total_size": 48}, "weight_map": {"embed": "model-00001-of-00002.safetensors", ..}}
//! ```
//!
//! The format is that of the `transformers` library. An index may be hostile: file names in it must
//! be plain names, so that they don't lead out of its folder.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::contents::Contents;

mod error;

pub use error::{MAX_INDEX, ShardsError};

/// A parsed index with valid file names.
#[derive(Clone, Debug, Default)]
pub struct ShardIndex {
    /// `metadata`, unchanged.
    pub metadata: Map<String, Value>,
    /// Each tensor's name and its file's number in `files`, in the order of the index.
    pub tensors: Vec<(String, usize)>,
    /// The names of the files, sorted.
    pub files: Vec<String>,
}

/// The JSON of an index.
#[derive(Deserialize)]
struct RawIndex {
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    weight_map: Pairs,
}

impl ShardIndex {
    /// Read an index.
    ///
    /// # Errors
    /// [`ShardsError`]: no such JSON, a tensor twice, a file name that is not a plain one.
    pub fn parse(json: &[u8]) -> Result<ShardIndex, ShardsError> {
        let RawIndex { metadata, weight_map: Pairs(pairs) } = serde_json::from_slice(json)?;
        let mut seen = HashSet::with_capacity(pairs.len());
        let mut files: Vec<String> = Vec::new();
        for (tensor, file) in &pairs {
            if !seen.insert(tensor.as_str()) {
                return Err(ShardsError::DuplicateName(tensor.clone()));
            }
            if files.last() != Some(file) {
                check_file_name(file)?;
                files.push(file.clone());
            }
        }
        files.sort_unstable();
        files.dedup();
        let place = |file: &String| files.binary_search(file).unwrap_or_default();
        let tensors = pairs.iter().map(|(tensor, file)| (tensor.clone(), place(file))).collect();
        Ok(ShardIndex { metadata: metadata.unwrap_or_default(), tensors, files })
    }

    /// Compare the tensors of shard number `file` with those that the index lists there.
    ///
    /// # Errors
    /// [`ShardsError::Missing`], [`ShardsError::Unlisted`].
    pub fn check_shard(&self, file: usize, contents: &Contents) -> Result<(), ShardsError> {
        let listed = || self.tensors.iter().filter(|(_, at)| *at == file).map(|(name, _)| &**name);
        let held = || contents.tensors.iter().filter_map(|tensor| tensor.name.as_deref());
        let name = || self.files[file].clone();
        let (all_listed, all_held): (HashSet<&str>, HashSet<&str>) =
            (listed().collect(), held().collect());
        if let Some(tensor) = listed().find(|tensor| !all_held.contains(tensor)) {
            return Err(ShardsError::Missing { file: name(), tensor: tensor.to_owned() });
        }
        match held().find(|tensor| !all_listed.contains(tensor)) {
            Some(tensor) => Err(ShardsError::Unlisted { file: name(), tensor: tensor.to_owned() }),
            None => Ok(()),
        }
    }
}

/// The JSON of an index as `transformers` writes it: two spaces, tensors sorted by name.
///
/// `metadata` is kept, with the new `total_size` (bytes of all tensors) and, where it has one, the
/// new `total_parameters`.
///
/// # Errors
/// [`ShardsError::Json`] if the JSON cannot be written.
pub fn index_json(
    tensors: &[(&str, &str)],
    mut metadata: Map<String, Value>,
    total_size: u64,
    total_parameters: u64,
) -> Result<Vec<u8>, ShardsError> {
    #[derive(Serialize)]
    struct Written<'a> {
        metadata: Map<String, Value>,
        weight_map: std::collections::BTreeMap<&'a str, &'a str>,
    }
    metadata.insert("total_size".to_owned(), total_size.into());
    if let Some(parameters) = metadata.get_mut("total_parameters") {
        *parameters = total_parameters.into();
    }
    let written = Written { metadata, weight_map: tensors.iter().copied().collect() };
    let mut json = serde_json::to_vec_pretty(&written)?;
    json.push(b'\n');
    Ok(json)
}

fn check_file_name(name: &str) -> Result<(), ShardsError> {
    let leads_elsewhere = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
    if leads_elsewhere { Err(ShardsError::FileName(name.to_owned())) } else { Ok(()) }
}

/// A JSON object of strings, in its own order, duplicate keys included.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShardMapVisitor;

        impl<'de> Visitor<'de> for ShardMapVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that gives each tensor the name of its file")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(ShardMapVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_not_lead_out_of_the_folder() {
        for name in ["../a", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "a\0b"] {
            let json = serde_json::json!({ "weight_map": { "w": name } }).to_string();
            let error = ShardIndex::parse(json.as_bytes()).unwrap_err();
            assert!(matches!(error, ShardsError::FileName(_)), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_written_index_is_read_back() {
        let metadata = serde_json::from_str(r#"{"total_size":1,"total_parameters":1,"x":2}"#);
        let tensors = [("b", "2.safetensors"), ("a", "1.safetensors")];
        let json = index_json(&tensors, metadata.unwrap(), 48, 12).unwrap();
        let index = ShardIndex::parse(&json).unwrap();
        assert_eq!(index.files, ["1.safetensors", "2.safetensors"]);
        assert_eq!(index.tensors, [("a".to_owned(), 0), ("b".to_owned(), 1)]);
        assert_eq!(index.metadata["total_size"], 48);
        assert_eq!(index.metadata["total_parameters"], 12);
        assert_eq!(index.metadata["x"], 2);
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let message = |json: &str| ShardIndex::parse(json.as_bytes()).unwrap_err().to_string();
        assert_eq!(message(r#"{"weight_map":{"a":"x","a":"y"}}"#), "two tensors are named 'a'");
        assert!(message("{}").contains("weight_map"));
        assert!(message(r#"{"weight_map":{"a":1}}"#).contains("a string"));
        assert!(message(&"[".repeat(100_000)).contains("line 1"));
    }
}
