//! Which tensors are cast, and to what.

use crate::cast::{Cast, CastError, Casting};
use crate::dtype::DType;
use crate::error::Fault;

/// The casts of a job: a dtype for all tensors, or for those of a dtype.
#[derive(Clone, Debug, Default)]
pub struct Casts {
    /// The type that a rule is for, in any byte order, without one all others; and what it becomes.
    rules: Vec<(Option<DType>, DType)>,
    casting: Casting,
}

impl Casts {
    /// The casts that `casting` allows; of several rules for a type, the first counts, and one for
    /// all types comes last.
    pub fn new(mut rules: Vec<(Option<DType>, DType)>, casting: Casting) -> Casts {
        rules.sort_by_key(|(from, _)| from.is_none());
        Casts { rules, casting }
    }

    /// What becomes of elements of a dtype; `None` where no rule is for it.
    ///
    /// # Errors
    /// [`CastError`]: `casting` does not allow it, or there is no such cast.
    pub fn of(&self, dtype: &DType) -> Result<Option<Cast>, CastError> {
        let applies =
            |from: &Option<DType>| from.as_ref().is_none_or(|from| from.is_type_of(dtype));
        let rule = self.rules.iter().find(|(from, _)| applies(from));
        rule.map(|(_, to)| Cast::new(dtype, to, self.casting)).transpose()
    }

    /// Refuse a rule for a type that none of `dtypes` is.
    ///
    /// # Errors
    /// [`UnusedCast`].
    pub fn refuse_unused(
        &self,
        dtypes: impl Iterator<Item = DType> + Clone,
    ) -> Result<(), UnusedCast> {
        let is_there = |from: &DType| dtypes.clone().any(|dtype| from.is_type_of(&dtype));
        let mut rules = self.rules.iter().filter_map(|(from, _)| from.as_ref());
        rules.find(|from| !is_there(from)).map_or(Ok(()), |from| Err(UnusedCast(from.clone())))
    }
}

/// A rule for a type that no tensor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tensor is {}", .0.type_name())]
pub struct UnusedCast(pub DType);

impl Fault for UnusedCast {}
