//! Causes of errors that containers find themselves.

mod input;
mod output;

pub use input::{
    FieldFault, Given, IntegersFault, ListFault, RawFault, ReadFault, SelectFault, ShardsFault,
};
pub use output::{
    EditFault, FormatOption, JoinFault, LayoutFault, PartFault, PictureFault, SplitFault,
};
