//! The functions and classes that a pickle names, as far as tensors are made by them. They are only recognised by name;
//! all others are opaque.

use super::PickleError;
use crate::dtype::Scalar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
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
    /// Makes a list, a tuple or a set of its argument.
    List,
    /// Makes an instance of a class, of a list or a dict (protocols 0 and 1).
    Reconstructor,
    /// Makes bytes of a text.
    Encode,
    Array(ArrayCall),
    /// Makes a value that is ignored: a device, a torch.Size, a complex number.
    Plain,
    /// Any other function or class, or a function or class as a value.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    /// Bytes; the tensor says which dtype they have.
    Bytes,
    Known(Scalar),
    /// A function or class that has no variant here, by its index in [`UNNAMED`].
    Unnamed(u8),
}

impl ElementType {
    /// The bytes of an element in a storage, where they are known.
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            ElementType::Bytes => Some(1),
            ElementType::Known(scalar) => Some(scalar.bits() / 8),
            ElementType::Unnamed(at) => UNNAMED.get(usize::from(at)).and_then(|it| it.2),
        }
    }

    /// PyTorch's name of a type that has no name here.
    pub(crate) fn unnamed(self) -> Option<&'static str> {
        match self {
            ElementType::Unnamed(at) => UNNAMED.get(usize::from(at)).map(|it| it.0),
            _ => None,
        }
    }

    /// The type among those without a name here.
    fn find(is_it: impl FnMut(&(&str, &str, Option<u64>)) -> bool) -> Option<ElementType> {
        let at = UNNAMED.iter().position(is_it)?;
        u8::try_from(at).ok().map(ElementType::Unnamed)
    }
}

/// The word for the types `int1` to `uint7`.
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
pub(crate) enum Rebuild {
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
pub(crate) enum ArrayCall {
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

    /// The error for invalid arguments, or an invalid state.
    pub(crate) fn wrong(self) -> PickleError {
        PickleError::Arguments(match self {
            ArrayCall::DType => "numpy.dtype",
            ArrayCall::Reconstruct => "numpy._core.multiarray._reconstruct",
            ArrayCall::FromBuffer => "numpy._core.numeric._frombuffer",
            ArrayCall::Scalar => "numpy._core.multiarray.scalar",
            ArrayCall::Masked => "numpy.ma.core._mareconstruct",
        })
    }
}

impl Rebuild {
    pub(crate) fn name(self) -> &'static str {
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
    pub(crate) fn find(module: &str, name: &str) -> Global {
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
            ("copy_reg" | "copyreg", "_reconstructor") => Global::Reconstructor,
            ("_codecs", "encode") => Global::Encode,
            ("numpy", "ndarray") | ("numpy.ma", "MaskedArray") => Global::Plain,
            ("ml_dtypes", dtype) => element_type(dtype).map_or(Global::Opaque, Global::DType),
            _ => ArrayCall::find(module, name).map_or(Global::Opaque, Global::Array),
        }
    }
}

/// The element type with this name in PyTorch. Floats smaller than a byte are left out: PyTorch counts their bytes in the
/// shape.
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
pub(crate) const STORAGES: [(&str, Scalar); 12] = [
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
