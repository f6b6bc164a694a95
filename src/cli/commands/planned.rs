//! What a dry run says of the outputs that would be written, for people and for programs.

use serde_json::{Value, json};
use tslice::internals::error::FileName;
use tslice::internals::format::printable;
use tslice::internals::job::{Made, Planned, PlannedTensor};
use tslice::internals::shape::AsTuple;

use crate::cli::report::{Json, human_bytes, percent_encoded};

/// All outputs, and the requests to remote inputs, in words.
pub(super) fn as_text(outputs: &[Planned], network: Option<String>) -> String {
    let network = network.map(|network| format!("would read {network}\n"));
    outputs.iter().map(output_as_text).chain(network).collect()
}

/// The same as one object.
pub(super) fn as_json(outputs: &[Planned], network: Option<String>) -> String {
    let mut value = json!({ "outputs": outputs.iter().map(output_as_json).collect::<Vec<_>>() });
    if let Some(network) = network {
        value["network"] = network.into();
    }
    format!("{}\n", Json(&value))
}

/// How many bytes would be shared with the input.
pub(super) fn in_common(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| {
        let size = human_bytes(bytes);
        format!("{bytes} bytes ({size}) would be shared with the input, not copied\n")
    })
}

/// How many bytes would be put in order on the disk first.
fn passed_through(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| {
        let (size, folder) = (human_bytes(bytes), std::env::temp_dir());
        let folder = printable(&folder.display().to_string()).to_string();
        format!(
            "rows would be put in order in {bytes} bytes ({size}) of temporary files in {folder}\n"
        )
    })
}

fn output_as_text(output: &Planned) -> String {
    let Planned { destination, format, .. } = output;
    let (place, into) = match &output.made {
        Made::New => (destination.to_string(), ""),
        Made::CopyOf(original) => (format!("{destination}, a copy of {original}"), " into"),
        Made::InPlace => (format!("{destination}, in place"), " into"),
    };
    let what = match &output.tensors {
        Ok(PlannedTensor { shape, dtype }) => format!("shape {}, dtype {dtype}", AsTuple(shape)),
        Err(count) => format!("{count} tensors"),
    };
    let whole = match output.size {
        Some(bytes) => format!("{} with the header", human_bytes(bytes)),
        None if !into.is_empty() => human_bytes(output.bytes),
        None if format.is_text => "before they become text".to_owned(),
        None => "before they are deflated".to_owned(),
    };
    format!(
        "would write{into} {}: {what}, {} bytes of elements ({whole}), format {}\n{}",
        printable(&place),
        output.bytes,
        format.name,
        in_common(output.shared) + &passed_through(output.temporary),
    )
}

/// One object; what is not known is left out.
fn output_as_json(output: &Planned) -> Value {
    let name = |file: &FileName| match file {
        FileName::Stdout => "-".to_owned(),
        file => file.to_string(),
    };
    let Planned { destination, format, bytes, .. } = output;
    let mut value = json!({ "file": name(destination), "format": format.name, "bytes": bytes });
    if let FileName::Path(path) = destination
        && let Some(encoded) = percent_encoded(path)
    {
        value["file_percent"] = encoded.into();
    }
    match &output.made {
        Made::New => {}
        Made::CopyOf(original) => value["copy_of"] = name(original).into(),
        Made::InPlace => value["in_place"] = true.into(),
    }
    match &output.tensors {
        Ok(PlannedTensor { shape, dtype }) => {
            value["tensors"] = 1.into();
            (value["shape"], value["dtype"]) = (json!(shape), dtype.to_string().into());
        }
        Err(count) => value["tensors"] = (*count).into(),
    }
    for (key, known) in [
        ("file_bytes", output.size),
        ("shared_bytes", output.shared),
        ("temporary_bytes", output.temporary),
    ] {
        if let Some(bytes) = known {
            value[key] = bytes.into();
        }
    }
    value
}
