//! Files behind a network: https, S3, Google Cloud Storage, Azure.
//!
//! They are read only with the feature `remote`, through the package `object_store`. Without the feature addresses are
//! recognised, and opening one is an error. The rest of the program sees a [`Source`](super::Source): it says how long a gap is worth
//! reading, is told beforehand which ranges will be read, and lends windows of the bytes that have come.
//!
//! ```text
//!   announced ranges ─► network (queue, blocks) ─► fetch (one range of one version) ─► stores, wire
//! ```
//!
//! - Before a piece begins, `execute/feed.rs` asks it and the next pieces for the ranges that they need
//!   (`Pieces::needs`), merges these ranges, and announces as many as the source has use for.
//! - The ranges of the selection are *needed*, in the order of the reads. Ranges at most 128 KiB apart are joined, and
//!   cut at the ends of files and after 2 MiB. `tests/remote/check.py` computes them with NumPy: besides its header, a
//!   run makes at most 1.1 times as many requests, and reads at most 1.1 times as many bytes. The header takes one
//!   request of 16 KiB, and a second one for the rest of a longer header.
//! - One thread runs the network (`network.rs`), for all open remote files, and ends with the last of them. It holds 24
//!   MiB that are on their way or unread, and makes at most 32 requests at a time. A worker that waits for bytes that
//!   were not announced requests them itself; if it continues to read there, it requests more each time.
//! - Each request carries the ETag of the first one (`If-Match`), and ETag, version, date and length of each response
//!   are compared (`fetch.rs`). A weak ETag is only compared.
//! - Chunks of Zarr are files whose lengths only the server knows: chunks that are needed soon are requested as whole files
//!   (`ahead.rs`), within the same limits.
//! - `object_store` makes the requests of S3, Google and Azure, and reads all responses. Its HTTP client is ours
//!   (`wire.rs`): one client for all, which counts, follows redirects of URLs once, sends tokens to one host only,
//!   notes the status that the store's errors omit, and limits the time without bytes. `object_store` repeats a
//!   request, and continues a response with an ETag that breaks off (`stores.rs` says how often).
//! - A server without ranges is a `Stream`: a thread writes the response to a pipe (`file.rs`).
//! - Secrets: an `Address` displays itself without them, errors of other packages are reduced to their innermost cause,
//!   and `cli/report/failure.rs` masks any text in a message that looks like an address with a query.
//! - Remote index tensors are copied to a scratch file, since they are read more than once (`Input::nearby`).

use std::time::Duration;

mod address;
#[cfg(feature = "remote")]
mod ahead;
#[cfg(feature = "remote")]
mod fetch;
#[cfg(feature = "remote")]
mod file;
#[cfg(feature = "remote")]
mod network;
mod requests;
#[cfg(feature = "remote")]
mod stores;
#[cfg(feature = "remote")]
mod wire;

pub use address::{Address, Scheme, mask_secrets};
#[cfg(feature = "remote")]
pub use ahead::Ahead;
#[cfg(feature = "remote")]
pub use file::{open, open_all, version};
#[cfg(feature = "remote")]
pub use network::received;
pub use requests::{GAP, Merger, NEAR, REQUEST_BYTES};
#[cfg(feature = "remote")]
pub use stores::list;
#[cfg(not(feature = "remote"))]
pub use without::{Ahead, list, open, open_all, received, version};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("this build does not read remote addresses: build it with --features remote")]
    NotBuilt,
    #[error("a remote file cannot be mapped")]
    NotMappable,
    #[error("not an address of a file: {0}")]
    Address(String),
    #[error("{0}")]
    Configuration(String),
    #[error("not found on the server")]
    NotFound,
    #[error("the server refuses access (status {0})")]
    Denied(u16),
    #[error("the server answers with status {0}")]
    Status(u16),
    #[error("{0}")]
    Network(String),
    #[error("the server sent too little within {} seconds", .0.as_secs())]
    Timeout(Duration),
    #[error("the answer of the server was cut short")]
    Cut,
    #[error("the server sent more bytes than requested")]
    TooLong,
    #[error("the file changed on the server while it was being read")]
    Changed,
    #[error("the server states no version of the file for other machines to compare")]
    NoVersion,
    #[error("the server sends whole files only, no ranges of them")]
    NoRanges,
}

/// The version of a file, as all machines see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteVersion {
    pub len: u64,
    /// The time of the last change, in seconds since 1970; 0 if unknown.
    pub modified: i64,
    e_tag: Option<String>,
    /// The store's version, where it has several.
    version: Option<String>,
}

impl RemoteVersion {
    /// The ETag and the version, in one text; empty if there is neither.
    pub fn tag(&self) -> String {
        let tags: Vec<&str> =
            [&self.e_tag, &self.version].into_iter().flatten().map(|tag| &**tag).collect();
        tags.join(" ")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name in the folder; the name of a folder ends with a slash.
    pub name: String,
    pub bytes: Option<u64>,
}

/// A substitute for builds without the feature: every remote file is an error.
#[cfg(not(feature = "remote"))]
mod without {
    use std::ops::Range;

    use super::super::open::{IoMode, OpenError, Opened};
    use super::super::{Source, SourceResult, checked_len};
    use super::{Address, FolderEntry, RemoteError, RemoteVersion};

    pub fn open(_: &Address, _: IoMode) -> Result<Opened, OpenError> {
        Err(RemoteError::NotBuilt.into())
    }

    pub fn version(_: &Address) -> Result<RemoteVersion, OpenError> {
        Err(RemoteError::NotBuilt.into())
    }

    pub fn list(_: &Address) -> Result<Vec<FolderEntry>, OpenError> {
        Err(RemoteError::NotBuilt.into())
    }

    pub fn open_all(addresses: &[Address], io: IoMode) -> Vec<Result<Opened, OpenError>> {
        addresses.iter().map(|address| open(address, io)).collect()
    }

    pub fn received() -> Option<u64> {
        None
    }

    pub struct Ahead;

    impl Ahead {
        pub fn new() -> Result<Ahead, RemoteError> {
            Err(RemoteError::NotBuilt)
        }

        pub fn expect(&self, _: &Address, _: u64) {}

        pub fn open_whole(&self, _: &Address) -> Result<Opened, OpenError> {
            Err(RemoteError::NotBuilt.into())
        }
    }

    impl Source for Ahead {
        fn len(&self) -> u64 {
            0
        }

        fn window<'a>(&'a self, range: Range<u64>, _: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
            checked_len(&range, 0).map(|_| &[][..])
        }
    }
}
