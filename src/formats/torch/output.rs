//! PyTorch's `.pt` as an output: a dict of names and tensors, in the archive that torch.save writes.
//!
//! ```text
//! archive/data.pkl │ archive/byteorder │ archive/version │ archive/data/0 │ archive/data/1 │ ...
//! ```
//!
//! torch.load reads the pickle with `weights_only=True`. Every tensor has a storage of its own.

use std::collections::HashMap;
use std::sync::Arc;

use super::TorchFolder;
use crate::dtype::{DType, Endian};
use crate::error::Cause;
use crate::formats::headed::PLAIN;
use crate::formats::pickle::globals::STORAGES;
use crate::formats::zipped::ZipMembers;
use crate::output::LayoutFault;
use crate::output::layout::{MetadataKind, OutputFormat, OutputLayout, OutputTensor, Request};
use crate::sink::ZipLayout;

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "pt",
    about: "PyTorch's .pt",
    extensions: &["pt", "pth"],
    holds_several: true,
    metadata: MetadataKind::Noted,
    is_editable: false,
    stored_dtype,
    lay_out,
    ..PLAIN
};

/// The version of the archive that torch.save writes.
const VERSION: &[u8] = b"3\n";

/// How many entries of the dict one opcode sets, as in Python's pickler.
const BATCH: usize = 1000;

/// The dtype in a `.pt`. PyTorch has no floats smaller than a byte, and only one byte order in a file.
fn stored_dtype(dtype: &DType) -> Option<DType> {
    match dtype {
        DType::Scalar(scalar, _) if scalar.bits().is_multiple_of(8) => {
            Some(DType::Scalar(*scalar, Endian::Little))
        }
        _ => None,
    }
}

fn lay_out(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    let folder = TorchFolder("archive/".to_owned());
    let mut pickle = Pickle::new();
    for (number, tensor) in request.tensors.iter().enumerate() {
        pickle.set(number, &tensor)?;
    }
    let mut zip = ZipLayout::new(request.tensors.len() + 3, request.forward);
    let heads = [
        (folder.pickle(), pickle.end()),
        (folder.byte_order(), b"little".to_vec()),
        (folder.0.clone() + "version", VERSION.to_vec()),
    ];
    let first = heads.len();
    for (name, head) in heads {
        zip.push(&name, &Arc::from(head), 0).ok_or(LayoutFault::TooLarge)?;
    }
    let none: Arc<[u8]> = Arc::default();
    for (number, tensor) in request.tensors.iter().enumerate() {
        let name = folder.storage(&number.to_string());
        zip.push(&name, &none, tensor.bytes).ok_or(LayoutFault::TooLarge)?;
    }
    Ok(Box::new(ZipMembers { zip: Arc::new(zip), first, deflate: false }))
}

/// A pickle of protocol 2 that makes a dict of tensors.
struct Pickle {
    bytes: Vec<u8>,
    /// Opcodes that were written, each with the memo number of the object that they push.
    memo: HashMap<Vec<u8>, u8>,
    len: usize,
}

impl Pickle {
    fn new() -> Pickle {
        Pickle { bytes: b"\x80\x02}".to_vec(), memo: HashMap::new(), len: 0 }
    }

    /// Write the dict entry of a tensor, whose storage has number `number`.
    fn set(&mut self, number: usize, tensor: &OutputTensor) -> Result<(), LayoutFault> {
        let DType::Scalar(scalar, _) = tensor.dtype else { return Ok(()) };
        if self.len.is_multiple_of(BATCH) {
            self.bytes.extend(if self.len == 0 { &b"("[..] } else { b"u(" });
        }
        self.len += 1;
        self.bytes.extend(text(&tensor.name)?);
        // newer dtypes have no storage class: their storages hold bytes
        let class = STORAGES.iter().find(|(_, known)| *known == scalar).map(|(class, _)| *class);
        let version = if class.is_some() { "_rebuild_tensor_v2" } else { "_rebuild_tensor_v3" };
        self.once(global("torch._utils", version));
        self.bytes.extend(b"((");
        self.once(text("storage")?);
        self.once(match class {
            Some(class) => global("torch", &format!("{class}Storage")),
            None => global("torch.storage", "UntypedStorage"),
        });
        self.bytes.extend(text(&number.to_string())?);
        self.once(text("cpu")?);
        let item = if class.is_some() { scalar.bits() / 8 } else { 1 };
        self.number(tensor.bytes / item);
        self.bytes.extend(b"tQ");
        // the offset in the storage
        self.number(0);
        self.tuple(&tensor.shape);
        self.tuple(&strides(&tensor.shape));
        // the tensor needs no gradient, and has no hooks
        self.bytes.push(b'\x89');
        self.once(global("collections", "OrderedDict"));
        self.bytes.extend(b")R");
        if class.is_none() {
            self.once(global("torch", scalar.name()));
        }
        self.bytes.extend(b"tR");
        Ok(())
    }

    /// The whole pickle.
    fn end(mut self) -> Vec<u8> {
        self.bytes.extend(if self.len == 0 { &b"."[..] } else { b"u." });
        self.bytes
    }

    /// Write opcodes that push an object; if they were written before, push the object from the memo instead.
    fn once(&mut self, opcodes: Vec<u8>) {
        match self.memo.get(&opcodes) {
            Some(&at) => self.bytes.extend([b'h', at]),
            None => {
                // there are fewer than 256 such objects: functions, and a class or a name for each dtype
                let at = self.memo.len() as u8;
                self.bytes.extend(&opcodes);
                self.bytes.extend([b'q', at]);
                self.memo.insert(opcodes, at);
            }
        }
    }

    fn number(&mut self, number: u64) {
        let bytes = number.to_le_bytes();
        let (opcode, len): (&[u8], usize) = match number {
            0..0x100 => (b"K", 1),
            0x100..0x1_0000 => (b"M", 2),
            0x1_0000..0x8000_0000 => (b"J", 4),
            // 8 bytes are enough: the number is below 2^63
            _ => (b"\x8a\x08", 8),
        };
        self.bytes.extend(opcode);
        self.bytes.extend(&bytes[..len]);
    }

    fn tuple(&mut self, numbers: &[u64]) {
        if numbers.len() > 3 {
            self.bytes.push(b'(');
        }
        numbers.iter().for_each(|&number| self.number(number));
        self.bytes.push(match numbers.len() {
            0 => b')',
            len @ 1..=3 => b'\x84' + len as u8,
            _ => b't',
        });
    }
}

/// The opcodes of a text.
fn text(text: &str) -> Result<Vec<u8>, LayoutFault> {
    let len = u32::try_from(text.len()).map_err(|_| LayoutFault::TooLarge)?;
    Ok([&b"X"[..], &len.to_le_bytes(), text.as_bytes()].concat())
}

/// The opcodes of a function or class.
fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// Strides in C order, in elements, as PyTorch has them where an axis is empty.
fn strides(shape: &[u64]) -> Vec<u64> {
    let mut stride = 1u64;
    let mut strides: Vec<u64> = shape
        .iter()
        .rev()
        .map(|len| {
            let own = stride;
            // the product of all axes that are not empty has less than 63 bits
            stride = stride.saturating_mul(*len.max(&1));
            own
        })
        .collect();
    strides.reverse();
    strides
}
