//! Datasets of HDF5 files: their types, the offsets of their bytes, and the decoding of their chunks.
//!
//! All of the format is read here, through the input's own [`Source`]: without a C library, whose lock all threads
//! would share, and whose memory a damaged file could reach. Every length in a file is checked against the file's
//! length. Contiguous elements are found by their offset in the file; a chunk is looked up in the dataset's index
//! on demand, so that an index takes no memory.
//!
//! ```text
//!   file: superblock, checked pieces ─► header: messages of an object
//!     ─► links (tree): names of a group ─► dataset (datatype): dtype, shape, layout
//!                                           ─► contiguous, compact: an offset in the file
//!                                           ─► chunks (index, tree, filters): looked up and decoded
//!                                           ─► in other datasets and files (virtuals, elsewhere)
//!     ─► attributes (tree): annotations of datasets and groups
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use attributes::NON_COORDINATE;
use file::{H5File, OtherFiles};
use header::{Header, kind};
use links::{Groups, LinkTarget, Links, other_file};

use super::codecs::guarded;
use crate::source::{IoMode, Source};
use crate::tensor::{TensorInfo, Tensors};

mod attributes;
mod chunks;
mod dataset;
mod datatype;
mod elsewhere;
mod file;
mod filters;
mod header;
mod index;
mod links;
mod mappings;
mod open;
mod repair;
mod selection;
mod tree;
mod virtuals;

pub(crate) use file::{Hdf5Error, SIGNATURE};
pub(crate) use open::FORMAT;

/// The deepest group, and the most links that are read and followed: a group may be in several others.
const MAX_DEPTH: usize = 1000;
const MAX_STEPS: usize = 3_000_000;

/// The longest path of a dataset in bytes.
const MAX_PATH: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Hdf5Contents {
    /// The datasets by their paths without the first `/`, sorted by path.
    pub(crate) tensors: Tensors,
    /// The paths of objects that cannot be read, each with the reason.
    pub(crate) unreadable: Vec<(String, Hdf5Error)>,
}

/// All datasets of a file, which lies at this path. A link gives its target another name; a group is not entered
/// within itself. Links back to it, out of the folder and to nothing are reported as unreadable.
pub(crate) fn contents(
    source: &Arc<dyn Source>,
    path: Option<&Path>,
    io: IoMode,
) -> Result<Hdf5Contents, Hdf5Error> {
    let others = OtherFiles::of_input(path, io);
    let file = Arc::new(H5File::open(Arc::clone(source), others)?);
    let mut groups = Groups::new(MAX_STEPS);
    let root = Header::read(&file, file.root)?;
    let mut found = Hdf5Contents::default();
    if root.has_attributes {
        let annotated = attributes::annotated_group(&file, file.root);
        found.tensors.annotate_group(String::new(), annotated);
    }
    let links = groups.links(&file, file.root)?;
    let open = vec![OpenGroup::new(String::new(), (Arc::clone(&file), file.root), links)];
    let mut walk = GroupWalk { file: &file, groups, open, found, datasets: Vec::new() };
    while let Some(group) = walk.open.last_mut() {
        match group.next() {
            Step::Enter(name, object) => {
                let path = format!("{}{name}", group.path);
                walk.enter(path, object)?;
            }
            Step::Leave => {
                walk.open.pop();
            }
            Step::Link(number) => {
                let links = Arc::clone(&group.links);
                walk.follow(&links, number)?;
            }
        }
    }
    walk.lengthen();
    Ok(walk.found)
}

/// A walk through all groups of a file.
struct GroupWalk<'a> {
    file: &'a Arc<H5File>,
    groups: Groups,
    /// The groups on the path from the root to the current one.
    open: Vec<OpenGroup>,
    found: Hdf5Contents,
    /// The numbers of the tensors whose axes may grow, each with the address of its header.
    datasets: Vec<(usize, u64)>,
}

impl GroupWalk<'_> {
    fn enter(&mut self, path: String, object: ObjectAddress) -> Result<(), Hdf5Error> {
        match self.groups.links(&object.0, object.1) {
            Ok(links) => self.open.push(OpenGroup::new(path, object, links)),
            Err(error @ Hdf5Error::Endless(_)) => return Err(error),
            Err(error) => {
                self.found.unreadable.push((path.trim_end_matches('/').to_owned(), error));
            }
        }
        Ok(())
    }

    /// Follow a link of the last open group.
    fn follow(&mut self, links: &Links, number: usize) -> Result<(), Hdf5Error> {
        self.groups.count(1)?;
        let Some(group) = self.open.last_mut() else { return Ok(()) };
        let (name, target) = links.at(number);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (of, at) = &group.object;
        let dangling = |path: &[u8]| Hdf5Error::DanglingLink(text(path));
        let found = match target {
            LinkTarget::Object(address) => Ok((Arc::clone(of), address)),
            LinkTarget::Path(path) => {
                let found = self.groups.resolve(of, *at, path);
                found.and_then(|found| found.ok_or_else(|| dangling(path)))
            }
            LinkTarget::OtherFile(said) => other_file(of, said).and_then(|(other, path)| {
                let found = self.groups.resolve(&other, other.root, &path)?;
                found.ok_or_else(|| dangling(&path))
            }),
            LinkTarget::Unknown => Err(Hdf5Error::Link),
        };
        let name = String::from_utf8_lossy(name);
        let path = format!("{}{name}", group.path);
        let (file, address) = match found {
            Ok(found) => found,
            Err(error @ Hdf5Error::Endless(_)) => return Err(error),
            Err(error) => {
                self.found.unreadable.push((path, error));
                return Ok(());
            }
        };
        match Object::read(&file, address, &path) {
            Ok(Object::Dataset(tensor)) if file.others.are_of_another() => {
                let tensor = TensorInfo { name: Some(path), ..*tensor };
                self.found.tensors.push(&elsewhere::linked(self.file, &file, address, tensor));
            }
            Ok(Object::Dataset(tensor)) => {
                let path = format!("{}{}", group.path, variable(self.file, links, &name));
                if self.file.grows(address) {
                    self.datasets.push((self.found.tensors.len(), address));
                }
                self.found.tensors.push(&TensorInfo { name: Some(path), ..*tensor });
            }
            Ok(Object::Group { has_attributes }) => {
                let is_same = |(of, at): &ObjectAddress| *at == address && of.is_same(&file);
                if self.open.iter().any(|outer| is_same(&outer.object)) {
                    self.found.unreadable.push((path, Hdf5Error::CyclicLink));
                    return Ok(());
                }
                if self.open.len() > MAX_DEPTH || path.len() > MAX_PATH {
                    self.found.unreadable.push((path, Hdf5Error::Deep(MAX_DEPTH)));
                    return Ok(());
                }
                if has_attributes {
                    let annotated = attributes::annotated_group(&file, address);
                    self.found.tensors.annotate_group(path, annotated);
                }
                if let Some(group) = self.open.last_mut() {
                    group.inner.insert(format!("{name}/"), (file, address));
                }
            }
            Ok(Object::Other) => {}
            Err(error) => self.found.unreadable.push((path, error)),
        }
        Ok(())
    }
}

impl GroupWalk<'_> {
    /// Extend the variables of a netCDF to the length of their dimensions that may grow: the length of the longest
    /// variable along them. The elements beyond the end of a variable are fill values.
    fn lengthen(&mut self) {
        let growing = self.file.growing();
        let scales_of = |address: &u64| attributes::scales_of(self.file, *address);
        let scales: BTreeMap<u64, _> = growing.keys().map(|it| (*it, scales_of(it))).collect();
        let along = |address: u64| {
            let lens = growing.get(&address).into_iter().flatten().copied();
            lens.zip(scales.get(&address).into_iter().flatten().copied())
        };
        let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
        for (len, scale) in growing.keys().flat_map(|address| along(*address)) {
            if let (Some(len), Some(scale)) = (len, scale) {
                let longest = longest.entry(scale).or_default();
                *longest = len.max(*longest);
            }
        }
        for (number, address) in std::mem::take(&mut self.datasets) {
            let lens = along(address).map(|(len, scale)| {
                let longest = scale.and_then(|scale| longest.get(&scale)).copied();
                longest.filter(|longest| len.is_some_and(|len| len < *longest))
            });
            let lens: Vec<Option<u64>> = lens.collect();
            if lens.iter().all(Option::is_none) {
                continue;
            }
            let tensor = self.found.tensors.at(number);
            let name = tensor.name.as_deref().unwrap_or_default();
            let longer = Header::read(self.file, address)
                .and_then(|header| dataset::tensor(self.file, address, &header, name, &lens));
            if let Ok(Some(longer)) = longer {
                let longer = TensorInfo { name: tensor.name, ..longer };
                self.found.tensors.replace(number, &longer);
            }
        }
    }
}

/// An object: its file, and the address of its header.
type ObjectAddress = (Arc<H5File>, u64);

/// A group whose links are being read.
struct OpenGroup {
    /// The path before the names of the group.
    path: String,
    object: ObjectAddress,
    links: Arc<Links>,
    next: usize,
    /// Subgroups that were not entered yet, by their names with a trailing `/`, so that paths are sorted.
    inner: BTreeMap<String, ObjectAddress>,
}

/// The next step in reading a group.
enum Step {
    Enter(String, ObjectAddress),
    Link(usize),
    Leave,
}

impl OpenGroup {
    fn new(path: String, object: ObjectAddress, links: Arc<Links>) -> OpenGroup {
        OpenGroup { path, object, links, next: 0, inner: BTreeMap::new() }
    }

    fn next(&mut self) -> Step {
        let next = (self.next < self.links.len()).then(|| self.links.at(self.next).0);
        if let Some(first) = self.inner.first_entry()
            && next.is_none_or(|name| first.key().as_bytes() < name)
        {
            let (name, object) = first.remove_entry();
            return Step::Enter(name, object);
        }
        if next.is_none() {
            return Step::Leave;
        }
        self.next += 1;
        Step::Link(self.next - 1)
    }
}

/// The name of a dataset, from its link: netCDF adds a prefix where a dimension has the name of a variable.
fn variable<'a>(file: &Arc<H5File>, links: &Links, name: &'a str) -> &'a str {
    let Some(plain) = name.strip_prefix(NON_COORDINATE).filter(|plain| !plain.is_empty()) else {
        return name;
    };
    let is_taken = match links.find(plain.as_bytes()) {
        None => false,
        Some(LinkTarget::Object(address)) => {
            matches!(Object::read(file, address, plain), Ok(Object::Dataset(_)))
        }
        Some(_) => true,
    };
    if is_taken { name } else { plain }
}

enum Object {
    Dataset(Box<TensorInfo>),
    Group {
        has_attributes: bool,
    },
    /// A named datatype, or a dimension of netCDF.
    Other,
}

impl Object {
    fn read(file: &Arc<H5File>, address: u64, path: &str) -> Result<Object, Hdf5Error> {
        let header = Header::read(file, address)?;
        if header.has(kind::SYMBOLS) || header.has(kind::LINK_INFO) {
            return Ok(Object::Group { has_attributes: header.has_attributes });
        }
        if !header.has(kind::DATASPACE) && !header.has(kind::LAYOUT) {
            return Ok(Object::Other);
        }
        let tensor = guarded(|| dataset::tensor(file, address, &header, path, &[]));
        let tensor = tensor.map_err(Hdf5Error::Damaged).flatten()?;
        Ok(tensor.map_or(Object::Other, |tensor| Object::Dataset(Box::new(tensor))))
    }
}
