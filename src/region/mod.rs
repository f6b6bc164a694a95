//! What is taken of a tensor: which of its bytes, in the order of the output.
//!
//! A [`Region`] says how many bytes it has, what it is to the executor, what a range of it is, and
//! whether it runs forward. Its kinds are ranges of positions (`strided`), positions that index
//! tensors name (`gathered`), either of a tensor in chunks (`chunks`), and fields side by side (`fields`). A [`Take`] is a region on its way to
//! its place in an output. The index tensors of an expression are opened here too ([`Lists`]).

mod chunks;
mod contract;
mod decoded;
mod fields;
mod gathered;
mod indices;
mod list;
mod lists;
mod reader;
mod strided;
mod take;

pub use contract::{ReadBy, ReadFor, Region, RegionPieces};
pub(crate) use decoded::{decoded_bytes, decoded_info};
pub use fields::layout as layout_of;
pub(crate) use indices::GatheredTensor;
pub(crate) use indices::gathered_axes;
pub use indices::{IndexTensor, gathered_shape};
pub use list::{Gathered, GatheredList};
pub use lists::{ListError, ListFault, Lists, OpenIndex};
pub use reader::RegionReader;
pub use take::Take;
