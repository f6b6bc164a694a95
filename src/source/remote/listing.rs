//! What lies in a folder of a store. A URL has no folders that could be asked for.

use std::time::Duration;

use object_store::ListResult;
use object_store::path::Path;
use tokio::time::timeout;

use super::super::open::OpenError;
use super::address::Address;
use super::answers::FolderEntry;
use super::error::RemoteError;
use super::fetch::fault;
use super::file::patience;
use super::network::Network;
use super::stores::store;
use super::wire::SharedNote;

/// How many times the patience with one answer all answers together may take: a store tells a thousand
/// names in each.
const ANSWERS: u32 = 20;

/// The files and folders in a folder, each kind in the order of its names: a request for each thousand.
///
/// # Errors
/// [`RemoteError`].
pub fn list(address: &Address) -> Result<Vec<FolderEntry>, OpenError> {
    let (network, patience) = (Network::get()?, patience()?);
    let note = SharedNote::default();
    let store = store(address, &network.wire.with_note(&note), None)?;
    let folder = Path::parse(address.bucket_and_key().1.trim_end_matches('/'));
    let folder = folder.map_err(|error| RemoteError::Address(error.to_string()))?;
    let longest: Duration = patience * ANSWERS;
    let listing = network
        .run(async move { timeout(longest, store.list_with_delimiter(Some(&folder))).await })?;
    let ListResult { common_prefixes, objects, .. } = listing
        .map_err(|_| RemoteError::Timeout(longest))?
        .map_err(|error| fault(&error, &note, false).error)?;
    let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
    let folders =
        common_prefixes.iter().map(|path| FolderEntry { name: name(path) + "/", bytes: None });
    let files = objects
        .iter()
        .map(|file| FolderEntry { name: name(&file.location), bytes: Some(file.size) });
    let entries: Vec<FolderEntry> = folders.chain(files).collect();
    match entries.is_empty() {
        // stores know no empty folders
        true => Err(RemoteError::NotFound.into()),
        false => Ok(entries),
    }
}
