//! Which tensors are cast, and to what.

use crate::cast::{Cast, CastError, Casting};
use crate::dtype::{DType, Scalar};

/// The casts of a job: a dtype for all tensors, or for those of a dtype.
#[derive(Clone, Debug, Default)]
pub struct Casts {
    /// The number type that a rule is for, without one all others; and what it becomes.
    rules: Vec<(Option<Scalar>, DType)>,
    casting: Casting,
}

impl Casts {
    /// The casts that `casting` allows; of several rules for a type, the first counts, and one for
    /// all types comes last.
    pub fn new(mut rules: Vec<(Option<Scalar>, DType)>, casting: Casting) -> Casts {
        rules.sort_by_key(|(from, _)| from.is_none());
        Casts { rules, casting }
    }

    /// What becomes of elements of a dtype; `None` where no rule is for it.
    ///
    /// # Errors
    /// [`CastError`]: `casting` does not allow it, or a dtype is no number of whole bytes.
    pub fn of(&self, dtype: &DType) -> Result<Option<Cast>, CastError> {
        let applies = |from: &Option<Scalar>| match (from, dtype) {
            (None, _) => true,
            (Some(from), DType::Scalar(scalar, _)) => from == scalar,
            (Some(_), DType::Npy(_)) => false,
        };
        let rule = self.rules.iter().find(|(from, _)| applies(from));
        rule.map(|(_, to)| Cast::new(dtype, to, self.casting)).transpose()
    }

    /// The first number type that a rule is for and none of `dtypes` is.
    pub fn without_use(&self, dtypes: impl Iterator<Item = DType> + Clone) -> Option<Scalar> {
        let is_there = |from: Scalar| {
            dtypes.clone().any(|it| matches!(it, DType::Scalar(scalar, _) if scalar == from))
        };
        self.rules.iter().filter_map(|(from, _)| *from).find(|&from| !is_there(from))
    }
}
