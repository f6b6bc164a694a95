//! The metadata of all arrays and groups in a group, in one place.

use serde_json::{Map, Value};

use super::dialect;

/// Metadata, and their keys below the group.
type KeyedMetadata = Vec<(String, Vec<u8>)>;

/// Those that the `zarr.json` of a group holds, if it does.
pub(crate) fn consolidated(group: &[u8]) -> Option<KeyedMetadata> {
    let nodes = object(group, "/consolidated_metadata/metadata")?;
    Some(nodes.iter().map(|(path, node)| (format!("{path}/zarr.json"), bytes(node))).collect())
}

/// Those of a `.zmetadata`, which is how version 2 has them.
pub(crate) fn consolidated_v2(all: &[u8]) -> Option<KeyedMetadata> {
    let nodes = object(all, "/metadata")?;
    Some(nodes.into_iter().map(|(key, node)| (key, bytes(&node))).collect())
}

fn object(json: &[u8], pointer: &str) -> Option<Map<String, Value>> {
    let mut json: Value = dialect::parse(json).ok()?;
    match json.pointer_mut(pointer)?.take() {
        Value::Object(nodes) => Some(nodes),
        _ => None,
    }
}

fn bytes(node: &Value) -> Vec<u8> {
    node.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_metadata() {
        let group =
            br#"{"node_type":"group","consolidated_metadata":{"metadata":{"a/b":{"shape":[2]}}}}"#;
        let found = consolidated(group).unwrap();
        assert_eq!(found, [("a/b/zarr.json".to_owned(), br#"{"shape":[2]}"#.to_vec())]);
        let found = consolidated_v2(br#"{"metadata":{"a/.zarray":{},".zgroup":{}}}"#).unwrap();
        let mut keys: Vec<&str> = found.iter().map(|(key, _)| &key[..]).collect();
        keys.sort_unstable();
        assert_eq!(keys, [".zgroup", "a/.zarray"]);
        for none in [&b"{}"[..], b"[", br#"{"consolidated_metadata":null}"#] {
            assert_eq!(consolidated(none), None);
            assert_eq!(consolidated_v2(none), None);
        }
    }
}
