//! The tensors that a command looks at: chosen by name, the index applied to each.

use std::sync::Arc;

use tslice::dtype::DType;
use tslice::error::ContainerError;
use tslice::format::{Tensor, printable};
use tslice::input::Input;
use tslice::permutation::Transposition;
use tslice::region::Region;
use tslice::shape::{AsTuple, Order};

use super::index::Index;
use crate::cli::report::Failure;

/// What is looked at of one tensor.
pub(super) struct Chosen {
    pub(super) name: Option<String>,
    pub(super) dtype: DType,
    /// The shape of the selection.
    pub(super) shape: Vec<u64>,
    /// Its bytes, in the order asked for.
    pub(super) region: Arc<dyn Region>,
    /// The part of the input that it lies in.
    pub(super) part: usize,
}

impl Chosen {
    /// The tensors of these numbers, the index applied to each, in C order.
    pub(super) fn all(
        input: &Input,
        numbers: Vec<usize>,
        (index, transpose): (&Index, &Transposition),
    ) -> Result<Vec<Chosen>, Failure> {
        let several = numbers.len() > 1;
        let tensors = numbers.into_iter().map(|number| input.contents().tensors.at(number));
        let choose = |tensor: Tensor| {
            Chosen::of(&tensor, (index, transpose), Order::C).map_err(|failure| {
                match &tensor.name {
                    Some(name) if several => failure.of_tensor(name),
                    _ => failure,
                }
            })
        };
        tensors.map(choose).collect()
    }

    /// Its name, its shape and its dtype.
    pub(super) fn title(&self) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!("{name}, "));
        let title = format!("{name}shape {}, dtype {}", AsTuple(&self.shape), self.dtype);
        printable(&title).into_owned()
    }

    /// The index of an element by its number.
    pub(super) fn place(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let along = self.shape.iter().rev().map(|&len| {
            let index = rest % len.max(1);
            rest /= len.max(1);
            index
        });
        let mut place: Vec<u64> = along.collect();
        place.reverse();
        place
    }

    /// Apply the index to a tensor, and transpose the result.
    pub(super) fn of(
        tensor: &Tensor,
        (index, transpose): (&Index, &Transposition),
        order: Order,
    ) -> Result<Chosen, Failure> {
        let selection = index.resolve(&tensor.shape)?;
        let shape = selection.shape();
        let axes = transpose.of_axes(shape.len()).map_err(ContainerError::from)?;
        let region = index.lists.region(tensor, &selection, &axes, order).map_err(Failure::new)?;
        let (name, dtype, part) = (tensor.name.clone(), tensor.dtype.clone(), tensor.part());
        Ok(Chosen { name, dtype, shape: axes.permute(&shape), region, part })
    }
}
