//! PyTorch's `.pt` as one input: tensors are views of the storages in the archive, or of those behind the
//! pickles of an old file.
//!
//! The CRC-32s of the members are not compared, nor those of their local headers: torch.save may be told to leave
//! them out, and torch.load does not look at them.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use super::open::{InputFormat, RecognisedFile};
use crate::dtype::Endian;
use crate::error::Error;
use crate::format::npz::{Member, Members};
use crate::format::torch::{StoragePlace, TorchContents, TorchFolder};
use crate::format::{Contents, Format, FormatError, torch};
use crate::input::archive::{Archive, MemberStart};
use crate::input::single::{kept, unrecognised_in};
use crate::input::{Bytes, Input, Unreadable, failed_source};
use crate::source::{Advice, InflatedSource, Reader, Source};

/// The longest text that says a byte order, in bytes; one that is longer says none.
const BYTE_ORDER: u64 = 100;

/// Read the object in the folder of an archive, and find its tensors.
pub(super) fn open(
    mut archive: Archive<'_>,
    folder: &TorchFolder,
    members: &Members,
) -> Result<Input, Error> {
    let location = archive.location;
    let unfit = |error: FormatError| Error::file(location, error);
    let by_name = MembersByName::new(members);
    // without these nothing is known of the tensors
    let needed = |name: &str| match by_name.find(name) {
        Some(member) => match member.refusal() {
            Some(error) => Err(unfit(error.into())),
            None => Ok(Some(member)),
        },
        None => Ok(None),
    };
    let endian = match needed(&folder.byte_order())? {
        Some(member) => byte_order(&archive, &member).map_err(unfit)?,
        // older versions were written on little-endian machines, or torch.load takes them as such
        None => Endian::Little,
    };
    let pickle = needed(&folder.pickle())?;
    let (source, range) = match pickle.map(|member| whole(&archive, &member)) {
        Some(place) => place,
        None => return Err(unfit(FormatError::Unrecognised)),
    };
    if source.request_gap().is_some() {
        source.advise(range.clone(), Advice::Sequential);
    }
    // of those that are stored nothing need be known
    let mut inflated: HashMap<&str, MemberStart> = HashMap::new();
    let mut place = |key: &str| {
        let Some(member) = by_name.find(&folder.storage(key)) else { return Ok(None) };
        if let Some(error) = member.refusal() {
            return Err(error.into());
        }
        let MemberStart { part, start } = match inflated.get(member.name) {
            Some(place) => *place,
            None => {
                let range = member.deflated.then(|| archive.range(&member));
                let place = archive.place(&member, range.as_ref());
                let place = place.map_err(|error| FormatError::Io(error.into()))?;
                if member.deflated {
                    inflated.insert(member.name, place);
                }
                place
            }
        };
        Ok(Some(StoragePlace { part, bytes: start..start + member.len }))
    };
    let found = torch::read(source.as_ref(), range, endian, &mut place);
    Ok(with_contents(found.map_err(unfit)?, |contents| archive.into_input(contents)))
}

/// The members of an archive, found by their names. There may be a million.
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

    /// Of several of one name the last one.
    fn find(&self, name: &str) -> Option<Member<'a>> {
        let is_until =
            |&number: &usize| self.members.get(number).is_some_and(|member| member.name <= name);
        let behind = self.order.partition_point(is_until);
        let last = self.order.get(behind.checked_sub(1)?)?;
        self.members.get(*last).filter(|member| member.name == name)
    }
}

/// What torch.save wrote before version 1.6.
pub(super) const OLD_FORMAT: InputFormat =
    InputFormat { format: Format::Torch, begins: torch::begins, open: open_old };

fn open_old(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, progress, .. } = file;
    let bytes = kept(location, bytes, progress)?;
    let found = torch::read_old(bytes.as_ref());
    bytes.verify().map_err(|error| failed_source(location, error))?;
    match found {
        Ok(found) => Ok(with_contents(found, |contents| {
            Input::of_file(location, Bytes::Random(bytes), contents)
        })),
        Err(FormatError::Unrecognised) => Err(unrecognised_in(location, bytes.as_ref())),
        Err(error) => Err(Error::file(location, error)),
    }
}

/// The input of what a file holds.
fn with_contents(found: TorchContents, input: impl FnOnce(Contents) -> Input) -> Input {
    let TorchContents { tensors, unreadable, opaque } = found;
    let unreadable = unreadable.into_iter();
    let unreadable = unreadable.map(|(name, error)| Unreadable { name, error: error.into() });
    let input = input(Contents::of(Format::Torch, tensors));
    Input { unreadable: unreadable.collect(), opaque, ..input }
}

/// The bytes of a member, and their range in these.
fn whole(archive: &Archive<'_>, member: &Member<'_>) -> (Arc<dyn Source>, Range<u64>) {
    match member.deflated {
        true => (Arc::new(InflatedSource::from(archive.range(member))), 0..member.len),
        false => (Arc::clone(&archive.bytes), member.data.clone()),
    }
}

fn byte_order(archive: &Archive<'_>, member: &Member<'_>) -> Result<Endian, FormatError> {
    let (source, range) = whole(archive, member);
    let mut text = Vec::new();
    let len = member.len.min(BYTE_ORDER);
    Reader::at(source.as_ref(), range.start).take(len).read_to_end(&mut text)?;
    Ok(torch::byte_order(&text)?)
}
