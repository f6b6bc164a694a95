//! The messages of a dataset, and its tensor.

use std::sync::{Arc, OnceLock};

use super::chunks::H5Chunks;
use super::datatype::{Datatype, H5Type};
use super::elsewhere::{in_pieces, raw_data};
use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::filters::Filter;
use super::header::{Header, kind};
use super::index::{Grid, Index};
use super::mappings::Mappings;
use super::repair::Repair;
use super::virtuals::VirtualChunks;
use super::{attributes, filters};
use crate::dtype::{DType, Endian, Scalar};
use crate::shape::{Order, byte_count};
use crate::tensor::{Storage, StorageKind, TensorInfo, brief};

const MAX_RANK: u8 = 32;

/// The most bytes of a stored shape.
const MOST_SHAPE: u64 = 8 * MAX_RANK as u64;

/// About how many bytes a piece has, where elements are not in chunks.
const PIECE: u64 = 1 << 20;

/// The tensor of the dataset at an address, from its header; `None` for a dimension of netCDF without a variable.
/// `longer` are the lengths of axes that are longer than the stored ones.
pub(super) fn tensor(
    file: &Arc<H5File>,
    address: u64,
    header: &Header,
    name: &str,
    longer: &[Option<u64>],
) -> Result<Option<TensorInfo>, Hdf5Error> {
    let own = if header.has_attributes {
        attributes::ReadingAttributes::read(file, address, name)
    } else {
        attributes::ReadingAttributes::default()
    };
    if own.is_dimension {
        return Ok(None);
    }
    let Elements { mut tensor, stored, fill, mut notes } =
        Elements::read(file, (address, header), &own, longer, 0)?;
    attributes::apply(&mut tensor, &own, &stored, &mut notes)?;
    if header.has_attributes || fill.is_some() || !notes.is_empty() {
        tensor.annotated = Some(attributes::annotated(file, address, &tensor, fill, notes));
    }
    Ok(Some(tensor))
}

/// The tensor of the dataset at an address, as a source of a virtual dataset at nesting level `depth`: in chunks, and
/// without its attributes.
pub(super) fn source(
    file: &Arc<H5File>,
    address: u64,
    depth: usize,
) -> Result<TensorInfo, Hdf5Error> {
    let header = Header::read(file, address)?;
    let read = Elements::read(
        file,
        (address, &header),
        &attributes::ReadingAttributes::default(),
        &[],
        depth,
    );
    read.map(|elements| elements.tensor)
}

/// The elements of a dataset.
struct Elements {
    tensor: TensorInfo,
    /// The bytes of a short dataset: for an empty MATLAB array they hold its shape.
    stored: Vec<u8>,
    fill: Option<Vec<u8>>,
    notes: Vec<String>,
}

impl Elements {
    fn read(
        file: &Arc<H5File>,
        (address, header): (u64, &Header),
        own: &attributes::ReadingAttributes,
        longer: &[Option<u64>],
        depth: usize,
    ) -> Result<Elements, Hdf5Error> {
        let space = Dataspace::parse(file, &header.needed(file, kind::DATASPACE)?)?;
        let datatype = Datatype::parse(file, &header.needed(file, kind::DATATYPE)?)?;
        let H5Type { mut dtype, axes, left_out, widening } = H5Type::of(&datatype)?;
        let stored_dtype = dtype.clone();
        let mut repairs = Repair::of(&datatype);
        if own.is_bool && matches!(dtype, DType::Scalar(Scalar::I8 | Scalar::U8, _)) {
            dtype = DType::Scalar(Scalar::Bool, Endian::Little);
            repairs.push(Repair::booleans(datatype.size));
        }
        if header.has_attributes && space.most.contains(&None) {
            let axes = space.shape.iter().zip(&space.most);
            let growing = axes.map(|(len, most)| Some(*len).filter(|_| most.is_none()));
            file.add_growing(address, growing.collect());
        }
        let stored_shape = space.shape.clone();
        let longer = longer.iter().copied().chain(std::iter::repeat(None));
        let mut shape: Vec<u64> =
            space.shape.iter().zip(longer).map(|(len, longer)| longer.unwrap_or(*len)).collect();
        shape.extend(&axes);
        let fill = fill(file, header)?;
        let item = widening.map_or(dtype.item_bits() / 8, |widening| widening.stored as u64);
        let bytes = byte_count(&shape, item * 8).ok_or(Hdf5Error::TooLarge)?;
        byte_count(&shape, dtype.item_bits()).ok_or(Hdf5Error::TooLarge)?;
        let item_len = u64::from(datatype.size);
        if item_len != axes.iter().product::<u64>().saturating_mul(item) && !axes.contains(&0) {
            return Err(damaged("its elements have another number of bytes than their datatype"));
        }
        let mut element = fill.filter(|fill| fill.len() as u64 == item_len).unwrap_or_default();
        Repair::all(&repairs, &mut element);
        let mut tensor = TensorInfo::new(dtype, shape.clone(), Order::C, 0);
        let has_stored_shape = own.matlab_empty && bytes <= MOST_SHAPE;
        let mut stored = Vec::new();
        let is_external = header.has(kind::EXTERNAL);
        let needs_chunks =
            file.others.are_of_another() || !repairs.is_empty() || widening.is_some();
        let mut layout = Layout::of(file, header, &space, item_len)?;
        if let Some(message) = header.find(file, kind::EXTERNAL)? {
            let source = raw_data(file, &mut file.cursor(&message), bytes)?;
            layout = Layout::pieces(&space, item_len, Index::External(source));
        }
        if let Layout::Bytes { address, len } = layout
            && needs_chunks
        {
            file.position(address, len.unwrap_or(bytes).max(bytes))?;
            layout = Layout::pieces(&space, item_len, Index::Contiguous(address));
        }
        match layout {
            Layout::Bytes { address, len } => {
                let position = file.position(address, len.unwrap_or(bytes).max(bytes))?;
                if len.is_some_and(|len| len < bytes) {
                    return Err(Hdf5Error::CutShort);
                }
                tensor.storage.data = position..position + bytes;
                if has_stored_shape {
                    stored = file.bytes(address, bytes)?;
                }
            }
            Layout::Chunked { grid, index, filters, partial_unfiltered } => {
                let file = Arc::clone(file);
                let fill = element.as_slice().into();
                let padding =
                    if element.is_empty() { netcdf_fill(&tensor.dtype) } else { element.clone() };
                let inner = axes.iter().map(|len| (*len).max(1));
                let chunk = grid.chunk.iter().copied().chain(inner).collect();
                let chunks = H5Chunks {
                    file,
                    shape,
                    stored_shape,
                    padding,
                    chunk,
                    grid,
                    item,
                    filters,
                    index,
                    partial_unfiltered,
                    fill,
                    repairs,
                    widening,
                };
                chunks.check()?;
                if has_stored_shape {
                    stored = chunks.short(&chunks.file)?;
                }
                tensor.storage = if is_external {
                    in_pieces(chunks)
                } else {
                    Storage { shard: 0, data: 0..0, kind: StorageKind::Chunks(Arc::new(chunks)) }
                };
            }
            Layout::Virtual(heap) => {
                let mappings = Mappings::read(file, heap, &space.shape, depth)?;
                let mut shape = mappings.shape.clone();
                shape.extend(&axes);
                byte_count(&shape, tensor.dtype.item_bits()).ok_or(Hdf5Error::TooLarge)?;
                tensor = TensorInfo::new(tensor.dtype, shape.clone(), Order::C, 0);
                tensor.storage = in_pieces(VirtualChunks {
                    file: Arc::clone(file),
                    heap,
                    stored_shape: space.shape.clone(),
                    depth,
                    shape,
                    dtype: stored_dtype,
                    fill: widening.map_or(element.clone(), |widening| widening.run(&element)),
                    cuts: mappings.cuts(),
                    shape_of_boxes: OnceLock::new(),
                });
            }
        }
        let one = repeated_item(&element, item);
        let one = one.map(|one| widening.map_or(one.clone(), |widening| widening.run(&one)));
        let left_out = left_out.into_iter().map(|(name, error)| left_out_note(&name, &error));
        let notes = left_out.collect();
        Ok(Elements { tensor, stored, fill: one, notes })
    }
}

/// netCDF's default fill value, for elements that were never written; empty for zeros.
fn netcdf_fill(dtype: &DType) -> Vec<u8> {
    let DType::Scalar(scalar, endian) = *dtype else { return Vec::new() };
    let bits: u64 = match scalar {
        Scalar::I8 => -127i8 as u64,
        Scalar::I16 => -32767i16 as u64,
        Scalar::I32 => -2147483647i32 as u64,
        Scalar::I64 => -9223372036854775806i64 as u64,
        Scalar::U8 | Scalar::U16 | Scalar::U32 => u64::MAX,
        Scalar::U64 => u64::MAX - 1,
        Scalar::F32 => 9.969_21e36f32.to_bits().into(),
        Scalar::F64 => 9.969_209_968_386_869e36f64.to_bits(),
        _ => return Vec::new(),
    };
    let mut bytes = bits.to_le_bytes()[..(scalar.bits() / 8) as usize].to_vec();
    if endian == Endian::Big {
        bytes.reverse();
    }
    bytes
}

/// The value that an element repeats: an element that is an array is replaced by its value, if all its values are
/// equal.
fn repeated_item(element: &[u8], item: u64) -> Option<Vec<u8>> {
    let mut items = element.chunks_exact((item as usize).max(1));
    let first = items.next()?;
    items.all(|item| item == first).then(|| first.to_vec())
}

fn left_out_note(name: &str, error: &Hdf5Error) -> String {
    let reason = match error {
        Hdf5Error::DType(what) => what.clone(),
        other => other.to_string(),
    };
    brief(&format!("without its field {name:?}, whose elements are {reason}"))
}

/// The shape of a piece with about [`PIECE`] bytes, contiguous in C order.
pub(super) fn piece(shape: &[u64], item: u64) -> Vec<u64> {
    let mut left = (PIECE / item.max(1)).max(1);
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

/// The shape of a dataset or an attribute, and the maximum length of each axis.
pub(super) struct Dataspace {
    pub(super) shape: Vec<u64>,
    /// The maximum length of each axis; `None` for an axis that may grow without end.
    most: Vec<Option<u64>>,
}

impl Dataspace {
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

/// The storage of a dataset's elements.
enum Layout {
    /// Contiguous elements: at an address, with a length in bytes where it is given.
    Bytes { address: u64, len: Option<u64> },
    /// Elements of other datasets; their list is at this address and number of the global heap.
    Virtual((u64, u32)),
    /// Chunks. `partial_unfiltered`: chunks at the ends of axes are stored without filters.
    Chunked { grid: Grid, index: Index, filters: Vec<Filter>, partial_unfiltered: bool },
}

impl Layout {
    /// A layout in pieces of about [`PIECE`] bytes, for elements that are not in chunks.
    fn pieces(space: &Dataspace, item: u64, index: Index) -> Layout {
        let counts = vec![Some(0); space.shape.len()];
        let grid = Grid { chunk: piece(&space.shape, item), counts, bytes: 0 };
        Layout::Chunked { grid, index, filters: Vec::new(), partial_unfiltered: false }
    }

    /// The layout of a dataset from its header; elements have `item` bytes.
    fn of(
        file: &H5File,
        header: &Header,
        space: &Dataspace,
        item: u64,
    ) -> Result<Layout, Hdf5Error> {
        let message = header.all(kind::LAYOUT).next();
        let message =
            message.ok_or_else(|| damaged("its header does not say where its elements are"))?;
        let input = file.cursor(&message.data);
        let end = message.address + message.data.len() as u64;
        LayoutMessage { file, header, space, item, input, end }.read()
    }
}

/// The layout message of a header, being read.
struct LayoutMessage<'a> {
    file: &'a H5File,
    header: &'a Header,
    space: &'a Dataspace,
    /// The bytes of an element.
    item: u64,
    input: Cursor<'a>,
    /// The address after the message.
    end: u64,
}

impl LayoutMessage<'_> {
    fn read(mut self) -> Result<Layout, Hdf5Error> {
        match self.input.u8()? {
            1 | 2 => self.version_1(),
            version @ 3..=5 => self.version_3(version),
            other => Err(Hdf5Error::Damaged(format!(
                "its layout is of version {other}, which is not known"
            ))),
        }
    }

    /// Read the rest of versions 1 and 2.
    fn version_1(mut self) -> Result<Layout, Hdf5Error> {
        let rank = self.input.u8()?;
        let class = self.input.u8()?;
        self.input.skip(5)?;
        let address = if class == 0 { None } else { self.input.address()? };
        let lengths = self.input.uints(rank, 4)?;
        match class {
            0 => {
                let len = self.input.u32()?;
                self.compact(len.into())
            }
            1 => Ok(self.contiguous(address, None)),
            2 => self.chunked(lengths, address.map(Index::OldTree), false),
            _ => Err(damaged("its layout is of no known class")),
        }
    }

    /// Read the rest of versions 3 to 5.
    fn version_3(mut self, version: u8) -> Result<Layout, Hdf5Error> {
        match self.input.u8()? {
            0 => {
                let len = self.input.u16()?;
                self.compact(len.into())
            }
            1 => {
                let address = self.input.address()?;
                let len = self.input.length()?;
                Ok(self.contiguous(address, Some(len)))
            }
            2 if version == 3 => {
                let rank = self.input.u8()?;
                let address = self.input.address()?;
                let lengths = self.input.uints(rank, 4)?;
                self.chunked(lengths, address.map(Index::OldTree), false)
            }
            2 => self.chunked_since_4(),
            3 => {
                let heap = self.input.address()?;
                let heap = heap.ok_or_else(|| damaged("the list of its sources has no address"))?;
                Ok(Layout::Virtual((heap, self.input.u32()?)))
            }
            _ => Err(damaged("its layout is of no known class")),
        }
    }

    /// Read the chunked layout of versions 4 and 5.
    fn chunked_since_4(mut self) -> Result<Layout, Hdf5Error> {
        let flags = self.input.u8()?;
        let partial_unfiltered = flags & 1 != 0;
        let rank = self.input.u8()?;
        let wide = self.input.u8()?.into();
        let lengths = self.input.uints(rank, wide)?;
        let index: fn(u64) -> Index = match self.input.u8()? {
            1 => {
                let filtered = if flags & 2 != 0 {
                    Some((self.input.length()?, self.input.u32()?))
                } else {
                    None
                };
                let address = self.input.address()?;
                let single = address.map(|address| Index::Single(address, filtered));
                return self.chunked(lengths, single, partial_unfiltered);
            }
            2 => Index::Implicit,
            3 => self.input.skip(1).map(|()| Index::Fixed)?,
            4 => self.input.skip(5).map(|()| Index::Extensible)?,
            5 => self.input.skip(6).map(|()| |at: u64| Index::TreeV2(at, OnceLock::new()))?,
            _ => return Err(damaged("the index of its chunks is of no known kind")),
        };
        let index = self.input.address()?.map(index);
        self.chunked(lengths, index, partial_unfiltered)
    }

    /// Elements inside the message.
    fn compact(&self, len: u64) -> Result<Layout, Hdf5Error> {
        let left = self.input.rest.len() as u64;
        if len > left {
            return Err(Hdf5Error::CutShort);
        }
        Ok(Layout::Bytes { address: self.end - left, len: Some(len) })
    }

    /// Elements at an address; without one, chunks that were never written.
    fn contiguous(&self, address: Option<u64>, len: Option<u64>) -> Layout {
        if let Some(address) = address {
            return Layout::Bytes { address, len };
        }
        Layout::pieces(self.space, self.item, Index::Nothing)
    }

    /// Chunks of these lengths along each axis. The last length is the number of bytes of an element.
    fn chunked(
        &self,
        mut lengths: Vec<u64>,
        index: Option<Index>,
        partial_unfiltered: bool,
    ) -> Result<Layout, Hdf5Error> {
        let last = lengths.pop();
        if lengths.len() != self.space.shape.len() {
            return Err(damaged("its chunks have another number of axes"));
        }
        if last != Some(self.item) {
            return Err(damaged("its chunks have elements of another number of bytes"));
        }
        if lengths.contains(&0) {
            return Err(damaged("its chunks have no elements"));
        }
        let bytes = lengths.iter().try_fold(self.item, |bytes, len| bytes.checked_mul(*len));
        let bytes = bytes.ok_or(Hdf5Error::TooLarge)?;
        let counts = self.space.most.iter().zip(&lengths);
        let counts = counts.map(|(most, len)| most.map(|most| most.div_ceil(*len))).collect();
        let grid = Grid { chunk: lengths, counts, bytes };
        let filters = match self.header.find(self.file, kind::FILTERS)? {
            Some(message) => Filter::parse(self.file, &message)?,
            None => Vec::new(),
        };
        filters::check(&filters)?;
        let index = index.unwrap_or(Index::Nothing);
        Ok(Layout::Chunked { grid, index, filters, partial_unfiltered })
    }
}

/// The bytes of the dataset's fill value; `None` if no value was set.
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
