//! Descriptions of tensors besides dtype and shape: attributes, packed values, facts that an output
//! omits, and the totals of a listing.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::{self, Write};

use serde_json::{Map, Value, json};
use tslice::dtype::DType;
use tslice::input::Input;
use tslice::output::Omission;
use tslice::tensor::{Annotations, TensorInfo, printable, shortened};
use tslice::{print, shape};

use crate::cli::report::{Failure, Json, counted, human_bytes};

const MOST_NOTES: usize = 8;

/// Tensors of an input by their numbers.
pub(super) fn of_numbers(input: &Input, numbers: &[usize]) -> impl Iterator<Item = TensorInfo> {
    numbers.iter().filter_map(|&number| input.contents().tensors.get(number))
}

/// Note that the values of tensors to be shown are packed.
pub(super) fn note_packed(tensors: impl Iterator<Item = TensorInfo>) {
    let notes = tensors.filter_map(|tensor| {
        let packed = tensor.annotated?.get().packed(&tensor.dtype)?;
        Some(as_stored(&tensor.name.unwrap_or_default(), &packed))
    });
    let mut said = HashSet::new();
    print_some(notes.filter(|note| said.insert(note.clone())), Some(UNPACK));
}

/// The hint for packed values.
const UNPACK: &str = "--unpack takes the unpacked values";

fn as_stored(name: &str, packed: &str) -> String {
    format!("{}values are taken as they are stored: {packed}", of(name))
}

fn of(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{}: ", shortened(name)) }
}

pub(super) fn note_omissions(all: &[Omission]) {
    let packed = all.iter().filter_map(|omission| match omission {
        Omission::Packed { name, packed } => Some(as_stored(name, packed)),
        _ => None,
    });
    print_some(packed, Some(UNPACK));
    let mut notes = Vec::new();
    let attributes = |names: &[String]| {
        let names_shown = names.iter().take(MOST_NOTES).map(|it| shortened(it));
        let count = counted(names.len() as u64, "attribute");
        format!("{count} ({})", Vec::from_iter(names_shown).join(", "))
    };
    for omission in all {
        match omission {
            Omission::Packed { .. } => {}
            Omission::DType { dtype, tensors } => note_as_bytes(dtype, *tensors),
            Omission::Metadata { keys } => note_metadata(keys),
            Omission::Dropped { name, attributes } => {
                let all = attributes.join(", ");
                let why = "left out, as it does not hold for the new dtype";
                notes.push(format!("{}{why}: {all}", of(name)));
            }
            Omission::Attributes { name, left_out, reworded } => {
                let of = of(name);
                if !left_out.is_empty() {
                    let attributes = attributes(left_out);
                    notes.push(format!("{of}{attributes} left out, which JSON cannot express"));
                }
                if !reworded.is_empty() {
                    let attributes = attributes(reworded);
                    notes.push(format!("{of}NaN or infinity is written as a word in {attributes}"));
                }
            }
        }
    }
    print_some(notes.into_iter(), None);
}

fn note_metadata(keys: &[String]) {
    let shown: Vec<String> = keys.iter().take(MOST_NOTES).map(|it| format!("{it:?}")).collect();
    let more = if keys.len() > shown.len() { ", ..." } else { "" };
    let which =
        if keys.is_empty() { String::new() } else { format!(" ({}{more})", shown.join(", ")) };
    let note = Failure::new(format_args!("the metadata of the input are left out{which}"));
    note.hint("--no-metadata leaves them out without a note").print_note();
}

fn note_as_bytes(dtype: &DType, tensors: u64) {
    let are = if tensors == 1 { "is" } else { "are" };
    let name = dtype.type_name();
    let note = Failure::new(format_args!(
        "NumPy has no {name}: {} {are} written as raw bytes",
        counted(tensors, "tensor")
    ));
    let hint = dtype.blocks().is_none().then_some("--cast float32 writes numbers");
    note.hint_if(hint).print_note();
}

/// Print the first few notes, the first with this hint.
fn print_some(mut notes: impl Iterator<Item = String>, mut hint: Option<&str>) {
    let note = |note: String| Failure::new(note).hint_if(hint.take()).print_note();
    notes.by_ref().take(MOST_NOTES).for_each(note);
    let others = notes.count() as u64;
    if others > 0 {
        Failure::new(format_args!("{} more like these", counted(others, "note"))).print_note();
    }
}

pub(super) fn add_said(entry: &mut Value, dtype: &DType, said: Annotations) {
    let Annotations { attributes, dimension_names, fill_value, omitted, notes, .. } = said;
    if !attributes.is_empty() {
        entry["attributes"] = Value::Object(attributes);
    }
    if !dimension_names.is_empty() {
        entry["dimension_names"] = json!(dimension_names);
    }
    if let Some(fill) = fill_value.filter(|fill| fill.len() as u64 * 8 == dtype.item_bits()) {
        entry["fill_value"] = element(dtype, &fill);
    }
    if !omitted.is_empty() {
        entry["unsaid_attributes"] = json!(omitted);
    }
    if !notes.is_empty() {
        entry["notes"] = json!(notes);
    }
}

/// An element: a number if JSON has it, otherwise its text.
fn element(dtype: &DType, bytes: &[u8]) -> Value {
    let text =
        if print::can_print(dtype) { print::element(dtype, bytes) } else { return Value::Null };
    match text.as_str() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "nan" => "NaN".into(),
        "inf" => "Infinity".into(),
        "-inf" => "-Infinity".into(),
        text => {
            let number = text.strip_suffix('.').unwrap_or(text);
            serde_json::from_str(number)
                .ok()
                .filter(Value::is_number)
                .unwrap_or_else(|| text.into())
        }
    }
}

/// The attributes of groups by their paths; those without attributes are left out.
pub(super) fn of_groups(input: &Input) -> Map<String, Value> {
    let groups = input.contents().tensors.groups().iter();
    let said = groups.map(|(path, said)| (path.clone(), Value::Object(said.get().attributes)));
    said.filter(|(_, said)| said != &json!({})).collect()
}

pub(super) fn packed_line(tensor: &TensorInfo, said: &Annotations) -> Option<String> {
    let packed = said.packed(&tensor.dtype)?;
    let name =
        tensor.name.as_deref().map_or_else(String::new, |name| format!("{} ", printable(name)));
    Some(format!("  {name}has packed values: {}", printable(&packed)))
}

/// The totals of the tensors of a listing.
#[derive(Default)]
pub(super) struct Totals {
    all: TensorCounts,
    dtypes: BTreeMap<String, TensorCounts>,
}

/// Counts of tensors. The sums of many members may need more than 64 bits.
#[derive(Clone, Copy, Default)]
pub(super) struct TensorCounts {
    tensors: u64,
    elements: u128,
    bytes: u128,
}

impl TensorCounts {
    pub(super) fn add(&mut self, tensor: &TensorInfo) {
        self.tensors += 1;
        self.elements +=
            u128::from(shape::element_count(&tensor.element_shape()).unwrap_or(u64::MAX));
        self.bytes += u128::from(tensor.bytes());
    }

    /// Add the counts of `copies` copies of other tensors, of which there are no more than a file
    /// has.
    pub(super) fn add_copies(&mut self, other: TensorCounts, copies: u64) {
        self.tensors += other.tensors * copies;
        self.elements += other.elements * u128::from(copies);
        self.bytes += other.bytes * u128::from(copies);
    }

    pub(super) fn cells(&self) -> [String; 3] {
        [self.tensors.to_string(), self.elements.to_string(), self.bytes.to_string()]
    }
}

impl Totals {
    pub(super) fn of(tensors: impl Iterator<Item = TensorInfo>) -> Totals {
        let mut totals = Totals::default();
        tensors.for_each(|tensor| totals.add(&tensor));
        totals
    }

    pub(super) fn add(&mut self, tensor: &TensorInfo) {
        self.all.add(tensor);
        self.dtypes.entry(tensor.dtype.to_string()).or_default().add(tensor);
    }

    pub(super) fn human_bytes(&self) -> String {
        human_bytes(u64::try_from(self.all.bytes).unwrap_or(u64::MAX))
    }

    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{{},\"dtypes\":{{", self.all.json())?;
        for (number, (dtype, sums)) in self.dtypes.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let dtype = Value::from(dtype.as_str());
            write!(out, "{comma}{}:{{{}}}", Json(&dtype), sums.json())?;
        }
        out.write_all(b"}}")
    }
}

impl TensorCounts {
    fn json(&self) -> String {
        let TensorCounts { tensors, elements, bytes } = self;
        format!(r#""tensors":{tensors},"elements":{elements},"bytes":{bytes}"#)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "total: {}", self.all)?;
        if let (Some((dtype, _)), 1) = (self.dtypes.first_key_value(), self.dtypes.len()) {
            return write!(f, "; all {}", printable(dtype));
        }
        self.dtypes.iter().try_for_each(|(dtype, sums)| write!(f, "; {}: {sums}", printable(dtype)))
    }
}

impl fmt::Display for TensorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |one: bool| if one { "" } else { "s" };
        let TensorCounts { tensors, elements, bytes } = self;
        write!(f, "{tensors} tensor{}, ", several(*tensors == 1))?;
        write!(f, "{elements} element{}, ", several(*elements == 1))?;
        write!(f, "{bytes} byte{}", several(*bytes == 1))
    }
}
