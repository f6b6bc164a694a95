//! The integration tests, in one binary: what the program does when it is run, and what the
//! library does when it is called.
//!
//! ```text
//! cargo test --test it                  all of them
//! cargo test --test it gather           those of one module, or whose name holds a word
//! ```
//!
//! A new test goes into the module of its subject. A test that changes what belongs to the whole
//! process (its limits, its standard input, how it takes signals) starts a process of its own for
//! that: see [`child`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

// Shared by the tests.
mod child;
mod inputs;
mod memory;
mod program;

// The program, run as a user runs it.
mod archives;
mod assign;
mod cast;
mod chunks;
mod completions;
mod deflate;
mod diff;
mod explain;
mod field;
mod folders;
mod gather;
mod gguf;
mod groups;
#[cfg(feature = "hdf5")]
mod hdf5;
mod help;
mod info;
mod joins;
mod links;
mod lists;
mod merges;
mod messages;
mod names;
mod netcdf3;
mod overwrite;
mod pickle;
mod raw_bytes;
mod readme;
mod remote;
mod same_file;
mod several;
mod shards;
mod sharing;
mod shells;
mod tables;
mod text_inputs;
mod torch;
mod transpose;
mod view;
#[cfg(feature = "zarr")]
mod zarr;

// The library: inputs and outputs, and files that are right or wrong.
mod examples;
mod handles;
mod hostile;
mod sinks;
mod sources;
mod valid_files;

// Tables made by NumPy and TensorFlow, properties on random tensors, and the fuzzers' corpus.
mod fuzz_corpus;
mod golden;
mod laws;
