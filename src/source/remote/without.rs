//! What stands in for remote files where the feature is not built: an error for each.

use super::super::open::{IoMode, OpenError, Opened};
use super::address::Address;
use super::{FolderEntry, RemoteError, RemoteVersion};

pub fn open(_: &Address, _: IoMode) -> Result<Opened, OpenError> {
    Err(RemoteError::NotBuilt.into())
}

pub fn open_whole(_: &Address) -> Result<Opened, OpenError> {
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

/// What was asked of networks: nothing.
pub fn traffic() -> Option<(u64, u64)> {
    None
}
