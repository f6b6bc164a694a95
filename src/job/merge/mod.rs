//! The tensors of several inputs as one output: a union by name.
//!
//! 1. [`Union`](union::Union) reads the headers of all inputs, and finds out which tensors the output
//!    has: those that are chosen, with their new names, each at the place of the first of its name.
//! 2. [`Merged`](merged::Merged) copies them to their places, input by input: one is open at a time, or
//!    few are from the beginning to the end ([`Inputs`](crate::job::inputs::Inputs)). Any range of the
//!    output can be written by itself (`part`).

mod fault;
mod merged;
mod merging;
mod part;
mod slices;
mod union;

pub use fault::MergeFault;
pub use merging::Merging;
pub(crate) use slices::merge_slices;
pub use union::{MergeOptions, NumberedRename, Wins};
