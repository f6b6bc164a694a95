//! Attributes of a file and of its variables: skipped when it is opened, and read on demand.

use std::sync::Arc;

use serde_json::Value;

use super::{ATTRIBUTES, Header, NetCdfError, dtype, padding};
use crate::dtype::{DType, Scalar};
use crate::error::Cause;
use crate::source::Source;
use crate::tensor::{Annotations, FILL_VALUE, LazyAnnotations, Stated, element, number};

/// The longest attribute that is read, and the most bytes of all attributes of a variable.
const MOST_BYTES: u64 = 4 << 20;

/// The position of a list of attributes in a file.
pub(super) struct Attributes {
    source: Arc<dyn Source>,
    start: u64,
    /// Whether an attribute declares integers of 8 bits as xarray's booleans.
    pub(super) is_bool: bool,
}

impl Header<'_> {
    /// Skip a list of attributes.
    pub(super) fn attributes(&mut self, source: &Arc<dyn Source>) -> Result<Attributes, Cause> {
        let start = self.reader.position();
        let mut is_bool = false;
        self.each_attribute(16, &mut |name, _, bytes| {
            is_bool |= name == "dtype" && bytes.as_deref() == Some(&b"bool"[..]);
        })?;
        Ok(Attributes { source: Arc::clone(source), start, is_bool })
    }

    /// Visit attributes: the name, the dtype, and the bytes of the value, if it has at most `most`.
    fn each_attribute(
        &mut self,
        most: u64,
        visit: &mut dyn FnMut(String, DType, Option<Vec<u8>>),
    ) -> Result<(), Cause> {
        for _ in 0..self.list(ATTRIBUTES, "attributes")? {
            let name = self.name()?;
            let kind = self.reader.number(4)? as u32;
            let dtype =
                dtype(kind).ok_or_else(|| NetCdfError::Type { name: name.clone(), kind })?;
            let len = self.count()?.saturating_mul(dtype.item_bits() / 8);
            let bytes = if len > most { None } else { Some(self.reader.bytes(len)?) };
            let rest = if bytes.is_some() { 0 } else { len };
            self.reader.skip(rest.saturating_add(padding(len)))?;
            visit(name, dtype, bytes);
        }
        Ok(())
    }
}

impl Attributes {
    /// The annotations of a tensor whose axes have these names.
    pub(super) fn annotated(self, axes: Vec<Arc<str>>) -> LazyAnnotations {
        LazyAnnotations::by(move || {
            // damage was found when the file was opened
            let mut said = self.read().unwrap_or_default();
            said.dimension_names = axes.iter().map(|name| Some(name.to_string())).collect();
            said
        })
    }

    fn read(&self) -> Result<Annotations, Cause> {
        let mut said = Annotations { is_hdf5: true, ..Annotations::default() };
        let mut header = Header::at(self.source.as_ref())?;
        header.reader.skip(self.start.saturating_sub(header.reader.position()))?;
        let mut left = MOST_BYTES;
        header.each_attribute(MOST_BYTES, &mut |name, dtype, bytes| {
            let room = bytes.as_ref().and_then(|bytes| left.checked_sub(bytes.len() as u64));
            let (Some(bytes), Some(room)) = (bytes, room) else {
                said.omitted.push(name);
                return;
            };
            left = room;
            if name == "dtype" && self.is_bool {
                return;
            }
            let DType::Scalar(scalar, _) = dtype else {
                let text = String::from_utf8_lossy(&bytes).replace('\0', "");
                said.attributes.insert(name, text.into());
                return;
            };
            let (value, is_reworded) = value(&bytes, &dtype, scalar);
            if is_reworded && name != FILL_VALUE {
                said.reworded.push(name.clone());
            }
            said.types.insert(name.clone(), scalar);
            said.attributes.insert(name, value);
        })?;
        Ok(said)
    }
}

/// Numbers as JSON, a single one without a list; and whether a word replaces one of them.
fn value(bytes: &[u8], dtype: &DType, scalar: Scalar) -> (Value, bool) {
    let mut is_reworded = false;
    let mut json = |bytes: &[u8]| match element(bytes, dtype) {
        Some(Stated::Float(value)) => {
            is_reworded |= !value.is_finite();
            number(value)
        }
        Some(integer) => integer.json(),
        None => Value::Null,
    };
    let all: Vec<Value> = bytes.chunks_exact((scalar.bits() / 8) as usize).map(&mut json).collect();
    let value = match <[Value; 1]>::try_from(all) {
        Ok([only]) => only,
        Err(all) => all.into(),
    };
    (value, is_reworded)
}
