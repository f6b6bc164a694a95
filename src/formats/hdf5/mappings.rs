//! The list of mappings of a virtual dataset: which of its elements are stored where in its sources.
//!
//! ```text
//!   v[0:3] = a.h5/d[...]        v[3:6] = b.h5/d[0:3]        all others are the fill value
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::file::{Cursor, H5File, Hdf5Error, check_sum, damaged};
use super::selection::{Positions, Selection, Stored};
use super::tree;

/// The most mappings of a virtual dataset.
const MOST: usize = 1 << 17;

/// The most objects of a global heap that are passed on the way to the list.
const MOST_PASSED: usize = 1 << 17;

/// The mappings of a virtual dataset. Of two mappings of one element the later one counts.
pub(super) struct Mappings {
    pub(super) list: Vec<Mapping>,
    /// The shape of the dataset, extended to the length of unlimited sources.
    pub(super) shape: Vec<u64>,
    /// The axis along which mappings begin at the most different positions, and these positions, ascending.
    axis: usize,
    starts: Vec<(u64, u32)>,
    /// The longest mapping along this axis.
    longest: u64,
}

/// A mapping: the n-th element of `dest`, in C order, is the n-th element that is taken of the source.
pub(super) struct Mapping {
    pub(super) file: Arc<str>,
    pub(super) dataset: Arc<str>,
    pub(super) dest: Selection,
    /// `None` for all elements of the source.
    pub(super) taken: Option<Selection>,
}

/// The file or the dataset of a source by its name. Several mappings share it.
#[derive(Clone)]
struct SourceName {
    stored: Arc<str>,
    /// The name with `%%` replaced by `%`.
    plain: Arc<str>,
}

/// The names of a source: its file, and the path of its dataset.
type SourceNames = [SourceName; 2];

/// A reader of a list of mappings.
struct MappingReader<'a> {
    file: &'a H5File,
    /// The nesting level of this virtual dataset in others.
    depth: usize,
    list: Vec<Mapping>,
    /// The end of the limited mappings along each axis.
    least: Vec<u64>,
    /// The length of each axis with unlimited mappings; `None` for other axes.
    longer: Vec<Option<u64>>,
}

impl Mappings {
    /// Read the list of a virtual dataset of this shape, at nesting level `depth`.
    pub(super) fn read(
        file: &H5File,
        (collection, index): (u64, u32),
        shape: &[u64],
        depth: usize,
    ) -> Result<Mappings, Hdf5Error> {
        if depth == 0 {
            file.begin_sizing();
        }
        let bytes = tree::global(file, collection, index, &mut MOST_PASSED.clone())?;
        check_sum(&bytes)?;
        let mut input = file.cursor(&bytes[..bytes.len() - 4]);
        let version = input.u8()?;
        let count = input.length()?;
        if version > 1 {
            return Err(damaged("the list of its sources is of no known version"));
        }
        if count > MOST as u64 {
            return Err(Hdf5Error::Mapping("one of more than 131072"));
        }
        let (list, least, longer) = (Vec::new(), vec![0; shape.len()], vec![None; shape.len()]);
        let mut reader = MappingReader { file, depth, list, least, longer };
        let mut names = Vec::new();
        for _ in 0..count {
            let flags = if version == 0 { 0 } else { input.u8()? };
            let name = source_names(&mut input, flags, &names)?;
            names.push(name.clone());
            let (taken, dest) = (Stored::read(&mut input)?, Stored::read(&mut input)?);
            let all = || Selection(shape.iter().map(|len| Positions::all(*len)).collect());
            let (dest, endless) = match dest {
                Stored::Nothing => continue,
                Stored::All => (all(), None),
                Stored::Some(dest) => (dest, None),
                Stored::Endless(dest, axis) => (dest, Some(axis)),
            };
            if dest.0.len() != shape.len() {
                return Err(damaged("a mapping has a different number of axes"));
            }
            for (axis, positions) in dest.0.iter().enumerate().filter(|it| Some(it.0) != endless) {
                let least = &mut reader.least[axis];
                *least = positions.bounds().end.max(*least);
            }
            match (taken, endless) {
                (Stored::Nothing, _) => {}
                (Stored::All, None) => reader.push(&name, dest, None)?,
                (Stored::Some(taken), None) if taken.count() == dest.count() => {
                    reader.push(&name, dest, Some(taken))?;
                }
                (Stored::Some(_), None) => {
                    return Err(damaged(
                        "the two sides of a mapping have different numbers of elements",
                    ));
                }
                (Stored::Endless(taken, along), Some(axis)) => {
                    reader.endless(&name, (dest, axis), (taken, along))?;
                }
                (Stored::All, Some(axis)) => reader.numbered(&name, (dest, axis), None)?,
                (Stored::Some(taken), Some(axis)) => {
                    reader.numbered(&name, (dest, axis), Some(taken))?;
                }
                (Stored::Endless(..), None) => {
                    return Err(damaged("a source is unlimited, and its destination is not"));
                }
            }
        }
        let MappingReader { list, least, longer, .. } = reader;
        let axes = shape.iter().zip(longer).zip(least);
        let shape = axes.map(|((len, longer), least)| longer.map_or(*len, |it| it.max(least)));
        Ok(Mappings::sorted(list, shape.collect()))
    }

    fn sorted(list: Vec<Mapping>, shape: Vec<u64>) -> Mappings {
        let starts = |axis: usize| {
            let start = |mapping: &Mapping| mapping.dest.0[axis].bounds().start;
            let mut starts: Vec<(u64, u32)> = list.iter().map(start).zip(0..).collect();
            starts.sort_unstable();
            starts
        };
        let different = |axis: &usize| {
            let mut starts = starts(*axis);
            starts.dedup_by_key(|(start, _)| *start);
            std::cmp::Reverse(starts.len())
        };
        let axis = (0..shape.len()).min_by_key(different).unwrap_or(0);
        let starts = if shape.is_empty() { Vec::new() } else { starts(axis) };
        let len = |mapping: &Mapping| {
            mapping.dest.0.get(axis).map_or(0, |it| it.bounds().end - it.bounds().start)
        };
        let longest = list.iter().map(len).max().unwrap_or(0);
        Mappings { list, shape, axis, starts, longest }
    }

    /// The mappings that have elements in a box, in their order.
    pub(super) fn within(&self, inside: &[Range<u64>]) -> Vec<&Mapping> {
        let Some(range) = inside.get(self.axis) else { return self.list.iter().collect() };
        let first = range.start.saturating_sub(self.longest);
        let first = self.starts.partition_point(|(start, _)| *start < first);
        let near = self.starts[first..].iter().take_while(|(start, _)| *start < range.end);
        let mut near: Vec<u32> = near.map(|(_, number)| *number).collect();
        near.sort_unstable();
        let mappings = near.into_iter().map(|number| &self.list[number as usize]);
        let is_in = |mapping: &&Mapping| {
            let mut axes = mapping.dest.0.iter().zip(inside);
            axes.all(|(positions, range)| {
                positions.before(range.end) > positions.before(range.start)
            })
        };
        mappings.filter(is_in).collect()
    }

    /// For each axis, the greatest common divisor of the positions where mappings begin and end; 0 if all mappings
    /// reach over the whole axis.
    pub(super) fn cuts(&self) -> Vec<u64> {
        let cut = |axis: usize| {
            let bounds = self.list.iter().map(|mapping| mapping.dest.0[axis].bounds());
            let ends = bounds.flat_map(|bounds| [bounds.start, bounds.end]);
            ends.filter(|end| *end < self.shape[axis]).fold(0, greatest_common_divisor)
        };
        (0..self.shape.len()).map(cut).collect()
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

impl MappingReader<'_> {
    fn push(
        &mut self,
        [file, dataset]: &SourceNames,
        dest: Selection,
        taken: Option<Selection>,
    ) -> Result<(), Hdf5Error> {
        let [file, dataset] = [file, dataset].map(|name| Arc::clone(&name.plain));
        self.push_mapping(Mapping { file, dataset, dest, taken })
    }

    fn push_mapping(&mut self, mapping: Mapping) -> Result<(), Hdf5Error> {
        if self.list.len() >= MOST {
            return Err(Hdf5Error::Mapping("one of more than 131072"));
        }
        self.file.check_name(&mapping.file)?;
        self.list.push(mapping);
        Ok(())
    }

    /// Add a mapping that grows with its source.
    fn endless(
        &mut self,
        name: &SourceNames,
        (mut dest, axis): (Selection, usize),
        (mut taken, along): (Selection, usize),
    ) -> Result<(), Hdf5Error> {
        let [file, dataset] = name;
        let source = self.file.sized_source(&file.plain, &dataset.plain, self.depth)?;
        let source = source.map_err(|error| Hdf5Error::Source(error.to_string()))?;
        let len = source.shape.get(along).copied().unwrap_or_default();
        let count = taken.0[along].before(len);
        self.longer[axis] = self.longer[axis].max(Some(dest.0[axis].end_of(count)));
        dest.0[axis] = dest.0[axis].first(count);
        taken.0[along] = taken.0[along].first(count);
        if count == 0 { Ok(()) } else { self.push(name, dest, Some(taken)) }
    }

    /// Add a mapping with a source for each block (`%b` in the name), until a source does not exist.
    fn numbered(
        &mut self,
        [file, dataset]: &SourceNames,
        (dest, axis): (Selection, usize),
        taken: Option<Selection>,
    ) -> Result<(), Hdf5Error> {
        if [file, dataset].iter().all(|name| !name.plain.contains("%b")) {
            return Err(damaged("an unlimited mapping has one source, which is limited"));
        }
        self.longer[axis] = self.longer[axis].max(Some(0));
        for number in 0.. {
            let [file, dataset] = [file, dataset].map(|name| numbered(&name.stored, number));
            if self.file.sized_source(&file, &dataset, self.depth)?.is_err() {
                break;
            }
            let block = dest.0[axis].block(number).ok_or(Hdf5Error::TooLarge)?;
            self.longer[axis] = self.longer[axis].max(Some(block.bounds().end));
            let mut dest = dest.clone();
            dest.0[axis] = block;
            self.push_mapping(Mapping { file, dataset, dest, taken: taken.clone() })?;
        }
        Ok(())
    }
}

/// Read the names of a source. A name may be given as the number of an earlier mapping that has it.
fn source_names(
    input: &mut Cursor<'_>,
    flags: u8,
    names: &[SourceNames],
) -> Result<SourceNames, Hdf5Error> {
    let mut name = |shared: u8, which: usize| {
        if flags & shared != 0 {
            let number = usize::try_from(input.length()?).unwrap_or(usize::MAX);
            let found = names.get(number).map(|names| names[which].clone());
            return found.ok_or_else(|| damaged("a name of its sources is missing"));
        }
        let stored = match (flags, which) {
            (flags, 0) if flags & 4 != 0 => ".".into(),
            _ => String::from_utf8_lossy(input.until_zero()?),
        };
        Ok(SourceName { plain: stored.replace("%%", "%").into(), stored: stored.into() })
    };
    Ok([name(1, 0)?, name(2, 1)?])
}

/// A name with `%b` replaced by the number of a block.
fn numbered(name: &str, number: u64) -> Arc<str> {
    let parts = name.split("%%").map(|part| part.replace("%b", &number.to_string()));
    parts.collect::<Vec<_>>().join("%").into()
}
