//! How elements of a value become elements of what they are assigned to.

use crate::dtype::DType;
use crate::error::Cause;
use crate::execute::Conversion;
use crate::format::npy;
use crate::job::casts::Casts;
use crate::job::edit::fault::EditFault;

/// How elements of a value become those of a target, where one of `casts` may be for its dtype.
///
/// # Errors
/// [`EditFault::DType`] for a dtype that is not the target's afterwards;
/// [`EditFault::PartsOfBytes`]; [`CastError`](crate::cast::CastError).
pub(super) fn cast_conversion(
    value: &DType,
    target: &DType,
    casts: &Casts,
) -> Result<Conversion, Cause> {
    let Some(cast) = casts.of(value)? else { return Ok(conversion(value, target)?) };
    conversion(&cast.to(), target)?;
    if !value.item_bits().is_multiple_of(8) {
        return Err(EditFault::PartsOfBytes(value.clone()).into());
    }
    Ok(match target {
        _ if cast.keeps_type() => conversion(value, target)?,
        _ => Conversion::Cast(cast.with_order_of(target)),
    })
}

/// What makes elements of a value's dtype elements of the target's, where the two are one but for
/// their byte order. What a `.npy` has as `<V2` is the bfloat16 that it was made of.
///
/// # Errors
/// [`EditFault::DType`] for two different ones.
pub(in crate::job) fn conversion(value: &DType, target: &DType) -> Result<Conversion, EditFault> {
    let swap_width = match (value, target) {
        (DType::Scalar(ours, from), DType::Scalar(theirs, to)) => {
            (ours == theirs).then(|| if from == to { 1 } else { target.swap_width() })
        }
        (DType::Npy(ours), DType::Npy(theirs)) if ours == theirs => Some(1),
        (DType::Npy(ours), DType::Npy(theirs)) => ours.swap_width_to(theirs),
        (stored @ DType::Npy(_), other) | (other, stored @ DType::Npy(_)) => {
            (npy::stored_dtype(other).as_ref() == Some(stored)).then_some(1)
        }
        (ours, theirs) => (ours == theirs).then_some(1),
    };
    let conversion = swap_width.map(Conversion::swap_bytes);
    conversion.ok_or_else(|| EditFault::DType { value: value.clone(), target: target.clone() })
}
