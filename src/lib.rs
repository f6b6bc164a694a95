//! Cut pieces out of tensor files of any size.
//!
//! The program is one pipe, and nothing flows back:
//!
//! ```text
//! command line ─► IndexExpr ─► Selection ─► View ─► Plan ─► execute ─► Sink
//!   (cli)         (index)      (resolve)    (view)  (plan)  (pack)     (file, stdout)
//!                      Source + format give the tensor: its bytes, dtype, shape ▲
//! ```
//!
//! The modules below stand in that order. What the core must not know: flags, messages for a
//! terminal, and the paths of files (only `source` and `sink` open any).

pub mod index;

pub mod dtype;
pub mod element;
pub mod gather;
pub mod runs;
pub mod shape;
pub mod view;

pub mod plan;

pub mod execute;

pub mod scatter;

mod os;
pub mod sink;
pub mod source;

pub mod container;
pub mod format;
pub mod text;
