//! What servers tell of files and folders, besides their bytes.

/// The version of a file, as all machines are told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteVersion {
    /// The length in bytes.
    pub len: u64,
    /// When it was last changed, in seconds since 1970; 0 if unknown.
    pub modified: i64,
    /// The ETag, and the version where the store keeps several; empty if there is neither.
    pub tag: String,
}

/// What lies in a folder of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name in the folder; that of a folder ends with a slash.
    pub name: String,
    /// The length of a file in bytes.
    pub bytes: Option<u64>,
}
