//! `.safetensors` as an output.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Cause;
use crate::formats::headed::{Header, MadeHeader, PIECE, PLAIN, behind_header};
use crate::formats::safetensors;
use crate::output::layout::{Entries, MetadataKind, OutputFormat, OutputTensor, Request};
use crate::sink::SinkError;

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "safetensors",
    about: ".safetensors",
    extensions: &["safetensors"],
    holds_several: true,
    metadata: MetadataKind::Texts,
    stored_dtype: safetensors::stored_dtype,
    lay_out: |request| {
        let all = 0..request.tensors.len();
        let metadata = request.change.of(&request.metadata.texts);
        let header = SafetensorsHeader::new(request, all, &metadata)?;
        behind_header(Header::Made(Box::new(header)), request)
    },
    ..PLAIN
};

/// The header of a `.safetensors`. Its text, which may be 100 MB long, is never in memory as a whole: it is
/// made once to find its length, and once more to write it.
pub(crate) struct SafetensorsHeader {
    tensors: Arc<Entries>,
    /// The numbers of the tensors in the file.
    range: Range<usize>,
    /// The numbers of the tensors in the order of the file; empty for the given order.
    order: Vec<u32>,
    metadata: BTreeMap<String, String>,
    len: u64,
}

impl SafetensorsHeader {
    /// The header of a file that holds the tensors in `range`.
    pub(crate) fn new(
        request: &Request<'_>,
        range: Range<usize>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<SafetensorsHeader, Cause> {
        let tensors = Arc::clone(request.tensors);
        let order = if request.keeps_order { Vec::new() } else { aligned(&tensors, range.clone()) };
        let metadata = metadata.clone();
        let mut header = SafetensorsHeader { tensors, range, order, metadata, len: 0 };
        header.len = header.text(|error| error, |_| Ok(()))?;
        Ok(header)
    }

    /// The numbers of the tensors in the order of the file.
    fn in_order(&self) -> impl Iterator<Item = usize> {
        let given = if self.order.is_empty() { self.range.clone() } else { 0..0 };
        given.chain(self.order.iter().map(|&number| number as usize))
    }

    /// Pass on the text piece by piece, and return its length in bytes.
    fn text<E>(
        &self,
        failed: impl Fn(Cause) -> E,
        mut take: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut text = safetensors::HeaderText::new(&self.metadata, self.len).map_err(&failed)?;
        for number in self.in_order() {
            let OutputTensor { name, dtype, shape, bytes, .. } = self.tensors.at(number);
            text.push(&name, &dtype, &shape, bytes).map_err(&failed)?;
            if text.pending() >= PIECE {
                take(text.take())?;
            }
        }
        let len = text.finish().map_err(&failed)?;
        take(text.take())?;
        Ok(len)
    }
}

impl MadeHeader for SafetensorsHeader {
    fn len(&self) -> u64 {
        self.len
    }

    fn starts(&self) -> Vec<u64> {
        if self.order.is_empty() {
            return Vec::new();
        }
        let mut starts = vec![0; self.range.len()];
        let mut end = 0;
        for number in self.in_order() {
            starts[number - self.range.start] = end;
            end += self.tensors.at(number).bytes;
        }
        starts
    }

    fn grow(&mut self, bytes: u64) -> bool {
        let longer = safetensors::longer(self.len, bytes);
        self.len = longer.unwrap_or(self.len);
        longer.is_some()
    }

    fn pieces(
        &self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        // the text was made before, so that nothing is wrong with it
        let failed = |error| SinkError::Io(io::Error::other(error));
        self.text(failed, |piece| take(&piece)).map(|_| ())
    }
}

/// An order of tensors in which each begins at a multiple of its item size: larger items first. Empty where the
/// given order does this already.
fn aligned(tensors: &Entries, range: Range<usize>) -> Vec<u32> {
    let item_bits = |number: usize| tensors.at(number).dtype.item_bits();
    let mut end = 0u64;
    let is_aligned = |number: usize| {
        let OutputTensor { dtype, bytes, .. } = tensors.at(number);
        let is_aligned = end.is_multiple_of((dtype.item_bits() / 8).max(1));
        end += bytes;
        is_aligned
    };
    if range.clone().all(is_aligned) {
        return Vec::new();
    }
    let mut order: Vec<u32> = range.map(|number| number as u32).collect();
    order.sort_by_cached_key(|&number| Reverse(item_bits(number as usize)));
    order
}
