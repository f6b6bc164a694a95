//! Several inputs as one output: NumPy's concatenate and stack, for files of one tensor and for
//! tensors of one name in files of several.
//!
//! 1. [`Joined::open`] reads the header of every input, several at a time, and checks that all
//!    fit together (`inputs`). Few inputs stay open; of many only the length along the joined axis
//!    is kept, and they are opened again when they are copied.
//! 2. [`Joined::check`] compares the tensors that are taken once, byte for byte (`same`).
//! 3. [`Joined::write`] copies group by group: as many inputs as may be open at a time (`write`).
//!    [`Joined::parts`] cuts that in parts, of which each process writes one (`part`): what a part has
//!    of each input is arithmetic (`bands`, `place`).

mod bands;
mod fault;
mod inputs;
mod joining;
mod part;
mod place;
mod same;
mod slices;
mod step;
mod tensor;
mod write;

pub use fault::JoinFault;
pub use inputs::JoinOptions;
pub use joining::Joining;
pub(crate) use slices::{JoinedSlice, join_slices};
pub use tensor::Along;
