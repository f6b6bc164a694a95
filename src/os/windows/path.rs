//! Names, and the paths of names in open folders.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// An argument that is a name or a path.
pub(crate) trait Arg {
    fn as_path(&self) -> &Path;
}

impl<T: AsRef<OsStr> + ?Sized> Arg for T {
    fn as_path(&self) -> &Path {
        Path::new(self.as_ref())
    }
}

/// The name with these bytes, from a file or a user: UTF-8 with lone surrogates, as Windows has in names (WTF-8).
/// Invalid bytes are replaced.
pub fn name_of(bytes: Vec<u8>) -> OsString {
    let bytes = match String::from_utf8(bytes) {
        Ok(name) => return name.into(),
        Err(error) => error.into_bytes(),
    };
    let mut wide: Vec<u16> = Vec::new();
    let mut rest = &bytes[..];
    while let Some(chunk) = rest.utf8_chunks().next() {
        wide.extend(chunk.valid().encode_utf16());
        rest = &rest[chunk.valid().len()..];
        (wide, rest) = match rest {
            [] => break,
            [0xed, high @ 0xa0..=0xbf, low @ 0x80..=0xbf, rest @ ..] => {
                let half = 0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f);
                ([wide, vec![half]].concat(), rest)
            }
            _ => ([wide, vec![0xfffd]].concat(), &rest[chunk.invalid().len()..]),
        };
    }
    OsString::from_wide(&wide)
}

/// The path of a name below a folder. `NUL` is the device, wherever it is.
pub(super) fn below(folder: PathBuf, name: &Path) -> PathBuf {
    match name.to_str() {
        Some(device) if device.eq_ignore_ascii_case("NUL") => PathBuf::from(r"\\.\NUL"),
        _ if folder.as_os_str().is_empty() => name.to_owned(),
        _ => folder.join(name),
    }
}

/// A path as users know it, without the prefix that lifts the limit on its length.
pub(super) fn plain(path: PathBuf) -> PathBuf {
    let text = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    match text {
        Some(text) if text.as_bytes().get(1) == Some(&b':') => PathBuf::from(text),
        _ => path,
    }
}

/// The files that match a path with `*` or `?`, sorted; the path itself if none match. On Windows programs do this, not
/// the shell.
pub fn expanded(path: &Path) -> Vec<PathBuf> {
    let is_pattern = |name: &OsStr| name.as_encoded_bytes().iter().any(|byte| b"*?".contains(byte));
    let is_address = path.to_str().is_some_and(|text| text.contains("://"));
    if is_address || !is_pattern(path.as_os_str()) {
        return vec![path.to_owned()];
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let part = part.as_os_str();
        let pattern: Vec<char> = part.to_string_lossy().to_lowercase().chars().collect();
        let below = |folder: PathBuf| {
            if !is_pattern(part) {
                return vec![folder.join(part)];
            }
            let there = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            let entries = std::fs::read_dir(there).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name()).filter(|name| {
                let name: Vec<char> = name.to_string_lossy().to_lowercase().chars().collect();
                matches(&pattern, &name) && (name.first() != Some(&'.') || pattern[0] == '.')
            });
            names.map(|name| folder.join(name)).collect()
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found.retain(|path| path.exists());
    found.sort();
    if found.is_empty() { vec![path.to_owned()] } else { found }
}

fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    // the position of the last star, and the end of the text that it matches so far
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, end)) = star else { return false };
                star = Some((place, end + 1));
                (at, from) = (place + 1, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}
