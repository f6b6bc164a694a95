//! Fetching one range of one version of a file: tried again where that may help, refused where the
//! file is another one by now.
//!
//! Each request carries the ETag that the file had when it was opened (`If-Match`), and each answer
//! must have the same ETag, version, time and length. A weak ETag cannot be asked for, so that it is
//! only compared. An answer that breaks off is continued where it ended.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use object_store::{Error, Extensions, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};
use tokio::time::{Instant, sleep, timeout_at};

use super::RemoteError;
use super::stores::Located;
use super::wire::{FetchFault, SharedNote};

/// How often a request fails before the job does, if it brings nothing in between.
const ATTEMPTS: u32 = 7;

/// The same for a connection to a server that was never reached.
const FIRST_ATTEMPTS: u32 = 3;

/// A try that brought so many bytes was no failure.
const PROGRESS: u64 = 4 << 10;

/// The waits between tries: the first, and the longest, also where the server asks for more.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// The fewest bytes a second that count as an answer.
const SLOWEST: u64 = 4 << 10;

/// The version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) len: u64,
    pub(super) e_tag: Option<String>,
    pub(super) version: Option<String>,
    /// In seconds; 0 if unknown.
    pub(super) modified: i64,
}

impl Identity {
    fn of(meta: &ObjectMeta) -> Identity {
        Identity {
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

/// A file of a store.
#[derive(Debug)]
pub(super) struct RemoteFile {
    pub(super) at: Located,
    pub(super) identity: Identity,
    /// How long a server may send nothing.
    pub(super) patience: Duration,
}

/// The beginning of a file that is opened.
pub(super) enum Opening {
    /// Its version, and its first bytes.
    Ranges(Identity, Vec<u8>),
    /// The server sends it as a whole.
    Whole,
    /// The bucket is in another region.
    Region(String),
}

/// Ask for the first `count` bytes of a file, whatever its version.
pub(super) async fn open(
    at: &Located,
    count: u64,
    patience: Duration,
) -> Result<Opening, RemoteError> {
    let mut tries = Tries::default();
    loop {
        let note = SharedNote::default();
        let deadline = Instant::now() + patience;
        let answer = request(at, 0..count, None, &note, deadline).await;
        let fault = match answer {
            Ok(answer) => {
                let identity = Identity::of(&answer.meta);
                let (range, mut first) = (answer.range.clone(), Vec::new());
                let file = RemoteFile { at: at.clone(), identity, patience };
                let whole = range.clone();
                let received = receive(answer, whole, patience, &mut append(&mut first)).await;
                // what does not come at once is asked for as any other range
                if received.is_err() {
                    let rest = first.len() as u64..range.end;
                    fetch(&file, rest, &mut append(&mut first)).await?;
                }
                return Ok(Opening::Ranges(file.identity, first));
            }
            Err(fault) => fault,
        };
        let (status, region) = {
            let note = note.lock();
            (note.status, note.region.clone())
        };
        match status {
            Some(StatusCode::OK) if fault.error == RemoteError::NoRanges => {
                return Ok(Opening::Whole);
            }
            // an empty file has no first byte
            Some(StatusCode::RANGE_NOT_SATISFIABLE) => {
                let identity = Identity { len: 0, e_tag: None, version: None, modified: 0 };
                return Ok(Opening::Ranges(identity, Vec::new()));
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
    file: &RemoteFile,
    range: Range<u64>,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), RemoteError> {
    let (mut at, mut tries) = (range.start, Tries { known: true, ..Tries::default() });
    while at < range.end {
        let before = at;
        let wanted = at..range.end;
        let note = SharedNote::default();
        let deadline = Instant::now() + file.patience;
        let outcome =
            match request(&file.at, wanted.clone(), Some(&file.identity), &note, deadline).await {
                Ok(answer) => {
                    let mut wants = true;
                    let mut count = |bytes: &[u8]| {
                        at += bytes.len() as u64;
                        wants = take(bytes);
                        wants
                    };
                    let received = receive(answer, wanted, file.patience, &mut count).await;
                    if !wants {
                        return Ok(());
                    }
                    received
                }
                Err(fault) => Err(fault),
            };
        if let Err(fault) = outcome {
            tries.failed(fault, at - before).await?;
        }
    }
    Ok(())
}

/// One request, and the head of its answer.
async fn request(
    at: &Located,
    range: Range<u64>,
    identity: Option<&Identity>,
    note: &SharedNote,
    deadline: Instant,
) -> Result<GetResult, FetchFault> {
    let mut extensions = Extensions::new();
    extensions.insert(note.clone());
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        if_match: identity.and_then(Identity::strong),
        extensions,
        ..GetOptions::default()
    };
    let store: &Arc<dyn ObjectStore> = &at.store;
    let asked = Instant::now();
    let Ok(answer) = timeout_at(deadline, store.get_opts(&at.path, options)).await else {
        return Err(FetchFault::transient(RemoteError::Timeout(deadline - asked)));
    };
    let answer = answer.map_err(|error| fault(&error, note, identity.is_some()))?;
    match identity {
        Some(identity) if Identity::of(&answer.meta) != *identity || answer.range != range => {
            Err(FetchFault::fatal(RemoteError::Changed))
        }
        _ => Ok(answer),
    }
}

/// The bytes of an answer.
async fn receive(
    answer: GetResult,
    range: Range<u64>,
    patience: Duration,
    take: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(), FetchFault> {
    let mut left = range.end - range.start;
    let begun = Instant::now();
    // however often a few bytes come
    let longest = patience + Duration::from_secs(left / SLOWEST);
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
    let note = note.lock();
    if let Some(failure) = &note.failure {
        return failure.clone();
    }
    let Some(status) = note.status else {
        return match error {
            Error::Generic { .. } if FetchFault::is_of_wire(error) => FetchFault::of(error),
            Error::Generic { .. } => FetchFault::fatal(RemoteError::Configuration(
                "no credentials: the service that gives them refuses".into(),
            )),
            _ => FetchFault::fatal(RemoteError::Configuration("the request cannot be made".into())),
        };
    };
    let code = status.as_u16();
    match status {
        StatusCode::OK if matches!(error, Error::NotSupported { .. }) => {
            FetchFault::fatal(RemoteError::NoRanges)
        }
        StatusCode::NOT_FOUND | StatusCode::GONE if is_known => {
            FetchFault::fatal(RemoteError::Changed)
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => FetchFault::fatal(RemoteError::NotFound),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            FetchFault::fatal(RemoteError::Denied(code))
        }
        StatusCode::PRECONDITION_FAILED => FetchFault::fatal(RemoteError::Changed),
        // the file is shorter now
        StatusCode::RANGE_NOT_SATISFIABLE if is_known => FetchFault::fatal(RemoteError::Changed),
        _ if status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT =>
        {
            FetchFault {
                wait: note.retry_after,
                ..FetchFault::transient(RemoteError::Status(code))
            }
        }
        // an answer that says one thing and another
        _ if status.is_success() && is_known => FetchFault::fatal(RemoteError::Changed),
        _ if status.is_success() => FetchFault::fatal(RemoteError::Network(
            "the answer of the server makes no sense".into(),
        )),
        _ => FetchFault::fatal(RemoteError::Status(code)),
    }
}

/// The failures in a row.
#[derive(Default)]
struct Tries {
    count: u32,
    /// Whether the server was ever reached.
    known: bool,
}

impl Tries {
    /// Wait before the next try, unless there is none. `brought` are the bytes that came all the same.
    async fn failed(&mut self, fault: FetchFault, brought: u64) -> Result<(), RemoteError> {
        let FetchFault { error, is_transient, is_connect, wait } = fault;
        self.known |= !is_connect;
        self.count = if brought >= PROGRESS { 1 } else { self.count + 1 };
        let most = if self.known { ATTEMPTS } else { FIRST_ATTEMPTS };
        if !is_transient {
            return Err(error);
        }
        if self.count >= most {
            return Err(RemoteError::GaveUp { error: Box::new(error), attempts: self.count });
        }
        let (first, longest) = BACKOFF;
        let backoff = first * (1 << (self.count - 1).min(10));
        // so that those that failed together do not come again together
        let spread = backoff.mul_f64(0.5 + spread());
        sleep(wait.map_or(spread, |wait| wait.max(spread)).min(longest)).await;
        Ok(())
    }
}

/// A number from 0 to 1 that differs from call to call.
fn spread() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}
