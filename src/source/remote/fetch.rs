//! Fetching one range of one version of a file: tried again where that may help (`retry.rs`), refused
//! where the file is another one by now.
//!
//! Each request carries the ETag that the file had when it was opened (`If-Match`), and each answer
//! must have the same ETag, version, time and length. A weak ETag cannot be asked for, so that it is
//! only compared. An answer that breaks off is continued where it ended.

use std::ops::Range;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use object_store::{Error, Extensions, GetOptions, GetRange, GetResult, ObjectMeta};
use tokio::time::{Instant, timeout, timeout_at};

use super::retry::{Tries, longest_answer};
use super::stores::Located;
use super::wire::{FetchFault, Note, SharedNote, locked};
use super::{RemoteError, RemoteVersion};

impl RemoteVersion {
    fn of(meta: &ObjectMeta) -> RemoteVersion {
        RemoteVersion {
            len: meta.size,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
            modified: meta.last_modified.timestamp(),
        }
    }

    /// The ETag, where a server can be asked for exactly that one.
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

/// Ask for the first `count` bytes of a file, whatever its version.
pub(super) async fn open(at: &Located, count: u64) -> Result<Opening, RemoteError> {
    let mut tries = Tries::default();
    loop {
        let note = SharedNote::default();
        let fault = match request(at, 0..count, None, &note).await {
            Ok(answer) => {
                let version = RemoteVersion::of(&answer.meta);
                let range = answer.range.clone();
                let mut first = Vec::new();
                let whole = range.clone();
                let received = receive(answer, whole, at.patience, &mut append(&mut first)).await;
                // what does not come at once is asked for as any other range
                if received.is_err() {
                    let rest = first.len() as u64..range.end;
                    fetch(at, &version, rest, &mut append(&mut first)).await?;
                }
                return Ok(Opening::Ranges(version, first));
            }
            Err(fault) => fault,
        };
        let Note { status, region, .. } = locked(&note).clone();
        match status {
            Some(StatusCode::OK) if fault.error == RemoteError::NoRanges => {
                return Ok(Opening::Whole);
            }
            // an empty file has no first byte
            Some(StatusCode::RANGE_NOT_SATISFIABLE) => {
                return Ok(Opening::Ranges(RemoteVersion::default(), Vec::new()));
            }
            Some(StatusCode::MOVED_PERMANENTLY | StatusCode::BAD_REQUEST) => {
                if let Some(region) = region {
                    return Ok(Opening::Region(region));
                }
            }
            _ => {}
        }
        tries.failed(fault, 0).await?;
    }
}

/// Take all bytes that come, behind those that are there.
fn append(all: &mut Vec<u8>) -> impl FnMut(&[u8]) -> bool + Send {
    |bytes| {
        all.extend_from_slice(bytes);
        true
    }
}

/// Bring a range of a file; `take` gets its bytes in order, and says whether more are wanted.
pub(super) async fn fetch(
    at: &Located,
    version: &RemoteVersion,
    range: Range<u64>,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), RemoteError> {
    let mut tries = Tries::of_known();
    let mut start = range.start;
    while start < range.end {
        let before = start;
        let wanted = start..range.end;
        let outcome = match request(at, wanted.clone(), Some(version), &SharedNote::default()).await
        {
            Ok(answer) => {
                let mut wants = true;
                let mut count = |bytes: &[u8]| {
                    start += bytes.len() as u64;
                    wants = take(bytes);
                    wants
                };
                let received = receive(answer, wanted, at.patience, &mut count).await;
                if !wants {
                    return Ok(());
                }
                received
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = outcome {
            tries.failed(fault, start - before).await?;
        }
    }
    Ok(())
}

async fn request(
    at: &Located,
    range: Range<u64>,
    version: Option<&RemoteVersion>,
    note: &SharedNote,
) -> Result<GetResult, FetchFault> {
    let mut extensions = Extensions::new();
    extensions.insert(note.clone());
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: version.and_then(RemoteVersion::strong),
        extensions,
        ..GetOptions::default()
    };
    let Ok(answer) = timeout(at.patience, at.store.get_opts(&at.path, options)).await else {
        return Err(FetchFault::transient(RemoteError::Timeout(at.patience)));
    };
    let answer = answer.map_err(|error| fault(&error, note, version.is_some()))?;
    match version {
        Some(version) if RemoteVersion::of(&answer.meta) != *version || answer.range != range => {
            Err(FetchFault::fatal(RemoteError::Changed))
        }
        _ => Ok(answer),
    }
}

async fn receive(
    answer: GetResult,
    range: Range<u64>,
    patience: Duration,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), FetchFault> {
    let mut left = range.end - range.start;
    let begun = Instant::now();
    let longest = longest_answer(patience, left);
    let mut stream = answer.into_stream();
    loop {
        let deadline = (Instant::now() + patience).min(begun + longest);
        let Ok(next) = timeout_at(deadline, stream.next()).await else {
            return Err(FetchFault::transient(RemoteError::Timeout(patience)));
        };
        match next {
            Some(Ok(bytes)) => {
                let count = bytes.len() as u64;
                if count > left {
                    return Err(FetchFault::fatal(RemoteError::TooLong));
                }
                left -= count;
                if !take(&bytes) {
                    return Ok(());
                }
            }
            Some(Err(_)) => return Err(FetchFault::transient(RemoteError::Cut)),
            None if left > 0 => return Err(FetchFault::transient(RemoteError::Cut)),
            None => return Ok(()),
        }
    }
}

/// What a store's error comes to. Its text may hold the URL and the body of the answer, so that it is
/// not used.
pub(super) fn fault(error: &Error, note: &SharedNote, is_known: bool) -> FetchFault {
    let note = locked(note);
    if let Some(failure) = &note.failure {
        return failure.clone();
    }
    let Some(status) = note.status else {
        let refused = match error {
            Error::Generic { .. } if FetchFault::is_of_wire(error) => return FetchFault::of(error),
            Error::Generic { .. } => "no credentials: the service that gives them refuses",
            _ => "the request cannot be made",
        };
        return FetchFault::fatal(RemoteError::Configuration(refused.into()));
    };
    let code = status.as_u16();
    let is_overloaded = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT;
    if is_overloaded {
        let wait = note.retry_after;
        return FetchFault { wait, ..FetchFault::transient(RemoteError::Status(code)) };
    }
    FetchFault::fatal(match status {
        StatusCode::OK if matches!(error, Error::NotSupported { .. }) => RemoteError::NoRanges,
        StatusCode::NOT_FOUND | StatusCode::GONE if is_known => RemoteError::Changed,
        StatusCode::NOT_FOUND | StatusCode::GONE => RemoteError::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RemoteError::Denied(code),
        StatusCode::PRECONDITION_FAILED => RemoteError::Changed,
        // the file is shorter now
        StatusCode::RANGE_NOT_SATISFIABLE if is_known => RemoteError::Changed,
        // an answer that says one thing and another
        _ if status.is_success() && is_known => RemoteError::Changed,
        _ if status.is_success() => {
            RemoteError::Network("the answer of the server makes no sense".into())
        }
        _ => RemoteError::Status(code),
    })
}
