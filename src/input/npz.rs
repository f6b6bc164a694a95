//! A `.npz` as one input: its stored members where they lie, its deflated ones behind them, as if
//! the archive went on with the inflated bytes.

use std::io::Read;
use std::sync::Arc;

use crate::crc::{CrcReader, shifted};
use crate::error::{Cause, Error};
use crate::format::npy::NpyError;
use crate::format::npz::{self, Member};
use crate::format::{Contents, Format, FormatError, TensorInfo, Tensors, npy};
use crate::input::checked::StoredMember;
use crate::input::format::{InputFormat, RecognisedFile};
use crate::input::opened::{BadMember, Bytes, DeflatedMember, Input, Unreadable, failed_source};
use crate::input::watched::spool_all;
use crate::source::{
    self, ConcatSource, DeflatedRange, InflateReader, InflatedSource, Reader, Source,
};

/// NumPy's `.npz`.
pub(super) const FORMAT: InputFormat =
    InputFormat { format: Format::Npz, begins: npz::begins, open };

/// Read what an archive holds. One that comes through a pipe is kept in a temporary file.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, progress, .. } = file;
    let unread = |error| failed_source(location, error);
    let unfit = |error: FormatError| Error::file(location, error);
    let archive: Arc<dyn Source> = match bytes {
        source::Opened::Random(source) => Arc::from(source),
        source::Opened::Forward(stream) => Arc::from(spool_all(stream, progress).map_err(unread)?),
    };
    let members = npz::members(archive.as_ref()).map_err(unfit)?;
    let mut joined = ConcatSource::default();
    joined.push("archive".to_owned(), Arc::clone(&archive)).map_err(unread)?;
    let compressed = members.iter().filter(|member| member.deflated);
    let compressed = compressed.map(|member| {
        let (archive, range) = (Arc::clone(&archive), member.data.clone());
        DeflatedRange { archive, range, len: member.len, crc: member.crc }
    });
    let compressed: Vec<DeflatedRange> = compressed.collect();
    let (mut ranges, mut inflater) = (compressed.iter(), None);
    let (mut deflated, mut unreadable) = (Vec::new(), Vec::new());
    let mut stored = Vec::with_capacity(members.len() - compressed.len());
    let mut tensors = Tensors::default();
    for member in members.iter() {
        let range = if member.deflated { ranges.next() } else { None };
        let header = read_header(archive.as_ref(), &member, range, &mut inflater);
        let header = header.map_err(|cause| Error::file(location, cause))?;
        let name = member.name.strip_suffix(".npy").unwrap_or(member.name).to_owned();
        let (tensor, crc) = match header {
            Ok(read) => read,
            // np.load looks at a member when it is asked for
            Err(error) => {
                unreadable.push(Unreadable { name, error });
                continue;
            }
        };
        let (mut part, mut start) = (0, member.data.start);
        if let Some(range) = range {
            let bytes = Arc::new(InflatedSource::from(range.clone()));
            let inflated = Arc::clone(&bytes) as Arc<dyn Source>;
            start = joined.push(member.name.to_owned(), inflated).map_err(unread)?;
            deflated.push(DeflatedMember { start, bytes });
            part = deflated.len();
        } else if tensor.bytes() > 0 {
            let (start, bytes) = (start + tensor.data().start, tensor.bytes());
            stored.push(StoredMember { start, bytes, crc });
        } else if crc != 0 {
            return Err(unfit(Member::damaged(member.name)));
        }
        tensors.push(&TensorInfo { name: Some(name), ..tensor.placed(part, start) });
    }
    let contents = Contents::of(Format::Npz, tensors);
    let bytes = Bytes::Random(match deflated.is_empty() {
        true => archive,
        false => Arc::new(joined),
    });
    Ok(Input { deflated, stored, unreadable, ..Input::of_file(location, bytes, contents) })
}

/// The array in a member, by its header, and the CRC-32 that its elements must have, where the member is
/// stored; of a deflated one, whose bytes are `range`, by an inflater that is kept for the next.
fn read_header<'a>(
    archive: &dyn Source,
    member: &Member<'_>,
    range: Option<&'a DeflatedRange>,
    inflater: &mut Option<InflateReader<'a>>,
) -> Result<Result<(TensorInfo, u32), NpyError>, Cause> {
    let mut head = CrcReader::new(Reader::at(archive, member.data.start).take(member.len));
    let contents = match (range, &mut *inflater) {
        (None, _) => npy::read(&mut head),
        (Some(range), Some(inflater)) => {
            inflater.restart(range);
            npy::read(inflater)
        }
        (Some(range), none) => npy::read(none.insert(range.stream())),
    };
    let contents = match contents {
        Ok(contents) => contents,
        Err(FormatError::Npy(error)) => return Ok(Err(error)),
        Err(error) => {
            return Err(BadMember { name: member.name.to_owned(), error }.into());
        }
    };
    member.check_array(contents.expected_len())?;
    // a .npy holds one array
    let tensor = contents.tensors.at(0);
    let crc = member.crc ^ shifted(head.crc(), tensor.bytes());
    Ok(Ok((tensor, crc)))
}
