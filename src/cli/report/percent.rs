//! Names of files that are not UTF-8, and so no text, for programs that read JSON.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name with `%XX` for every byte but ASCII letters, digits and `-._~/`, as in addresses; `None`
/// where it is UTF-8, and can be written as it is.
pub(crate) fn percent_encoded(path: &Path) -> Option<String> {
    if path.to_str().is_some() {
        return None;
    }
    let encoded = path.as_os_str().as_bytes().iter().map(|&byte| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    Some(encoded.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn only_what_is_not_utf_8_is_encoded() {
        let encoded = |name: &[u8]| percent_encoded(Path::new(OsStr::from_bytes(name)));
        assert_eq!(encoded("é a.npy".as_bytes()), None);
        assert_eq!(encoded(b"d/\xe9 100%.npy").as_deref(), Some("d/%E9%20100%25.npy"));
    }
}
