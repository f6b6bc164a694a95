//! Keys: numbers of 64 bits that are ordered as the values are.

/// How keys are made of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Of doubles.
    Float,
    /// Of integers that may be negative.
    Signed,
    /// Of those that may not.
    Unsigned,
}

const SIGN: u64 = 1 << 63;

impl Keys {
    /// The key of a double; -0 has that of 0.
    pub(super) fn of_float(value: f64) -> u64 {
        let bits = (value + 0.0).to_bits();
        if bits & SIGN == 0 { bits | SIGN } else { !bits }
    }

    /// The key of an integer, extended to 64 bits.
    pub(super) fn of_integer(self, bits: u64) -> u64 {
        if self == Keys::Signed { bits ^ SIGN } else { bits }
    }

    /// The value of a key.
    pub(super) fn value(self, key: u64) -> f64 {
        match self {
            Keys::Float => f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN }),
            Keys::Signed => (key ^ SIGN) as i64 as f64,
            Keys::Unsigned => key as f64,
        }
    }
}
