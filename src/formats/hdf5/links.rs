//! The links of groups, and their targets.

use std::sync::Arc;

use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::header::{Header, kind};
use super::tree::{FractalHeap, LocalHeap, NodeV1, TreeV2};

/// The deepest tree of an old group, and the most soft links that are followed for one name.
const MAX_LEVEL: u8 = 40;
const MAX_HOPS: usize = 32;

/// The most bytes of the names of one group.
const MOST_TEXT: usize = 256 << 20;

/// The links of a group, sorted by name.
#[derive(Default)]
pub(super) struct Links {
    /// All names, and the paths of soft links.
    text: Vec<u8>,
    links: Vec<Link>,
}

/// A link: its name and its target, as positions in the text.
#[derive(Clone, Copy)]
struct Link {
    name: (u32, u32),
    target: LinkTarget<(u32, u32)>,
}

#[derive(Clone, Copy)]
pub(super) enum LinkTarget<Path> {
    Object(u64),
    /// A path in this file.
    Path(Path),
    /// An object of another file: its name and, after a zero, the path in it.
    OtherFile(Path),
    /// Nothing, or a target of a user-defined link.
    Unknown,
}

impl<Path> LinkTarget<Path> {
    fn map<Other>(self, path: impl FnOnce(Path) -> Other) -> LinkTarget<Other> {
        match self {
            LinkTarget::Object(address) => LinkTarget::Object(address),
            LinkTarget::Path(said) => LinkTarget::Path(path(said)),
            LinkTarget::OtherFile(said) => LinkTarget::OtherFile(path(said)),
            LinkTarget::Unknown => LinkTarget::Unknown,
        }
    }
}

impl Links {
    fn read(file: &H5File, address: u64) -> Result<Links, Hdf5Error> {
        let header = Header::read(file, address)?;
        let mut links = Links::default();
        if let Some(message) = header.find(file, kind::SYMBOLS)? {
            let mut input = file.cursor(&message);
            let tree = input.address()?;
            let heap = input.address()?;
            let nowhere = || damaged("the address of a group's links is undefined");
            let heap = LocalHeap::read(file, heap.ok_or_else(nowhere)?)?;
            let mut left = file.len() / 8;
            links.old(file, tree.ok_or_else(nowhere)?, &heap, MAX_LEVEL, &mut left)?;
        }
        for message in header.all(kind::LINK) {
            links.push_message(&mut file.cursor(&message.data))?;
        }
        if let Some(message) = header.find(file, kind::LINK_INFO)? {
            links.dense(file, &message)?;
        }
        let Links { text, links: found } = &mut links;
        found.sort_by(|one, other| part(text, one.name).cmp(part(text, other.name)));
        Ok(links)
    }

    fn push(&mut self, name: &[u8], target: LinkTarget<&[u8]>) -> Result<(), Hdf5Error> {
        if self.text.len() > MOST_TEXT {
            return Err(damaged("the names of a group have more than 256 MiB"));
        }
        let text = &mut self.text;
        let mut append = |bytes: &[u8]| {
            let start = text.len();
            text.extend_from_slice(bytes);
            (start as u32, text.len() as u32)
        };
        let name = append(name);
        let target = target.map(append);
        self.links.push(Link { name, target });
        Ok(())
    }

    /// Add the links of an old group, below a node of its tree.
    fn old(
        &mut self,
        file: &H5File,
        address: u64,
        heap: &LocalHeap,
        below: u8,
        left: &mut u64,
    ) -> Result<(), Hdf5Error> {
        let node = NodeV1::read(file, address, 0, file.sizes.length)?;
        if node.level >= below {
            return Err(damaged("the tree of a group is too deep, or contains itself"));
        }
        let cyclic = || damaged("the tree of a group contains itself");
        for number in 0..node.count {
            *left = left.checked_sub(1).ok_or_else(cyclic)?;
            let child = node.child(file, number)?;
            if node.level > 0 {
                self.old(file, child, heap, node.level, left)?;
                continue;
            }
            let front = file.block(child, 8, b"SNOD", false)?;
            let count = u64::from(u16::from_le_bytes([front[6], front[7]]));
            let len = (2 * file.sizes.address + 24) as u64;
            let bytes = file.bytes(child.saturating_add(8), count * len)?;
            let mut input = file.cursor(&bytes);
            for _ in 0..count {
                *left = left.checked_sub(1).ok_or_else(cyclic)?;
                let name = input.uint(file.sizes.address)?;
                let object = input.address()?;
                let is_soft = input.u32()? == 2;
                input.skip(4)?;
                let path = u64::from(input.u32()?);
                input.skip(12)?;
                let name = heap.text(file, name)?;
                match object {
                    _ if is_soft => self.push(&name, LinkTarget::Path(&heap.text(file, path)?))?,
                    Some(address) => self.push(&name, LinkTarget::Object(address))?,
                    None => self.push(&name, LinkTarget::Unknown)?,
                }
            }
        }
        Ok(())
    }

    /// Add the links of a group that stores them in a heap.
    fn dense(&mut self, file: &H5File, message: &[u8]) -> Result<(), Hdf5Error> {
        let mut input = file.cursor(message);
        let flags = input.skip(1).and_then(|()| input.u8())?;
        input.skip(if flags & 1 == 0 { 0 } else { 8 })?;
        let (Some(heap), Some(tree)) = (input.address()?, input.address()?) else { return Ok(()) };
        let heap = FractalHeap::read(file, heap)?;
        let tree = TreeV2::read(file, tree)?;
        if tree.kind != 5 {
            return Err(damaged("the tree of a group is of another kind"));
        }
        tree.each(file, &mut |record| {
            // a hash of the name comes first
            let link = heap.object(file, record.get(4..).unwrap_or_default())?;
            self.push_message(&mut file.cursor(&link))
        })
    }

    fn push_message(&mut self, input: &mut Cursor<'_>) -> Result<(), Hdf5Error> {
        let version = input.u8()?;
        let flags = input.u8()?;
        if version != 1 {
            return Err(damaged("a link is of no known version"));
        }
        let kind = if flags & 8 == 0 { 0 } else { input.u8()? };
        input.skip(if flags & 4 == 0 { 0 } else { 8 })?;
        input.skip(if flags & 16 == 0 { 0 } else { 1 })?;
        let len = input.uint(1 << (flags & 3))? as usize;
        let name = input.take(len)?;
        match kind {
            0 => match input.address()? {
                Some(address) => self.push(name, LinkTarget::Object(address)),
                None => self.push(name, LinkTarget::Unknown),
            },
            1 => {
                let len = input.u16()?;
                self.push(name, LinkTarget::Path(input.take(len.into())?))
            }
            64 => {
                let len = input.u16()?;
                // a byte of flags comes first
                let said = input.take(len.into())?.split_first().map_or(&[][..], |(_, said)| said);
                self.push(name, LinkTarget::OtherFile(said))
            }
            _ => self.push(name, LinkTarget::Unknown),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn at(&self, number: usize) -> (&[u8], LinkTarget<&[u8]>) {
        let Link { name, target } = self.links[number];
        (part(&self.text, name), target.map(|path| part(&self.text, path)))
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<LinkTarget<&[u8]>> {
        let found = self.links.binary_search_by(|link| part(&self.text, link.name).cmp(name));
        found.ok().map(|number| self.at(number).1)
    }
}

fn part(text: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &text[start as usize..end as usize]
}

/// A reader of groups; the last ones are cached for paths of links.
pub(super) struct Groups {
    recent: Vec<(Arc<H5File>, u64, Arc<Links>)>,
    /// The number of links that may still be read.
    left: usize,
    most: usize,
}

impl Groups {
    /// A reader that reads at most `most` links.
    pub(super) fn new(most: usize) -> Groups {
        Groups { recent: Vec::new(), left: most, most }
    }

    /// Count steps; an error beyond the limit.
    pub(super) fn count(&mut self, steps: usize) -> Result<(), Hdf5Error> {
        let left = self.left.checked_sub(steps);
        self.left = left.ok_or(Hdf5Error::Endless(self.most))?;
        Ok(())
    }

    pub(super) fn links(
        &mut self,
        file: &Arc<H5File>,
        address: u64,
    ) -> Result<Arc<Links>, Hdf5Error> {
        const MOST_GROUPS: usize = 4;
        let mut recent = self.recent.iter();
        let known = recent.find(|(of, start, _)| *start == address && Arc::ptr_eq(of, file));
        if let Some((.., links)) = known {
            return Ok(Arc::clone(links));
        }
        let links = Arc::new(Links::read(file, address)?);
        self.count(links.len() + 1)?;
        if self.recent.len() == MOST_GROUPS {
            self.recent.remove(0);
        }
        self.recent.push((Arc::clone(file), address, Arc::clone(&links)));
        Ok(links)
    }

    /// The object at a path, relative to a group: its file and its address; `None` where there is none.
    pub(super) fn resolve(
        &mut self,
        file: &Arc<H5File>,
        group: u64,
        path: &[u8],
    ) -> Result<Option<(Arc<H5File>, u64)>, Hdf5Error> {
        let mut file = Arc::clone(file);
        let mut at = group;
        let mut parts = vec![path.to_vec()];
        let mut hops = 0;
        while let Some(mut path) = parts.pop() {
            if path.first() == Some(&b'/') {
                at = file.root;
            }
            let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
            path.drain(..start);
            if path.is_empty() {
                continue;
            }
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            // the rest is relative to the link's target, so its slash is removed
            let rest = path.get(end + 1..).unwrap_or_default();
            let rest =
                rest[rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len())..].to_vec();
            path.truncate(end);
            if !rest.is_empty() {
                parts.push(rest);
            }
            self.count(1)?;
            if path == b"." {
                continue;
            }
            let links = match self.links(&file, at) {
                Ok(links) => links,
                Err(error @ Hdf5Error::Endless(_)) => return Err(error),
                Err(_) => return Ok(None),
            };
            match links.find(&path) {
                Some(LinkTarget::Object(address)) => at = address,
                Some(LinkTarget::Path(path)) if hops < MAX_HOPS => {
                    hops += 1;
                    parts.push(path.to_vec());
                }
                Some(LinkTarget::OtherFile(said)) if hops < MAX_HOPS => {
                    hops += 1;
                    let (other, path) = other_file(&file, said)?;
                    at = other.root;
                    file = other;
                    parts.push(path);
                }
                _ => return Ok(None),
            }
        }
        Ok(Some((file, at)))
    }
}

/// The file of an external link, and the path in it: both end with a zero.
pub(super) fn other_file(file: &H5File, said: &[u8]) -> Result<(Arc<H5File>, Vec<u8>), Hdf5Error> {
    let mut parts = said.split(|byte| *byte == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (name, path) = (String::from_utf8_lossy(next()), next());
    let other = file.other(&name).map_err(|error| {
        let path = String::from_utf8_lossy(path).into_owned();
        Hdf5Error::ExternalLink { path, reason: error.to_string() }
    })?;
    Ok((other, path.to_vec()))
}
