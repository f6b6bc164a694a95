//! Metadata of arrays and groups, versions 2 and 3: attributes, names of dimensions, and the translation of
//! everything else for `zarrs`.
//!
//! Whatever zarr-python reads is read: bare words for numbers that JSON lacks, fill values of another kind than the
//! elements, codecs by their names in numcodecs.

use std::iter::repeat;

use serde_json::{Map, Value, json};

use super::dtype::ElementType;
use super::filters::STORED_ENDIAN;
use super::{ZarrError, codecs, dtype, unfit};
use crate::dtype::DType;
use crate::tensor::{Annotations, brief};

/// The prefix of a word that was bare.
const BARE: char = '\0';

/// The words for numbers that JSON lacks, as Python writes them.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The keys that the metadata of a version 3 array may have; others must have `must_understand: false`.
const ARRAY_KEYS: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
];

/// The keys that the metadata of a group may have.
const GROUP_KEYS: [&str; 4] = ["zarr_format", "node_type", "attributes", "consolidated_metadata"];

/// The node at a path, from its metadata.
pub(crate) enum ZarrNode {
    Array(ArrayMetadataJson),
    Group(Annotations),
}

pub(crate) struct ArrayMetadataJson(pub(super) Value);

/// Parse a `zarr.json`.
pub(crate) fn node(json: &[u8]) -> Result<ZarrNode, ZarrError> {
    let mut metadata = parse(json)?;
    match metadata.get("node_type").and_then(Value::as_str) {
        Some("array") => {
            refuse_unknown(&metadata, false)?;
            Ok(ZarrNode::Array(ArrayMetadataJson(metadata)))
        }
        Some("group") => {
            refuse_unknown(&metadata, true)?;
            let attributes = metadata.get_mut("attributes").map(Value::take);
            Ok(ZarrNode::Group(of_attributes(attributes.unwrap_or_default())))
        }
        _ => Err(unfit("node_type is neither array nor group")),
    }
}

/// The metadata of a version 2 array: `.zarray`, and `.zattrs` if it exists.
pub(crate) fn array_v2(
    json: &[u8],
    attributes: Option<&[u8]>,
) -> Result<ArrayMetadataJson, ZarrError> {
    let mut metadata = parse(json)?;
    if let (Some(entries), Some(attributes)) = (metadata.as_object_mut(), attributes) {
        let attributes = parse(attributes)?;
        entries.insert("attributes".to_owned(), attributes);
    }
    Ok(ArrayMetadataJson(metadata))
}

/// The annotations of a version 2 group, from `.zattrs`.
pub(crate) fn group_v2(attributes: &[u8]) -> Result<Annotations, ZarrError> {
    Ok(of_attributes(parse(attributes)?))
}

fn of_attributes(attributes: Value) -> Annotations {
    let Value::Object(mut attributes) = attributes else { return Annotations::default() };
    let words = attributes.iter_mut().filter_map(|(name, it)| reworded(it).then(|| name.clone()));
    let reworded = words.collect();
    Annotations { attributes, reworded, ..Annotations::default() }
}

/// xarray's attribute with the names of a version 2 array's axes; version 3 has `dimension_names`.
const DIMENSION_NAMES_V2: &str = "_ARRAY_DIMENSIONS";

/// Take the annotations of an array from its metadata.
pub(super) fn annotations(metadata: &mut Value, fill_value: Option<Vec<u8>>) -> Annotations {
    let mut take = |key: &str| {
        let entries = metadata.as_object_mut();
        entries.and_then(|entries| entries.remove(key)).unwrap_or_default()
    };
    let dimension_names = take("dimension_names");
    let attributes = take("attributes");
    let mut all = of_attributes(attributes);
    all.fill_value = fill_value;
    let ndim = metadata.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
    let names = |said: &Value| -> Option<Vec<Option<String>>> {
        let names = said.as_array().filter(|names| names.len() == ndim)?;
        Some(names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
    };
    if let Some(names) = names(&dimension_names) {
        all.dimension_names = names;
    } else if let Some(names) = all.attributes.get(DIMENSION_NAMES_V2).and_then(names) {
        // the attribute would be wrong once axes change
        all.attributes.remove(DIMENSION_NAMES_V2);
        // of version 2, xarray opens only arrays that name their axes
        all.fill_masks = metadata.get("zarr_format") == Some(&json!(2)) && all.fill_value.is_some();
        all.dimension_names = names;
    }
    if all.dimension_names.iter().all(Option::is_none) {
        all.dimension_names.clear();
    }
    all
}

/// The shape of the chunks, or of the shards.
pub(super) fn chunk_shape(metadata: &Value) -> Result<Vec<u64>, ZarrError> {
    let said = match metadata.get("chunk_grid") {
        None => metadata.get("chunks"),
        Some(grid) => match grid.get("name").and_then(Value::as_str) {
            Some("regular") => grid.pointer("/configuration/chunk_shape"),
            name => return Err(ZarrError::Grid(brief(name.unwrap_or("of no name")))),
        },
    };
    let lens = said.and_then(Value::as_array).map(|lens| lens.iter().map(Value::as_u64).collect());
    let lens: Option<Vec<u64>> = lens.flatten();
    lens.ok_or_else(|| unfit("the shape of the chunks is not said"))
}

/// Give the chunks of an array without elements a length where they have none.
pub(super) fn lengthen_empty_chunks(metadata: &mut Value) {
    let lens = metadata.get("shape").and_then(Value::as_array);
    if !lens.is_some_and(|lens| lens.iter().any(|len| *len == 0)) {
        return;
    }
    let pointer = if metadata.get("chunks").is_some() {
        "/chunks"
    } else {
        "/chunk_grid/configuration/chunk_shape"
    };
    let chunks = metadata.pointer_mut(pointer).and_then(Value::as_array_mut);
    chunks.into_iter().flatten().filter(|len| **len == 0).for_each(|len| *len = 1.into());
}

/// Parse JSON in which numbers may be bare words: these become texts that [`reworded`] knows.
fn parse(json: &[u8]) -> Result<Value, ZarrError> {
    serde_json::from_slice(json).or_else(|error| match quoted(json) {
        Some(json) => serde_json::from_slice(&json).map_err(unfit),
        None => Err(unfit(error)),
    })
}

/// JSON with bare words put in quotes; `None` where there are none.
fn quoted(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = json;
    let mut in_text = false;
    let mut found = false;
    while let Some((&byte, behind)) = rest.split_first() {
        let word = WORDS.into_iter().find(|word| !in_text && rest.starts_with(word.as_bytes()));
        if let Some(word) = word {
            out.extend(format!("\"\\u0000{word}\"").bytes());
            rest = &rest[word.len()..];
            found = true;
            continue;
        }
        let escaped = in_text && byte == b'\\' && !behind.is_empty();
        in_text ^= byte == b'"';
        let (taken, behind) = rest.split_at(if escaped { 2 } else { 1 });
        out.extend(taken);
        rest = behind;
    }
    found.then_some(out)
}

/// Replace texts for bare words by the plain words; returns whether there were any.
pub(super) fn reworded(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match text.strip_prefix(BARE) {
            Some(word) => {
                *text = word.to_owned();
                true
            }
            None => false,
        },
        Value::Array(all) => all.iter_mut().filter_map(|it| reworded(it).then_some(())).count() > 0,
        Value::Object(map) => {
            map.values_mut().filter_map(|it| reworded(it).then_some(())).count() > 0
        }
        _ => false,
    }
}

/// Refuse version 3 metadata, of a group or an array, with keys that must be understood.
fn refuse_unknown(metadata: &Value, is_group: bool) -> Result<(), ZarrError> {
    let known: &[&str] = if is_group { &GROUP_KEYS } else { &ARRAY_KEYS };
    let may_pass = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    let mut entries = metadata.as_object().into_iter().flatten();
    match entries.find(|(key, value)| !known.contains(&key.as_str()) && !may_pass(value)) {
        Some((key, _)) => {
            let reason = format!("the key {:?} is not known, and must be understood", brief(key));
            Err(ZarrError::Metadata(reason))
        }
        None => Ok(()),
    }
}

/// Translate the metadata of an array's elements for `zarrs`. Returns the bytes of the fill value.
pub(super) fn translate(
    metadata: &mut Value,
    elements: &ElementType,
) -> Result<Vec<u8>, ZarrError> {
    let ElementType { dtype, opaque } = elements;
    let item = dtype.item_bits() / 8;
    let said = metadata.get("fill_value").unwrap_or(&Value::Null);
    let fill = dtype::bytes(said, dtype).ok_or_else(|| ZarrError::Fill(dtype.to_string()))?;
    if *opaque && metadata.get("codecs").is_some_and(swaps) {
        return Err(unfit("elements of several parts in big-endian order are not read"));
    }
    let Some(entries) = metadata.as_object_mut() else { return Ok(fill) };
    let is_v3 = entries.contains_key("data_type");
    let fill_json = if *opaque { json!(fill) } else { dtype::json(&fill, dtype) };
    entries.insert("fill_value".to_owned(), fill_json);
    match (opaque, is_v3) {
        (true, true) => {
            entries.insert("data_type".to_owned(), json!(format!("r{}", item * 8)));
        }
        (true, false) => {
            entries.insert("dtype".to_owned(), json!(format!("|V{item}")));
        }
        (false, false) => {
            if let (Some(Value::String(name)), DType::Scalar(_, _), 1) =
                (entries.get_mut("dtype"), dtype, item)
            {
                // a byte has no order, whatever the name says
                *name = format!("|{}", name.trim_start_matches(['<', '>', '=', '|']));
            }
        }
        (false, true) => {}
    }
    if is_v3 {
        if entries.get("storage_transformers").is_some_and(Value::is_null) {
            entries.remove("storage_transformers");
        }
        if let Some(Value::Array(codecs)) = entries.get_mut("codecs") {
            translate_codecs(codecs, item, item == 1 || *opaque, 0)?;
        }
        return Ok(fill);
    }
    if let Some(Value::Array(filters)) = entries.get_mut("filters") {
        filters.retain(|filter| !leaves_elements(filter.get("id"), Some(filter)));
        let ids = filters.iter().map(|filter| filter.get("id").and_then(Value::as_str));
        check_filters(ids.flatten())?;
        filters.iter_mut().for_each(|filter| translate_v2(filter, item));
    }
    if let Some(compressor) = entries.get_mut("compressor") {
        translate_v2(compressor, item);
    }
    Ok(fill)
}

/// Whether a codec of this name and configuration decodes to the type of its input.
fn leaves_elements(name: Option<&Value>, configuration: Option<&Value>) -> bool {
    let said = |key: &str| configuration.and_then(|all| all.get(key)).filter(|it| !it.is_null());
    match name.and_then(Value::as_str).unwrap_or_default().trim_start_matches("numcodecs.") {
        "bitround" => true,
        "quantize" => said("astype").is_none_or(|stored| said("dtype") == Some(stored)),
        _ => false,
    }
}

/// Refuse codecs of elements after a filter that is undone on bytes: decoding would apply them first.
fn check_filters<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<(), ZarrError> {
    let Some(first) = names.find(|name| codecs::is_filter(name)) else { return Ok(()) };
    match names.find(|name| matches!(*name, "transpose" | "sharding_indexed")) {
        Some(name) => {
            let reason = format!("the codec {first} before {name} is not read");
            Err(unfit(reason))
        }
        None => Ok(()),
    }
}

/// The name of a codec of version 3.
fn codec_name(codec: &Value) -> Option<&str> {
    codec.get("name").unwrap_or(codec).as_str()
}

/// The most levels of shards in shards.
const MAX_SHARDS: usize = 8;

fn translate_codecs(
    codecs: &mut Vec<Value>,
    item: u64,
    has_no_order: bool,
    depth: usize,
) -> Result<(), ZarrError> {
    codecs.retain(|codec| !leaves_elements(codec.get("name"), codec.get("configuration")));
    check_filters(codecs.iter().filter_map(codec_name))?;
    let is_filter = |codec: &Value| codec_name(codec).is_some_and(codecs::is_filter);
    let order = if codecs.iter().any(swaps) { "big" } else { "little" };
    let has_filters = codecs.iter().any(is_filter);
    let has_no_order = has_no_order || has_filters;
    // the codec `bytes` follows the last filter
    let filters = codecs.iter_mut().rev().filter(|codec| is_filter(codec));
    for (filter, order) in filters.zip([order].into_iter().chain(repeat("little"))) {
        if let Some(said) = filter.get_mut("configuration").and_then(Value::as_object_mut) {
            said.insert(STORED_ENDIAN.to_owned(), order.into());
        }
    }
    for codec in codecs {
        if let Value::String(name) = codec {
            *codec = json!({ "name": name });
        }
        let Some(codec) = codec.as_object_mut() else { continue };
        let Some(Value::String(name)) = codec.get_mut("name") else { continue };
        let own = known_name(name);
        let name = std::mem::take(name);
        codec.insert("name".to_owned(), own.unwrap_or(&name).into());
        let configuration = codec.entry("configuration").or_insert_with(|| json!({}));
        let Some(configuration) = configuration.as_object_mut() else { continue };
        match name.as_str() {
            "bytes" if has_no_order => {
                configuration.insert("endian".to_owned(), "little".into());
            }
            "bytes" if !configuration.contains_key("endian") => {
                return Err(unfit("the codec bytes has no endian for elements of several bytes"));
            }
            "sharding_indexed" if depth < MAX_SHARDS => {
                complete(&name, configuration, item);
                if let Some(Value::Array(inner)) = configuration.get_mut("codecs") {
                    translate_codecs(inner, item, has_no_order, depth + 1)?;
                }
            }
            name => match name.strip_prefix("numcodecs.") {
                Some(id) => configure(id, configuration, item),
                None => complete(name, configuration, item),
            },
        }
    }
    Ok(())
}

/// The name in `zarrs` of a version 3 codec of numcodecs, where it differs.
fn known_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "numcodecs.zstd" => "zstd",
        "numcodecs.gzip" => "gzip",
        "numcodecs.blosc" => "blosc",
        "numcodecs.crc32c" => "crc32c",
        _ => return None,
    })
}

/// Add the defaults of zarr-python to a codec's configuration.
fn complete(name: &str, configuration: &mut Map<String, Value>, item: u64) {
    let usual = match name {
        "zstd" => json!({ "level": 0, "checksum": false }),
        "gzip" => json!({ "level": 5 }),
        "blosc" => json!({
            "cname": "zstd", "clevel": 5, "shuffle": "noshuffle", "typesize": item, "blocksize": 0,
        }),
        "sharding_indexed" => json!({
            "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
            "index_codecs": [
                { "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" },
            ],
            "index_location": "end",
        }),
        _ => return,
    };
    let Value::Object(usual) = usual else { return };
    for (key, value) in usual {
        let said = configuration.entry(key).or_insert(Value::Null);
        if said.is_null() {
            *said = value;
        }
    }
}

/// Configure a codec of numcodecs for decoding, whatever encoded the chunk.
fn configure(id: &str, configuration: &mut Map<String, Value>, item: u64) {
    let of_level = json!({ "level": 1 });
    let own = match id {
        "zstd" => json!({ "level": 1, "checksum": false }),
        "gzip" | "zlib" | "bz2" => of_level,
        // the header of a chunk names its compressor
        "blosc" => json!({ "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0 }),
        "crc32c" if configuration.get("location").is_none_or(|it| it == "end" || it.is_null()) => {
            json!({})
        }
        "shuffle" if configuration.get("elementsize").is_none_or(Value::is_null) => {
            json!({ "elementsize": item })
        }
        _ => return,
    };
    if let Value::Object(own) = own {
        *configuration = own;
    }
}

/// Translate a version 2 codec.
fn translate_v2(codec: &mut Value, item: u64) {
    let Some(codec) = codec.as_object_mut() else { return };
    let Some(Value::String(id)) = codec.get("id").cloned() else { return };
    if matches!(id.as_str(), "gzip" | "zlib" | "bz2") {
        let mut configuration = codec.clone();
        configure(&id, &mut configuration, item);
        *codec = configuration;
        codec.insert("id".to_owned(), id.into());
    }
}

/// Whether a codec stores elements in big-endian order; the codecs of a shard's index do not count.
fn swaps(codecs: &Value) -> bool {
    let in_map = |map: &Map<String, Value>| {
        let is_big = map.get("endian").is_some_and(|endian| endian == "big");
        is_big || map.iter().any(|(key, value)| key != "index_codecs" && swaps(value))
    };
    match codecs {
        Value::Array(all) => all.iter().any(swaps),
        Value::Object(map) => in_map(map),
        _ => false,
    }
}

/// Metadata with their keys below the group.
type KeyedMetadata = Vec<(String, Vec<u8>)>;

/// The consolidated metadata in the `zarr.json` of a group, if any.
pub(crate) fn consolidated(group: &[u8]) -> Option<KeyedMetadata> {
    let nodes = object(group, "/consolidated_metadata/metadata")?;
    Some(nodes.iter().map(|(path, node)| (format!("{path}/zarr.json"), bytes(node))).collect())
}

/// The consolidated metadata in a `.zmetadata` of version 2.
pub(crate) fn consolidated_v2(all: &[u8]) -> Option<KeyedMetadata> {
    let nodes = object(all, "/metadata")?;
    Some(nodes.into_iter().map(|(key, node)| (key, bytes(&node))).collect())
}

fn object(json: &[u8], pointer: &str) -> Option<Map<String, Value>> {
    let mut json: Value = parse(json).ok()?;
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
    fn bare_words_are_numbers() {
        let mut value =
            parse(br#"{"a":[NaN,1,-Infinity],"b\"NaN":"NaN, \\","c":{"d":Infinity}}"#).unwrap();
        let mut attributes = value.as_object_mut().unwrap().clone();
        let found: Vec<bool> = attributes.values_mut().map(reworded).collect();
        assert_eq!(found, [true, false, true]);
        assert_eq!(attributes["a"], json!(["NaN", 1, "-Infinity"]));
        assert_eq!(attributes["b\"NaN"], json!("NaN, \\"));
        assert_eq!(attributes["c"], json!({ "d": "Infinity" }));
        for broken in
            [&b"{\"a\":NaNa}"[..], b"{\"a\":nan}", b"{\"a\":\"NaN}", b"NaN NaN", b"[-NaN]"]
        {
            assert!(parse(broken).is_err());
        }
    }

    #[test]
    fn what_must_be_understood_is() {
        let refused = |metadata: Value, is_group| refuse_unknown(&metadata, is_group).is_err();
        assert!(refused(json!({ "shape": [], "more": 1 }), false));
        assert!(refused(json!({ "more": { "must_understand": true } }), false));
        assert!(refused(json!({ "more": { "name": "x" } }), true));
        assert!(!refused(json!({ "more": { "must_understand": false }, "codecs": [] }), false));
        assert!(!refused(json!({ "consolidated_metadata": null, "attributes": {} }), true));
    }

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
