//! The library, and for some cases the program, against tables that NumPy and TensorFlow made:
//! `fixtures/`, with the scripts that write them.

mod gather;
mod index;
mod npy;
