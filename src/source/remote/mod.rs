//! Files behind a network: https, S3, Google Cloud Storage, Azure.
//!
//! Only the feature `remote` reads them, through the `object_store` package. Without it there are
//! addresses, and an error for each. What the rest of the program sees is a [`Source`](super::Source):
//! it says how long a gap is worth reading, is told beforehand what will be read, and lends windows of
//! what has come.
//!
//! ```text
//!   announced ranges ─► network (queue, blocks) ─► fetch (one range, tried again) ─► stores, wire
//! ```

mod address;
mod answers;
mod error;
mod requests;

pub use address::{Address, Scheme, mask_secrets};
pub use answers::{FolderEntry, RemoteVersion};
pub use error::RemoteError;
pub use requests::{GAP, Merger, REQUEST_BYTES};

#[cfg(feature = "remote")]
mod fetch;
#[cfg(feature = "remote")]
mod file;
#[cfg(feature = "remote")]
mod listing;
#[cfg(feature = "remote")]
mod network;
#[cfg(feature = "remote")]
mod profile;
#[cfg(feature = "remote")]
mod stores;
#[cfg(feature = "remote")]
mod whole;
#[cfg(feature = "remote")]
mod wire;
#[cfg(not(feature = "remote"))]
mod without;

#[cfg(feature = "remote")]
pub use file::{open, open_all, open_whole, version};
#[cfg(feature = "remote")]
pub use listing::list;
#[cfg(feature = "remote")]
pub use network::traffic;
#[cfg(not(feature = "remote"))]
pub use without::{list, open, open_all, open_whole, traffic, version};
