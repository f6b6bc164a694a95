//! What the elements of an input go through that is joined with others.

use crate::cast::Cast;
use crate::dtype::DType;
use crate::execute::Conversion;
use crate::job::edit::conversion::conversion;

/// What the elements of an input go through.
#[derive(Clone, Copy)]
pub(super) enum PartStep {
    /// What those of the first do, after so many bytes were reversed together: of the same type, in
    /// another byte order at most.
    AsFirst(usize),
    /// A cast of their own, to the dtype that those of the first have afterwards.
    Own(Cast),
}

impl PartStep {
    /// What elements of a dtype go through that is that of the first input but for its byte order.
    pub(super) fn as_first(dtype: &DType, first: &DType) -> Option<PartStep> {
        match conversion(dtype, first) {
            Ok(Conversion::SwapBytes { width }) => Some(PartStep::AsFirst(width)),
            Ok(_) => Some(PartStep::AsFirst(1)),
            Err(_) => None,
        }
    }

    /// The dtype of elements that are of another type than those of the first input.
    pub(super) fn other_dtype(self) -> Option<DType> {
        match self {
            PartStep::AsFirst(_) => None,
            PartStep::Own(cast) => Some(cast.from()),
        }
    }

    /// A cast of its own, beside a first input whose elements are `first` in its file. It is to their
    /// byte order, which what those go through may change, be it a cast to the other order.
    pub(super) fn own(cast: Cast, first: &DType) -> PartStep {
        PartStep::Own(cast.with_order_of(first))
    }

    /// What its elements go through, where those of the first input go through `first`.
    pub(super) fn conversion(self, first: Conversion) -> Conversion {
        let cast = match (self, first) {
            (PartStep::AsFirst(1), _) => return first,
            (PartStep::AsFirst(width), Conversion::None) => {
                return Conversion::swap_bytes(width);
            }
            (PartStep::AsFirst(_), Conversion::SwapBytes { .. }) => return Conversion::None,
            (PartStep::AsFirst(_), Conversion::Cast(cast)) => cast.of_swapped(),
            (PartStep::Own(cast), Conversion::Cast(theirs)) => cast.with_order_of(&theirs.to()),
            (PartStep::Own(cast), Conversion::SwapBytes { .. }) => cast.to_swapped(),
            (PartStep::Own(cast), Conversion::None) => cast,
        };
        match cast.swap_width() {
            Some(width) => Conversion::swap_bytes(width),
            None => Conversion::Cast(cast),
        }
    }

    /// How the bytes of a part are read, where those of the first input go through `first`:
    /// how many are reversed together, and what all parts that are copied with it go through.
    pub(super) fn part_conversion(self, first: Conversion) -> (usize, Conversion) {
        match self {
            PartStep::AsFirst(width) => (width, first),
            PartStep::Own(_) => (1, self.conversion(first)),
        }
    }
}
