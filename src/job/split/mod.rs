//! One input as several outputs: NumPy's split and array_split, to files that appear together.
//!
//! 1. [`Cuts`] say where the axis is cut (`cuts`), [`PartNames`] what the files are called (`names`).
//! 2. [`Split::check`] prepares every output and makes all the checks that writing would fail at,
//!    before the first one is begun.
//! 3. [`Split::write`] copies a slice for each part, all in one job, to outputs that are put in
//!    place together at the end ([`SeveralSinks`](crate::sink::SeveralSinks)).

mod cuts;
mod names;
mod outputs;
mod together;

pub use cuts::{Cuts, MAX_PARTS, SplitFault};
pub use names::PartNames;
pub use outputs::{Split, SplitOptions};
pub(crate) use together::{Together, check_together, write_together};
