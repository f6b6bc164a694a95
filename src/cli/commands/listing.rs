//! What `tslice info` says of one file: as text, and as JSON.

use std::borrow::Cow;
use std::io;
use std::io::Write;

use serde_json::{Value, json};
use tslice::digest::Digest;
use tslice::formats::gguf::MetadataError;
use tslice::input::{Input, Location, Missing, Unreadable};
use tslice::shape::AsTuple;
use tslice::tensor::{LazyAnnotations, StoredChunks, TensorInfo, printable};

use super::tensors::Totals;
use super::{tensors, tree};
use crate::cli::args::InfoColumn;
use crate::cli::report::{Align, Json, SortKey, Table, counted, percent_encoded, plain};

/// The tensors of a file that are shown, as numbers.
pub(super) struct ShownFile {
    pub(super) tensors: Vec<usize>,
    pub(super) unreadable: Vec<usize>,
    /// Numbers among the missing tensors; `None` shows all of them.
    pub(super) missing: Option<Vec<usize>>,
}

impl ShownFile {
    pub(super) fn is_filtered_out(&self, input: &Input) -> bool {
        self.tensors.is_empty() && self.unreadable.is_empty() && input.contents().tensors.len() == 1
    }

    pub(super) fn needs_one_line(&self, input: &Input) -> bool {
        match *self.tensors {
            [] => self.is_filtered_out(input),
            [_] => write_remarks(&mut NoRoom, input, self).is_ok(),
            _ => false,
        }
    }

    pub(super) fn tensors<'a>(
        &'a self,
        input: &'a Input,
    ) -> impl ExactSizeIterator<Item = TensorInfo> + 'a {
        self.tensors.iter().map(|&number| input.contents().tensors.at(number))
    }

    pub(super) fn unreadable<'a>(
        &'a self,
        input: &'a Input,
    ) -> impl Iterator<Item = &'a Unreadable> {
        self.unreadable.iter().map(|&number| &input.unreadable()[number])
    }

    /// Missing tensors and files, as far as they were asked for.
    pub(super) fn missing<'a>(
        &'a self,
        input: &'a Input,
    ) -> Box<dyn Iterator<Item = Missing<'a>> + 'a> {
        match &self.missing {
            None => Box::new(input.missing()),
            Some(numbers) => {
                Box::new(numbers.iter().filter_map(|&number| input.missing_named(number)))
            }
        }
    }
}

/// The number of stored chunks of a tensor, if some are not stored: these have the fill value.
pub(super) fn lacking_chunks(tensor: &TensorInfo) -> Option<String> {
    let StoredChunks { stored, count } = tensor.stored_chunks()?;
    (stored < count).then(|| format!("{stored} of {} are stored", counted(count, "chunk")))
}

pub(super) fn write_text(
    out: &mut dyn Write,
    input: &Input,
    shown: &ShownFile,
    columns: &[InfoColumn],
    as_tree: bool,
) -> Result<(), MetadataError> {
    let contents = input.contents();
    let totals = Totals::of(shown.tensors(input));
    // only the files of a checkpoint that hold shown tensors were opened
    let opened = contents.tensors.len() + input.unreadable().len() + input.missing_count();
    let all = input.checkpoint().map_or(opened, |it| opened.max(it.listed));
    let count = shown.tensors.len();
    writeln!(
        out,
        "{}: {}, {}{}, {}",
        printable(&input.location().to_string()),
        contents.format,
        if count < all { format!("{count} of ") } else { String::new() },
        counted(all as u64, "tensor"),
        totals.human_bytes()
    )?;
    if as_tree {
        tree::write(out, input, &shown.tensors)?;
    } else {
        write_listing(out, input, shown, columns)?;
    }
    write_remarks(out, input, shown)?;
    Ok(writeln!(out, "  {totals}")?)
}

fn write_listing(
    out: &mut dyn Write,
    input: &Input,
    shown: &ShownFile,
    columns: &[InfoColumn],
) -> io::Result<()> {
    // the last column is for inputs of several files
    let file = if input.shards().is_empty() { "" } else { "file" };
    let heading = ["name", "dtype", "shape", "bytes", "order", "offset", file].map(Cow::Borrowed);
    let rows = || {
        let rows = shown.tensors.iter().map(|&number| row(input, number));
        std::iter::once(heading.clone()).chain(rows)
    };
    let left = Align::Left;
    let right = Align::Right;
    let mut table = Table::of(rows(), [left, left, left, right, left, right, left], 2);
    if !columns.is_empty() {
        table = table.columns(columns.iter().map(|&column| column as usize).collect());
    }
    for row in rows() {
        out.write_all(table.line(&row).as_bytes())?;
    }
    Ok(())
}

/// A writer that refuses every write, to find out whether there is anything to write.
struct NoRoom;

impl Write for NoRoom {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_remarks(
    out: &mut dyn Write,
    input: &Input,
    shown: &ShownFile,
) -> Result<(), MetadataError> {
    for tensor in shown.tensors(input) {
        // it may be as long as a header
        let name = printable(tensor.name.as_deref().unwrap_or("-"));
        if let Some(chunks) = lacking_chunks(&tensor) {
            writeln!(out, "  {name}: {chunks}")?;
        }
        let said = tensor.annotated.as_ref().map(LazyAnnotations::get);
        let Some(said) = said else { continue };
        if let Some(line) = tensors::packed_line(&tensor, &said) {
            writeln!(out, "{line}")?;
        }
        for note in &said.notes {
            writeln!(out, "  {name}: {note}")?;
        }
    }
    for one in shown.unreadable(input) {
        let name = printable(&one.name);
        let reason = one.reason();
        writeln!(out, "  {name} cannot be read: {}", printable(&reason))?;
    }
    for Missing { tensor, file, reason } in shown.missing(input) {
        let file = printable(file);
        let reason = reason.map(plain);
        let reason = reason.as_deref().unwrap_or("it does not hold it");
        match tensor {
            Some(tensor) => {
                writeln!(out, "  {} is missing: {file}: {}", printable(tensor), printable(reason))?;
            }
            None => writeln!(out, "  {file} is missing: {}", printable(reason))?,
        }
    }
    if let Some((bytes, is_array)) = input.following() {
        let bytes = counted(bytes, "byte");
        let what = if is_array { "; they begin another array" } else { "" };
        writeln!(out, "  {bytes} after the array, which are not read{what}")?;
    }
    if !input.opaque().is_empty() {
        let opaque: Vec<_> = input.opaque().iter().map(|name| printable(name)).collect();
        writeln!(out, "  not understood: {}", opaque.join(", "))?;
    }
    for (key, value) in &input.contents().metadata.texts {
        writeln!(out, "  metadata {key:?}: {value:?}")?;
    }
    input.visit_gguf(&mut |key, value| {
        write!(out, "  metadata {key:?}: ")?;
        value.write_json(out, Some(MOST_VALUES))?;
        Ok(writeln!(out)?)
    })
}

pub(super) fn key(input: &Input, number: usize, column: InfoColumn) -> SortKey<'_> {
    let all = &input.contents().tensors;
    match column {
        InfoColumn::Name => SortKey::Text(all.name(number).unwrap_or_default().into()),
        InfoColumn::Bytes => SortKey::Amount(all.at(number).bytes()),
        InfoColumn::Shape => SortKey::Shape(all.at(number).element_shape()),
        _ => SortKey::Text(all.at(number).dtype.to_string().into()),
    }
}

const MOST_VALUES: u64 = 6;

/// The cells of tensor `number`. The name, which may be as long as a header, is borrowed.
pub(super) fn row(input: &Input, number: usize) -> [Cow<'_, str>; 7] {
    let tensors = &input.contents().tensors;
    let tensor = tensors.at(number);
    let (file, offset) = input.whereabouts(&tensor);
    let nowhere = match (tensor.chunk_shape(), input.contents().format) {
        _ if tensor.is_in_pieces() => Cow::Borrowed("in pieces"),
        (Some(chunks), _) => format!("chunks {}", AsTuple(chunks)).into(),
        (None, format) if format.is_text() => Cow::Borrowed("-"),
        _ => Cow::Borrowed("deflated"),
    };
    [
        tensors.name(number).map_or(Cow::Borrowed("-"), printable),
        tensor.dtype.to_string().into(),
        AsTuple(&tensor.element_shape()).to_string().into(),
        tensor.bytes().to_string().into(),
        order(&tensor).into(),
        offset.map_or(nowhere, |offset| offset.to_string().into()),
        file.map_or(Cow::Borrowed(""), printable),
    ]
}

fn order(tensor: &TensorInfo) -> String {
    match tensor.strides() {
        Some(_) => "strided".to_owned(),
        None => tensor.order().to_string(),
    }
}

/// `digests` has a digest for each shown tensor, if digests are asked for.
pub(super) fn write_json(
    out: &mut dyn Write,
    input: &Input,
    shown: &ShownFile,
    digests: &[Digest],
) -> Result<(), MetadataError> {
    let contents = input.contents();
    let file = match input.location() {
        Location::Stdin => "-".to_owned(),
        location => location.to_string(),
    };
    let file = Value::from(file);
    let format = Value::from(contents.format.to_string());
    let metadata = json!(contents.metadata.texts);
    let file = Json(&file);
    let format = Json(&format);
    write!(out, r#"{{"file":{file},"#)?;
    if let Some(encoded) = input.location().path().and_then(percent_encoded) {
        write!(out, r#""file_percent":{},"#, Json(&Value::from(encoded)))?;
    }
    write!(out, r#""format":{format},"metadata":"#)?;
    if input.has_gguf_metadata() {
        write_gguf_metadata(out, input)?
    } else {
        write!(out, "{}", Json(&metadata))?
    }
    out.write_all(b",\"tensors\":[")?;
    for (number, tensor) in shown.tensors(input).enumerate() {
        let mut entry = tensor_entry(input, &tensor);
        // moved: it may be as long as a header
        entry["name"] = tensor.name.into();
        if let Some(digest) = digests.get(number) {
            entry["digest"] = digest.to_string().into();
        }
        write!(out, "{}{}", if number > 0 { "," } else { "" }, Json(&entry))?;
    }
    out.write_all(b"],\"totals\":")?;
    Totals::of(shown.tensors(input)).write_json(out)?;
    if let Some((bytes, begins_array)) = input.following() {
        write!(out, r#","following":{{"bytes":{bytes},"begins_array":{begins_array}}}"#)?;
    }
    let groups = tensors::of_groups(input);
    if !groups.is_empty() {
        write!(out, r#","groups":{}"#, Json(&Value::Object(groups)))?;
    }
    write_lost(out, input, shown)?;
    if !input.opaque().is_empty() {
        write!(out, r#","opaque":{}"#, Json(&json!(input.opaque())))?;
    }
    Ok(out.write_all(b"}")?)
}

/// Without the name, which the caller adds.
fn tensor_entry(input: &Input, tensor: &TensorInfo) -> Value {
    let (file, offset) = input.whereabouts(tensor);
    let mut entry = json!({
        "name": null,
        "dtype": tensor.dtype.to_string(),
        "shape": tensor.element_shape(),
        "bytes": tensor.bytes(),
        "order": order(tensor),
        "offset": offset,
    });
    if let Some(strides) = tensor.strides() {
        entry["strides"] = strides.into();
    }
    if let Some(file) = file {
        entry["file"] = file.into();
    }
    if let Some(chunks) = tensor.chunk_shape().filter(|_| !tensor.is_in_pieces()) {
        entry["chunk_shape"] = chunks.into();
    }
    if let Some(StoredChunks { stored, count }) = tensor.stored_chunks() {
        (entry["chunks_stored"], entry["chunks"]) = (stored.into(), count.into());
    }
    if let Some(annotated) = &tensor.annotated {
        tensors::add_said(&mut entry, &tensor.dtype, annotated.get());
    }
    entry
}

fn write_lost(out: &mut dyn Write, input: &Input, shown: &ShownFile) -> io::Result<()> {
    let reason = |it: &Unreadable| json!({ "name": it.name, "reason": it.reason() });
    let unreadable: Vec<Value> = shown.unreadable(input).map(reason).collect();
    if !unreadable.is_empty() {
        write!(out, r#","unreadable":{}"#, Json(&Value::from(unreadable)))?;
    }
    let mut missing = shown.missing(input).peekable();
    if missing.peek().is_some() {
        out.write_all(br#","missing":["#)?;
        for (number, Missing { tensor, file, reason }) in missing.enumerate() {
            let reason = reason.map_or("it does not hold it".to_owned(), plain);
            let entry = json!({ "name": tensor, "file": file, "reason": reason });
            write!(out, "{}{}", if number > 0 { "," } else { "" }, Json(&entry))?;
        }
        out.write_all(b"]")?;
    }
    Ok(())
}

fn write_gguf_metadata(out: &mut dyn Write, input: &Input) -> Result<(), MetadataError> {
    let mut between: &[u8] = b"{";
    input.visit_gguf(&mut |key, value| {
        out.write_all(std::mem::replace(&mut between, b","))?;
        write!(out, "{}:", Json(&Value::from(key)))?;
        value.write_json(out, None)
    })?;
    Ok(out.write_all(if between == b"{" { b"{}" } else { b"}" })?)
}
