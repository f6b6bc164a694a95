//! A `.npz` as one input: its stored members where they lie, its deflated ones behind them, as if
//! the archive went on with the inflated bytes.

use std::io::Read;
use std::sync::Arc;

use super::error::{Cause, ContainerError};
use super::input::{Bytes, DeflatedMember, Input, Location, failed_source};
use crate::format::npz::{self, Member};
use crate::format::{Contents, Format, FormatError, npy};
use crate::source::{self, ConcatSource, DeflatedRange, InflatedSource, Reader, Source};

/// Read what an archive holds. One that comes through a pipe is kept in a temporary file.
pub(super) fn open(location: &Location, bytes: source::Opened) -> Result<Input, ContainerError> {
    let unread = |error| failed_source(location, error);
    let unfit = |error: FormatError| ContainerError::file(location, error);
    let archive: Arc<dyn Source> = match bytes {
        source::Opened::Random(source) => Arc::from(source),
        source::Opened::Forward(stream) => Arc::from(source::spool(stream).map_err(unread)?),
    };
    let members = npz::members(archive.as_ref()).map_err(unfit)?;
    let mut joined = ConcatSource::default();
    joined.push("archive".to_owned(), Box::new(Arc::clone(&archive))).map_err(unread)?;
    let mut deflated = Vec::new();
    let mut tensors = Vec::with_capacity(members.len());
    for member in members {
        let mut contents = read_header(&archive, &member).map_err(|error| {
            ContainerError::file(location, Cause::Member { name: member.name.clone(), error })
        })?;
        member.check_array(contents.expected_len()).map_err(unfit)?;
        let (mut part, mut start) = (0, member.data.start);
        if member.deflated {
            let bytes = Arc::new(InflatedSource::from(compressed(&archive, &member)));
            let pushed = joined.push(member.name.clone(), Box::new(Arc::clone(&bytes)));
            start = pushed.map_err(unread)?;
            deflated.push(DeflatedMember { start, bytes });
            part = deflated.len();
        }
        let name = member.name.strip_suffix(".npy").unwrap_or(&member.name);
        tensors.extend(contents.tensors.drain(..).map(|mut tensor| {
            tensor.name = Some(name.to_owned());
            tensor.part = part;
            tensor.offset += start;
            tensor
        }));
    }
    let contents =
        Contents { format: Format::Npz, tensors, metadata: Default::default(), header_len: 0 };
    let bytes = Bytes::Random(match deflated.is_empty() {
        true => archive,
        false => Arc::new(joined),
    });
    Ok(Input { deflated, ..Input::of_file(location, bytes, contents) })
}

fn compressed(archive: &Arc<dyn Source>, member: &Member) -> DeflatedRange {
    DeflatedRange {
        archive: Arc::clone(archive),
        range: member.data.clone(),
        len: member.len,
        crc: member.crc,
    }
}

/// The header of the array in a member.
fn read_header(archive: &Arc<dyn Source>, member: &Member) -> Result<Contents, FormatError> {
    if member.deflated {
        return npy::read(&mut compressed(archive, member).stream());
    }
    npy::read(&mut Reader::at(archive.as_ref(), member.data.start).take(member.len))
}
