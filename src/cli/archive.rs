//! A `.npz` as one input: its stored members where they lie, its deflated ones behind them, as if
//! the archive went on with what they stand for.

use std::path::Path;
use std::sync::Arc;

use tslice::format::npz::{self, Member};
use tslice::format::{Contents, Format, FormatError, npy};
use tslice::source::{
    self, ConcatSource, DeflatedRange, InflatedSource, Reader, Source, SourceError,
};

use std::io::Read;

use super::input::{Input, failed_source};
use super::report::Failure;

/// A deflated member, and where its bytes seem to be in the input.
pub(crate) struct Packed {
    pub(crate) start: u64,
    pub(crate) member: Arc<InflatedSource>,
}

/// Read what an archive holds. One that comes through a pipe is kept in a temporary file.
pub(crate) fn open(path: &Path, bytes: source::Opened) -> Result<Input, Failure> {
    let archive: Arc<dyn Source> = match bytes {
        source::Opened::Random(source) => Arc::from(source),
        source::Opened::Forward(stream) => {
            Arc::from(source::spool(stream).map_err(|error| failed_source(path, &error))?)
        }
    };
    let unreadable = |error: FormatError| Failure::file(path, error);
    let members = npz::members(archive.as_ref()).map_err(unreadable)?;
    let mut joined = ConcatSource::default();
    let fits = |result: Result<u64, SourceError>| result.map_err(|e| failed_source(path, &e));
    fits(joined.push("archive".to_owned(), Box::new(Arc::clone(&archive))))?;
    let mut packed = Vec::new();
    let mut tensors = Vec::with_capacity(members.len());
    for member in members {
        let mut contents = read_header(&archive, &member).map_err(|error| {
            Failure::file(path, format_args!("member {:?}: {error}", member.name))
        })?;
        member.check_array(contents.expected_len()).map_err(unreadable)?;
        let (mut part, mut start) = (0, member.data.start);
        if member.deflated {
            let unpacked = Arc::new(InflatedSource::from(deflated(&archive, &member)));
            let source = Box::new(Arc::clone(&unpacked));
            start = fits(joined.push(member.name.clone(), source))?;
            packed.push(Packed { start, member: unpacked });
            part = packed.len();
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
    let bytes = source::Opened::Random(match packed.is_empty() {
        true => Box::new(archive),
        false => Box::new(joined),
    });
    Ok(Input { packed, ..Input::of_file(path, bytes, contents) })
}

fn deflated(archive: &Arc<dyn Source>, member: &Member) -> DeflatedRange {
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
        return npy::read(&mut deflated(archive, member).stream());
    }
    npy::read(&mut Reader::at(archive.as_ref(), member.data.start).take(member.len))
}
