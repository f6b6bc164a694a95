//! What stands in for remote files where the feature is not built: an error for each.

use super::super::open::{IoMode, OpenError, Opened};
use super::address::Address;
use super::{FolderEntry, RemoteError, RemoteVersion};

/// Open a remote file.
///
/// # Errors
/// [`RemoteError::NotBuilt`].
pub fn open(_: &Address, _: IoMode) -> Result<Opened, OpenError> {
    Err(RemoteError::NotBuilt.into())
}

/// Open a remote file that is read as a whole.
///
/// # Errors
/// [`RemoteError::NotBuilt`].
pub fn open_whole(_: &Address) -> Result<Opened, OpenError> {
    Err(RemoteError::NotBuilt.into())
}

/// The version of a file.
///
/// # Errors
/// [`RemoteError::NotBuilt`].
pub fn version(_: &Address) -> Result<RemoteVersion, OpenError> {
    Err(RemoteError::NotBuilt.into())
}

/// What lies in a folder of a store.
///
/// # Errors
/// [`RemoteError::NotBuilt`].
pub fn list(_: &Address) -> Result<Vec<FolderEntry>, OpenError> {
    Err(RemoteError::NotBuilt.into())
}

/// Open several files at the same time.
pub fn open_all(addresses: &[Address], io: IoMode) -> Vec<Result<Opened, OpenError>> {
    addresses.iter().map(|address| open(address, io)).collect()
}

/// What was asked of networks: nothing.
pub fn traffic() -> Option<(u64, u64)> {
    None
}
