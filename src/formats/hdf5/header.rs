//! Headers of objects: their messages, in a chain of blocks anywhere in the file.

use std::collections::HashSet;

use super::file::{Cursor, H5File, Hdf5Error, check_sum, damaged};

pub(super) mod kind {
    pub(in super::super) const DATASPACE: u16 = 0x01;
    pub(in super::super) const LINK_INFO: u16 = 0x02;
    pub(in super::super) const DATATYPE: u16 = 0x03;
    pub(in super::super) const OLD_FILL: u16 = 0x04;
    pub(in super::super) const FILL: u16 = 0x05;
    pub(in super::super) const LINK: u16 = 0x06;
    pub(in super::super) const EXTERNAL: u16 = 0x07;
    pub(in super::super) const LAYOUT: u16 = 0x08;
    pub(in super::super) const FILTERS: u16 = 0x0b;
    pub(in super::super) const ATTRIBUTE: u16 = 0x0c;
    pub(in super::super) const CONTINUATION: u16 = 0x10;
    pub(in super::super) const SYMBOLS: u16 = 0x11;
    pub(in super::super) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// The bytes of a header that are read before its length is known.
const FIRST: u64 = 512;

/// The most bytes of one object's messages that are held in memory.
const MOST_KEPT: usize = 32 << 20;

/// The messages of an object, without its attributes.
pub(super) struct Header {
    messages: Vec<Message>,
    pub(super) has_attributes: bool,
}

pub(super) struct Message {
    pub(super) kind: u16,
    /// Whether the data are only the address of the message.
    pub(super) is_shared: bool,
    pub(super) address: u64,
    pub(super) data: Vec<u8>,
}

impl Header {
    pub(super) fn read(file: &H5File, address: u64) -> Result<Header, Hdf5Error> {
        let mut messages = Vec::new();
        let mut has_attributes = false;
        let mut total = 0;
        each_message(file, address, &mut |message, bytes| {
            match message.kind {
                kind::ATTRIBUTE => has_attributes = true,
                kind::DATASPACE..=kind::LAYOUT
                | kind::FILTERS
                | kind::SYMBOLS
                | kind::ATTRIBUTE_INFO => {
                    has_attributes |= message.kind == kind::ATTRIBUTE_INFO
                        && super::attributes::is_dense(file, bytes);
                    total += bytes.len();
                    if total > MOST_KEPT {
                        return Err(damaged("the header of an object has more than 32 MiB"));
                    }
                    messages.push(Message { data: bytes.to_vec(), ..message });
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Header { messages, has_attributes })
    }

    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.all(kind).next().is_some()
    }

    /// The message of a kind, which may be stored in another object.
    pub(super) fn find(&self, file: &H5File, kind: u16) -> Result<Option<Vec<u8>>, Hdf5Error> {
        let found = self.all(kind).next().map(|message| resolved(file, message, &message.data));
        found.transpose()
    }

    /// The message of a kind; an error where it is missing.
    pub(super) fn needed(&self, file: &H5File, kind: u16) -> Result<Vec<u8>, Hdf5Error> {
        self.find(file, kind)?.ok_or_else(|| damaged("its header lacks a message"))
    }
}

/// The bytes of a message, which may be shared with another object.
pub(super) fn resolved(
    file: &H5File,
    message: &Message,
    bytes: &[u8],
) -> Result<Vec<u8>, Hdf5Error> {
    if !message.is_shared {
        return Ok(bytes.to_vec());
    }
    shared(file, message.kind, &mut file.cursor(bytes))
}

/// The bytes of a message that another object holds: a named datatype.
pub(super) fn shared(
    file: &H5File,
    kind: u16,
    input: &mut Cursor<'_>,
) -> Result<Vec<u8>, Hdf5Error> {
    let version = input.u8()?;
    let location = input.u8()?;
    match version {
        1 => input.skip(6)?,
        3 if location == 1 => return Err(Hdf5Error::SharedMessages),
        2 | 3 => {}
        _ => return Err(damaged("a shared message of its header is of no known version")),
    }
    let address =
        input.address()?.ok_or_else(|| damaged("the address of a shared message is undefined"))?;
    let mut found = None;
    each_message(file, address, &mut |message, bytes| {
        if message.kind == kind && !message.is_shared && found.is_none() {
            found = Some(bytes.to_vec());
        }
        Ok(())
    })?;
    found.ok_or_else(|| damaged("a shared message is not where it should be"))
}

/// A visitor of messages; their data are the second argument.
type Visit<'a> = &'a mut dyn FnMut(Message, &[u8]) -> Result<(), Hdf5Error>;

struct HeaderPrefix {
    /// The first block of messages: its address, its length, and the bytes before the messages.
    block: (u64, u64, u64),
    /// Whether messages hold their order of creation.
    has_order: bool,
    /// Whether the header has version 2, with checksums.
    is_new: bool,
}

impl HeaderPrefix {
    /// Read the prefix of the header at an address from its first bytes.
    fn read(file: &H5File, address: u64, first: &[u8]) -> Result<HeaderPrefix, Hdf5Error> {
        let mut prefix = file.cursor(first);
        if first.starts_with(b"OHDR") {
            prefix.skip(4)?;
            let version = prefix.u8()?;
            let flags = prefix.u8()?;
            if version != 2 {
                return Err(damaged("the header of an object is of no known version"));
            }
            let times = if flags & 0x20 == 0 { 0 } else { 16 };
            let limits = if flags & 0x10 == 0 { 0 } else { 4 };
            prefix.skip(times + limits)?;
            let size = 1 << (flags & 3);
            let len = prefix.uint(size)?;
            let front = (6 + times + limits + size) as u64;
            let block = (address, len.saturating_add(front + 4), front);
            return Ok(HeaderPrefix { block, has_order: flags & 4 != 0, is_new: true });
        }
        if first.first() != Some(&1) {
            return Err(damaged("an object header is missing"));
        }
        prefix.skip(8)?;
        let len = u64::from(prefix.u32()?).saturating_add(8);
        let block = (address.saturating_add(8), len, 8);
        Ok(HeaderPrefix { block, has_order: false, is_new: false })
    }
}

/// Visit all messages of the object at an address, with their data.
pub(super) fn each_message(file: &H5File, address: u64, visit: Visit<'_>) -> Result<(), Hdf5Error> {
    // most headers are not longer
    let first = file.bytes(address, file.len().saturating_sub(address).min(FIRST))?;
    let HeaderPrefix { block, has_order, is_new } = HeaderPrefix::read(file, address, &first)?;
    let mut blocks = vec![block];
    let mut seen = HashSet::new();
    while let Some((start, len, front)) = blocks.pop() {
        if !seen.insert(start) {
            return Err(damaged("the header of an object continues in itself"));
        }
        let at = start.wrapping_sub(address);
        let read = at.checked_add(len).and_then(|end| first.get(at as usize..end as usize));
        let bytes = match read {
            Some(read) => read.to_vec(),
            None => file.bytes(start, len)?,
        };
        if is_new {
            check_sum(&bytes)?;
        }
        if is_new && front == 4 && !bytes.starts_with(b"OCHK") {
            return Err(damaged("the header of an object continues at an invalid position"));
        }
        let end = if is_new { bytes.len() - 4 } else { bytes.len() };
        let mut input = file.cursor(&bytes[..end]);
        input.skip(front as usize)?;
        let least = if is_new { 4 + 2 * usize::from(has_order) } else { 8 };
        while input.rest.len() >= least {
            let kind = if is_new { input.u8()?.into() } else { input.u16()? };
            let size = input.u16()?;
            let flags = input.u8()?;
            input.skip(if is_new { 2 * usize::from(has_order) } else { 3 })?;
            let address = start + (end - input.rest.len()) as u64;
            let data = input.take(size.into())?;
            if kind == kind::CONTINUATION {
                let mut next = file.cursor(data);
                let at = next
                    .address()?
                    .ok_or_else(|| damaged("the continuation of a header has no address"))?;
                blocks.push((at, next.length()?, if is_new { 4 } else { 0 }));
                continue;
            }
            let is_shared = flags & 2 != 0;
            visit(Message { kind, is_shared, address, data: Vec::new() }, data)?;
        }
    }
    Ok(())
}
