//! Which tensors are cast, and to what.

use crate::cast::{Cast, CastError, Casting};
use crate::dtype::{DType, NumberKind};
use crate::error::Fault;

/// The casts of a job: a dtype for all tensors, or for those of a dtype.
#[derive(Clone, Debug, Default)]
pub struct Casts {
    /// The type that a rule is for, in any byte order, without one all others; and what it becomes.
    rules: Vec<(Option<DType>, DType)>,
    casting: Casting,
    /// Whether the rule for all others is for integers and booleans among several tensors, too.
    pub to_all: bool,
    /// Whether there are several tensors.
    several: bool,
}

impl Casts {
    /// The casts that `casting` allows; of several rules for a type, the first counts, and one for
    /// all types comes last.
    pub fn new(mut rules: Vec<(Option<DType>, DType)>, casting: Casting) -> Casts {
        rules.sort_by_key(|(from, _)| from.is_none());
        Casts { rules, casting, to_all: false, several: false }
    }

    /// The same for several tensors: a cast of all to a float dtype leaves integers and booleans as they
    /// are.
    pub(crate) fn of_several(mut self, several: bool) -> Casts {
        self.several = several;
        self
    }

    /// Whether elements of a dtype are left as they are, though there is a rule for all.
    pub(crate) fn leaves(&self, dtype: &DType) -> bool {
        let kind = |dtype: &DType| match dtype {
            DType::Scalar(scalar, _) => Some(scalar.kind()),
            _ => None,
        };
        let (bool, signed, unsigned) = (NumberKind::Bool, NumberKind::Signed, NumberKind::Unsigned);
        let is_integer = |kind| [bool, signed, unsigned].contains(&kind);
        match self.rule(dtype) {
            Some((None, to)) if self.several && !self.to_all => {
                kind(to) == Some(NumberKind::Float) && kind(dtype).is_some_and(is_integer)
            }
            _ => false,
        }
    }

    /// How many of these dtypes are left as they are.
    pub(crate) fn count_left(&self, dtypes: impl Iterator<Item = DType>) -> usize {
        dtypes.filter(|dtype| self.leaves(dtype)).count()
    }

    fn rule(&self, dtype: &DType) -> Option<&(Option<DType>, DType)> {
        let applies =
            |from: &Option<DType>| from.as_ref().is_none_or(|from| from.is_type_of(dtype));
        self.rules.iter().find(|(from, _)| applies(from))
    }

    /// What becomes of elements of a dtype; `None` where no rule is for it.
    ///
    /// # Errors
    /// [`CastError`]: `casting` does not allow it, or there is no such cast.
    pub fn of(&self, dtype: &DType) -> Result<Option<Cast>, CastError> {
        let rule = self.rule(dtype).filter(|_| !self.leaves(dtype));
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
