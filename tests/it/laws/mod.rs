//! Properties of the library that hold for any tensor, on random ones.

mod assign;
mod gather;
mod lists;
mod reads;
mod slice;
