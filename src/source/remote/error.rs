//! What goes wrong with a remote file. No message holds a secret, nor the text of an answer's body.

use std::time::Duration;

/// Why a remote file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The library was built without the feature.
    #[error("this build does not read remote addresses: build it with --features remote")]
    NotBuilt,
    /// [`IoMode::Mmap`](super::super::IoMode::Mmap) for what is no file of this machine.
    #[error("a remote file cannot be mapped")]
    NotMappable,
    /// The address is no URL, or names no file.
    #[error("not an address of a file: {0}")]
    Address(String),
    /// How the store is reached is not known, or what is known contradicts itself.
    #[error("{0}")]
    Configuration(String),
    /// 404 or 410.
    #[error("not found on the server")]
    NotFound,
    /// 401 or 403.
    #[error("the server refuses access (status {0})")]
    Denied(u16),
    /// Any other status that is no success.
    #[error("the server answers with status {0}")]
    Status(u16),
    /// No answer, or no end of it.
    #[error("{0}")]
    Network(String),
    /// Nothing came, or too little.
    #[error("the server sent too little within {} seconds", .0.as_secs())]
    Timeout(Duration),
    /// The answer ended before its length.
    #[error("the answer of the server was cut short")]
    Cut,
    /// The answer is longer than what was asked for.
    #[error("the server sent more bytes than were asked for")]
    TooLong,
    /// Another file than the one that was opened.
    #[error("the file changed on the server while it was being read")]
    Changed,
    /// Neither an ETag nor a version nor a date.
    #[error("the server tells no version of the file, by which other machines would know it")]
    NoVersion,
    /// The server sends whole files only.
    #[error("the server sends whole files only, no ranges of them")]
    NoRanges,
    /// A transient error came again and again.
    #[error("{error}, {attempts} times")]
    GaveUp {
        /// The last one.
        error: Box<RemoteError>,
        /// How often it was tried.
        attempts: u32,
    },
}
