//! A `.npz` as one input: an array a member. One that cannot be read leaves the others.

use std::io::{ErrorKind, Read};

use crate::crc::{CrcReader, shifted};
use crate::error::Error;
use crate::format::npz::{Member, MemberFault, Members, NpzError};
use crate::format::{Contents, Format, FormatError, TensorInfo, Tensors, npy};
use crate::input::archive::{Archive, MemberStart};
use crate::input::checked::StoredMember;
use crate::input::{Input, Unreadable, UnreadableCause, failed_source};
use crate::source::{DeflatedRange, InflateReader, Reader, Source};

/// Read the headers of the arrays in an archive. Other members are left alone. One of which the archive says
/// two CRC-32s cannot be read, unless `two_sums` are allowed.
pub(super) fn open(
    mut archive: Archive<'_>,
    mut members: Members,
    two_sums: bool,
) -> Result<Input, Error> {
    let location = archive.location;
    let bytes = archive.bytes.clone();
    members.keep_arrays();
    let compressed = members.iter().filter(|member| member.deflated && member.refused.is_none());
    let compressed: Vec<DeflatedRange> = compressed.map(|it| archive.range(&it)).collect();
    let (mut ranges, mut inflater) = (compressed.iter(), None);
    let mut unreadable = Vec::new();
    let mut stored = Vec::with_capacity(members.len() - compressed.len());
    let mut tensors = Tensors::default();
    for member in members.iter() {
        let name = member.name.strip_suffix(".npy").unwrap_or(member.name).to_owned();
        if let Some(&fault) = member.refused {
            unreadable.push(Unreadable { name, error: fault.into() });
            continue;
        }
        let range = if member.deflated { ranges.next() } else { None };
        if member.two_sums && !two_sums {
            unreadable.push(Unreadable { name, error: NpzError::TwoSums.into() });
            continue;
        }
        let header = read_header(bytes.as_ref(), &member, range, &mut inflater);
        let header = header.map_err(|error| Error::file(location, error))?;
        let (tensor, crc) = match header {
            Ok(read) => read,
            // np.load looks at a member when it is asked for
            Err(error) => {
                unreadable.push(Unreadable { name, error });
                continue;
            }
        };
        let place = archive.place(&member, range);
        let MemberStart { part, start } = place.map_err(|error| failed_source(location, error))?;
        if range.is_some() {
            // checked while it is inflated
        } else if tensor.bytes() > 0 {
            let (start, bytes) = (start + tensor.data().start, tensor.bytes());
            stored.push(StoredMember { start, bytes, crc });
        } else if crc != 0 {
            unreadable.push(Unreadable { name, error: MemberFault::Crc.into() });
            continue;
        }
        tensors.push(&TensorInfo { name: Some(name), ..tensor.placed(part, start) });
    }
    let contents = Contents::of(Format::Npz, tensors);
    Ok(Input { stored, unreadable, ..archive.into_input(contents) })
}

/// The array in a member, by its header, and the CRC-32 that its elements must have, where the member is
/// stored; of a deflated one, whose bytes are `range`, by an inflater that is kept for the next. Or why there is
/// none.
fn read_header<'a>(
    archive: &dyn Source,
    member: &Member<'_>,
    range: Option<&'a DeflatedRange>,
    inflater: &mut Option<InflateReader<'a>>,
) -> Result<Result<(TensorInfo, u32), UnreadableCause>, FormatError> {
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
        Err(FormatError::Npy(error)) => return Ok(Err(error.into())),
        Err(FormatError::HeaderCutShort { expected, found }) => {
            return Ok(Err(MemberFault::Header { expected, found }.into()));
        }
        Err(FormatError::Empty | FormatError::Unrecognised) => {
            return Ok(Err(MemberFault::NoArray.into()));
        }
        // what inflates says so of damaged bytes
        Err(FormatError::Io(error))
            if range.is_some() && error.kind() == ErrorKind::InvalidData =>
        {
            return Ok(Err(MemberFault::Deflated.into()));
        }
        Err(error) => return Err(error),
    };
    if let Err(fault) = member.check_array(contents.expected_len()) {
        return Ok(Err(fault.into()));
    }
    // a .npy holds one array
    let tensor = contents.tensors.at(0);
    let crc = member.crc ^ shifted(head.crc(), tensor.bytes());
    Ok(Ok((tensor, crc)))
}
