//! A zip archive as one input, told by its members: a `.npz` (an array a member), PyTorch's `.pt`, or a `.zarr`.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use super::{Member, MemberFault, Members, begins, is_array};
use crate::crc::{CrcReader, shifted};
use crate::error::{Cause, Error};
use crate::formats::archive::{Archive, MemberStart};
use crate::formats::npy::NpyError;
use crate::formats::pickle::{MAX_DECODED, PickleError, named_once};
use crate::formats::torch::TorchFolder;
use crate::formats::{Foreign, FormatError, MAGIC_LEN, NotRead, npy, torch, zarr};
use crate::input::{
    Container, Contents, Format, Input, Location, OpenOptions, RecognisedFile, StoredMember,
    Unreadable, seekable,
};
use crate::source::{DeflatedRange, InflateReader, Reader, Source};
use crate::tensor::{TensorInfo, Tensors};

/// NumPy's `.npz`. All zip archives begin alike; the members show whether this one holds arrays.
pub(crate) static FORMAT: Format = Format::new("npz", begins, open);

/// Open an archive. An archive that comes through a pipe is stored in scratch.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    if location.extension() == "distcp" {
        return Err(NotRead(Foreign::Distcp).into());
    }
    let bytes = seekable(bytes, progress)?;
    let members = super::members(bytes.as_ref())?;
    let archive = Archive::new(Arc::clone(&bytes))?;
    let opened = open_members(location, archive, members, options);
    // a file truncated meanwhile is the cause of any other error
    bytes.verify()?;
    opened
}

fn open_members(
    location: &Location,
    archive: Archive,
    members: Members,
    options: &OpenOptions,
) -> Result<Input, Error> {
    // an archive without members is an .npz of no arrays
    if members.is_empty() || members.has_arrays() {
        return open_arrays(location, archive, members);
    }
    if zarr::is_archive(&members) {
        return zarr::open_archive(location, archive, members, options);
    }
    match TorchFolder::find(&members) {
        Some(folder) if !folder.is_script(&members) => {
            torch::open(location, archive, &folder, &members)
        }
        Some(_) => Err(NotRead(Foreign::TorchScript).into()),
        None if members.iter().any(|member| member.name == "model.weights.h5") => {
            Err(NotRead(Foreign::Keras).into())
        }
        // arrays may have other names, too
        None => {
            let input = open_arrays(location, archive, members)?;
            let is_other = input.named_count() == 0;
            if is_other { Err(NotRead(Foreign::Zip).into()) } else { Ok(input) }
        }
    }
}

/// Read the headers of the arrays in a `.npz`; other arrays are read even if one cannot be. As in
/// np.load, a member is an array if its name ends in `.npy` or its bytes begin as one; other
/// members are ignored. A member with two different CRC-32s in the archive cannot be read.
fn open_arrays(
    location: &Location,
    mut archive: Archive,
    members: Members,
) -> Result<Input, Error> {
    let bytes = Arc::clone(&archive.bytes);
    let bare: HashSet<&str> =
        members.iter().map(|it| it.name).filter(|name| !is_array(name)).collect();
    let is_inflated = |member: &Member<'_>| member.deflated && member.refused.is_none();
    let compressed = members.iter().filter(is_inflated);
    let compressed: Vec<DeflatedRange> = compressed.map(|it| archive.range(&it)).collect();
    let mut ranges = compressed.iter();
    let mut inflater = None;
    let mut unreadable: Vec<Unreadable> = Vec::new();
    // of Python objects in members
    let mut opaque = BTreeSet::new();
    let mut most_decoded = MAX_DECODED;
    let mut stored = Vec::with_capacity(members.len() - compressed.len());
    let mut tensors = Tensors::default();
    for member in members.iter() {
        let stem = member.name.strip_suffix(".npy").filter(|stem| !bare.contains(stem));
        let name = stem.unwrap_or(member.name).to_owned();
        let range = if is_inflated(&member) { ranges.next() } else { None };
        let read = if member.two_sums && member.refused.is_none() {
            Err(MemberFault::TwoSums.into())
        } else {
            read_array(bytes.as_ref(), &member, range, &mut inflater)
        };
        let (tensor, crc) = match read {
            Ok(read) => read,
            Err(cause) if let Some(&NpyError::Objects { start, .. }) = cause.downcast_ref() => {
                let found = match archive.objects(&member, range, start, most_decoded) {
                    Ok(found) => found,
                    // np.load reads a member when it is used
                    Err(cause) if range.is_some() || cause.is::<PickleError>() => {
                        unreadable.push(Unreadable::new(name, cause));
                        continue;
                    }
                    Err(cause) => return Err(cause.into()),
                };
                most_decoded = most_decoded.saturating_sub(found.decoded_len);
                let path = |inner: Option<&str>| match inner {
                    Some(inner) if inner.starts_with('[') => format!("{name}{inner}"),
                    Some(inner) => format!("{name}.{inner}"),
                    None => name.clone(),
                };
                for tensor in found.tensors.iter() {
                    let name = Some(path(tensor.name.as_deref()));
                    tensors.push(&TensorInfo { name, ..tensor });
                }
                let bad = found.unreadable.into_iter();
                unreadable.extend(bad.map(|(inner, error)| {
                    Unreadable::new(
                        path(Some(&inner).filter(|it| !it.is_empty()).map(String::as_str)),
                        error,
                    )
                }));
                opaque.extend(found.opaque);
                continue;
            }
            Err(_)
                if !is_array(member.name) && !begins_as_array(bytes.as_ref(), &member, range) =>
            {
                continue;
            }
            // np.load reads a member when it is used
            Err(cause) if cause.is::<NpyError>() || cause.is::<MemberFault>() => {
                unreadable.push(Unreadable::new(name, cause));
                continue;
            }
            Err(cause) => return Err(cause.into()),
        };
        let MemberStart { shard, start } = archive.locate(&member, range)?;
        // a deflated member is checked while it is inflated
        if range.is_none() && tensor.bytes() > 0 {
            let start = start + tensor.data().start;
            stored.push(StoredMember { start, bytes: tensor.bytes(), crc });
        }
        tensors.push(&TensorInfo { name: Some(name), ..tensor.placed(shard, start) });
    }
    (tensors, unreadable) = named_once(
        tensors,
        unreadable,
        |it| &it.name,
        |name, count| Unreadable::new(name, PickleError::Twice(count)),
    );
    let opaque = opaque.into_iter().collect();
    let input = archive.into_input(location, Contents::of(&FORMAT, tensors));
    let container = Container { stored, unreadable, opaque, ..input.container };
    Ok(Input { container, ..input })
}

/// Whether the bytes of a member begin as an array.
fn begins_as_array(
    archive: &dyn Source,
    member: &Member<'_>,
    range: Option<&DeflatedRange>,
) -> bool {
    let mut first = Vec::new();
    let most = MAGIC_LEN as u64;
    let read = match range {
        _ if member.refused.is_some() => return false,
        None => Reader::at(archive, member.data.start)
            .take(most.min(member.len))
            .read_to_end(&mut first),
        Some(range) => range.stream().take(most).read_to_end(&mut first),
    };
    read.is_ok() && npy::begins(&first)
}

/// Read the header of the array in a member; returns the array and, for a stored member, the CRC-32 of its elements. A
/// deflated member, whose compressed bytes are `range`, is read by an inflater that is reused for the next member.
fn read_array<'a>(
    archive: &dyn Source,
    member: &Member<'_>,
    range: Option<&'a DeflatedRange>,
    inflater: &mut Option<InflateReader<'a>>,
) -> Result<(TensorInfo, u32), Cause> {
    if let Some(&fault) = member.refused {
        return Err(fault.into());
    }
    let mut head = CrcReader::new(Reader::at(archive, member.data.start).take(member.len));
    let contents = match (range, &mut *inflater) {
        (None, _) => npy::read(&mut head),
        (Some(range), Some(inflater)) => {
            inflater.restart(range);
            npy::read(inflater)
        }
        (Some(range), none) => npy::read(none.insert(range.stream())),
    };
    let contents = contents.map_err(|cause| {
        // the inflater reports damaged bytes so
        let is_invalid = |error: &io::Error| error.kind() == ErrorKind::InvalidData;
        match cause.downcast_ref() {
            Some(&FormatError::HeaderCutShort { expected, found }) => {
                MemberFault::Header { expected, found }.into()
            }
            Some(FormatError::Empty | FormatError::Unrecognised) => MemberFault::NoArray.into(),
            _ if range.is_some() && cause.downcast_ref().is_some_and(is_invalid) => {
                MemberFault::Deflated.into()
            }
            _ => cause,
        }
    })?;
    member.check_array(contents.expected_len())?;
    // a .npy holds one array
    let tensor = contents.tensors.at(0);
    let crc = member.crc ^ shifted(head.crc(), tensor.bytes());
    if range.is_none() && tensor.bytes() == 0 && crc != 0 {
        return Err(MemberFault::Crc.into());
    }
    Ok((tensor, crc))
}

impl Input {
    /// The error of a stored member whose bytes are damaged.
    pub(crate) fn damaged(&self, member: &StoredMember) -> Error {
        let mut tensors = self.contents.tensors.iter();
        let at = |tensor: &TensorInfo| Some(tensor.data()).filter(|data| !data.is_empty());
        let found = tensors.find(|tensor| at(tensor).is_some_and(|it| it.start == member.start));
        let name = found.and_then(|tensor| tensor.name).unwrap_or_default() + ".npy";
        Error::file(&self.location, Member::damaged(&name))
    }
}
