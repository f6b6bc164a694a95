//! PyTorch's `.pt`: the zip archive that torch.save writes since version 1.6.
//!
//! ```text
//! model/data.pkl │ model/byteorder │ model/data/0 │ model/data/1 │ ...
//! ```
//!
//! `data.pkl` is a pickle, a program for a small machine, which makes the object that was saved; the members
//! below `data` are storages, bytes that tensors are views of. The machine here knows what makes tensors,
//! and the dicts, lists and tuples that they are in. It runs and imports nothing, and refuses what it does
//! not know by its name.

use std::io::Read;
use std::ops::Range;

use super::error::FormatError;
use super::npz::Members;
use super::repeated::first_repeated;
use super::tensor::TensorInfo;
use super::tensors::Tensors;
use crate::dtype::Endian;
use crate::source::{Reader, Source};

mod error;
mod globals;
mod machine;
mod names;
mod ops;
mod tensor;
mod value;

pub use error::{TensorFault, TorchError};
pub use tensor::{TorchStorage, TorchTensor};

/// The longest pickle that is read, in bytes: as long as the header of a `.safetensors` may be.
const MAX_PICKLE: u64 = 100_000_000;

/// The name of the pickle, and of the byte order, behind that of the folder.
const PICKLE: &str = "data.pkl";
const BYTE_ORDER: &str = "byteorder";

/// What TorchScript has beside a pickle.
const SCRIPT: &str = "constants.pkl";

/// The folder in an archive that torch.save wrote, with its `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchFolder(String);

impl TorchFolder {
    /// The folder with a pickle in it; empty where that lies in none.
    pub fn find(members: &Members) -> Option<TorchFolder> {
        let folder = |name: &str| {
            let folder = name.strip_suffix(PICKLE)?;
            let inner = folder.strip_suffix('/');
            let is_one = folder.is_empty() || inner.is_some_and(|inner| !inner.contains('/'));
            is_one.then(|| TorchFolder(folder.to_owned()))
        };
        members.iter().find_map(|member| folder(member.name))
    }

    /// Whether it is one of TorchScript, which is a program.
    pub fn is_script(&self, members: &Members) -> bool {
        let script = self.0.clone() + SCRIPT;
        members.iter().any(|member| member.name == script)
    }

    /// The member with the pickle.
    pub fn pickle(&self) -> String {
        self.0.clone() + PICKLE
    }

    /// The member with the byte order; archives of old versions have none.
    pub fn byte_order(&self) -> String {
        self.0.clone() + BYTE_ORDER
    }

    /// The member with a storage.
    pub fn storage(&self, key: &str) -> String {
        format!("{}data/{key}", self.0)
    }
}

/// The byte order of the storages, by the text of its member.
///
/// # Errors
/// [`TorchError::ByteOrder`].
pub fn byte_order(text: &[u8]) -> Result<Endian, TorchError> {
    match text {
        b"little" => Ok(Endian::Little),
        b"big" => Ok(Endian::Big),
        other => Err(TorchError::ByteOrder(String::from_utf8_lossy(other).into_owned())),
    }
}

/// Where a storage lies in the input.
#[derive(Clone, Debug)]
pub struct StoragePlace {
    /// The part of the input that holds it.
    pub part: usize,
    /// The range of the bytes, counted through all parts.
    pub bytes: Range<u64>,
}

/// The tensors in the object of a pickle, which is the range `pickle` of `source`, in the order in which
/// they stand in it. `place` says where the storage of a name lies, if there is such a storage.
///
/// # Errors
/// [`TorchError`], and [`FormatError::Io`].
pub fn tensors(
    source: &dyn Source,
    pickle: Range<u64>,
    endian: Endian,
    folder: &TorchFolder,
    place: &mut dyn FnMut(&str) -> Result<Option<StoragePlace>, FormatError>,
) -> Result<Tensors, FormatError> {
    let len = pickle.end.saturating_sub(pickle.start);
    if len > MAX_PICKLE {
        return Err(TorchError::Long { len, most: MAX_PICKLE }.into());
    }
    let ops = || ops::PickleOps(Reader::at(source, pickle.start).take(len));
    let asked = machine::asked(&mut ops())?;
    let (object, shared) = machine::PickleMachine::new(asked).run(&mut ops())?;
    let mut all = Tensors::default();
    names::visit_tensors(&object, &shared, &mut |name, tensor| {
        let key = &tensor.storage.key;
        let placed = match place(key)? {
            Some(StoragePlace { part, bytes }) => tensor
                .place(0..bytes.end - bytes.start, endian)
                .map(|it| it.placed(part, bytes.start)),
            // nothing is stored of nothing
            None if tensor.storage.bytes == 0 => tensor.place(0..0, endian),
            None => Err(TensorFault::NoStorage(folder.storage(key))),
        };
        let name = name.map(str::to_owned);
        match placed {
            Ok(tensor) => all.push(&TensorInfo { name, ..tensor }),
            Err(fault) => {
                let name = name.unwrap_or_default();
                return Err(TorchError::Tensor { name, fault }.into());
            }
        }
        Ok(())
    })?;
    match first_repeated(all.names().map(Option::unwrap_or_default)) {
        Some(twice) => Err(TorchError::Twice(twice.to_owned()).into()),
        None => Ok(all),
    }
}
