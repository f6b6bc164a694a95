//! `model.safetensors.index.json`: which of several `.safetensors` files holds which tensor.
//!
//! ```text
//! {"metadata": {"total_size": 48}, "weight_map": {"embed": "model-00001-of-00002.safetensors", ..}}
//! ```
//!
//! The format comes from the `transformers` library. An index may be hostile: file names in it must
//! be plain names, so that they don't lead out of its folder.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Fault;
use crate::input::{Listed, ShardIndex};
use crate::tensor::brief;

mod folder;
mod open;
mod output;

pub(crate) use folder::{
    CheckpointFiles, checkpoint_in, is_index, old_shards, shards_in, single_file,
};
pub use open::ShardsFault;
pub(crate) use open::{FORMAT, OF_TORCH, open_folder};
pub(crate) use output::{FolderFile, FolderFiles, OUTPUT, OldFiles};

/// The name of a checkpoint in a single file.
pub(crate) const ONE: &str = "model.safetensors";

/// The usual names of the index of a checkpoint, by the format of its shards.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
pub(crate) const TORCH_INDEX: &str = "pytorch_model.bin.index.json";

/// Whether a file that begins with these bytes is a JSON object.
pub(crate) fn begins(first: &[u8]) -> bool {
    matches!(first, [b'{', b'"' | b'}' | b' ' | b'\n' | b'\r' | b'\t', ..])
}

#[derive(Deserialize)]
struct RawIndex {
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    weight_map: Option<WeightMap>,
}

impl ShardIndex {
    /// Read an index of at most [`MAX_INDEX`] bytes.
    pub fn parse(json: &[u8]) -> Result<ShardIndex, ShardsError> {
        if json.len() as u64 > MAX_INDEX {
            return Err(ShardsError::TooLong);
        }
        let RawIndex { metadata, weight_map } = serde_json::from_slice(json)?;
        let WeightMap { mut listed, mut files } = weight_map.ok_or(ShardsError::NoIndex)?;
        for file in &files {
            check_file_name(file)?;
        }
        let mut sorted: Vec<u32> = (0..listed.ends.len() as u32).collect();
        sorted.sort_by(|&one, &other| listed.name(one).cmp(listed.name(other)));
        // of two equal names, the later entry comes second
        let twice = sorted.windows(2).filter(|two| listed.name(two[0]) == listed.name(two[1]));
        if let Some(second) = twice.map(|two| two[1]).min() {
            return Err(ShardsError::DuplicateName(listed.name(second).to_owned()));
        }
        let mut order: Vec<u32> = (0..files.len() as u32).collect();
        order.sort_unstable_by(|&one, &other| files[one as usize].cmp(&files[other as usize]));
        let mut new_number = vec![0; files.len()];
        for (to, &from) in (0u32..).zip(&order) {
            new_number[from as usize] = to;
        }
        files.sort_unstable();
        for file in &mut listed.files {
            *file = new_number[*file as usize];
        }
        Ok(ShardIndex { metadata: metadata.unwrap_or_default(), files, listed, sorted })
    }
}

/// The JSON of an index as `transformers` writes it: indented by two spaces, tensors sorted by name.
///
/// `metadata` is copied, with the new `total_size` (bytes of all tensors), and the new
/// `total_parameters` where it has this key.
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

/// The weight map: a JSON object that gives each tensor its file, in file order, duplicate keys
/// included.
#[derive(Default)]
struct WeightMap {
    listed: Listed,
    /// The files in the order of their first tensors.
    files: Vec<String>,
}

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WeightMapVisitor;

        impl<'de> Visitor<'de> for WeightMapVisitor {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that gives each tensor the name of its file")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut weight_map = WeightMap::default();
                let mut numbers: HashMap<String, u32> = HashMap::new();
                let WeightMap { listed, files } = &mut weight_map;
                while let Some((tensor, file)) = map.next_entry::<String, String>()? {
                    let number = match numbers.get(&file) {
                        Some(&number) => number,
                        None => {
                            files.push(file.clone());
                            *numbers.entry(file).or_insert(files.len() as u32 - 1)
                        }
                    };
                    listed.names.push_str(&tensor);
                    listed.ends.push(listed.names.len() as u32);
                    listed.files.push(number);
                }
                Ok(weight_map)
            }
        }

        deserializer.deserialize_map(WeightMapVisitor)
    }
}

/// The longest index in bytes: as long as the longest header of a `.safetensors` file.
pub const MAX_INDEX: u64 = 100_000_000;

/// The words for a tensor in messages: its name, if it has one.
fn tensor_named(name: &str) -> String {
    match name {
        "" => "a tensor without a name".to_owned(),
        name => format!("tensor '{}'", brief(name)),
    }
}

/// Why an index is invalid, or does not match a shard.
#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    #[error("more than {MAX_INDEX} bytes long")]
    TooLong,
    #[error("it has no \"weight_map\"")]
    NoIndex,
    #[error("it is damaged: {}", brief(&.0.to_string()))]
    Json(#[from] serde_json::Error),
    #[error("two tensors are named '{}'", brief(.0))]
    DuplicateName(String),
    #[error("\"{}\" is not the name of a file in the folder of the index", brief(.0))]
    FileName(String),
    #[error(
        "{} does not hold {}, although the index says so",
        brief(.file), tensor_named(.tensor)
    )]
    Missing { file: String, tensor: String },
    #[error("{} is in both {} and {}", tensor_named(.tensor), brief(.first), brief(.second))]
    Several { tensor: String, first: String, second: String },
    #[error(
        "{} holds {}, which is not in the index",
        brief(.file), tensor_named(.tensor)
    )]
    Unlisted { file: String, tensor: String },
}

impl Fault for ShardsError {
    const OF: &'static str = "checkpoint index";
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
        assert_eq!(index.tensors().collect::<Vec<_>>(), [("a", 0), ("b", 1)]);
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
