//! The tensors of an output.

use std::sync::Arc;

use crate::dtype::DType;
use crate::execute::Conversion;
use crate::format::{TensorInfo, Tensors};
use crate::shape::Order;

/// A tensor of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputTensor {
    /// The name of the tensor, where the format has names.
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub bytes: u64,
    /// What elements go through on the way.
    pub conversion: Conversion,
    /// The shard that it comes from.
    pub part: usize,
}

impl OutputTensor {
    /// A tensor of the input, as it is.
    fn kept(tensor: TensorInfo) -> OutputTensor {
        OutputTensor {
            bytes: tensor.bytes(),
            part: tensor.part(),
            conversion: Conversion::None,
            name: tensor.name.unwrap_or_default(),
            dtype: tensor.dtype,
            shape: tensor.shape,
        }
    }
}

/// The tensors of an output, in the order in which they are written. Those that are as in the input,
/// one after the other, take no memory of their own; each other one takes a few bytes more than its
/// name, and becomes an [`OutputTensor`] when it is asked for.
#[derive(Default)]
pub struct Entries {
    input: Arc<Tensors>,
    own: Tensors,
    conversions: Vec<Conversion>,
    runs: Vec<Run>,
    len: usize,
}

/// Tensors that follow each other in the output, and in the input or among those of its own.
struct Run {
    /// The number of the first one in the output.
    begin: usize,
    first: usize,
    is_own: bool,
}

impl Entries {
    /// None yet; some may be as in the input, whose tensors these are.
    pub(crate) fn new(input: Arc<Tensors>) -> Entries {
        Entries { input, ..Entries::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn at(&self, number: usize) -> OutputTensor {
        let (tensors, at, conversions) = self.find(number);
        let conversion = conversions.map_or(Conversion::None, |conversions| conversions[at]);
        OutputTensor { conversion, ..OutputTensor::kept(tensors.at(at)) }
    }

    /// Where tensor `number` is kept: among which tensors, which one of these, and where what the
    /// elements of those go through is, if anything.
    fn find(&self, number: usize) -> (&Tensors, usize, Option<&[Conversion]>) {
        let run = &self.runs[self.runs.partition_point(|run| run.begin <= number) - 1];
        let at = run.first + (number - run.begin);
        if run.is_own {
            return (&self.own, at, Some(&self.conversions));
        }
        (&self.input, at, None)
    }

    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|number| {
            let (tensors, at, _) = self.find(number);
            tensors.name(at).unwrap_or_default()
        })
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = OutputTensor> + Clone + '_ {
        (0..self.len()).map(|number| self.at(number))
    }

    pub fn only(&self) -> Option<OutputTensor> {
        (self.len() == 1).then(|| self.at(0))
    }

    /// Add one behind the others; `number` is the one of the input that it comes from.
    pub(crate) fn push(&mut self, entry: OutputTensor, number: usize) {
        let is_own =
            self.input.get(number).is_none_or(|tensor| OutputTensor::kept(tensor) != entry);
        let first = if is_own { self.own.len() } else { number };
        if is_own {
            let OutputTensor { name, dtype, shape, conversion, part, .. } = entry;
            let tensor = TensorInfo::new(dtype, shape, Order::C, 0).placed(part, 0);
            self.own.push(&TensorInfo { name: Some(name), ..tensor });
            self.conversions.push(conversion);
        }
        let begin = self.len;
        let follows = |run: &Run| run.is_own == is_own && run.first + (begin - run.begin) == first;
        if !self.runs.last().is_some_and(follows) {
            self.runs.push(Run { begin, first, is_own });
        }
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Endian, Scalar};
    use proptest::prelude::*;

    fn tensor(number: usize) -> TensorInfo {
        let dtype = DType::Scalar(Scalar::U8, Endian::Little);
        let tensor = TensorInfo::new(dtype, vec![number as u64], Order::C, 100 * number as u64);
        TensorInfo { name: Some(format!("t{number}")), ..tensor.placed(number % 3, 0) }
    }

    proptest! {
        #[test]
        fn entries_come_out_as_they_went_in(
            changes in prop::collection::vec((0usize..9, 0..4), 0..30),
        ) {
            let mut entries = Entries::new(Arc::new((0..9).map(tensor).collect()));
            let mut plain = Vec::new();
            for (number, change) in changes {
                let mut entry = OutputTensor::kept(tensor(number));
                match change {
                    0 => entry.name.push('x'),
                    1 => entry.conversion = Conversion::swap_bytes(2),
                    _ => {}
                }
                plain.push(entry.clone());
                entries.push(entry, number);
            }
            let names: Vec<&str> = plain.iter().map(|entry| entry.name.as_str()).collect();
            prop_assert_eq!(entries.names().collect::<Vec<_>>(), names);
            prop_assert_eq!(entries.iter().collect::<Vec<_>>(), plain);
        }
    }

    #[test]
    fn what_is_as_in_the_input_takes_no_memory() {
        let mut entries = Entries::new(Arc::new((0..9).map(tensor).collect()));
        (0..9).for_each(|number| entries.push(OutputTensor::kept(tensor(number)), number));
        assert_eq!((entries.len(), entries.runs.len(), entries.own.len()), (9, 1, 0));
    }
}
