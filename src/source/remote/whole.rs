//! Files of servers that know no ranges, read as a pipe is: once, in order.
//!
//! The thread of the network writes what comes to a pipe, as fast as somebody reads it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::client::{HttpRequestBody, HttpService};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

use super::super::Stream;
use super::error::RemoteError;
use super::network::Network;
use super::wire::{FetchFault, SharedNote, Wire};

/// Parts of the answer between the network and the pipe, each of some KiB.
const QUEUE: usize = 16;

/// All of a file, as a stream.
pub(super) fn open(
    network: &Arc<Network>,
    wire: Wire,
    patience: Duration,
) -> Result<Stream, RemoteError> {
    let failed = |error: io::Error| RemoteError::Configuration(format!("no pipe: {error}"));
    let (reader, writer) = io::pipe().map_err(failed)?;
    let (parts, received) = channel(QUEUE);
    let fault = Arc::new(OnceLock::new());
    let (found, counting) = (Arc::clone(&fault), Arc::clone(network));
    let work = async move {
        let failed = |error: RemoteError| {
            let _ = found.set(error.to_string());
        };
        let mut request = http::Request::new(HttpRequestBody::from(Vec::new()));
        request.extensions_mut().insert(SharedNote::default());
        let answer = match timeout(patience, wire.call(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => answer,
            Ok(Ok(answer)) => return failed(RemoteError::Status(answer.status().as_u16())),
            Ok(Err(error)) => return failed(FetchFault::of(&error).error),
            Err(_) => return failed(RemoteError::Timeout(patience)),
        };
        let mut body = answer.into_body().bytes_stream();
        loop {
            match timeout(patience, body.next()).await {
                Ok(Some(Ok(bytes))) => {
                    counting.received(bytes.len() as u64);
                    // an error means that nobody reads any more
                    if parts.send(bytes.to_vec()).await.is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Ok(Some(Err(_))) => return failed(RemoteError::Cut),
                Err(_) => return failed(RemoteError::Timeout(patience)),
            }
        }
    };
    network.spawn(work);
    let kept = Arc::clone(network);
    let pass_on = move || {
        write_all(received, writer);
        drop(kept);
    };
    thread::Builder::new().name("download".to_owned()).spawn(pass_on).map_err(failed)?;
    Ok(Stream::watched(File::from(std::os::fd::OwnedFd::from(reader)), fault))
}

/// Write parts to the pipe until there are no more, or nobody reads it.
fn write_all(mut parts: Receiver<Vec<u8>>, mut pipe: impl Write) {
    while let Some(part) = parts.blocking_recv() {
        if pipe.write_all(&part).is_err() {
            return;
        }
    }
}
