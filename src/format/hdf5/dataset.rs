//! Messages of a dataset, and the tensor that it is.

use std::sync::{Arc, OnceLock};

use super::chunks::{Grid, H5Chunks, Index};
use super::datatype::{Datatype, H5Type};
use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::filters::Filter;
use super::header::{Header, kind};
use super::{attributes, filters};
use crate::format::error::brief;
use crate::format::{Storage, StorageKind, TensorInfo};
use crate::shape::{Order, byte_count};

/// The most axes of a dataset.
const MAX_RANK: u8 = 32;

/// The most bytes of a shape that is stored.
const MOST_SHAPE: u64 = 8 * MAX_RANK as u64;

/// Elements in a piece of what was never written, about so many bytes.
const UNWRITTEN: u64 = 1 << 20;

/// The tensor that the dataset at an address is; its header is read.
pub(super) fn tensor(
    file: &Arc<H5File>,
    address: u64,
    header: &Header,
    name: &str,
) -> Result<TensorInfo, Hdf5Error> {
    let mut own = attributes::Own::default();
    if header.has_attributes {
        own = attributes::Own::read(file, address, name);
    }
    if header.has(kind::EXTERNAL) {
        return Err(Hdf5Error::External);
    }
    let space = Dataspace::parse(file, &header.needed(file, kind::DATASPACE)?)?;
    let datatype = Datatype::parse(file, &header.needed(file, kind::DATATYPE)?)?;
    let H5Type { dtype, axes, left_out } = H5Type::of(&datatype)?;
    let mut shape = space.shape.clone();
    shape.extend(&axes);
    let fill = fill(file, header)?;
    let item = dtype.item_bits() / 8;
    let bytes = byte_count(&shape, item * 8).ok_or(Hdf5Error::TooLarge)?;
    let item_len = u64::from(datatype.size);
    if item_len != axes.iter().product::<u64>().saturating_mul(item) && !axes.contains(&0) {
        return Err(damaged("its elements have another number of bytes than their datatype"));
    }
    let element = fill.as_ref().filter(|fill| fill.len() as u64 == item_len);
    // elements that are arrays are one each, if those are all the same
    let one = element.and_then(|fill| {
        let mut items = fill.chunks_exact((item as usize).max(1));
        let first = items.next()?;
        items.all(|item| item == first).then(|| first.to_vec())
    });
    let mut tensor = TensorInfo::new(dtype, shape.clone(), Order::C, 0);
    let layout = header.all(kind::LAYOUT).next();
    let layout = layout.ok_or_else(|| damaged("its header does not say where its elements are"))?;
    let layout = Layout::parse(file, layout.address, &layout.data, &space, item_len)?;
    let mut stored = Vec::new();
    let chunks = match layout {
        Layout::Bytes { address, len } => {
            let position = file.position(address, len.unwrap_or(bytes).max(bytes))?;
            if len.is_some_and(|len| len < bytes) {
                return Err(Hdf5Error::CutShort);
            }
            tensor.storage.data = position..position + bytes;
            if own.matlab_empty && bytes <= MOST_SHAPE {
                stored = file.bytes(address, bytes)?;
            }
            None
        }
        Layout::Unwritten => {
            let counts = vec![Some(0); space.shape.len()];
            let grid = Grid { chunk: unwritten(&space.shape, item_len), counts, bytes: 0 };
            Some((grid, Index::Nothing, Vec::new(), false))
        }
        Layout::Chunked { grid, index, partial_unfiltered } => {
            let filters = header.find(file, kind::FILTERS)?;
            let filters = filters.map(|message| Filter::parse(file, &message)).transpose()?;
            let filters = filters.unwrap_or_default();
            filters::check(&filters)?;
            Some((grid, index, filters, partial_unfiltered))
        }
    };
    if let Some((grid, index, filters, partial_unfiltered)) = chunks {
        let fill = element.map(|fill| fill.as_slice()).unwrap_or_default();
        let mut chunk = grid.chunk.clone();
        chunk.extend(axes.iter().map(|len| (*len).max(1)));
        let chunks = H5Chunks {
            file: Arc::clone(file),
            shape,
            chunk,
            grid,
            item,
            filters,
            index,
            partial_unfiltered,
            fill: fill.into(),
        };
        chunks.check()?;
        if own.matlab_empty && bytes <= MOST_SHAPE {
            stored = chunks.short(file)?;
        }
        let kind = StorageKind::Chunks(Arc::new(chunks));
        tensor.storage = Storage { part: 0, data: 0..0, kind };
    }
    let left_out = left_out.into_iter().map(|(name, error)| left_out_note(&name, &error));
    let mut notes: Vec<String> = left_out.collect();
    attributes::apply(&mut tensor, &own, &stored, &mut notes)?;
    if header.has_attributes || one.is_some() || !notes.is_empty() {
        tensor.annotated = Some(attributes::annotated(file, address, &tensor, one, notes));
    }
    Ok(tensor)
}

fn left_out_note(name: &str, error: &Hdf5Error) -> String {
    let reason = match error {
        Hdf5Error::DType(what) => what.clone(),
        other => other.to_string(),
    };
    brief(&format!("without its field {name:?}, whose elements are {reason}"))
}

/// A piece of a shape, of about as many bytes as are made at once.
fn unwritten(shape: &[u64], item: u64) -> Vec<u64> {
    let mut left = (UNWRITTEN / item.max(1)).max(1);
    let mut piece: Vec<u64> = shape
        .iter()
        .rev()
        .map(|len| {
            let taken = left.min(*len).max(1);
            left /= taken;
            taken
        })
        .collect();
    piece.reverse();
    piece
}

/// The shape of a dataset or of an attribute, and how long its axes may become.
pub(super) struct Dataspace {
    pub(super) shape: Vec<u64>,
    /// `None` for an axis that may grow without end.
    most: Vec<Option<u64>>,
}

impl Dataspace {
    /// The dataspace of a message.
    pub(super) fn parse(file: &H5File, message: &[u8]) -> Result<Dataspace, Hdf5Error> {
        let mut input = file.cursor(message);
        let version = input.u8()?;
        let rank = input.u8()?;
        let flags = input.u8()?;
        match version {
            1 => input.skip(5)?,
            2 => {
                if input.u8()? == 2 {
                    return Err(Hdf5Error::Null);
                }
            }
            _ => return Err(damaged("its dataspace is of no known version")),
        }
        if rank > MAX_RANK {
            return Err(damaged("it has more than 32 axes"));
        }
        let wide = file.sizes.length;
        let shape = input.uints(rank, wide)?;
        let most = if flags & 1 == 0 { shape.clone() } else { input.uints(rank, wide)? };
        let nothing = u64::MAX >> (64 - 8 * file.sizes.length);
        let most = most.into_iter().map(|len| Some(len).filter(|len| *len != nothing)).collect();
        Ok(Dataspace { shape, most })
    }
}

/// Where the elements of a dataset are.
enum Layout {
    /// One after the other: at an address, of so many bytes where it is said.
    Bytes {
        address: u64,
        len: Option<u64>,
    },
    Unwritten,
    /// `partial_unfiltered`: chunks at the ends of axes are stored as they are.
    Chunked {
        grid: Grid,
        index: Index,
        partial_unfiltered: bool,
    },
}

impl Layout {
    /// The layout of a message at an address.
    fn parse(
        file: &H5File,
        address: u64,
        message: &[u8],
        space: &Dataspace,
        item: u64,
    ) -> Result<Layout, Hdf5Error> {
        let mut input = file.cursor(message);
        let compact = |input: &Cursor<'_>, len: u64| {
            let at = address + (message.len() - input.rest.len()) as u64;
            let len =
                if len <= input.rest.len() as u64 { Ok(len) } else { Err(Hdf5Error::CutShort) };
            Ok(Layout::Bytes { address: at, len: Some(len?) })
        };
        let found = |address: Option<u64>, len: Option<u64>| match address {
            Some(address) => Layout::Bytes { address, len },
            None => Layout::Unwritten,
        };
        let version = input.u8()?;
        match version {
            1 | 2 => {
                let rank = input.u8()?;
                let class = input.u8()?;
                input.skip(5)?;
                let address = if class == 0 { None } else { input.address()? };
                let lengths = input.uints(rank, 4)?;
                match class {
                    0 => {
                        let len = input.u32()?.into();
                        compact(&input, len)
                    }
                    1 => Ok(found(address, None)),
                    2 => chunked(lengths, space, item, address.map(Index::OldTree), false),
                    _ => Err(damaged("its layout is of no known class")),
                }
            }
            3..=5 => match input.u8()? {
                0 => {
                    let len = input.u16()?.into();
                    compact(&input, len)
                }
                1 => Ok(found(input.address()?, Some(input.length()?))),
                2 if version == 3 => {
                    let rank = input.u8()?;
                    let address = input.address()?;
                    let lengths = input.uints(rank, 4)?;
                    chunked(lengths, space, item, address.map(Index::OldTree), false)
                }
                2 => {
                    let flags = input.u8()?;
                    let rank = input.u8()?;
                    let wide = input.u8()?.into();
                    let lengths = input.uints(rank, wide)?;
                    let index: fn(u64) -> Index = match input.u8()? {
                        1 => {
                            let filtered = flags & 2 != 0;
                            let filtered =
                                if filtered { Some((input.length()?, input.u32()?)) } else { None };
                            let single =
                                input.address()?.map(|address| Index::Single(address, filtered));
                            return chunked(lengths, space, item, single, flags & 1 != 0);
                        }
                        2 => Index::Implicit,
                        3 => input.skip(1).map(|()| Index::Fixed)?,
                        4 => input.skip(5).map(|()| Index::Extensible)?,
                        5 => {
                            input.skip(6).map(|()| |at: u64| Index::NewTree(at, OnceLock::new()))?
                        }
                        _ => return Err(damaged("the index of its chunks is of no known kind")),
                    };
                    let index = input.address()?.map(index);
                    chunked(lengths, space, item, index, flags & 1 != 0)
                }
                3 => Err(Hdf5Error::Virtual),
                _ => Err(damaged("its layout is of no known class")),
            },
            other => Err(Hdf5Error::Damaged(format!(
                "its layout is of version {other}, which is not known"
            ))),
        }
    }
}

/// Chunks of those lengths, behind which the bytes of an element stand.
fn chunked(
    mut lengths: Vec<u64>,
    space: &Dataspace,
    item: u64,
    index: Option<Index>,
    partial_unfiltered: bool,
) -> Result<Layout, Hdf5Error> {
    let last = lengths.pop();
    if lengths.len() != space.shape.len() {
        return Err(damaged("its chunks have another number of axes"));
    }
    if last != Some(item) {
        return Err(damaged("its chunks have elements of another number of bytes"));
    }
    if lengths.contains(&0) {
        return Err(damaged("its chunks have no elements"));
    }
    let bytes = lengths.iter().try_fold(item, |bytes, len| bytes.checked_mul(*len));
    let bytes = bytes.ok_or(Hdf5Error::TooLarge)?;
    let counts = space.most.iter().zip(&lengths);
    let counts = counts.map(|(most, len)| most.map(|most| most.div_ceil(*len))).collect();
    let grid = Grid { chunk: lengths, counts, bytes };
    Ok(Layout::Chunked { grid, index: index.unwrap_or(Index::Nothing), partial_unfiltered })
}

/// The fill value that was set: one element, in its bytes.
fn fill(file: &H5File, header: &Header) -> Result<Option<Vec<u8>>, Hdf5Error> {
    if let Some(message) = header.find(file, kind::FILL)? {
        let mut input = file.cursor(&message);
        let has_value = match input.u8()? {
            1 => {
                input.skip(3)?;
                true
            }
            2 => {
                input.skip(2)?;
                input.u8()? != 0
            }
            3 => input.u8()? & 0x20 != 0,
            _ => return Err(damaged("its fill value is of no known version")),
        };
        if !has_value || input.rest.is_empty() {
            return Ok(None);
        }
        let len = input.u32()?;
        let value = if len == u32::MAX { &[] } else { input.take(len as usize)? };
        return Ok(Some(value.to_vec()).filter(|value| !value.is_empty()));
    }
    let Some(message) = header.find(file, kind::OLD_FILL)? else { return Ok(None) };
    let mut input = file.cursor(&message);
    let len = input.u32()?;
    Ok(Some(input.take(len as usize)?.to_vec()).filter(|value| !value.is_empty()))
}
