//! What the elements of a member go through on their way to a joined tensor, beside those of the first member.

use crate::cast::{Cast, CastError, Casting, result_type};
use crate::dtype::DType;
use crate::error::Cause;
use crate::execute::Conversion;
use crate::job::edit::conversion;
use crate::job::join::JoinFault;
use crate::job::select::Casts;
use crate::tensor::{Annotated, Differing, TensorInfo, differing};

/// What the elements of an input go through.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// What those of the first do, after so many bytes were reversed together: of the same type, in
    /// another byte order at most.
    AsFirst(usize),
    /// A cast of their own, to the dtype that those of the first have afterwards.
    Own(Cast),
}

impl Step {
    /// What elements of a dtype go through that is that of the first input but for its byte order.
    pub(crate) fn as_first(dtype: &DType, first: &DType) -> Option<Step> {
        match conversion(dtype, first) {
            Ok(Conversion::SwapBytes { width }) => Some(Step::AsFirst(width)),
            Ok(_) => Some(Step::AsFirst(1)),
            Err(_) => None,
        }
    }

    /// The dtype of elements that are of another type than those of the first input.
    pub(crate) fn other_dtype(self) -> Option<DType> {
        match self {
            Step::AsFirst(_) => None,
            Step::Own(cast) => Some(cast.from()),
        }
    }

    /// A cast of its own, beside a first input whose elements are `first` in its file. It is to their
    /// byte order, which what those go through may change, be it a cast to the other order.
    pub(crate) fn own(cast: Cast, first: &DType) -> Step {
        Step::Own(cast.with_order_of(first))
    }

    /// What its elements go through, where those of the first input go through `first`.
    pub(crate) fn conversion(self, first: Conversion) -> Conversion {
        let cast = match (self, first) {
            (Step::AsFirst(1), _) => return first,
            (Step::AsFirst(width), Conversion::None) => {
                return Conversion::swap_bytes(width);
            }
            (Step::AsFirst(_), Conversion::SwapBytes { .. }) => return Conversion::None,
            (Step::AsFirst(_), Conversion::Cast(cast)) => cast.of_swapped(),
            (Step::Own(cast), Conversion::Cast(theirs)) => cast.with_order_of(&theirs.to()),
            (Step::Own(cast), Conversion::SwapBytes { .. }) => cast.to_swapped(),
            (Step::Own(cast), Conversion::None) => cast,
        };
        match cast.swap_width() {
            Some(width) => Conversion::swap_bytes(width),
            None => Conversion::Cast(cast),
        }
    }

    /// How the bytes of a part are read, where those of the first input go through `first`:
    /// how many are reversed together, and what all parts that are copied with it go through.
    pub(crate) fn part_conversion(self, first: Conversion) -> (usize, Conversion) {
        match self {
            Step::AsFirst(width) => (width, first),
            Step::Own(_) => (1, self.conversion(first)),
        }
    }
}

impl Casts {
    /// What elements of part `number` go through, beside a first part whose elements are `first`.
    pub(crate) fn step(&self, number: usize, dtype: &DType, first: &DType) -> Result<Step, Cause> {
        if let Some(step) = Step::as_first(dtype, first) {
            return Ok(step);
        }
        let after = |dtype: &DType| -> Result<DType, CastError> {
            Ok(self.of(dtype)?.map_or_else(|| dtype.clone(), Cast::to))
        };
        let ours = after(dtype)?;
        let theirs = after(first)?;
        let is_whole = |dtype: &DType| dtype.item_bits().is_multiple_of(8);
        if conversion(&ours, &theirs).is_ok() && is_whole(dtype) && is_whole(first) {
            let cast = match self.of(dtype)? {
                Some(cast) => cast,
                None => Cast::new(dtype, &theirs, Casting::Unsafe)?,
            };
            return Ok(Step::own(cast, first));
        }
        let can_be = |common: &DType| {
            let can =
                |dtype| Cast::new(dtype, common, Casting::SameKind).is_ok() && is_whole(dtype);
            can(dtype) && can(first)
        };
        let common = result_type(&ours, &theirs).filter(can_be);
        let dtype = dtype.clone();
        let first = first.clone();
        Err(JoinFault::DType { number, dtype, first, common, names: None }.into())
    }
}

/// Refuse elements that mean other values than those of the first part.
pub(crate) fn check_meaning(
    number: usize,
    tensor: &TensorInfo,
    first: &TensorInfo,
) -> Result<(), JoinFault> {
    if tensor.annotated.is_none() && first.annotated.is_none() {
        return Ok(());
    }
    let said = |of: &TensorInfo| of.annotated.as_ref().map(Annotated::get).unwrap_or_default();
    let both = [(&said(first), &first.dtype), (&said(tensor), &tensor.dtype)];
    match differing(both) {
        None => Ok(()),
        Some(Differing { name: attribute, values, is_packing }) => {
            let values = Box::new(values);
            Err(JoinFault::Meaning { number, attribute, values, is_packing, names: None })
        }
    }
}
