//! The instructions of a pickle, one after the other, as the documentation of Python's `pickletools` lists
//! them: those that torch.save writes in protocols 1 to 5. The others are refused by their number.
//!
//! The functions and classes that they name are names here: nothing is imported, and what a call of a known one makes
//! is written out in `machine`. What any other makes is opaque.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::rc::Rc;

use super::arrays::{BytesPlace, PickleBytes};
use super::value::{PickleValue, SharedKind};
use super::{MAX_PICKLE, TorchError};
use crate::dtype::Scalar;
use crate::error::Cause;
use crate::source::{Reader, Source};

/// The values that an instruction takes off the stack.
#[derive(Debug)]
pub(super) enum Operands {
    Last(usize),
    /// All that stand behind the last mark.
    ToMark,
}

#[derive(Debug)]
pub(super) enum PickleOp {
    Push(PickleValue),
    Mark,
    /// Drop the last value, or the last mark.
    Pop,
    PopMark,
    Dup,
    Tuple(Operands),
    /// A list, or a dict, of all that stands behind the mark.
    MarkList,
    MarkDict,
    Append(Operands),
    SetItems(Operands),
    Get(u32),
    Put(u32),
    /// Put under the next number.
    Memoize,
    Global {
        module: String,
        name: String,
    },
    /// A global whose module and name are the last values.
    StackGlobal,
    /// Call a function; `keywords` where a dict of these is the last value.
    Call {
        keywords: bool,
    },
    /// Set the state of the value before the last one.
    Build,
    /// What an identifier stands for: a storage.
    Persistent,
    Stop,
    /// The protocol, the length of a frame.
    Nothing,
}

/// The longest text that can be a key, or a name, in bytes.
const MAX_TEXT: u64 = 1 << 20;

/// The most bytes that can be a key.
pub(super) const MAX_KEY_BYTES: u64 = 64;

/// The instructions of a pickle in a range of a source, which may end before that.
pub(super) struct PickleOps<'s> {
    source: &'s dyn Source,
    reader: Reader<'s>,
    end: u64,
    /// How many bytes may be read, besides those that are passed over.
    left: u64,
}

impl<'s> PickleOps<'s> {
    pub(super) fn new(source: &'s dyn Source, range: Range<u64>) -> PickleOps<'s> {
        let reader = Reader::at(source, range.start);
        PickleOps { source, reader, end: range.end, left: MAX_PICKLE }
    }

    /// The position in the source of the next instruction.
    pub(super) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// A long text that was passed over.
    pub(super) fn text_at(&self, position: u64) -> Reader<'s> {
        Reader::at(self.source, position)
    }

    pub(super) fn next_op(&mut self) -> Result<PickleOp, Cause> {
        let code = self.bytes::<1>()?[0];
        Ok(match code {
            0x80 => self.nothing(1)?,
            0x95 => self.nothing(8)?,
            b'N' => PickleOp::Push(PickleValue::None),
            0x88 => PickleOp::Push(PickleValue::Bool(true)),
            0x89 => PickleOp::Push(PickleValue::Bool(false)),
            b'I' | b'L' | b'J' | b'K' | b'M' | 0x8a | 0x8b => PickleOp::Push(self.integer(code)?),
            b'F' => {
                let float = self.line()?.parse().map_err(|_| damaged("a float is none"))?;
                PickleOp::Push(PickleValue::Float(float))
            }
            b'G' => PickleOp::Push(PickleValue::Float(f64::from_be_bytes(self.bytes()?))),
            b'X' | b'T' | 0x8c | b'U' | 0x8d => PickleOp::Push(self.text(code)?),
            b'B' | b'C' | 0x8e | 0x96 => {
                let len = self.len(code)?;
                let place = BytesPlace::Pickle(self.position());
                let key = if len <= MAX_KEY_BYTES {
                    Some(self.take(len)?.into_iter().map(char::from).collect::<String>().into())
                } else {
                    self.skip(len)?;
                    None
                };
                PickleOp::Push(PickleValue::Bytes(Rc::new(PickleBytes { key, place, len })))
            }
            b')' => PickleOp::Tuple(Operands::Last(0)),
            b']' | 0x8f => PickleOp::Push(PickleValue::Empty(SharedKind::List)),
            b'}' => PickleOp::Push(PickleValue::Empty(SharedKind::Dict)),
            b'(' => PickleOp::Mark,
            b'0' => PickleOp::Pop,
            b'1' => PickleOp::PopMark,
            b'2' => PickleOp::Dup,
            0x85..=0x87 => PickleOp::Tuple(Operands::Last(usize::from(code - 0x84))),
            b't' => PickleOp::Tuple(Operands::ToMark),
            b'l' | 0x91 => PickleOp::MarkList,
            b'd' => PickleOp::MarkDict,
            b'a' => PickleOp::Append(Operands::Last(1)),
            b'e' | 0x90 => PickleOp::Append(Operands::ToMark),
            b's' => PickleOp::SetItems(Operands::Last(2)),
            b'u' => PickleOp::SetItems(Operands::ToMark),
            b'h' => PickleOp::Get(self.bytes::<1>()?[0].into()),
            b'j' => PickleOp::Get(u32::from_le_bytes(self.bytes()?)),
            b'q' => PickleOp::Put(self.bytes::<1>()?[0].into()),
            b'r' => PickleOp::Put(u32::from_le_bytes(self.bytes()?)),
            0x94 => PickleOp::Memoize,
            b'c' => PickleOp::Global { module: self.line()?, name: self.line()? },
            0x93 => PickleOp::StackGlobal,
            b'R' | 0x81 => PickleOp::Call { keywords: false },
            0x92 => PickleOp::Call { keywords: true },
            b'b' => PickleOp::Build,
            b'Q' => PickleOp::Persistent,
            b'.' => PickleOp::Stop,
            other => return Err(TorchError::Opcode(other).into()),
        })
    }

    fn integer(&mut self, code: u8) -> Result<PickleValue, Cause> {
        Ok(match code {
            b'J' => PickleValue::Int(i32::from_le_bytes(self.bytes()?).into()),
            b'K' => PickleValue::Int(self.bytes::<1>()?[0].into()),
            b'M' => PickleValue::Int(u16::from_le_bytes(self.bytes()?).into()),
            // the lowest byte first, the top bit is the sign
            0x8a | 0x8b => {
                let len = match code {
                    0x8a => u64::from(self.bytes::<1>()?[0]),
                    _ => u32::from_le_bytes(self.bytes()?).into(),
                };
                if len > 8 {
                    self.skip(len)?;
                    return Ok(PickleValue::Plain);
                }
                let bytes = self.take(len)?;
                let sign = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
                let mut whole = [sign; 8];
                whole[..bytes.len()].copy_from_slice(&bytes);
                PickleValue::Int(i64::from_le_bytes(whole))
            }
            _ => match (code, self.line()?.as_str()) {
                (b'I', "00") => PickleValue::Bool(false),
                (b'I', "01") => PickleValue::Bool(true),
                (_, digits) => match digits.trim_end_matches('L').parse() {
                    Ok(number) => PickleValue::Int(number),
                    Err(_) => PickleValue::Plain,
                },
            },
        })
    }

    /// A text; one that is too long for a name is passed over, and so is one that is none in UTF-8.
    fn text(&mut self, code: u8) -> Result<PickleValue, Cause> {
        let len = self.len(code)?;
        if len > MAX_TEXT {
            let start = self.position();
            self.skip(len)?;
            return Ok(PickleValue::LongText { start, len });
        }
        let text = String::from_utf8(self.take(len)?);
        Ok(text.map_or(PickleValue::Plain, |text| PickleValue::Text(Rc::from(text))))
    }

    /// The length of a text or of bytes, by the instruction.
    fn len(&mut self, code: u8) -> Result<u64, Cause> {
        Ok(match code {
            0x8c | b'U' | b'C' => self.bytes::<1>()?[0].into(),
            b'X' | b'T' | b'B' => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        })
    }

    fn nothing(&mut self, len: u64) -> Result<PickleOp, Cause> {
        self.skip(len)?;
        Ok(PickleOp::Nothing)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Cause> {
        let mut bytes = [0; N];
        self.spend(N as u64)?;
        self.reader.read_exact(&mut bytes).map_err(early)?;
        Ok(bytes)
    }

    fn take(&mut self, len: u64) -> Result<Vec<u8>, Cause> {
        let mut bytes = Vec::new();
        self.spend(len)?;
        (&mut self.reader).take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len { Err(damaged(EARLY)) } else { Ok(bytes) }
    }

    fn skip(&mut self, len: u64) -> Result<(), Cause> {
        self.check_room(len)?;
        self.reader.skip(len);
        Ok(())
    }

    /// A text that ends with its line.
    fn line(&mut self) -> Result<String, Cause> {
        let mut line = Vec::new();
        let most = MAX_TEXT.min(self.end.saturating_sub(self.position()));
        (&mut self.reader).take(most).read_until(b'\n', &mut line)?;
        self.left = self.left.saturating_sub(line.len() as u64);
        match line.pop() {
            Some(b'\n') => String::from_utf8(line).map_err(|_| damaged("a name is not UTF-8")),
            _ => Err(damaged(EARLY)),
        }
    }

    /// Count bytes that are read.
    fn spend(&mut self, len: u64) -> Result<(), Cause> {
        self.check_room(len)?;
        self.left = self.left.checked_sub(len).ok_or(TorchError::Long(MAX_PICKLE))?;
        Ok(())
    }

    fn check_room(&self, len: u64) -> Result<(), Cause> {
        let room = self.end.saturating_sub(self.position());
        if len > room { Err(damaged(EARLY)) } else { Ok(()) }
    }
}

pub(super) const EARLY: &str = "it ends too early";

fn early(error: io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(EARLY),
        _ => error.into(),
    }
}

pub(super) fn damaged(what: &'static str) -> Cause {
    TorchError::Damaged(what).into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// Makes a tensor of a storage.
    Rebuild(Rebuild),
    /// Calls a function, and makes its result an instance of a class.
    FromType,
    /// A class of tensors.
    TensorClass,
    /// A class of storages, of elements of this type.
    StorageClass(ElementType),
    DType(ElementType),
    /// Makes a dict.
    Dict,
    /// Makes a list, a tuple or a set of what it is given.
    List,
    /// Makes bytes of a text.
    Encode,
    Array(ArrayCall),
    /// Makes what is passed over: a device, a torch.Size, a complex number.
    Plain,
    /// Any other, or such as a value.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementType {
    /// Bytes, of which a tensor says what they are.
    Bytes,
    Known(Scalar),
    /// One that has no name here, by its place in [`UNNAMED`].
    Unnamed(u8),
}

impl ElementType {
    /// The bytes of an element in a storage, where they are known.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            ElementType::Bytes => Some(1),
            ElementType::Known(scalar) => Some(scalar.bits() / 8),
            ElementType::Unnamed(at) => UNNAMED.get(usize::from(at)).and_then(|it| it.2),
        }
    }

    /// What PyTorch calls one that has no name here.
    pub(super) fn unnamed(self) -> Option<&'static str> {
        match self {
            ElementType::Unnamed(at) => UNNAMED.get(usize::from(at)).map(|it| it.0),
            _ => None,
        }
    }

    /// The one among those without a name here.
    fn find(is_it: impl FnMut(&(&str, &str, Option<u64>)) -> bool) -> Option<ElementType> {
        let at = UNNAMED.iter().position(is_it)?;
        u8::try_from(at).ok().map(ElementType::Unnamed)
    }
}

/// What stands for the names of the types `int1` to `uint7`.
const SMALL: &str = "an integer of fewer than 8 bits";

/// Types of elements that have no name here, their classes of storages, and the bytes of an element.
const UNNAMED: [(&str, &str, Option<u64>); 10] = [
    ("complex32", "ComplexHalfStorage", Some(4)),
    ("quint8", "QUInt8Storage", Some(1)),
    ("qint8", "QInt8Storage", Some(1)),
    ("qint32", "QInt32Storage", Some(4)),
    ("quint4x2", "QUInt4x2Storage", Some(1)),
    ("quint2x4", "QUInt2x4Storage", Some(1)),
    ("float4_e2m1fn_x2", "", Some(1)),
    ("bits8", "", Some(1)),
    ("bits16", "", Some(2)),
    (SMALL, "", None),
];

/// A function that makes a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rebuild {
    /// `_rebuild_tensor(storage, offset, size, stride)`
    Tensor,
    /// `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata])`
    TensorV2,
    /// `_rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype[, metadata])`
    TensorV3,
    /// `_rebuild_parameter(tensor, requires_grad, hooks)`
    Parameter,
    /// `_rebuild_parameter_with_state(tensor, requires_grad, hooks, state)`
    ParameterWithState,
    /// `_rebuild_qtensor(storage, offset, size, stride, quantizer, requires_grad, hooks)`
    Quantised,
}

/// A function that makes an array of NumPy, or its dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayCall {
    DType,
    Reconstruct,
    FromBuffer,
    Scalar,
    Masked,
}

impl ArrayCall {
    fn find(module: &str, name: &str) -> Option<ArrayCall> {
        // the packages of NumPy 1 and 2
        let inner = module.strip_prefix("numpy.core.").or(module.strip_prefix("numpy._core."));
        Some(match (inner.unwrap_or(module), name) {
            ("numpy", "dtype") => ArrayCall::DType,
            ("multiarray", "_reconstruct") if inner.is_some() => ArrayCall::Reconstruct,
            ("multiarray", "scalar") if inner.is_some() => ArrayCall::Scalar,
            ("numpy.ma.core", "_mareconstruct") => ArrayCall::Masked,
            ("numeric", "_frombuffer") if inner.is_some() => ArrayCall::FromBuffer,
            _ => return None,
        })
    }

    /// The error of arguments, or of a state, that it does not take.
    pub(super) fn wrong(self) -> TorchError {
        TorchError::Arguments(match self {
            ArrayCall::DType => "numpy.dtype",
            ArrayCall::Reconstruct => "numpy._core.multiarray._reconstruct",
            ArrayCall::FromBuffer => "numpy._core.numeric._frombuffer",
            ArrayCall::Scalar => "numpy._core.multiarray.scalar",
            ArrayCall::Masked => "numpy.ma.core._mareconstruct",
        })
    }
}

impl Rebuild {
    pub(super) fn name(self) -> &'static str {
        match self {
            Rebuild::Tensor => "torch._utils._rebuild_tensor",
            Rebuild::TensorV2 => "torch._utils._rebuild_tensor_v2",
            Rebuild::TensorV3 => "torch._utils._rebuild_tensor_v3",
            Rebuild::Parameter => "torch._utils._rebuild_parameter",
            Rebuild::ParameterWithState => "torch._utils._rebuild_parameter_with_state",
            Rebuild::Quantised => "torch._utils._rebuild_qtensor",
        }
    }
}

impl Global {
    /// The function or class of that name.
    pub(super) fn find(module: &str, name: &str) -> Global {
        match (module, name) {
            ("torch._utils", "_rebuild_tensor") => Global::Rebuild(Rebuild::Tensor),
            ("torch._utils", "_rebuild_tensor_v2") => Global::Rebuild(Rebuild::TensorV2),
            ("torch._utils", "_rebuild_tensor_v3") => Global::Rebuild(Rebuild::TensorV3),
            ("torch._utils", "_rebuild_parameter") => Global::Rebuild(Rebuild::Parameter),
            ("torch._utils", "_rebuild_parameter_with_state") => {
                Global::Rebuild(Rebuild::ParameterWithState)
            }
            ("torch._utils", "_rebuild_qtensor") => Global::Rebuild(Rebuild::Quantised),
            ("torch._tensor", "_rebuild_from_type_v2") => Global::FromType,
            ("torch" | "torch._tensor", "Tensor")
            | ("torch.nn.parameter", "Parameter" | "Buffer")
            | ("torch.autograd.variable", "Variable") => Global::TensorClass,
            ("torch", "Size" | "device") | ("torch.serialization", "_get_layout") => Global::Plain,
            ("torch.storage" | "torch", "UntypedStorage") => {
                Global::StorageClass(ElementType::Bytes)
            }
            ("torch" | "torch.cuda", class) if class.ends_with("Storage") => {
                storage_type(class).map_or(Global::Opaque, Global::StorageClass)
            }
            ("torch", dtype) => element_type(dtype).map_or(Global::Opaque, Global::DType),
            ("collections", "OrderedDict" | "defaultdict" | "Counter") => Global::Dict,
            ("__builtin__" | "builtins", "dict") => Global::Dict,
            ("__builtin__" | "builtins", "list" | "tuple" | "set" | "frozenset") => Global::List,
            (
                "__builtin__" | "builtins",
                "bool" | "bytearray" | "bytes" | "complex" | "float" | "int" | "object" | "range"
                | "slice" | "str",
            ) => Global::Plain,
            ("_codecs", "encode") => Global::Encode,
            ("numpy", "ndarray") | ("numpy.ma", "MaskedArray") => Global::Plain,
            ("ml_dtypes", dtype) => element_type(dtype).map_or(Global::Opaque, Global::DType),
            _ => ArrayCall::find(module, name).map_or(Global::Opaque, Global::Array),
        }
    }
}

/// The number type that PyTorch calls so. Floats of which several share a byte are of other shapes there.
fn element_type(name: &str) -> Option<ElementType> {
    let is_it = |scalar: &Scalar| scalar.name() == name && scalar.bits().is_multiple_of(8);
    if let Some(scalar) = Scalar::ALL.into_iter().find(is_it) {
        return Some(ElementType::Known(scalar));
    }
    let is_small = |digits: &str| matches!(digits.as_bytes(), [b'1'..=b'7']);
    let small =
        ["uint", "int"].iter().find_map(|kind| name.strip_prefix(kind)).is_some_and(is_small);
    ElementType::find(|(dtype, ..)| if small { *dtype == SMALL } else { *dtype == name })
}

/// How the classes of storages begin, and the types of their elements.
pub(super) const STORAGES: [(&str, Scalar); 12] = [
    ("Double", Scalar::F64),
    ("Float", Scalar::F32),
    ("Half", Scalar::F16),
    ("BFloat16", Scalar::BF16),
    ("Long", Scalar::I64),
    ("Int", Scalar::I32),
    ("Short", Scalar::I16),
    ("Char", Scalar::I8),
    ("Byte", Scalar::U8),
    ("Bool", Scalar::Bool),
    ("ComplexDouble", Scalar::C128),
    ("ComplexFloat", Scalar::C64),
];

/// The type of the elements of a class of storages.
fn storage_type(class: &str) -> Option<ElementType> {
    if let Some(unnamed) = ElementType::find(|(_, name, _)| *name == class) {
        return Some(unnamed);
    }
    let class = class.strip_suffix("Storage")?;
    let (_, scalar) = STORAGES.iter().find(|(known, _)| *known == class)?;
    Some(ElementType::Known(*scalar))
}
