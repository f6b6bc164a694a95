//! Where the values of an array lie.

use std::sync::Arc;

use zarrs::storage::{ReadableStorageTraits, StoreKey};

/// Where the values of an array lie under their keys, such as `zarr.json` and `c/0/1`.
pub(crate) type ArrayStore = Arc<dyn ValueStore>;

/// Values under keys, which may be read ahead.
pub(crate) trait ValueStore: ReadableStorageTraits {
    /// All of a value will be read soon.
    fn expect(&self, key: &StoreKey);
}
