//! Fetches one range of one version of a file. A file that has changed since it was opened is refused.
//!
//! Each request carries the ETag that the file had when it was opened (`If-Match`), and each response must have the
//! same ETag, version, time and length. A weak ETag cannot be requested, so it is only compared. `object_store`
//! repeats a request where this may help, and continues a response that breaks off, if it has an ETag.

use std::ops::Range;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use object_store::{Error, Extensions, GetOptions, GetRange, ObjectMeta};
use tokio::time::timeout;

use super::stores::{ATTEMPTS, Located};
use super::wire::{Note, SharedNote, locked, said};
use super::{RemoteError, RemoteVersion};

/// The fewest bytes a second that count as a response.
const SLOWEST: u64 = 4 << 10;

/// A request is repeated as often as needed, if each response brings at least this many bytes before it breaks off.
const PROGRESS: u64 = 4 << 10;

impl RemoteVersion {
    fn of(meta: &ObjectMeta) -> RemoteVersion {
        RemoteVersion {
            len: meta.size,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
            modified: meta.last_modified.timestamp(),
        }
    }

    /// The ETag, if it is strong, so that a server can be asked for exactly this version.
    fn strong(&self) -> Option<String> {
        self.e_tag.clone().filter(|tag| !tag.starts_with("W/"))
    }
}

pub(super) enum Opening {
    Ranges(RemoteVersion, Vec<u8>),
    Whole,
    /// The bucket is in another region.
    Region(String),
}

/// Request the first `count` bytes of a file, whatever its version.
pub(super) async fn open(at: &Located, count: u64) -> Result<Opening, RemoteError> {
    let note = SharedNote::default();
    let mut first = Vec::new();
    let mut take = |bytes: &[u8]| {
        first.extend_from_slice(bytes);
        true
    };
    let error = match request(at, 0..count, None, &note, &mut take).await {
        Ok(version) => return Ok(Opening::Ranges(version, first)),
        Err(error) => error,
    };
    match locked(&note).clone() {
        Note { status: Some(StatusCode::OK), .. } if error == RemoteError::NoRanges => {
            Ok(Opening::Whole)
        }
        // an empty file has no first byte
        Note { status: Some(StatusCode::RANGE_NOT_SATISFIABLE), .. } => {
            Ok(Opening::Ranges(RemoteVersion::default(), Vec::new()))
        }
        Note {
            status: Some(StatusCode::MOVED_PERMANENTLY | StatusCode::BAD_REQUEST),
            region: Some(region),
        } => Ok(Opening::Region(region)),
        _ => Err(error),
    }
}

/// Fetch a range of a file. `take` gets the bytes in order, and says whether more are wanted. The request is
/// repeated as long as each attempt brings more bytes.
pub(super) async fn fetch(
    at: &Located,
    version: &RemoteVersion,
    range: Range<u64>,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), RemoteError> {
    let mut start = range.start;
    loop {
        let before = start;
        let mut count = |bytes: &[u8]| {
            start += bytes.len() as u64;
            take(bytes)
        };
        let note = SharedNote::default();
        match request(at, before..range.end, Some(version), &note, &mut count).await {
            Err(RemoteError::Cut | RemoteError::Timeout(_)) if start - before >= PROGRESS => {}
            outcome => return outcome.map(drop),
        }
    }
}

async fn request(
    at: &Located,
    range: Range<u64>,
    version: Option<&RemoteVersion>,
    note: &SharedNote,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<RemoteVersion, RemoteError> {
    // the client limits the time without bytes, this limit the time with few bytes
    let longest =
        (at.patience + Duration::from_secs((range.end - range.start) / SLOWEST)) * ATTEMPTS;
    let answer = async {
        let mut extensions = Extensions::new();
        extensions.insert(note.clone());
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: version.and_then(RemoteVersion::strong),
            extensions,
            ..GetOptions::default()
        };
        let answer = at.store.get_opts(&at.path, options).await;
        let answer = answer.map_err(|error| fault(&error, note, version.is_some(), at.patience))?;
        let found = RemoteVersion::of(&answer.meta);
        if version.is_some_and(|version| found != *version || answer.range != range) {
            return Err(RemoteError::Changed);
        }
        let mut left = answer.range.end - answer.range.start;
        let mut stream = answer.into_stream();
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(|error| broken(&error, note, at.patience))?;
            let count = bytes.len() as u64;
            left = left.checked_sub(count).ok_or(RemoteError::TooLong)?;
            if !take(&bytes) {
                return Ok(found);
            }
        }
        if left > 0 { Err(RemoteError::Cut) } else { Ok(found) }
    };
    timeout(longest, answer).await.unwrap_or(Err(RemoteError::Timeout(longest)))
}

/// The error for a response that broke off.
fn broken(error: &Error, note: &SharedNote, patience: Duration) -> RemoteError {
    match said(error, patience) {
        timeout @ RemoteError::Timeout(_) => timeout,
        _ if locked(note).status.is_some_and(|status| status.is_success()) => RemoteError::Cut,
        _ => fault(error, note, true, patience),
    }
}

/// The error for an error of a store. Its text is not used, because it may hold the URL and the body of the response.
pub(super) fn fault(
    error: &Error,
    note: &SharedNote,
    is_known: bool,
    patience: Duration,
) -> RemoteError {
    let Some(status) = locked(note).status else {
        return match error {
            Error::Generic { .. } => said(error, patience),
            _ => RemoteError::Configuration("the request cannot be made".into()),
        };
    };
    let code = status.as_u16();
    match status {
        StatusCode::OK if matches!(error, Error::NotSupported { .. }) => RemoteError::NoRanges,
        StatusCode::NOT_FOUND | StatusCode::GONE if is_known => RemoteError::Changed,
        StatusCode::NOT_FOUND | StatusCode::GONE => RemoteError::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RemoteError::Denied(code),
        StatusCode::PRECONDITION_FAILED => RemoteError::Changed,
        // the file is shorter now
        StatusCode::RANGE_NOT_SATISFIABLE if is_known => RemoteError::Changed,
        // the response contradicts itself
        _ if status.is_success() && is_known => RemoteError::Changed,
        _ if status.is_success() => {
            RemoteError::Network("the answer of the server makes no sense".into())
        }
        _ => RemoteError::Status(code),
    }
}
