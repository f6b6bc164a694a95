//! The functions and classes that a pickle may name. They are names here: nothing is imported, and what a
//! call of one makes is written out in `machine`.

use crate::dtype::Scalar;

/// A function or a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// Makes a tensor of a storage.
    Rebuild(Rebuild),
    /// Calls a function, and makes its result an instance of a class.
    FromType,
    /// A class of tensors.
    TensorClass,
    /// A class of storages, of elements of this type; of bytes without one.
    StorageClass(Option<Scalar>),
    DType(Scalar),
    /// Makes a dict.
    Dict,
    /// Makes a list, a tuple or a set of what it is given.
    List,
    /// Makes what is passed over: a device, a torch.Size, a complex number, bytes.
    Plain,
}

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
}

impl Rebuild {
    pub(super) fn name(self) -> &'static str {
        match self {
            Rebuild::Tensor => "torch._utils._rebuild_tensor",
            Rebuild::TensorV2 => "torch._utils._rebuild_tensor_v2",
            Rebuild::TensorV3 => "torch._utils._rebuild_tensor_v3",
            Rebuild::Parameter => "torch._utils._rebuild_parameter",
            Rebuild::ParameterWithState => "torch._utils._rebuild_parameter_with_state",
        }
    }
}

impl Global {
    /// The function or class of that name, if it is known.
    pub(super) fn find(module: &str, name: &str) -> Option<Global> {
        Some(match (module, name) {
            ("torch._utils", "_rebuild_tensor") => Global::Rebuild(Rebuild::Tensor),
            ("torch._utils", "_rebuild_tensor_v2") => Global::Rebuild(Rebuild::TensorV2),
            ("torch._utils", "_rebuild_tensor_v3") => Global::Rebuild(Rebuild::TensorV3),
            ("torch._utils", "_rebuild_parameter") => Global::Rebuild(Rebuild::Parameter),
            ("torch._utils", "_rebuild_parameter_with_state") => {
                Global::Rebuild(Rebuild::ParameterWithState)
            }
            ("torch._tensor", "_rebuild_from_type_v2") => Global::FromType,
            ("torch" | "torch._tensor", "Tensor")
            | ("torch.nn.parameter", "Parameter" | "Buffer") => Global::TensorClass,
            ("torch", "Size" | "device") | ("torch.serialization", "_get_layout") => Global::Plain,
            ("torch.storage" | "torch", "UntypedStorage") => Global::StorageClass(None),
            ("torch" | "torch.cuda", class) if class.ends_with("Storage") => {
                Global::StorageClass(Some(storage_scalar(class)?))
            }
            ("torch", dtype) => Global::DType(scalar(dtype)?),
            ("collections", "OrderedDict" | "defaultdict" | "Counter") => Global::Dict,
            ("__builtin__" | "builtins", "dict") => Global::Dict,
            ("__builtin__" | "builtins", "list" | "tuple" | "set" | "frozenset") => Global::List,
            (
                "__builtin__" | "builtins",
                "bool" | "bytearray" | "bytes" | "complex" | "float" | "int" | "object" | "range"
                | "slice" | "str",
            )
            | ("_codecs", "encode") => Global::Plain,
            _ => return None,
        })
    }
}

/// The number type that PyTorch calls so. Floats of which several share a byte are of other shapes there.
fn scalar(name: &str) -> Option<Scalar> {
    let is_it = |scalar: &Scalar| scalar.name() == name && scalar.bits().is_multiple_of(8);
    Scalar::ALL.into_iter().find(is_it)
}

/// The type of the elements of a class of storages.
fn storage_scalar(class: &str) -> Option<Scalar> {
    Some(match class.strip_suffix("Storage")? {
        "Double" => Scalar::F64,
        "Float" => Scalar::F32,
        "Half" => Scalar::F16,
        "BFloat16" => Scalar::BF16,
        "Long" => Scalar::I64,
        "Int" => Scalar::I32,
        "Short" => Scalar::I16,
        "Char" => Scalar::I8,
        "Byte" => Scalar::U8,
        "Bool" => Scalar::Bool,
        "ComplexDouble" => Scalar::C128,
        "ComplexFloat" => Scalar::C64,
        _ => return None,
    })
}
