//! What lies in a folder beside the tensors: small files, and the shards of an index that is there; what lies
//! in a folder of a store.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, FileName};
use crate::format::shards::{MAX_INDEX, ShardIndex};
use crate::input::Location;
use crate::input::sharded;
use crate::source::remote::{self, Address, FolderEntry};

/// Files of more bytes are not small.
const SMALL: u64 = 64 << 20;

/// The extensions of files that hold tensors.
const OF_TENSORS: [&str; 12] = [
    "safetensors",
    "npy",
    "npz",
    "bin",
    "pt",
    "pth",
    "ckpt",
    "gguf",
    "h5",
    "onnx",
    "msgpack",
    "raw",
];

/// A file beside those of the tensors, such as the configuration of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallFile {
    /// The name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// How long it was when it was found, in bytes.
    pub len: u64,
}

impl SmallFile {
    /// Read it, so many bytes at a time, until `take` fails.
    ///
    /// # Errors
    /// A file that cannot be read, or is not as long as it was.
    pub(crate) fn pieces<E>(
        &self,
        most: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        // nobody waits for what became a FIFO
        if !fs::metadata(&self.path)?.is_file() {
            return Err(io::Error::other("is no regular file any more"));
        }
        let (mut file, mut left) = (File::open(&self.path)?, self.len);
        let mut piece = vec![0; most.min(usize::try_from(left).unwrap_or(most)).max(1)];
        loop {
            let read = match file.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            match left.checked_sub(read as u64) {
                Some(0) if read == 0 => return Ok(Ok(())),
                Some(rest) if read > 0 => left = rest,
                _ => return Err(io::Error::other("was changed while it was being copied")),
            }
            if let Err(error) = take(&piece[..read]) {
                return Ok(Err(error));
            }
        }
    }
}

/// What lies in a folder of a store.
///
/// # Errors
/// [`RemoteError`](crate::source::remote::RemoteError).
pub fn remote_folder(address: &Address) -> Result<Vec<FolderEntry>, Error> {
    remote::list(address).map_err(|error| Error::file(FileName::Remote(address.clone()), error))
}

/// The small files beside an input, sorted by name: all regular files of its folder but those that hold
/// tensors, or their index. None of an input that lies in no folder.
///
/// # Errors
/// A folder that cannot be read.
pub fn small_files(location: &Location) -> Result<Vec<SmallFile>, Error> {
    let Some(path) = location.path() else { return Ok(Vec::new()) };
    let folder = folder_of(path);
    let mut files = Vec::new();
    for entry in sharded::read_dir(folder).map_err(|error| Error::file(folder, error))? {
        let entry = entry.map_err(|error| Error::file(folder, error))?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        // links are followed, as a copy of the model would
        let found = found(&path).map_err(|error| Error::file(&*path, error))?;
        let Some(found) = found.filter(fs::Metadata::is_file) else { continue };
        if found.len() <= SMALL && !holds_tensors(&name) && Some(&*path) != location.path() {
            files.push(SmallFile { name, path, len: found.len() });
        }
    }
    files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Whether small files of an input would be copied to the folder in which they are.
pub fn is_in_folder(location: &Location, folder: &Path) -> bool {
    let of_input = location.path().and_then(|path| fs::canonicalize(folder_of(path)).ok());
    of_input.is_some() && of_input == fs::canonicalize(folder).ok()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        _ if path.is_dir() => path,
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn holds_tensors(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    OF_TENSORS.contains(&&*extension)
        || name.ends_with(".index.json")
        || name.starts_with(".tslice-")
}

/// The index that is in a folder, and its shards: none where there is no index, or no valid one.
///
/// # Errors
/// A folder or an index that cannot be read: its shards would stay beside new ones.
pub(crate) fn old_shards(folder: &Path) -> io::Result<Vec<String>> {
    if !found(folder)?.is_some_and(|folder| folder.is_dir()) {
        return Ok(Vec::new());
    }
    let index = match sharded::index_of(folder) {
        Ok(path) => path,
        Err(error) => return error.cause.downcast().map_or_else(|_| Ok(Vec::new()), Err),
    };
    if !found(&index)?.is_some_and(|index| index.is_file()) {
        return Ok(Vec::new());
    }
    let mut json = Vec::new();
    File::open(&index)?.take(MAX_INDEX + 1).read_to_end(&mut json)?;
    let files = ShardIndex::parse(&json).map(|index| index.files).unwrap_or_default();
    let name = index.file_name().map(|name| name.to_string_lossy().into_owned());
    // an index may name anything
    let shards = files.into_iter().filter(|file| file.ends_with(".safetensors"));
    Ok(shards.chain(name).collect())
}

/// What stands under a name, if anything does.
fn found(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}
