//! What a dry run says of the outputs that would be written, for people and for programs.

use std::path::PathBuf;

use serde_json::{Value, json};
use tslice::error::FileName;
use tslice::execute::OutOfCore;
use tslice::format::printable;
use tslice::job::{Made, Planned, PlannedTensor};
use tslice::shape::AsTuple;
use tslice::sink::{self, Destination};

use crate::cli::report::{Json, counted, human_bytes, percent_encoded};

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
        format!("{} ({size}) would be shared with the input, not copied\n", counted(bytes, "byte"))
    })
}

/// The plan of a copy that does not fit in memory: what is done, how often bytes pass, through how much
/// temporary space.
pub(super) fn out_of_core(plan: &OutOfCore) -> String {
    let steps: Vec<_> = plan.steps.iter().map(|step| step.name()).collect();
    let passes = match plan.passes() {
        1 => "1 pass".to_owned(),
        count => format!("{count} passes"),
    };
    let files = match plan.temporary_bytes {
        0 => "no temporary files".to_owned(),
        bytes => {
            let (size, folder) = (human_bytes(bytes), std::env::temp_dir());
            let folder = printable(&folder.display().to_string()).to_string();
            format!("{bytes} bytes ({size}) of temporary files in {folder}")
        }
    };
    format!("{}: {passes} over input and output, {files}", steps.join(", then "))
}

/// The same for programs, added to an object.
pub(super) fn add_out_of_core(value: &mut Value, plan: Option<&OutOfCore>) {
    let Some(plan) = plan else { return };
    value["plan"] = plan.steps.iter().map(|step| step.name()).collect();
    value["passes"] = plan.passes().into();
    value["temporary_bytes"] = plan.temporary_bytes.into();
}

/// What a dry run says of it.
pub(super) fn too_large(plan: Option<&OutOfCore>) -> String {
    plan.map_or_else(String::new, |plan| format!("larger than memory: {}\n", out_of_core(plan)))
}

fn output_as_text(output: &Planned) -> String {
    let Planned { format, .. } = output;
    let mut destination = output.destination.to_string();
    if let Some(target) = link_target(output) {
        destination = format!("{destination} (a link to {})", target.display());
    }
    let (place, into) = match &output.made {
        Made::New => (destination, ""),
        Made::CopyOf(original) => (format!("{destination}, a copy of {original}"), " into"),
        Made::InPlace => (format!("{destination}, in place"), " into"),
    };
    let what = match &output.tensors {
        Ok(PlannedTensor { shape, dtype }) => format!("shape {}, dtype {dtype}", AsTuple(shape)),
        Err(count) => counted(*count as u64, "tensor"),
    };
    let whole = match output.size {
        Some(bytes) => format!("{} with the header", human_bytes(bytes)),
        None if !into.is_empty() => human_bytes(output.bytes),
        None if format.is_text => "before they become text".to_owned(),
        None => "before they are compressed".to_owned(),
    };
    format!(
        "would write{into} {}: {what}, {} of elements ({whole}), format {}\n{}",
        printable(&place),
        counted(output.bytes, "byte"),
        format.name,
        in_common(output.shared) + &too_large(output.out_of_core.as_ref()),
    )
}

/// Where an output that is reached through a link would go.
fn link_target(output: &Planned) -> Option<PathBuf> {
    let FileName::Path(path) = &output.destination else { return None };
    sink::link_target(&Destination::Path(path.clone()))
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
    if let Some(target) = link_target(output) {
        value["link_target"] = target.display().to_string().into();
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
    add_out_of_core(&mut value, output.out_of_core.as_ref());
    for (key, known) in [("file_bytes", output.size), ("shared_bytes", output.shared)] {
        if let Some(bytes) = known {
            value[key] = bytes.into();
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use tslice::execute::CopyStep;

    use super::*;

    #[test]
    fn plans_are_told_in_words_and_to_programs() {
        let plan = |steps: &[CopyStep], temporary_bytes| {
            let plan = OutOfCore { steps: steps.to_vec(), temporary_bytes };
            let mut value = json!({});
            add_out_of_core(&mut value, Some(&plan));
            (too_large(Some(&plan)), value)
        };
        let (text, value) = plan(&[CopyStep::Panels], 0);
        assert_eq!(
            text,
            "larger than memory: panels: 1 pass over input and output, no temporary files\n"
        );
        assert_eq!(value, json!({ "plan": ["panels"], "passes": 1, "temporary_bytes": 0 }));
        let (text, value) = plan(&[CopyStep::Distribution, CopyStep::Panels], 54_321);
        let start = "larger than memory: distribution, then panels: 3 passes over input and output, \
                     54321 bytes (54 kB) of temporary files in /";
        assert!(text.starts_with(start), "{text}");
        let steps = json!(["distribution", "panels"]);
        assert_eq!(value, json!({ "plan": steps, "passes": 3, "temporary_bytes": 54_321 }));
        assert_eq!(too_large(None), "");
    }
}
