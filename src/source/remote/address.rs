//! Remote addresses: parsed from text, and shown without secrets.
//!
//! An address may hold secrets: a name and password before the host, and the query of a presigned URL. No
//! output shows these: [`Display`](fmt::Display) and `Debug` omit them, and [`mask_secrets`] masks them in
//! texts of other origin.

use std::borrow::Cow;
use std::fmt;

/// The address of a file that is read through a network.
///
/// ```
/// use tslice::source::remote::Address;
/// let address = Address::parse("https://me:pw@host/model.safetensors?sig=abc").unwrap();
/// assert_eq!(address.to_string(), "https://host/model.safetensors");
/// assert_eq!(address.file_name(), "model.safetensors");
/// assert!(Address::parse("folder/model.safetensors").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: Scheme,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http://` and `https://`.
    Url,
    /// `s3://BUCKET/KEY`.
    S3,
    /// `gs://BUCKET/KEY`.
    Gcs,
    /// `az://CONTAINER/KEY`.
    Azure,
}

const SCHEMES: [(&str, Scheme); 5] = [
    ("http", Scheme::Url),
    ("https", Scheme::Url),
    ("s3", Scheme::S3),
    ("gs", Scheme::Gcs),
    ("az", Scheme::Azure),
];

impl Address {
    /// Parse an address; `None` for any other text, such as a path.
    pub fn parse(text: &str) -> Option<Address> {
        let (name, rest) = text.split_once("://")?;
        let (_, scheme) = SCHEMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
        Some(Address { scheme: *scheme, text: format!("{}://{rest}", name.to_ascii_lowercase()) })
    }

    #[doc(hidden)]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether the address names a folder of a store: a bucket or container alone, or a key that ends with a
    /// slash.
    pub fn is_folder(&self) -> bool {
        let rest = self.rest();
        !self.is_url() && (rest.ends_with('/') || !rest.contains('/'))
    }

    /// The whole address with its secrets, to be sent and never shown.
    #[cfg(feature = "remote")]
    pub(super) fn secret_text(&self) -> &str {
        &self.text
    }

    /// The bucket or container, and the key in it; for a URL, the authority and the path.
    #[cfg(feature = "remote")]
    pub(super) fn bucket_and_key(&self) -> (&str, &str) {
        let rest = self.rest();
        rest.split_once('/').unwrap_or((rest, ""))
    }

    /// Whether a name or password precedes the host.
    #[cfg(feature = "remote")]
    pub(super) fn has_user(&self) -> bool {
        self.bucket_and_key().0.contains('@')
    }

    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        let key = self.shown().split_once('/').map_or("", |(_, key)| key);
        key.rsplit('/').next().unwrap_or(key)
    }

    /// The address of another file in the folder of this one. A query stays: it may give access to the folder.
    #[must_use]
    #[doc(hidden)]
    pub fn with_file_name(&self, name: &str) -> Address {
        let (path, query) = self.text.split_at(self.path_len());
        let folder = path.len() - self.file_name().len();
        let name = if self.is_url() { percent_encoded(name) } else { name.to_owned() };
        Address { scheme: self.scheme, text: format!("{}{name}{query}", &path[..folder]) }
    }

    /// The address of a file below this one; `names` are the names on the way, separated by `/`. A query
    /// stays.
    #[must_use]
    #[doc(hidden)]
    pub fn below(&self, names: &str) -> Address {
        let (path, query) = self.text.split_at(self.path_len());
        let names = if self.is_url() {
            names.split('/').map(percent_encoded).collect::<Vec<_>>().join("/")
        } else {
            names.to_owned()
        };
        let path = path.trim_end_matches('/');
        Address { scheme: self.scheme, text: format!("{path}/{names}{query}") }
    }

    /// Whether the path contains a name that folders of Zarr have.
    #[doc(hidden)]
    pub fn is_zarr(&self) -> bool {
        self.shown().split('/').skip(1).any(|name| name.ends_with(".zarr"))
    }

    /// Whether the address may lead to a folder of Zarr: by its name, or by a trailing slash.
    #[doc(hidden)]
    pub fn may_be_zarr(&self) -> bool {
        let shown = self.shown();
        (self.is_zarr() || shown.ends_with('/')) && !shown.is_empty() && !shown.starts_with('/')
    }

    /// All text after the scheme.
    fn rest(&self) -> &str {
        self.text.split_once("://").map_or("", |(_, rest)| rest)
    }

    /// All text after the scheme, without a query.
    fn shown(&self) -> &str {
        let path = &self.text[..self.path_len()];
        path.split_once("://").map_or("", |(_, rest)| rest)
    }

    fn is_url(&self) -> bool {
        self.scheme == Scheme::Url
    }

    /// The length of the path: a URL has a query after it, a key may hold any character.
    fn path_len(&self) -> usize {
        let query = self.text.find(['?', '#']).filter(|_| self.is_url());
        query.unwrap_or(self.text.len())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.text.split_once("://").map_or("", |(scheme, _)| scheme);
        let rest = self.shown();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or(authority);
        write!(f, "{scheme}://{host}{path}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// A name, encoded as part of a URL's path.
fn percent_encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    let encode = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(encode).collect()
}

/// A text with the secrets of addresses masked by asterisks, one for each byte, so that positions in the text
/// stay valid. An address ends at white space or a double quote.
///
/// ```
/// use tslice::source::remote::mask_secrets;
/// assert_eq!(mask_secrets("[@https://h/a.npy?sig=1]"), "[@https://h/a.npy?******");
/// assert_eq!(mask_secrets("s3://me:pw@bucket/a.npy"), "s3://*****@bucket/a.npy");
/// assert_eq!(mask_secrets("is it a://b?"), "is it a://b?");
/// ```
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        masked.push_str(before);
        let end = address.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(address.len());
        let (address, after) = address.split_at(end);
        rest = after;
        let scheme = before[..at].rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        let is_scheme = |name: &str| SCHEMES.iter().any(|(it, _)| name.eq_ignore_ascii_case(it));
        if scheme.is_some_and(is_scheme) {
            mask_address(&mut masked, address);
        } else {
            masked.push_str(address);
        }
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// Append the part of an address after its scheme.
fn mask_address(masked: &mut String, address: &str) {
    let stars = |masked: &mut String, secret: &str| masked.extend(secret.bytes().map(|_| '*'));
    let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let authority = path.find('/').unwrap_or(path.len());
    match path[..authority].rfind('@') {
        Some(at) => {
            stars(masked, &path[..at]);
            masked.push_str(&path[at..]);
        }
        None => masked.push_str(path),
    }
    if let Some(secret) = query.strip_prefix('?') {
        masked.push('?');
        stars(masked, secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn addresses_are_told_from_paths() {
        for text in ["http://h/a", "HTTPS://h/a", "s3://b/k", "gs://b/k", "az://c/k"] {
            assert!(Address::parse(text).is_some(), "{text}");
        }
        for text in ["a.npy", "./http://h/a", "ftp://h/a", "https:/h/a", "://", "file:///a"] {
            assert!(Address::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_holds_no_secret() {
        for text in [
            "https://user:SECRET@host:8443/dir/a.npy?sig=SECRET#SECRET",
            "https://host/a.npy?X-Amz-Signature=SECRET&x[]=SECRET,SECRET",
            "s3://key:SECRET@bucket/a.npy",
        ] {
            let address = parsed(text);
            let shown = format!("{address} {address:?}");
            let masked = mask_secrets(text);
            assert!(!shown.contains("SECRET") && !masked.contains("SECRET"), "{shown} {masked}");
            assert_eq!(masked.chars().count(), text.chars().count());
        }
    }

    #[test]
    fn folders_of_zarr_are_told_by_their_name() {
        for text in ["https://h/x.zarr", "s3://b/x.zarr/", "s3://b/x.zarr/group/a", "gs://b/.zarr"]
        {
            assert!(parsed(text).is_zarr(), "{text}");
        }
        for text in ["https://h.zarr/x", "s3://b.zarr/a", "https://h/a?x.zarr", "s3://b/x.zarr.zip"]
        {
            assert!(!parsed(text).is_zarr(), "{text}");
        }
    }

    #[test]
    fn files_of_the_same_folder_are_found() {
        let beside = |text: &str, name| parsed(text).with_file_name(name).text;
        assert_eq!(beside("https://h/d/i.json?t=1", "a b#.st"), "https://h/d/a%20b%23.st?t=1");
        assert_eq!(beside("s3://b/d/i.json", "a b.st"), "s3://b/d/a b.st");
        assert_eq!(beside("s3://b/i.json", "a.st"), "s3://b/a.st");
        let below = |text: &str| parsed(text).below("a b/c/0").text;
        assert_eq!(below("https://h/x.zarr?t=1"), "https://h/x.zarr/a%20b/c/0?t=1");
        assert_eq!(below("s3://b/x.zarr/"), "s3://b/x.zarr/a b/c/0");
        assert_eq!(below("s3://b"), "s3://b/a b/c/0");
        assert_eq!(parsed("https://h/d/e.npy?x=/y").file_name(), "e.npy");
        assert_eq!(parsed("https://h").file_name(), "");
    }
}
