//! What lies in a folder beside the tensors: small files, and the shards of an index that is there; what lies
//! in a folder of a store.

use std::cmp::Ordering;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::options::{Location, Notes, UseOfIndex};
use super::sharded::ShardsFault;
use crate::error::{Error, FileName};
use crate::format::shards::{MAX_INDEX, ShardIndex};
use crate::format::{Foreign, NotRead};
use crate::source::remote::{Address, FolderEntry};
use crate::source::{NO_WAIT, remote};

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
    pub name: String,
    pub path: PathBuf,
    /// How long it was when it was found, in bytes.
    pub len: u64,
    pub mode: u32,
}

/// The small files beside an input, each list sorted by name.
#[derive(Default)]
pub struct SmallFiles {
    /// Those that go with a copy of the tensors.
    pub files: Vec<SmallFile>,
    /// The names of those that are left out as they are hidden.
    pub hidden: Vec<String>,
    /// The names of links, which are left out.
    pub links: Vec<String>,
}

impl SmallFile {
    /// Read it, so many bytes at a time, until `take` fails.
    pub(crate) fn pieces<E>(
        &self,
        most: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        // nobody waits for what became a FIFO
        let mut file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("is no regular file any more"));
        }
        let mut left = self.len;
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

/// What lies in a folder; opened again where a signal interrupts.
fn read_dir(folder: &Path) -> io::Result<fs::ReadDir> {
    loop {
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            entries => return entries,
        }
    }
}

/// The names in a folder that are text, in natural order.
fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_by(|one, other| natural(one, other));
    Ok(names)
}

/// The order of names in which numbers count: `2` before `10`.
pub(crate) fn natural(one: &str, other: &str) -> Ordering {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let mut a = one.as_bytes();
    let mut b = other.as_bytes();
    while let ([first, rest_a @ ..], [second, rest_b @ ..]) = (a, b) {
        if !is_digit(first) || !is_digit(second) {
            match first.cmp(second) {
                Ordering::Equal => (a, b) = (rest_a, rest_b),
                unequal => return unequal,
            }
            continue;
        }
        let digits = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
        let (number_a, rest_a) = a.split_at(digits(a));
        let (number_b, rest_b) = b.split_at(digits(b));
        let zeros = |text: &[u8]| text.iter().take_while(|byte| **byte == b'0').count();
        let plain_a = &number_a[zeros(number_a)..];
        let plain_b = &number_b[zeros(number_b)..];
        match plain_a.len().cmp(&plain_b.len()).then_with(|| plain_a.cmp(plain_b)) {
            Ordering::Equal => (a, b) = (rest_a, rest_b),
            unequal => return unequal,
        }
    }
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

/// The name of a checkpoint of one file.
const ONE: &str = "model.safetensors";

/// A kind of checkpoint: the usual name of its index, and what stands in any such name.
type IndexNames = (&'static str, &'static str);
const OF_SAFETENSORS: IndexNames = ("model.safetensors.index.json", ".safetensors.index.");
const OF_TORCH: IndexNames = ("pytorch_model.bin.index.json", ".bin.index.");

/// Whether a file with this name is the index of a checkpoint, whatever is in it.
pub(super) fn is_index(name: &str) -> bool {
    [OF_SAFETENSORS, OF_TORCH].into_iter().any(|(_, part)| is_index_of(name, part))
}

fn is_index_of(name: &str, part: &str) -> bool {
    name.contains(part) && name.ends_with(".json")
}

/// The files of a checkpoint in a folder.
pub(super) enum CheckpointFiles {
    /// A file that is all of it, or its index.
    One(PathBuf),
    /// Shards without an index.
    Shards(Vec<String>),
}

/// What a folder holds: `model.safetensors`, an index, or shards.
pub(super) fn checkpoint_in(
    folder: &Path,
    index: UseOfIndex,
    notes: &Notes,
) -> Result<CheckpointFiles, Error> {
    let names = names_in(folder).map_err(|error| Error::file(folder, error))?;
    if names.iter().any(|name| name == ONE) {
        let others = (index != UseOfIndex::Ignored).then(|| index_of_others(folder, &names));
        let Some(index) = others.flatten() else {
            return Ok(CheckpointFiles::One(folder.join(ONE)));
        };
        let folder = folder.display();
        notes.add(format_args!("{folder}: its index names other files, so that {ONE} is not read"));
        return Ok(CheckpointFiles::One(index));
    }
    if index != UseOfIndex::Ignored {
        let mut indexes = [OF_SAFETENSORS, OF_TORCH].into_iter();
        if let Some(index) = indexes.find_map(|kind| index_among(folder, &names, kind)) {
            return Ok(CheckpointFiles::One(index?));
        }
    }
    shards_among(folder, names).map(|mut shards| match shards.as_slice() {
        [_] => CheckpointFiles::One(folder.join(shards.remove(0))),
        _ => CheckpointFiles::Shards(shards),
    })
}

/// The shards in a folder, in natural order.
pub(super) fn shards_in(folder: &Path) -> Result<Vec<String>, Error> {
    shards_among(folder, names_in(folder).map_err(|error| Error::file(folder, error))?)
}

fn shards_among(folder: &Path, names: Vec<String>) -> Result<Vec<String>, Error> {
    let is_there = |other: &str| names.iter().any(|name| name == other);
    let foreign = |kind| Err(Error::file(folder, NotRead(kind)));
    let ends = |name: &&String, end: &str| name.ends_with(end) && !name.starts_with('.');
    let of = |begin: &str, end: &str| -> Vec<String> {
        let shards = names.iter().filter(|name| ends(name, end) && name.starts_with(begin));
        shards.cloned().collect()
    };
    let shards = [of("", ".safetensors"), of("pytorch_model", ".bin")];
    match shards.into_iter().find(|shards| !shards.is_empty()) {
        Some(shards) => Ok(shards),
        None if names.iter().any(|name| name == "model_index.json") => foreign(Foreign::Diffusers),
        None if names.iter().any(|name| name.ends_with(".distcp")) => foreign(Foreign::DcpFolder),
        None if ["_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt"]
            .into_iter()
            .any(is_there) =>
        {
            foreign(Foreign::Orbax)
        }
        None => Err(Error::file(folder, ShardsFault::NoIndex)),
    }
}

/// The index in a folder that names other files than `model.safetensors`, of which some are there.
fn index_of_others(folder: &Path, names: &[String]) -> Option<PathBuf> {
    let index = index_among(folder, names, OF_SAFETENSORS)?.ok()?;
    let files = files_of(&index).ok()?;
    let is_there = |file: &String| names.contains(file);
    (!files.iter().any(|file| file == ONE) && files.iter().any(is_there)).then_some(index)
}

/// The files that an index names; none where it is no valid one.
fn files_of(index: &Path) -> io::Result<Vec<String>> {
    let mut json = Vec::new();
    // nobody waits for the writer of a FIFO
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(index)?;
    file.take(MAX_INDEX + 1).read_to_end(&mut json)?;
    Ok(ShardIndex::parse(&json).map(|index| index.files).unwrap_or_default())
}

/// The index among the names in a folder. Of several, that of the usual name counts.
fn index_among(
    folder: &Path,
    names: &[String],
    (usual, part): IndexNames,
) -> Option<Result<PathBuf, Error>> {
    let is_one = |name: &&String| is_index_of(name, part);
    let indexes: Vec<&String> = names.iter().filter(is_one).collect();
    let of_usual_name = indexes.iter().find(|name| ***name == usual);
    match (of_usual_name, indexes.as_slice()) {
        (_, []) => None,
        (Some(name), _) | (None, [name]) => Some(Ok(folder.join(name))),
        (None, _) => {
            let shown = indexes.into_iter().cloned().collect();
            Some(Err(Error::file(folder, ShardsFault::SeveralIndexes(shown))))
        }
    }
}

/// The one file that a folder is read as; `None` for an index or several shards.
pub(crate) fn single_file(path: &Path) -> Option<PathBuf> {
    match checkpoint_in(path, UseOfIndex::Followed, &Notes::default()).ok()? {
        CheckpointFiles::One(file) if file.extension().is_none_or(|it| it != "json") => Some(file),
        _ => None,
    }
}

/// What lies in a folder of a store.
pub fn remote_folder(address: &Address) -> Result<Vec<FolderEntry>, Error> {
    remote::list(address).map_err(|error| Error::file(FileName::Remote(address.clone()), error))
}

/// The small files beside an input: all regular files of its folder but those that hold tensors, or their
/// index. None of an input that lies in no folder. A link stands for a file only in a snapshot of a cache
/// that keeps all its files in `blobs`; any other may lead anywhere.
pub fn small_files(location: &Location) -> Result<SmallFiles, Error> {
    let mut found = SmallFiles::default();
    let Some(path) = location.path() else { return Ok(found) };
    let folder = folder_of(path);
    let blobs = blobs_of(folder);
    for entry in read_dir(folder).map_err(|error| Error::file(folder, error))? {
        let entry = entry.map_err(|error| Error::file(folder, error))?;
        let mut path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        if holds_tensors(&name) || Some(&*path) == location.path() {
            continue;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let metadata = match fs::metadata(&path) {
            // one that leads nowhere
            Err(_) if is_link => entry.metadata(),
            metadata => metadata,
        };
        let metadata = match metadata {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(|error| Error::file(&*path, error))?,
        };
        if metadata.is_dir() || !is_link && !metadata.is_file() || metadata.len() > SMALL {
            continue;
        }
        if name.starts_with('.') {
            found.hidden.push(name);
            continue;
        }
        if is_link {
            match fs::canonicalize(&path) {
                Ok(blob) if metadata.is_file() && blob.parent() == blobs.as_deref() => path = blob,
                _ => {
                    found.links.push(name);
                    continue;
                }
            }
        }
        let mode = metadata.mode() & 0o777;
        found.files.push(SmallFile { name, path, len: metadata.len(), mode });
    }
    found.files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    found.hidden.sort_unstable();
    found.links.sort_unstable();
    Ok(found)
}

/// The folder that holds all files of a cache of which `folder` is, or lies in, a snapshot: the `blobs` beside
/// `snapshots`, as Hugging Face's programs make them.
fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let snapshots =
        folder.ancestors().find(|it| it.file_name().is_some_and(|it| it == "snapshots"));
    let blobs = fs::canonicalize(snapshots?.parent()?.join("blobs")).ok()?;
    blobs.is_dir().then_some(blobs)
}

/// Whether small files of an input would be copied to the folder in which they are.
pub fn is_in_folder(location: &Location, folder: &Path) -> bool {
    let of_input = location.path().and_then(|path| fs::canonicalize(folder_of(path)).ok());
    of_input.is_some() && of_input == fs::canonicalize(folder).ok()
}

/// The folder of a file, or a folder itself.
pub(super) fn folder_of(path: &Path) -> &Path {
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
pub(crate) fn old_shards(folder: &Path) -> io::Result<Vec<String>> {
    if !found(folder)?.is_some_and(|folder| folder.is_dir()) {
        return Ok(Vec::new());
    }
    let Some(Ok(index)) = index_among(folder, &names_in(folder)?, OF_SAFETENSORS) else {
        return Ok(Vec::new());
    };
    if !found(&index)?.is_some_and(|index| index.is_file()) {
        return Ok(Vec::new());
    }
    let files = files_of(&index)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_in_names() {
        let sorted = ["a", "a-2.x", "a-02.x", "a-10.x", "a10b1", "a10b02", "b", "é"];
        for (at, one) in sorted.iter().enumerate() {
            for (behind, other) in sorted.iter().enumerate() {
                let order = natural(one, other);
                // those that differ by zeros alone stand next to each other
                if !(1..3).contains(&at) || !(1..3).contains(&behind) {
                    assert_eq!(order, at.cmp(&behind), "{one} {other}");
                }
                assert_eq!(natural(other, one), order.reverse());
            }
        }
    }
}
