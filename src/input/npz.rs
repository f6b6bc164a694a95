//! A `.npz` as one input: an array a member.

use std::io::Read;

use crate::crc::{CrcReader, shifted};
use crate::error::{Cause, Error};
use crate::format::npy::NpyError;
use crate::format::npz::{Member, Members, NpzError};
use crate::format::{Contents, Format, FormatError, TensorInfo, Tensors, npy};
use crate::input::archive::{Archive, MemberStart};
use crate::input::checked::StoredMember;
use crate::input::{BadMember, Input, Unreadable, failed_source};
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
        if let Some(refusal) = member.refused {
            unreadable.push(Unreadable { name, error: refusal.into() });
            continue;
        }
        let range = if member.deflated { ranges.next() } else { None };
        let name = member.name.strip_suffix(".npy").unwrap_or(member.name).to_owned();
        if member.two_sums && !two_sums {
            unreadable.push(Unreadable { name, error: NpzError::TwoSums.into() });
            continue;
        }
        let header = read_header(bytes.as_ref(), &member, range, &mut inflater);
        let header = header.map_err(|cause| Error::file(location, cause))?;
        let (tensor, crc) = match header {
            Ok(read) => read,
            // np.load looks at a member when it is asked for
            Err(error) => {
                unreadable.push(Unreadable { name, error: error.into() });
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
            return Err(Error::file(location, Member::damaged(member.name)));
        }
        tensors.push(&TensorInfo { name: Some(name), ..tensor.placed(part, start) });
    }
    let contents = Contents::of(Format::Npz, tensors);
    Ok(Input { stored, unreadable, ..archive.into_input(contents) })
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
