//! Small files next to the tensors in a folder; entries of a folder in an object store.

use std::cmp::Ordering;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::options::Location;
use crate::error::{Error, FileName};
use crate::source::remote::{Address, FolderEntry};
use crate::source::{open_at_once, permissions, remote};

/// The most bytes of a small file.
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

/// A file beside the files with tensors, such as the configuration of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallFile {
    pub name: String,
    pub path: PathBuf,
    /// The length in bytes when the file was found.
    pub len: u64,
    pub mode: u32,
}

/// The small files next to an input, each list sorted by name.
#[derive(Default)]
pub struct SmallFiles {
    /// The files that are copied with the tensors.
    pub files: Vec<SmallFile>,
    /// The names of hidden files, which are left out.
    pub hidden: Vec<String>,
    /// The names of links, which are left out.
    pub links: Vec<String>,
}

impl SmallFile {
    /// Read the file piece by piece, until `take` fails.
    pub(crate) fn pieces<E>(
        &self,
        most: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> io::Result<Result<(), E>> {
        // does not wait, if the file became a FIFO
        let mut file = open_at_once(&self.path, false)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("is not a regular file any more"));
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

/// The entries of a folder; opened again after a signal.
fn read_dir(folder: &Path) -> io::Result<fs::ReadDir> {
    loop {
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            entries => return entries,
        }
    }
}

/// The names in a folder that are valid text, in natural order.
pub(crate) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_by(|one, other| natural(one, other));
    Ok(names)
}

/// The order of names that compares numbers in them by value: `2` before `10`.
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

/// The entries of a folder in an object store.
pub fn remote_folder(address: &Address) -> Result<Vec<FolderEntry>, Error> {
    remote::list(address).map_err(|error| Error::file(FileName::Remote(address.clone()), error))
}

/// The small files next to an input: all regular files of its folder except those that hold tensors
/// or their index. There are none for an input without a folder. A link counts as a file only in a
/// snapshot of a cache that keeps all its files in `blobs`; any other may lead anywhere.
pub fn small_files(location: &Location) -> Result<SmallFiles, Error> {
    let mut found = SmallFiles::default();
    let Some(path) = location.path() else { return Ok(found) };
    let folder = folder_of(path);
    let own_name = path.file_name().filter(|_| path != folder);
    let blobs = blobs_of(folder);
    for entry in read_dir(folder).map_err(|error| Error::file(folder, error))? {
        let entry = entry.map_err(|error| Error::file(folder, error))?;
        let mut path = entry.path();
        let Ok(name) = entry.file_name().into_string() else { continue };
        if holds_tensors(&name) || own_name.is_some_and(|own| own == &*name) {
            continue;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let metadata = match fs::metadata(&path) {
            // a dangling link
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
        let mode = permissions(&metadata);
        found.files.push(SmallFile { name, path, len: metadata.len(), mode });
    }
    found.files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    found.hidden.sort_unstable();
    found.links.sort_unstable();
    Ok(found)
}

/// The folder with all files of a cache, where `folder` is a snapshot or in one: the `blobs` next
/// to `snapshots`, as Hugging Face's programs make them.
fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let snapshots =
        folder.ancestors().find(|it| it.file_name().is_some_and(|it| it == "snapshots"));
    let blobs = fs::canonicalize(snapshots?.parent()?.join("blobs")).ok()?;
    blobs.is_dir().then_some(blobs)
}

/// Whether small files of an input would be copied to their own folder.
pub fn is_in_folder(location: &Location, folder: &Path) -> bool {
    let of_input = location.path().and_then(|path| fs::canonicalize(folder_of(path)).ok());
    of_input.is_some() && of_input == fs::canonicalize(folder).ok()
}

/// The folder of a file, or a folder itself.
pub(crate) fn folder_of(path: &Path) -> &Path {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_in_names() {
        let sorted = ["a", "a-2.x", "a-02.x", "a-10.x", "a10b1", "a10b02", "b", "é"];
        for (at, one) in sorted.iter().enumerate() {
            for (behind, other) in sorted.iter().enumerate() {
                let order = natural(one, other);
                // names that differ only in leading zeros are adjacent
                if !(1..3).contains(&at) || !(1..3).contains(&behind) {
                    assert_eq!(order, at.cmp(&behind), "{one} {other}");
                }
                assert_eq!(natural(other, one), order.reverse());
            }
        }
    }
}
