//! Bytes without a header: an input of which the caller says all, and an output of nothing but elements.

use crate::dtype::{DType, stored_by_numpy};
use crate::error::{Error, Fault};
use crate::execute::Progress;
use crate::formats::headed::PLAIN;
use crate::formats::open::foreign;
use crate::formats::{Foreign, LOOK_LEN};
use crate::input::{Input, Location, RawFault, RawLayout, spool_all};
use crate::output::layout::OutputFormat;
use crate::source::Opened;

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "raw",
    about: "The bytes of the elements alone (.bin, .raw)",
    extensions: &["bin", "raw"],
    has_orders: true,
    is_raw: true,
    stored_dtype: |dtype| match dtype.blocks() {
        Some(_) => stored_by_numpy(dtype),
        None => Some(dtype.clone()),
    },
    ..PLAIN
};

/// Open bytes of which the caller tells all.
pub(crate) fn open(
    location: &Location,
    bytes: Opened,
    dtype: &DType,
    layout: &RawLayout,
    progress: &Progress,
) -> Result<Input, Error> {
    let mut bytes = match bytes {
        Opened::Forward(stream) if layout.needs_len() => {
            Opened::Random(spool_all(stream, progress)?)
        }
        bytes => bytes,
    };
    refuse_foreign(location, &mut bytes, dtype, layout)?;
    let len = match &bytes {
        Opened::Random(source) => Some(source.len()),
        Opened::Forward(_) => None,
    };
    let contents = layout.contents(dtype, len)?;
    let asked = contents.expected_len();
    match len.filter(|&len| len < asked) {
        Some(found) => Err(RawFault::Short { asked, found }.into()),
        None => Ok(Input::of_file(location, bytes, contents)),
    }
}

/// Refuse what is known to be something else, unless it is said where its elements begin.
fn refuse_foreign(
    location: &Location,
    bytes: &mut Opened,
    dtype: &DType,
    layout: &RawLayout,
) -> Result<(), ForeignBytes> {
    if layout.offset.is_some() {
        return Ok(());
    }
    // no more of a pipe than what is asked for: nobody waits for the rest
    let asked = if layout.needs_len() { None } else { layout.contents(dtype, None).ok() };
    let asked = asked.map_or(LOOK_LEN as u64, |contents| contents.expected_len());
    match foreign(location, bytes, asked.min(LOOK_LEN as u64) as usize) {
        Some(kind) if kind.is_sure() => Err(ForeignBytes(kind)),
        _ => Ok(()),
    }
}

/// A file that is known to be something else, and taken as raw bytes only where it is said where these begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a dtype is for raw bytes, and the input is {0}")]
pub struct ForeignBytes(pub Foreign);

impl Fault for ForeignBytes {}
