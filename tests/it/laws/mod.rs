//! Properties of the library that hold for any tensor, on random ones.

mod assign;
mod gather;
mod reads;
mod slice;
