//! PyTorch's `.pt` as one input. Tensors are views of storages: members of the archive, or byte ranges after the
//! pickles of an old file.
//!
//! The CRC-32s of members are not compared: torch.save can be told to leave them out, and torch.load ignores them.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use crate::dtype::Endian;
use crate::error::{Cause, Error};
use crate::formats::FormatError;
use crate::formats::archive::{Archive, MemberStart};
use crate::formats::npz::{Member, Members};
use crate::formats::pickle::{self, Pickle, StorageRange, StoredBytes, input_of};
use crate::formats::torch::{self, TorchError, TorchFolder, of_torch};
use crate::input::{Format, Input, Location, RecognisedFile, seekable};
use crate::source::{Advice, Reader};

/// How many bytes of the member `byteorder` are read. A longer text is no byte order.
const BYTE_ORDER: u64 = 100;

/// Read the object in the folder of an archive, and find its tensors.
pub(crate) fn open(
    location: &Location,
    mut archive: Archive,
    folder: &TorchFolder,
    members: &Members,
) -> Result<Input, Error> {
    let by_name = MembersByName::new(members);
    // without this member nothing is known of the tensors
    let needed = |name: &str| match by_name.find(name) {
        Some(member) => match member.refusal() {
            Some(error) => Err(Cause::from(error)),
            None => Ok(Some(member)),
        },
        None => Ok(None),
    };
    let endian = match needed(&folder.byte_order())? {
        Some(member) => byte_order(&archive, &member)?,
        // old archives do not say it: torch.load takes them as little-endian
        None => Endian::Little,
    };
    let member = needed(&folder.pickle())?.ok_or(FormatError::Unrecognised)?;
    let (source, range) = archive.whole(&member);
    if source.is_remote() {
        source.advise(range.clone(), Advice::Sequential);
    }
    // the starts of deflated members; a stored member is found by its offset in the archive
    let mut inflated: HashMap<&str, MemberStart> = HashMap::new();
    let mut locate = |stored: StoredBytes<'_>| {
        let member = match stored {
            StoredBytes::Storage(key) => by_name.find(&folder.storage(key)),
            StoredBytes::Pickle if member.deflated => by_name.find(member.name),
            // a pickle that is not deflated is read from the archive itself
            StoredBytes::Pickle => {
                return Ok(Some(StorageRange { shard: 0, bytes: 0..member.data.end }));
            }
            StoredBytes::Decoded(bytes) => return archive.place_decoded(bytes).map(Some),
        };
        let Some(member) = member else { return Ok(None) };
        if let Some(error) = member.refusal() {
            return Err(error.into());
        }
        let MemberStart { shard, start } = match inflated.get(member.name) {
            Some(start) => *start,
            None => {
                let range = member.deflated.then(|| archive.range(&member));
                let start = archive.locate(&member, range.as_ref()).map_err(io::Error::from)?;
                if member.deflated {
                    inflated.insert(member.name, start);
                }
                start
            }
        };
        Ok(Some(StorageRange { shard, bytes: start..start + member.len }))
    };
    let pickle = Pickle { endian, ..Pickle::new(source.as_ref(), range) };
    let found = pickle.read(&mut locate).map_err(of_torch)?;
    Ok(input_of(&FORMAT, found, TorchError::from, |contents| {
        archive.into_input(location, contents)
    }))
}

/// The members of an archive, sorted by name: an archive may have a million.
struct MembersByName<'a> {
    members: &'a Members,
    order: Vec<usize>,
}

impl<'a> MembersByName<'a> {
    fn new(members: &'a Members) -> MembersByName<'a> {
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|&number| members.get(number).map(|member| member.name));
        MembersByName { members, order }
    }

    /// The last member of this name.
    fn find(&self, name: &str) -> Option<Member<'a>> {
        let is_until =
            |&number: &usize| self.members.get(number).is_some_and(|member| member.name <= name);
        let behind = self.order.partition_point(is_until);
        let last = self.order.get(behind.checked_sub(1)?)?;
        self.members.get(*last).filter(|member| member.name == name)
    }
}

/// PyTorch's `.pt` in the older format. The newer format is recognised as a zip archive.
pub(crate) static FORMAT: Format = Format::new("pytorch", torch::begins_old, open_old);

fn open_old(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let bytes = seekable(bytes, progress)?;
    let mut archive = Archive::new(Arc::clone(&bytes))?;
    let found = torch::read_old(bytes.as_ref(), &mut |decoded| archive.place_decoded(decoded));
    bytes.verify()?;
    let found = match found.map_err(of_torch) {
        // the file begins like an old `.pt`, and is some other pickle
        Err(cause) if matches!(cause.downcast_ref(), Some(FormatError::Unrecognised)) => {
            return pickle::open_all(location, bytes, options);
        }
        found => found?,
    };
    let into_input = |contents| archive.into_input(location, contents);
    Ok(input_of(&FORMAT, found, TorchError::from, into_input))
}

fn byte_order(archive: &Archive, member: &Member<'_>) -> Result<Endian, Cause> {
    let (source, range) = archive.whole(member);
    let mut text = Vec::new();
    let len = member.len.min(BYTE_ORDER);
    Reader::at(source.as_ref(), range.start).take(len).read_to_end(&mut text)?;
    Ok(torch::byte_order(&text)?)
}
