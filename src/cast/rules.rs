//! Which casts a rule allows: np.can_cast, and its like for the floats that NumPy lacks.

use crate::dtype::{NumberKind as Kind, Scalar};
use crate::element::{FloatFormat, Specials};

/// A rule for casts, as NumPy has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casting {
    /// Only casts that keep every value (and, as in NumPy, from integers of 64 bits to float64).
    Safe,
    /// Those, and casts within a kind or to a wider kind: float64 to float32, int64 to float16.
    #[default]
    SameKind,
    /// Every cast.
    Unsafe,
}

/// Whether a rule allows a cast (np.can_cast). Between floats of which one is no type of NumPy, and
/// from integers to those, `Safe` means that every value is kept.
pub fn can_cast(from: Scalar, to: Scalar, casting: Casting) -> bool {
    match casting {
        Casting::Unsafe => true,
        Casting::SameKind => from.kind() <= to.kind() || is_safe(from, to),
        Casting::Safe => is_safe(from, to),
    }
}

/// Whether every value is kept.
pub(super) fn is_safe(from: Scalar, to: Scalar) -> bool {
    match (from.kind(), to.kind()) {
        _ if from == to => true,
        (ours, Kind::Complex) if ours != Kind::Complex => {
            to.part().is_some_and(|part| is_safe(from, part))
        }
        (Kind::Float, Kind::Float) => keeps_floats(from, to),
        (ours, Kind::Float) if !to.is_numpys() => keeps_integers(ours, from, to),
        (Kind::Bool, _) => true,
        (ours, theirs) if ours == theirs => from.bits() <= to.bits(),
        (Kind::Unsigned, Kind::Signed) => from.bits() < to.bits(),
        // as many bytes do for 64 bits alone
        (Kind::Unsigned | Kind::Signed, Kind::Float) => from.bits() < to.bits() || to.bits() == 64,
        _ => false,
    }
}

/// The format of a float type that can be cast.
fn format(scalar: Scalar) -> Option<FloatFormat> {
    if scalar == Scalar::F4 { Some(FloatFormat::F4) } else { FloatFormat::of(scalar) }
}

/// Whether every number of a float type is one of another.
fn keeps_floats(from: Scalar, to: Scalar) -> bool {
    let (Some(from), Some(to)) = (format(from), format(to)) else { return false };
    // the greatest number lacks the last bit of the mantissa where its code is NaN
    let is_short = |format: FloatFormat| format.specials == Specials::Last;
    let reaches = to.top > from.top || (to.top == from.top && (is_short(from) || !is_short(to)));
    // the type without a sign has no 0 either
    from.mantissa <= to.mantissa
        && to.least - to.mantissa as i32 <= from.least - from.mantissa as i32
        && reaches
        && (to.infinity().is_some() || from.infinity().is_none())
        && (to.signed || !from.signed)
}

/// Whether every number of an integer type, or booleans, is one of a float type of 8 or 16 bits.
fn keeps_integers(kind: Kind, from: Scalar, to: Scalar) -> bool {
    let Some(to) = format(to).filter(|to| to.signed) else { return false };
    let bits = match kind {
        Kind::Bool => 1,
        Kind::Signed => from.bits() - 1,
        _ => from.bits(),
    };
    bits <= u64::from(to.mantissa) + 1 && bits as i32 <= to.top
}
