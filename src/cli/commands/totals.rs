//! What the tensors of a listing add up to.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde_json::Value;
use tslice::format::{TensorInfo, printable};
use tslice::shape;

use crate::cli::report::{Json, human_bytes};

#[derive(Default)]
pub(super) struct Totals {
    all: TensorCounts,
    dtypes: BTreeMap<String, TensorCounts>,
}

/// Those of many members may need more than 64 bits together.
#[derive(Clone, Copy, Default)]
struct TensorCounts {
    tensors: u64,
    elements: u128,
    bytes: u128,
}

impl TensorCounts {
    fn add(&mut self, tensor: &TensorInfo) {
        self.tensors += 1;
        self.elements +=
            u128::from(shape::element_count(&tensor.element_shape()).unwrap_or(u64::MAX));
        self.bytes += u128::from(tensor.bytes());
    }
}

impl Totals {
    pub(super) fn of(tensors: impl Iterator<Item = TensorInfo>) -> Totals {
        let mut totals = Totals::default();
        tensors.for_each(|tensor| totals.add(&tensor));
        totals
    }

    pub(super) fn add(&mut self, tensor: &TensorInfo) {
        self.all.add(tensor);
        self.dtypes.entry(tensor.dtype.to_string()).or_default().add(tensor);
    }

    pub(super) fn human_bytes(&self) -> String {
        human_bytes(u64::try_from(self.all.bytes).unwrap_or(u64::MAX))
    }

    /// Write an object, with one for each dtype in it.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{{},\"dtypes\":{{", self.all.json())?;
        for (number, (dtype, sums)) in self.dtypes.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let dtype = Value::from(dtype.as_str());
            write!(out, "{comma}{}:{{{}}}", Json(&dtype), sums.json())?;
        }
        out.write_all(b"}}")
    }
}

impl TensorCounts {
    /// The members of an object, without its braces.
    fn json(&self) -> String {
        let TensorCounts { tensors, elements, bytes } = self;
        format!(r#""tensors":{tensors},"elements":{elements},"bytes":{bytes}"#)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "total: {}", self.all)?;
        if let (Some((dtype, _)), 1) = (self.dtypes.first_key_value(), self.dtypes.len()) {
            return write!(f, "; all {}", printable(dtype));
        }
        self.dtypes.iter().try_for_each(|(dtype, sums)| write!(f, "; {}: {sums}", printable(dtype)))
    }
}

impl fmt::Display for TensorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |one: bool| if one { "" } else { "s" };
        let TensorCounts { tensors, elements, bytes } = self;
        write!(f, "{tensors} tensor{}, ", several(*tensors == 1))?;
        write!(f, "{elements} element{}, ", several(*elements == 1))?;
        write!(f, "{bytes} byte{}", several(*bytes == 1))
    }
}
