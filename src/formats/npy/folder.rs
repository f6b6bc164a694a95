//! A folder of `.npy` files: a tensor each, by the name of its file without the extension.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{FORMAT as NPY, header};
use crate::dtype::stored_by_numpy;
use crate::error::{Cause, Error};
use crate::formats::headed::{Header, PLAIN};
use crate::formats::recognise::{read_header, unknown, unrecognised};
use crate::formats::shards::{FolderFile, FolderFiles, OldFiles};
use crate::input::{Container, Contents, Format, Input, Location, OpenOptions, ShardFile, natural};
use crate::output::LayoutFault;
use crate::output::layout::{OutputFormat, OutputLayout, Request};
use crate::source::{ConcatSource, FileOpener};
use crate::tensor::{TensorInfo, Tensors};

const NAME: &str = "folder of npy";

const EXTENSION: &str = ".npy";

/// The deepest folder within folders: deeper ones are not searched for arrays.
const MAX_DEPTH: usize = 32;

pub(crate) static FOLDER: Format = Format {
    is_folder: true,
    ..Format::new(NAME, |_| false, |file| Err(unrecognised(file.location, file.bytes)))
};

pub(crate) static FOLDER_OUTPUT: OutputFormat = OutputFormat {
    name: NAME,
    holds_several: true,
    has_orders: true,
    is_folder: true,
    stored_dtype: stored_by_numpy,
    lay_out,
    ..PLAIN
};

/// The tensors in a folder; `None` if one of its files is neither hidden nor a `.npy`, or there are
/// none.
pub(crate) fn open_folder(
    location: &Location,
    folder: &Path,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    let mut files = Vec::new();
    if !add_arrays(folder, "", 0, &mut files)? || files.is_empty() {
        return Ok(None);
    }
    files.sort_by(|one, other| natural(one, other));
    let opener = FileOpener::new(files.len(), options.io);
    let mut joined = ConcatSource::default();
    let mut tensors = Tensors::default();
    let mut shards = Vec::with_capacity(files.len());
    for (number, name) in files.into_iter().enumerate() {
        let path = folder.join(&name);
        let open = || {
            let source = opener.open(&path)?;
            let contents = read_header(location, source.as_ref())?;
            if contents.format != &NPY {
                return Err(Error::from(unknown(None)));
            }
            Ok((source, contents))
        };
        let (source, contents) =
            open().map_err(|error: Error| error.in_file(&Location::Path(path.clone())))?;
        let start = joined.push(name.clone(), Arc::from(source))?;
        let tensor = contents.tensors.at(0).placed(number, start);
        let own = name.strip_suffix(EXTENSION).unwrap_or(&name).to_owned();
        tensors.push(&TensorInfo { name: Some(own), ..tensor });
        shards.push(ShardFile { name, start });
    }
    let contents = Contents::of(&FOLDER, tensors);
    let container = Container { shards, ..Container::default() };
    Ok(Some(Input { container, ..Input::of_source(location, Arc::new(joined), contents) }))
}

/// Add the paths of the files in a folder and in its folders; the folder is at `path` in the first
/// one. Returns false if a file is not an array.
fn add_arrays(
    folder: &Path,
    path: &str,
    depth: usize,
    files: &mut Vec<String>,
) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { return Ok(false) };
        if name.starts_with('.') {
            continue;
        }
        let own = format!("{path}{name}");
        if entry.file_type()?.is_dir() {
            let inner = format!("{own}/");
            if depth == MAX_DEPTH || !add_arrays(&entry.path(), &inner, depth + 1, files)? {
                return Ok(false);
            }
        } else if name.len() > EXTENSION.len() && name.ends_with(EXTENSION) {
            files.push(own);
        } else {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all files of a folder are hidden or `.npy`.
fn is_of_arrays(folder: &Path) -> bool {
    let mut files = Vec::new();
    add_arrays(folder, "", 0, &mut files).unwrap_or(false)
}

fn lay_out(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    let mut files = Vec::with_capacity(request.tensors.len());
    let mut end = 0u64;
    for (first, tensor) in request.tensors.iter().enumerate() {
        check_name(&tensor.name)?;
        let header = header(&tensor.dtype, &tensor.shape, request.order)?;
        let name = format!("{}{EXTENSION}", tensor.name);
        let file = FolderFile { name, first, header: Header::Bytes(header), bytes: tensor.bytes };
        end = end.checked_add(file.len()).ok_or(LayoutFault::TooLarge)?;
        files.push(file);
    }
    let old = OldFiles::AllIf(is_of_arrays);
    Ok(Box::new(FolderFiles { files, old }))
}

/// Refuse a name that is not a path of files, or would not be read again.
fn check_name(name: &str) -> Result<(), LayoutFault> {
    let part = |part: &str| match part {
        "" => Some("a component of its path is empty"),
        _ if part.starts_with('.') => Some("a component of its path begins with a dot"),
        _ if part.len() + EXTENSION.len() > 255 || part.contains('\0') => {
            Some("no file can have it")
        }
        _ => None,
    };
    // the file of another tensor may have the name of a folder
    let folders = name.rsplit_once('/').into_iter().flat_map(|(folders, _)| folders.split('/'));
    let in_array = folders.into_iter().any(|folder| folder.ends_with(EXTENSION));
    let in_array = in_array.then_some("a folder of its path has the name of a file");
    match name.split('/').find_map(part).or(in_array) {
        Some(reason) => {
            Err(LayoutFault::TensorName { format: NAME, name: name.to_owned(), reason })
        }
        None => Ok(()),
    }
}
