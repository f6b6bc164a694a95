//! Attributes of datasets and groups. Some change how a dataset is read, such as MATLAB's; all are given as JSON.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::dataset::Dataspace;
use super::datatype::{Class, Datatype, H5Type};
use super::file::{Cursor, H5File, Hdf5Error, damaged};
use super::header::{each_message, kind, shared};
use super::repair::Repair;
use super::tree::{self, FractalHeap, TreeV2};
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::shape::Order;
use crate::tensor::{Annotations, FILL_VALUE, LazyAnnotations, TensorInfo, number};

/// Internal attributes of the HDF5 and netCDF libraries: names of axes, back references, and identifiers.
const OF_LIBRARIES: [&[u8]; 5] =
    [b"DIMENSION_LIST", b"DIMENSION_LABELS", b"REFERENCE_LIST", b"_NCProperties", b"_nc3_strict"];

/// The attributes that make a dataset a dimension scale; they are internal too.
const OF_SCALES: [&[u8]; 2] = [b"CLASS", b"NAME"];

/// The prefix of other attributes of netCDF.
const OF_NETCDF: &[u8] = b"_Netcdf4";

/// The attribute with the identifiers of a netCDF variable's dimensions, one for each axis.
const DIMENSION_IDS: &[u8] = b"_Netcdf4Coordinates";

/// The prefix of a netCDF variable's name where a dimension has the name too.
pub(super) const NON_COORDINATE: &str = "_nc4_non_coord_";

/// The beginning of NAME for a dimension of netCDF without a variable.
const DIMENSION_ONLY: &str = "This is a netCDF dimension but not a netCDF variable";

/// The most values and heap objects that are read for the attributes of one object.
const MOST_STEPS: usize = 4_000_000;

/// The attributes that change how a dataset is read.
#[derive(Default)]
pub(super) struct ReadingAttributes {
    pub(super) matlab_class: Option<String>,
    pub(super) matlab_empty: bool,
    /// Whether the integers are xarray's booleans.
    pub(super) is_bool: bool,
    /// Whether the dataset is a dimension of netCDF without a variable.
    pub(super) is_dimension: bool,
}

impl ReadingAttributes {
    /// Read the attributes of the dataset at an address. A dimension scale is registered in the file with its name.
    /// Attributes that cannot be read have no effect.
    pub(super) fn read(file: &H5File, address: u64, path: &str) -> ReadingAttributes {
        let mut own = ReadingAttributes::default();
        let mut scale = None;
        let mut id = None;
        let _ = each(file, address, &mut |name, bytes| {
            let value = || {
                let attribute = Attribute::parse(file, bytes).ok()?;
                Reader { file, left: MOST_STEPS, is_reworded: false }.value(&attribute)
            };
            let text = || value().and_then(|value| value.as_str().map(str::to_owned));
            match name {
                b"MATLAB_class" => own.matlab_class = text(),
                b"MATLAB_empty" => {
                    let attribute = Attribute::parse(file, bytes).ok();
                    own.matlab_empty =
                        attribute.is_some_and(|it| it.data.iter().any(|byte| *byte != 0));
                }
                b"CLASS" if text().as_deref() == Some("DIMENSION_SCALE") => {
                    let name = path.rsplit('/').next().unwrap_or(path);
                    scale = Some(name.trim_start_matches(NON_COORDINATE));
                }
                b"NAME" => {
                    own.is_dimension = text().is_some_and(|name| name.starts_with(DIMENSION_ONLY));
                }
                b"_Netcdf4Dimid" => id = value().and_then(|id| id.as_u64()),
                b"dtype" => own.is_bool = text().as_deref() == Some("bool"),
                _ => {}
            }
            Ok(())
        });
        own.is_dimension &= scale.is_some();
        if let Some(scale) = scale {
            file.add_scale(address, id, scale);
        }
        own
    }
}

/// Whether a message says that an object has attributes outside its header.
pub(super) fn is_dense(file: &H5File, message: &[u8]) -> bool {
    matches!(dense(file, message), Ok((Some(_), Some(_))))
}

/// The addresses of the heap and the tree of attributes.
fn dense(file: &H5File, message: &[u8]) -> Result<(Option<u64>, Option<u64>), Hdf5Error> {
    let mut input = file.cursor(message);
    let flags = input.skip(1).and_then(|()| input.u8())?;
    input.skip(if flags & 1 == 0 { 0 } else { 2 })?;
    Ok((input.address()?, input.address()?))
}

/// A visitor of attributes, by name and message.
type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), Hdf5Error>;

/// Visit the attributes of an object, by name and message.
fn each(file: &H5File, address: u64, visit: Visit<'_>) -> Result<(), Hdf5Error> {
    let mut elsewhere = None;
    each_message(file, address, &mut |message, bytes| match message.kind {
        kind::ATTRIBUTE if !message.is_shared => visit(front(file, bytes)?.name, bytes),
        kind::ATTRIBUTE_INFO => {
            elsewhere = Some(dense(file, bytes)?);
            Ok(())
        }
        _ => Ok(()),
    })?;
    let Some((Some(heap), Some(tree))) = elsewhere else { return Ok(()) };
    let heap = FractalHeap::read(file, heap)?;
    let tree = TreeV2::read(file, tree)?;
    if tree.kind != 8 {
        return Err(damaged("the tree of its attributes is of another kind"));
    }
    tree.each(file, &mut |record| {
        let id = record.get(..8).unwrap_or_default();
        let flags = record.get(8);
        if flags.is_some_and(|flags| flags & 2 != 0) {
            return Ok(());
        }
        let bytes = heap.object(file, id)?;
        visit(front(file, &bytes)?.name, &bytes)
    })
}

/// The beginning of an attribute.
struct AttributeHead<'a> {
    name: &'a [u8],
    /// The bytes after the name.
    rest: Cursor<'a>,
    /// Whether the datatype and the dataspace belong to another object.
    is_shared: [bool; 2],
    /// The bytes of the datatype and of the dataspace.
    lengths: [usize; 2],
}

fn front<'a>(file: &H5File, bytes: &'a [u8]) -> Result<AttributeHead<'a>, Hdf5Error> {
    let mut rest = Cursor { rest: bytes, sizes: file.sizes };
    let version = rest.u8()?;
    let flags = rest.u8()?;
    let [name, datatype, dataspace] = [rest.u16()?, rest.u16()?, rest.u16()?].map(usize::from);
    match version {
        1 | 2 => {}
        3 => rest.skip(1)?,
        _ => return Err(damaged("an attribute is of no known version")),
    }
    let padded = |len: usize| if version == 1 { len.next_multiple_of(8) } else { len };
    let name = rest.take(padded(name))?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    // before version 2 nothing is shared
    let is_shared = [1, 2].map(|flag| version > 1 && flags & flag != 0);
    let lengths = [padded(datatype), padded(dataspace)];
    Ok(AttributeHead { name: &name[..end], rest, is_shared, lengths })
}

struct Attribute {
    datatype: Datatype,
    /// The shape; `None` for an attribute without elements.
    shape: Option<Vec<u64>>,
    data: Vec<u8>,
}

impl Attribute {
    fn parse(file: &H5File, bytes: &[u8]) -> Result<Attribute, Hdf5Error> {
        let AttributeHead { mut rest, is_shared, lengths, .. } = front(file, bytes)?;
        let mut part = |number: usize, kind: u16| {
            let bytes = rest.take(lengths[number])?;
            let is_shared = is_shared[number];
            if is_shared { shared(file, kind, &mut file.cursor(bytes)) } else { Ok(bytes.to_vec()) }
        };
        let datatype = part(0, kind::DATATYPE)?;
        let dataspace = part(1, kind::DATASPACE)?;
        let datatype = Datatype::parse(file, &datatype)?;
        let shape = match Dataspace::parse(file, &dataspace) {
            Err(Hdf5Error::Null) => None,
            space => Some(space?.shape),
        };
        Ok(Attribute { datatype, shape, data: rest.rest.to_vec() })
    }
}

/// A text without its padding.
fn unpadded(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// The annotations of a dataset, read on demand.
pub(super) fn annotated(
    file: &Arc<H5File>,
    address: u64,
    tensor: &TensorInfo,
    fill: Option<Vec<u8>>,
    notes: Vec<String>,
) -> LazyAnnotations {
    let file = Arc::clone(file);
    let rank = tensor.shape.len();
    let is_bool = matches!(tensor.dtype, DType::Scalar(Scalar::Bool, _));
    LazyAnnotations::by(move || {
        let mut said = all(&file, address, rank);
        if is_bool {
            said.take_bool();
        }
        said.fill_value = fill.clone();
        said.notes = notes.clone();
        said
    })
}

/// The annotations of a group, read on demand.
pub(super) fn annotated_group(file: &Arc<H5File>, address: u64) -> LazyAnnotations {
    let file = Arc::clone(file);
    LazyAnnotations::by(move || all(&file, address, 0))
}

/// The attributes of an object, and the names of its axes. Damaged attributes are left out.
fn all(file: &H5File, address: u64, rank: usize) -> Annotations {
    let mut said = Annotations { is_hdf5: true, ..Annotations::default() };
    let mut reader = Reader { file, left: MOST_STEPS, is_reworded: false };
    let mut scales = Vec::new();
    let mut labels = Vec::new();
    let mut ids = Vec::new();
    let own = file.scale(address);
    let _ = each(file, address, &mut |name, bytes| {
        let attribute = Attribute::parse(file, bytes);
        let is_of_scale = own.is_some() && OF_SCALES.contains(&name);
        if OF_LIBRARIES.contains(&name) || name.starts_with(OF_NETCDF) || is_of_scale {
            match attribute {
                Ok(list) if name == b"DIMENSION_LIST" => scales = reader.scales(&list),
                Ok(list) if name == b"DIMENSION_LABELS" => labels = reader.labels(&list),
                Ok(list) if name == DIMENSION_IDS => ids = reader.ids(&list),
                _ => {}
            }
            return Ok(());
        }
        let name = String::from_utf8_lossy(name).into_owned();
        reader.is_reworded = false;
        let number = attribute.as_ref().ok().and_then(|it| H5Type::of(&it.datatype).ok());
        match attribute.ok().and_then(|attribute| reader.value(&attribute)) {
            Some(value) => {
                // Zarr has its own word for the fill value
                if reader.is_reworded && name != FILL_VALUE {
                    said.reworded.push(name.clone());
                }
                if let Some(H5Type { dtype: DType::Scalar(scalar, _), .. }) = number {
                    said.types.insert(name.clone(), scalar);
                }
                said.attributes.insert(name, value);
            }
            None => said.omitted.push(name),
        }
        Ok(())
    });
    let own = own.filter(|_| rank == 1);
    let name = |axis: usize| {
        let label = labels.get(axis).cloned().flatten().filter(|label| !label.is_empty());
        let scale = || scales.get(axis).copied().flatten().and_then(|scale| file.scale(scale));
        let dimension = || file.scale(file.scale_of_id(*ids.get(axis)?)?);
        label.or_else(scale).or_else(|| own.clone()).or_else(dimension)
    };
    let names: Vec<Option<String>> = (0..rank).map(name).collect();
    if names.iter().any(Option::is_some) {
        said.dimension_names = names;
    }
    said
}

/// The addresses of the dimension scales of a dataset's axes, as in netCDF.
pub(super) fn scales_of(file: &H5File, address: u64) -> Vec<Option<u64>> {
    let mut reader = Reader { file, left: MOST_STEPS, is_reworded: false };
    let mut scales = vec![file.scale(address).map(|_| address)];
    let _ = each(file, address, &mut |name, bytes| {
        match name {
            b"DIMENSION_LIST" => scales = reader.scales(&Attribute::parse(file, bytes)?),
            DIMENSION_IDS => {
                let ids = reader.ids(&Attribute::parse(file, bytes)?);
                scales = ids.into_iter().map(|id| file.scale_of_id(id)).collect();
                // the identifiers name all axes
                return Err(Hdf5Error::Null);
            }
            _ => {}
        }
        Ok(())
    });
    scales
}

/// A reader of attribute values.
struct Reader<'a> {
    file: &'a H5File,
    left: usize,
    /// Whether a number was replaced by a word, as for NaN.
    is_reworded: bool,
}

impl Reader<'_> {
    /// The value of an attribute; `None` where JSON cannot express it.
    fn value(&mut self, attribute: &Attribute) -> Option<Value> {
        let Attribute { datatype, shape, data } = attribute;
        let Some(shape) = shape else {
            let is_text =
                matches!(datatype.class, Class::Text(_) | Class::List { is_text: true, .. });
            return is_text.then(|| "".into());
        };
        self.nested(datatype, shape, &mut data.as_slice())
    }

    /// The elements of an attribute as nested lists, by its shape.
    fn nested(&mut self, datatype: &Datatype, shape: &[u64], data: &mut &[u8]) -> Option<Value> {
        let Some((len, inner)) = shape.split_first() else {
            let (element, rest) = data.split_at_checked(datatype.size as usize)?;
            *data = rest;
            return self.element(datatype, element);
        };
        let mut values = Vec::new();
        for _ in 0..*len {
            self.left = self.left.checked_sub(1)?;
            values.push(self.nested(datatype, inner, data)?);
        }
        Some(Value::Array(values))
    }

    fn element(&mut self, datatype: &Datatype, bytes: &[u8]) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        match &datatype.class {
            Class::Integer { .. } | Class::Float(_) | Class::Enumeration { .. } => {
                let H5Type { dtype, widening, .. } = H5Type::of(datatype).ok()?;
                let mut bytes = widening.map_or(bytes.to_vec(), |widening| widening.run(bytes));
                Repair::all(&Repair::of(datatype), &mut bytes);
                self.number(&dtype, &bytes)
            }
            Class::Text(end) => {
                let mut bytes = bytes.to_vec();
                end.clear(&mut bytes);
                unpadded(&bytes).map(Value::String)
            }
            Class::List { is_text: true, .. } => {
                let (_, text) = self.list(bytes)?;
                unpadded(&text).map(Value::String)
            }
            Class::List { base, .. } => {
                let (count, data) = self.list(bytes)?;
                self.nested(base, &[count], &mut data.as_slice())
            }
            Class::Array { base, shape } => self.nested(base, shape, &mut &*bytes),
            Class::Complex(base) => self.nested(base, &[2], &mut &*bytes),
            Class::Compound(members) => {
                let mut object = Map::new();
                for member in members {
                    let start = usize::try_from(member.offset).ok()?;
                    let end = start.checked_add(member.datatype.size as usize)?;
                    let value = self.element(&member.datatype, bytes.get(start..end)?)?;
                    object.insert(String::from_utf8(member.name.clone()).ok()?, value);
                }
                Some(Value::Object(object))
            }
            _ => None,
        }
    }

    fn number(&mut self, dtype: &DType, bytes: &[u8]) -> Option<Value> {
        let DType::Scalar(scalar, endian) = dtype else { return None };
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        if *endian == Endian::Big {
            whole[..bytes.len()].reverse();
        }
        let bits = u64::from_le_bytes(whole);
        let float = match scalar {
            Scalar::Bool => return Some((bits != 0).into()),
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => return Some(bits.into()),
            Scalar::I8 => return Some((bits as i8).into()),
            Scalar::I16 => return Some((bits as i16).into()),
            Scalar::I32 => return Some((bits as i32).into()),
            Scalar::I64 => return Some((bits as i64).into()),
            Scalar::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Scalar::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
            Scalar::F32 => f32::from_bits(bits as u32).into(),
            Scalar::F64 => f64::from_bits(bits),
            _ => return None,
        };
        self.is_reworded |= !float.is_finite();
        Some(number(float))
    }

    /// The length and the bytes of a variable-length list.
    fn list(&mut self, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
        let mut input = self.file.cursor(bytes);
        let count = input.u32().ok()?;
        let address = input.address().ok()?;
        let index = input.u32().ok()?;
        if count == 0 {
            return Some((0, Vec::new()));
        }
        tree::global(self.file, address?, index, &mut self.left)
            .ok()
            .map(|data| (count.into(), data))
    }

    /// The dimension scale of each axis, by the address of its header.
    fn scales(&mut self, list: &Attribute) -> Vec<Option<u64>> {
        let each = list.data.chunks_exact((list.datatype.size as usize).max(1));
        let is_known = |base: &Datatype| base.class == Class::Reference { is_object: true };
        match &list.datatype.class {
            Class::List { is_text: false, base } if is_known(base) => each
                .map(|bytes| {
                    let (_, list) = self.list(bytes)?;
                    self.file.cursor(&list).address().ok().flatten()
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The identifier of the dimension of each axis.
    fn ids(&mut self, list: &Attribute) -> Vec<u64> {
        let ids = self.value(list).unwrap_or_default();
        ids.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    fn labels(&mut self, list: &Attribute) -> Vec<Option<String>> {
        let each = list.data.chunks_exact((list.datatype.size as usize).max(1));
        each.map(|bytes| match self.element(&list.datatype, bytes)? {
            Value::String(label) => Some(label),
            _ => None,
        })
        .collect()
    }
}

/// The element type of MATLAB's arrays of a class.
fn scalar_of_matlab(class: &str) -> Option<Scalar> {
    match class {
        "logical" => Some(Scalar::Bool),
        "char" => Some(Scalar::U16),
        "double" => Some(Scalar::F64),
        "single" => Some(Scalar::F32),
        "int8" => Some(Scalar::I8),
        "uint8" => Some(Scalar::U8),
        "int16" => Some(Scalar::I16),
        "uint16" => Some(Scalar::U16),
        "int32" => Some(Scalar::I32),
        "uint32" => Some(Scalar::U32),
        "int64" => Some(Scalar::I64),
        "uint64" => Some(Scalar::U64),
        _ => None,
    }
}

/// Apply the attributes to a tensor, and note what they change. `stored` are the elements of an empty array, which
/// hold its shape.
pub(super) fn apply(
    tensor: &mut TensorInfo,
    own: &ReadingAttributes,
    stored: &[u8],
    notes: &mut Vec<String>,
) -> Result<(), Hdf5Error> {
    let Some(class) = own.matlab_class.as_deref() else { return Ok(()) };
    if own.matlab_empty {
        let lengths = stored.chunks_exact((tensor.dtype.item_bits() as usize / 8).max(1));
        let lengths =
            lengths.map(|len| len.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let shape: Vec<u64> = lengths.collect();
        if !shape.contains(&0) && class == "struct" {
            return Err(Hdf5Error::NoFields);
        }
        if !shape.contains(&0) {
            return Err(damaged("it is an empty MATLAB array of no shape"));
        }
        let dtype = match scalar_of_matlab(class) {
            Some(scalar) => DType::Scalar(scalar, Endian::Little),
            None => tensor.dtype.clone(),
        };
        let name = tensor.name.take();
        *tensor = TensorInfo { name, ..TensorInfo::new(dtype, shape, Order::C, 0) };
        notes.push(format!("empty MATLAB array of class {class}: what is stored is its shape"));
        return Ok(());
    }
    match (class, &tensor.dtype) {
        ("logical", DType::Scalar(Scalar::U8 | Scalar::I8, _)) => {
            tensor.dtype = DType::Scalar(Scalar::Bool, Endian::Little);
            notes.push("MATLAB logical: stored as uint8, read as bool".to_owned());
        }
        ("char", DType::Scalar(Scalar::U8 | Scalar::U16 | Scalar::U32, _)) => {
            notes.push("MATLAB char: the code units of a text".to_owned());
        }
        (_, DType::Npy(NpyType::Structure(structure)))
            if structure.fields.iter().map(|field| field.name.as_str()).eq(["real", "imag"]) =>
        {
            notes.push("MATLAB complex: fields real and imag are the parts of a number".to_owned());
        }
        _ => {}
    }
    Ok(())
}
