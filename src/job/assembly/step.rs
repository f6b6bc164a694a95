//! The conversion of a member's elements to elements of the joined tensor, relative to the first
//! member.

use crate::cast::{Cast, CastError, Casting, result_type};
use crate::dtype::DType;
use crate::error::Cause;
use crate::execute::Conversion;
use crate::job::edit::conversion;
use crate::job::join::JoinFault;
use crate::job::select::Casts;
use crate::tensor::{Differing, LazyAnnotations, TensorInfo, differing};

/// The conversion of the elements of one input.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// The conversion of the first input, after groups of so many bytes are reversed: the type is
    /// the same, the byte order may differ.
    AsFirst(usize),
    /// A cast to the dtype that elements of the first input have after their conversion.
    Own(Cast),
}

impl Step {
    /// The step of a dtype that differs from the first input's dtype in byte order at most.
    pub(crate) fn as_first(dtype: &DType, first: &DType) -> Option<Step> {
        match conversion(dtype, first) {
            Ok(Conversion::SwapBytes { width }) => Some(Step::AsFirst(width)),
            Ok(_) => Some(Step::AsFirst(1)),
            Err(_) => None,
        }
    }

    /// The dtype of elements, if it differs from the first input's dtype.
    pub(crate) fn other_dtype(self) -> Option<DType> {
        match self {
            Step::AsFirst(_) => None,
            Step::Own(cast) => Some(cast.from()),
        }
    }

    /// The step of a cast, beside a first input whose elements are `first` in its file. The cast
    /// keeps their byte order, so that the first input's conversion may change it, even if that is
    /// a cast to the other order.
    pub(crate) fn own(cast: Cast, first: &DType) -> Step {
        Step::Own(cast.with_order_of(first))
    }

    /// The conversion of the elements; `first` is the conversion of the first input's elements.
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

    /// How the bytes of a member are read, where the first input has the conversion `first`: the
    /// size of the groups that are reversed, and the conversion that all members copied with it
    /// share.
    pub(crate) fn member_conversion(self, first: Conversion) -> (usize, Conversion) {
        match self {
            Step::AsFirst(width) => (width, first),
            Step::Own(_) => (1, self.conversion(first)),
        }
    }
}

impl Casts {
    /// The step of the elements of member `number`, beside a first member whose elements are
    /// `first`.
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

/// Refuse a member whose elements have another meaning (scale, units) than the first member's.
pub(crate) fn check_meaning(
    number: usize,
    tensor: &TensorInfo,
    first: &TensorInfo,
) -> Result<(), JoinFault> {
    if tensor.annotated.is_none() && first.annotated.is_none() {
        return Ok(());
    }
    let said =
        |of: &TensorInfo| of.annotated.as_ref().map(LazyAnnotations::get).unwrap_or_default();
    let both = [(&said(first), &first.dtype), (&said(tensor), &tensor.dtype)];
    match differing(both) {
        None => Ok(()),
        Some(Differing { name: attribute, values, is_packing }) => {
            let values = Box::new(values);
            Err(JoinFault::Meaning { number, attribute, values, is_packing, names: None })
        }
    }
}
