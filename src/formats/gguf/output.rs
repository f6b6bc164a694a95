//! `.gguf` as an output: version 3, little-endian.

use std::collections::BTreeMap;
use std::io;
use std::io::{BufWriter, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use super::metadata::{ALIGNMENT, SPLIT, TEXT, type_of};
use super::open::stored;
use super::{MAGIC, MetadataError, type_number};
use crate::dtype::{DType, Endian, Scalar};
use crate::element;
use crate::error::Cause;
use crate::formats::headed::{Header, MadeHeader, PIECE, PLAIN, behind_header};
use crate::formats::{NameError, parse_dtype};
use crate::input::Metadata;
use crate::output::LayoutFault;
use crate::output::layout::{Entries, MetadataKind, OutputFormat, OutputTensor, Request};
use crate::sink::SinkError;

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "gguf",
    about: "llama.cpp's .gguf",
    extensions: &["gguf"],
    holds_several: true,
    metadata: MetadataKind::Typed,
    is_editable: false,
    stored_dtype: |dtype| type_number(dtype).map(|_| little(dtype)),
    lay_out: |request| behind_header(Header::Made(Box::new(OutputHeader::new(request)?)), request),
    ..PLAIN
};

/// The most axes of a tensor, from `ggml.h`.
const MOST_AXES: usize = 4;

/// The key that every file must have, and its value if none is given.
const ARCHITECTURE: (&str, &str) = ("general.architecture", "unknown");

fn little(dtype: &DType) -> DType {
    match dtype {
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        other => other.clone(),
    }
}

/// The header of a file. The metadata of the input, which may be long, are read when it is written.
struct OutputHeader {
    tensors: Arc<Entries>,
    /// The metadata of the input; `None` if they are left out.
    carried: Option<Metadata>,
    /// Values that are added or changed, each with its type before it.
    added: BTreeMap<String, Vec<u8>>,
    /// The number of keys.
    keys: u64,
    alignment: u64,
    /// The offset of the data, in bytes.
    len: u64,
}

impl OutputHeader {
    fn new(request: &Request<'_>) -> Result<OutputHeader, Cause> {
        let tensors = Arc::clone(request.tensors);
        if let Some(ndim) = tensors.iter().map(|it| it.shape.len()).find(|it| *it > MOST_AXES) {
            return Err(LayoutFault::Axes { format: OUTPUT.name, most: MOST_AXES, ndim }.into());
        }
        let carried =
            Some(request.metadata).filter(|it| !request.change.drop && stored(it).is_some());
        let mut added = BTreeMap::new();
        for (key, text) in &request.change.add {
            added.insert(key.clone(), value(key, text)?);
        }
        if carried.is_none() {
            let (key, name) = ARCHITECTURE;
            added.entry(key.to_owned()).or_insert_with(|| typed_text(name));
        }
        let of_input = carried.and_then(stored).map(|stored| stored.keys.alignment);
        let given = added.get(ALIGNMENT).and_then(|value| value.last_chunk::<4>());
        let alignment = given.map(|bytes| u64::from(u32::from_le_bytes(*bytes))).or(of_input);
        let alignment = alignment.unwrap_or(super::ALIGNMENT);
        let carried = carried.cloned();
        let mut header = OutputHeader { tensors, carried, added, keys: 0, alignment, len: 0 };
        let mut counted = Counted(0);
        header.keys = header.write_metadata(&mut counted).map_err(cause)?;
        header.write_rest(&mut counted)?;
        header.len = (counted.0 + FIRST_BYTES).next_multiple_of(alignment);
        Ok(header)
    }

    /// Write keys and values in the order of the input, then new ones; returns their number.
    fn write_metadata(&self, out: &mut dyn Write) -> Result<u64, MetadataError> {
        let mut keys = 0;
        let mut rest: BTreeMap<&str, &[u8]> =
            self.added.iter().map(|(key, value)| (key.as_str(), value.as_slice())).collect();
        if let Some(stored) = self.carried.as_ref().and_then(stored) {
            stored.keys.visit(stored.source.as_ref(), &mut |key, value| {
                let changed = rest.remove(key);
                if stored.is_split && SPLIT.contains(&key) && changed.is_none() {
                    return value.copy(&mut None);
                }
                keys += 1;
                write_text(out, key)?;
                match changed {
                    Some(changed) => {
                        out.write_all(changed)?;
                        value.copy(&mut None)
                    }
                    None => value.copy(&mut Some(&mut *out)),
                }
            })?;
        }
        // the architecture comes first
        let first = rest.remove_entry(ARCHITECTURE.0);
        for (key, value) in first.into_iter().chain(rest) {
            keys += 1;
            write_text(out, key)?;
            out.write_all(value)?;
        }
        Ok(keys)
    }

    /// Write the descriptions of the tensors.
    fn write_rest(&self, out: &mut dyn Write) -> io::Result<()> {
        for (OutputTensor { name, dtype, mut shape, .. }, range) in
            self.tensors.iter().zip(self.ranges())
        {
            if let (Some(block), Some(last)) = (dtype.blocks(), shape.last_mut()) {
                *last *= block.elements;
            }
            if shape.is_empty() && matches!(dtype, DType::Scalar(Scalar::BF16, _)) {
                // gguf-py does not read a tensor without axes
                shape.push(1);
            }
            write_text(out, &name)?;
            out.write_all(&(shape.len() as u32).to_le_bytes())?;
            for len in shape.iter().rev() {
                out.write_all(&len.to_le_bytes())?;
            }
            out.write_all(&type_number(&dtype).unwrap_or_default().to_le_bytes())?;
            out.write_all(&range.start.to_le_bytes())?;
        }
        Ok(())
    }

    fn write_all(&self, out: &mut dyn Write) -> Result<(), MetadataError> {
        out.write_all(MAGIC)?;
        out.write_all(&3u32.to_le_bytes())?;
        out.write_all(&(self.tensors.len() as u64).to_le_bytes())?;
        out.write_all(&self.keys.to_le_bytes())?;
        self.write_metadata(out)?;
        Ok(self.write_rest(out)?)
    }

    /// The range of each tensor after the header.
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let mut end = 0u64;
        self.tensors.iter().map(move |tensor| {
            let start = end.next_multiple_of(self.alignment);
            end = start.saturating_add(tensor.bytes);
            start..end
        })
    }
}

/// The bytes before the metadata.
const FIRST_BYTES: u64 = 24;

impl MadeHeader for OutputHeader {
    fn len(&self) -> u64 {
        self.len
    }

    fn starts(&self) -> Vec<u64> {
        self.ranges().map(|range| range.start).collect()
    }

    fn gaps(&self) -> Box<dyn Iterator<Item = Range<u64>> + '_> {
        let gap = |Range { end, .. }: Range<u64>| end..end.next_multiple_of(self.alignment);
        Box::new(self.ranges().map(gap).filter(|gap| !gap.is_empty()))
    }

    fn pieces(
        &self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let mut pieces = Pieces { take, len: 0, failed: None };
        let mut out = BufWriter::with_capacity(PIECE, &mut pieces);
        let written = self.write_all(&mut out).and_then(|()| Ok(out.flush()?));
        drop(out);
        match (written, pieces.failed.take()) {
            (_, Some(error)) => return Err(error),
            (Err(error), None) => return Err(SinkError::Io(io::Error::other(error))),
            (Ok(()), None) => {}
        }
        let rest = self.len.saturating_sub(pieces.len);
        let padded = io::copy(&mut io::repeat(0).take(rest), &mut pieces);
        padded.map(|_| ()).map_err(|error| pieces.failed.take().unwrap_or(SinkError::Io(error)))
    }
}

/// A writer that passes bytes on, and stores the error of the receiver.
struct Pieces<'a> {
    take: &'a mut dyn FnMut(&[u8]) -> Result<(), SinkError>,
    len: u64,
    failed: Option<SinkError>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.len += bytes.len() as u64;
        match (self.take)(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.failed = Some(error);
                Err(io::Error::other("an output failed"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that counts bytes.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

fn cause(error: MetadataError) -> Cause {
    match error {
        MetadataError::Read(cause) => cause,
        MetadataError::Write(error) => error.into(),
    }
}

fn typed_text(text: &str) -> Vec<u8> {
    let len = text.len() as u64;
    [&TEXT.to_le_bytes()[..], &len.to_le_bytes(), text.as_bytes()].concat()
}

/// A value given as text, with the name of a type and a colon before it unless its type is plain.
fn value(key: &str, given: &str) -> Result<Vec<u8>, LayoutFault> {
    let refused = |reason| LayoutFault::Metadata { key: key.to_owned(), reason };
    let (name, text) = given.split_once(':').unwrap_or_default();
    let dtype = match parse_dtype(name) {
        _ if name == "string" => return Ok(typed_text(text)),
        Ok(dtype @ DType::Scalar(..)) => dtype,
        Err(NameError::TwoMeanings { name, bits, bytes }) => {
            return Err(refused(format!(
                "{name} can mean {bits} or {bytes}: write one of these names"
            )));
        }
        _ => return Ok(typed_text(given)),
    };
    let dtype = little(&dtype);
    let number = type_of(&dtype)
        .ok_or_else(|| refused(format!("values of type {dtype} are not supported")))?;
    let bytes = element::parse(text, &dtype).map_err(|error| refused(error.to_string()))?;
    let value = [&number.to_le_bytes()[..], &bytes].concat();
    let is_power = bytes.first_chunk().is_some_and(|it| u32::from_le_bytes(*it).is_power_of_two());
    if key == ALIGNMENT && (!is_power || dtype != DType::Scalar(Scalar::U32, Endian::Little)) {
        return Err(refused("a power of two is needed, of type uint32: u32:64".to_owned()));
    }
    Ok(value)
}
