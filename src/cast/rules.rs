//! Which casts a rule allows, as np.can_cast says, and the common type of two dtypes, as
//! np.result_type says; both extended to the floats that NumPy lacks.

use crate::dtype::{DType, Endian, NumberKind as Kind, Scalar};
use crate::element::{FloatFormat, Specials};

/// A rule for casts, as NumPy has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casting {
    /// Only casts that keep every value (and, as in NumPy, from integers of 64 bits to float64).
    Safe,
    /// Also casts within a kind or to a wider kind: float64 to float32, int64 to float16.
    #[default]
    SameKind,
    /// Every cast.
    Unsafe,
}

/// Whether a rule allows a cast (np.can_cast). Where NumPy lacks one of the types, `Safe` means
/// that every value is kept.
pub fn can_cast(from: Scalar, to: Scalar, casting: Casting) -> bool {
    match casting {
        Casting::Unsafe => true,
        Casting::SameKind => from.kind() <= to.kind() || is_safe(from, to),
        Casting::Safe => is_safe(from, to),
    }
}

fn is_safe(from: Scalar, to: Scalar) -> bool {
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

fn format(scalar: Scalar) -> Option<FloatFormat> {
    if scalar == Scalar::F4 { Some(FloatFormat::F4) } else { FloatFormat::of(scalar) }
}

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

/// Whether a float type of 8 or 16 bits represents every integer (or boolean) of a type.
fn keeps_integers(kind: Kind, from: Scalar, to: Scalar) -> bool {
    let Some(to) = format(to).filter(|to| to.signed) else { return false };
    let bits = match kind {
        Kind::Bool => 1,
        Kind::Signed => from.bits() - 1,
        _ => from.bits(),
    };
    bits <= u64::from(to.mantissa) + 1 && bits as i32 <= to.top
}

// The dtype that holds the values of two others: np.result_type, and what `ml_dtypes` adds to it.
//
// Some of it is no rule but a table that grew: 16-bit floats of two kinds have no common type,
// float8_e5m2 is a float of NumPy's own kind, the others are not.

/// The common dtype of two (np.result_type), little-endian; `None` where NumPy has none.
pub fn result_type(one: &DType, other: &DType) -> Option<DType> {
    match (one, other) {
        (DType::Scalar(one, _), DType::Scalar(other, _)) => {
            let common = if one.is_numpys() && other.is_numpys() {
                of_numpys(*one, *other)
            } else {
                of_others(*one, *other)
            };
            common.map(|scalar| DType::Scalar(scalar, Endian::Little))
        }
        _ => None,
    }
}

/// The common type of two types of NumPy: the first of the lowest kind to which both cast safely.
fn of_numpys(one: Scalar, other: Scalar) -> Option<Scalar> {
    let holds_both = |to: &Scalar| to.is_numpys() && is_safe(one, *to) && is_safe(other, *to);
    let types = Scalar::ALL.into_iter().filter(holds_both);
    types.min_by_key(|scalar| (scalar.kind(), scalar.bits()))
}

/// Of two numbers, of which NumPy lacks one at least.
fn of_others(one: Scalar, other: Scalar) -> Option<Scalar> {
    use Scalar::{Bool, C64, C128, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz};
    use Scalar::{F16, F32, F64, I8, I16, U8, U16};
    // of two that stand here, the first one
    const ORDER: [Scalar; 6] = [F8E4M3, F8E4M3Fnuz, F8E5M2Fnuz, F6E2M3, F6E3M2, F4];
    if one == other {
        return Some(one);
    }
    let (special, numpys) = match (one.is_numpys(), other.is_numpys()) {
        (false, true) => (one, other),
        (true, false) => (other, one),
        _ if [one, other].iter().all(|scalar| ORDER.contains(scalar)) => {
            return ORDER.into_iter().find(|scalar| [one, other].contains(scalar));
        }
        _ => return None,
    };
    match numpys {
        Bool | I8 | U8 => Some(special),
        F32 | F64 | C64 | C128 => Some(numpys),
        F16 | I16 | U16 if special == F8E5M2 => Some(F32),
        _ if special == F8E5M2 => Some(F64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_two_does_not_matter() {
        for one in Scalar::ALL {
            for other in Scalar::ALL {
                let dtype = |scalar| DType::Scalar(scalar, Endian::Big);
                let common = result_type(&dtype(one), &dtype(other));
                assert_eq!(common, result_type(&dtype(other), &dtype(one)));
                if one == other {
                    assert_eq!(common, Some(DType::Scalar(one, Endian::Little)));
                }
            }
        }
    }

    /// What np.result_type of NumPy 2.4 with ml_dtypes says; tests/python/joins_differential.py
    /// asks it for all pairs.
    #[test]
    fn common_types_are_those_of_numpy() {
        use Scalar::*;
        for (one, other, common) in [
            (I64, F32, Some(F64)),
            (I16, F16, Some(F32)),
            (U64, I8, Some(F64)),
            (U8, I8, Some(I16)),
            (U8, I32, Some(I32)),
            (C64, I32, Some(C128)),
            (C64, F16, Some(C64)),
            (C64, F64, Some(C128)),
            (Bool, F8E8M0, Some(F8E8M0)),
            (BF16, F16, None),
            (BF16, I16, None),
            (BF16, F32, Some(F32)),
            (F8E5M2, I16, Some(F32)),
            (F8E5M2, BF16, None),
            (F8E5M2Fnuz, F8E4M3, Some(F8E4M3)),
        ] {
            let dtype = |scalar| DType::Scalar(scalar, Endian::Little);
            assert_eq!(
                result_type(&dtype(one), &dtype(other)),
                common.map(dtype),
                "{one:?} {other:?}"
            );
        }
    }
}
