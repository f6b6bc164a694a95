//! The `Debug` output of handles.

use std::fmt::{Debug, Formatter, Result};

use super::{Change, Editable, ReadChunks, Slice, Tensor, TensorFile};
use crate::error::FileName;

macro_rules! debug {
    ($($type:ty: |$it:ident| $($field:ident = $value:expr),+;)+) => {$(
        impl Debug for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                let $it = self;
                let name = stringify!($type).split('<').next().unwrap_or_default();
                let mut shown = f.debug_struct(name);
                $(shown.field(stringify!($field), $value);)+
                shown.finish_non_exhaustive()
            }
        }
    )+};
}

debug! {
    TensorFile: |it|
        file = &FileName::from(&it.input().location), tensors = &it.input().contents.tensors.len();
    Tensor: |it|
        file = &FileName::from(&it.file.input.location), name = &it.name(), dtype = it.dtype(),
        shape = &it.shape();
    Slice: |it| tensor = &it.tensor, dtype = it.dtype(), shape = &it.shape();
    Editable: |it| tensor = &it.tensor, index = &it.index;
    Change: |it| tensor = &it.tensor;
}

impl<T> Debug for ReadChunks<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ReadChunks").field("left", &self.left).finish_non_exhaustive()
    }
}
