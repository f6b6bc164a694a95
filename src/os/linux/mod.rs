//! What only Linux has: `/proc`, `/sys`, and the calls and flags that other systems lack.
//!
//! Callers know from the error of a call, or from its answer, that there is none: older kernels and
//! some file systems lack them too, and `other.rs` always does.

pub(crate) use super::attributes::{attribute, has_attributes, set_attribute};
pub use super::renames::EXCHANGES_NAMES;
pub(crate) use super::renames::{exchange, rename_to_free};
pub(crate) use blocks::{
    allocate, allocate_within, clone_file, clone_over, clone_range, copy_range, settle,
};
pub(crate) use memory::memory_bytes;
#[cfg(feature = "remote")]
pub(crate) use mounts::machine_vendor;
pub(crate) use mounts::{is_descriptors, is_fixed, is_in_memory, is_network, open_within_mount};
pub use names::UNNAMED_FILES;
pub(crate) use names::{link_unnamed, open_place, open_unnamed, path_of};
pub(crate) use pages::{
    LOADED, UNRESERVED, advise_file, is_cached, load, load_to_write, mapped_pages, populate,
    populate_to_write, reads_ahead,
};
pub(crate) use pipes::{discard, enlarge_pipe};
pub(crate) use writers::{boot_id, nobody_writes};

mod blocks;
mod memory;
mod mounts;
mod names;
mod pages;
mod pipes;
mod writers;
