//! A remote file as a [`Source`].

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use futures_util::StreamExt;
use object_store::client::{HttpRequestBody, HttpService};

use super::super::open::{IoMode, OpenError, Opened};
use super::super::{Advice, Source, SourceResult, Stream, WINDOW, checked_len, read_window};
use super::address::Address;
use super::fetch::Opening;
use super::network::{Network, Pending, RemoteFile};
use super::requests::REQUEST_BYTES;
use super::stores::{Located, locate};
use super::wire::{Wire, said};
use super::{RemoteError, RemoteVersion, fetch};

/// The length of the first request, in bytes: most headers are shorter.
const FIRST_BYTES: u64 = 16 << 10;

/// The length of the first request for a file that is read as a whole, in bytes.
pub(super) const WHOLE_BYTES: u64 = 16 << 20;

/// A file of which any range can be requested.
struct RemoteSource {
    network: Arc<Network>,
    file: Arc<RemoteFile>,
}

/// Open a remote file, with one request for its first bytes. A server that sends only whole files
/// makes it a stream.
pub fn open(address: &Address, io: IoMode) -> Result<Opened, OpenError> {
    let (network, first) = begin_open(address, io)?;
    opened(network, first.wait()?)
}

fn begin_open(
    address: &Address,
    io: IoMode,
) -> Result<(Arc<Network>, Pending<FirstAnswer>), OpenError> {
    if io == IoMode::Mmap {
        return Err(RemoteError::NotMappable.into());
    }
    let network = Network::get()?;
    let first = begin(&network, address, FIRST_BYTES);
    Ok((network, first))
}

/// Open a file whose first bytes have come.
pub(super) fn opened(
    network: Arc<Network>,
    (at, opening): FirstAnswer,
) -> Result<Opened, OpenError> {
    match (opening, at.wire.clone()) {
        (Opening::Ranges(version, first), _) => {
            let file = network.open(at, version, first);
            Ok(Opened::Random(Box::new(RemoteSource { network, file })))
        }
        (Opening::Whole, Some(wire)) => {
            Ok(Opened::Forward(open_stream(network, wire, at.patience)?))
        }
        (Opening::Whole, None) => Err(RemoteError::NoRanges.into()),
        (Opening::Region(_), _) => Err(RemoteError::Status(301).into()),
    }
}

/// The location of a file, and the server's first response.
pub(super) type FirstAnswer = (Located, Opening);

/// Request the version of a file, and its first bytes.
pub(super) fn begin(network: &Network, address: &Address, count: u64) -> Pending<FirstAnswer> {
    let address = address.clone();
    let wire = network.wire.clone();
    network.start(async move {
        let mut at = locate(&address, &wire, None)?;
        let mut opening = fetch::open(&at, count).await?;
        if let Opening::Region(region) = &opening {
            at = locate(&address, &wire, Some(region))?;
            opening = fetch::open(&at, count).await?;
        }
        Ok((at, opening))
    })
}

/// The version of a file, as all machines see it, by one request.
pub fn version(address: &Address) -> Result<RemoteVersion, OpenError> {
    let version = match begin(&*Network::get()?, address, 1).wait()? {
        (_, Opening::Ranges(version, _)) => version,
        (_, Opening::Whole) => return Err(RemoteError::NoRanges.into()),
        (_, Opening::Region(_)) => return Err(RemoteError::Status(301).into()),
    };
    if version.tag().is_empty() && version.modified == 0 {
        return Err(RemoteError::NoVersion.into());
    }
    Ok(version)
}

/// Open several files at the same time, so that they take no longer than one file.
pub fn open_all(addresses: &[Address], io: IoMode) -> Vec<Result<Opened, OpenError>> {
    const AT_A_TIME: usize = 16;
    let mut all = Vec::with_capacity(addresses.len());
    for some in addresses.chunks(AT_A_TIME) {
        let begun: Vec<_> = some.iter().map(|address| begin_open(address, io)).collect();
        all.extend(begun.into_iter().map(|begun| {
            let (network, first) = begun?;
            opened(network, first.wait()?)
        }));
    }
    all
}

impl Drop for RemoteSource {
    fn drop(&mut self) {
        self.network.close(&self.file);
    }
}

impl Source for RemoteSource {
    fn len(&self) -> u64 {
        self.file.version.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        read_window(self, range, scratch)
    }

    fn read(&self, range: Range<u64>, _scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        checked_len(&range, self.len())?;
        Ok(self.network.read(&self.file, range.start, out)?)
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn is_hungry(&self) -> bool {
        self.network.is_hungry()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        let range = range.start..range.end.min(self.len());
        match advice {
            Advice::WillNeed => {
                let mut start = range.start;
                while start < range.end {
                    let end = range.end.min(start + REQUEST_BYTES);
                    self.network.announce(&self.file, start..end, false);
                    start = end;
                }
            }
            Advice::Sequential => self.network.announce(&self.file, range, true),
            Advice::Random | Advice::Populate | Advice::Load | Advice::DontNeed | Advice::Evict => {
            }
        }
    }
}

/// Start a thread that writes the whole file to a pipe, as it comes.
fn open_stream(
    network: Arc<Network>,
    wire: Wire,
    patience: Duration,
) -> Result<Stream, RemoteError> {
    let failed = |error: io::Error| RemoteError::Configuration(format!("no pipe: {error}"));
    let (reader, mut writer) = io::pipe().map_err(failed)?;
    let fault = Arc::new(OnceLock::new());
    let found = Arc::clone(&fault);
    let download = move || {
        let outcome = network.block_on(async {
            let request = http::Request::new(HttpRequestBody::from(Vec::new()));
            let answer = wire.call(request).await.map_err(|error| said(&error, patience))?;
            if !answer.status().is_success() {
                return Err(RemoteError::Status(answer.status().as_u16()));
            }
            let mut body = answer.into_body().bytes_stream();
            while let Some(bytes) = body.next().await {
                let bytes = bytes.map_err(|error| match said(&error, patience) {
                    timeout @ RemoteError::Timeout(_) => timeout,
                    _ => RemoteError::Cut,
                })?;
                network.received(bytes.len() as u64);
                // an error means that the reader is gone
                if writer.write_all(&bytes).is_err() {
                    break;
                }
            }
            Ok(())
        });
        // before the pipe ends
        if let Err(error) = outcome {
            let _ = found.set(error.to_string());
        }
        drop(writer);
    };
    thread::Builder::new().name("download".to_owned()).spawn(download).map_err(failed)?;
    Ok(Stream::watched(File::from(crate::os::fd::OwnedFd::from(reader)), fault))
}
