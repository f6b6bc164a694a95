//! Binary floats taken apart: sign, mantissa and exponent of all formats with a shortest decimal of
//! their own, the x87 long double included.

/// A binary float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatFormat {
    /// IEEE 754 binary16.
    Half,
    /// IEEE 754 binary32.
    Single,
    /// IEEE 754 binary64.
    Double,
    /// The x87 format of 80 bits, whose leading bit is stored.
    Extended,
}

impl FloatFormat {
    /// Bits of the stored fraction, and of the exponent.
    fn widths(self) -> (u32, u32) {
        match self {
            FloatFormat::Half => (10, 5),
            FloatFormat::Single => (23, 8),
            FloatFormat::Double => (52, 11),
            FloatFormat::Extended => (63, 15),
        }
    }

    /// Significant bits, the leading one included.
    pub(crate) fn precision(self) -> u32 {
        self.widths().0 + 1
    }

    /// NumPy's `finfo(dtype).precision`: the decimal digits that any value keeps.
    pub(crate) fn decimal_digits(self) -> u32 {
        match self {
            FloatFormat::Half => 3,
            FloatFormat::Single => 6,
            FloatFormat::Double => 15,
            FloatFormat::Extended => 18,
        }
    }
}

impl FloatFormat {
    /// The bits without the sign: they ascend with the absolute value.
    pub(crate) fn magnitude_bits(self, bits: u128) -> u128 {
        let (fraction_bits, exponent_bits) = self.widths();
        let stored = fraction_bits + u32::from(self == FloatFormat::Extended);
        bits & ((1 << (stored + exponent_bits)) - 1)
    }

    /// The bits of the float next to 0.0001; NumPy rounds it to a double first.
    pub(crate) fn ten_thousandth(self) -> u128 {
        match self {
            FloatFormat::Half => 0x068e,
            FloatFormat::Single => u128::from(1e-4f32.to_bits()),
            FloatFormat::Double => u128::from(1e-4f64.to_bits()),
            FloatFormat::Extended => 0x3ff1_d1b7_1758_e219_6800,
        }
    }
}

/// A float of any of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinaryFloat {
    pub(crate) negative: bool,
    pub(crate) magnitude: Magnitude,
}

/// A float without its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Magnitude {
    Nan,
    Infinite,
    /// `mantissa * 2^exponent`.
    Finite {
        mantissa: u64,
        exponent: i32,
        /// Whether the next smaller float is only half as far away as the next larger one.
        unequal_margins: bool,
    },
}

impl BinaryFloat {
    /// From the bits of a float; those of a format with fewer stand in the low ones.
    pub(crate) fn from_bits(format: FloatFormat, bits: u128) -> BinaryFloat {
        let (fraction_bits, exponent_bits) = format.widths();
        let stored = fraction_bits + u32::from(format == FloatFormat::Extended);
        let fraction = (bits & ((1 << stored) - 1)) as u64;
        let biased = ((bits >> stored) & ((1 << exponent_bits) - 1)) as i32;
        let negative = (bits >> (stored + exponent_bits)) & 1 == 1;
        let greatest = (1 << exponent_bits) - 1;
        let bias = greatest / 2;
        let leading = 1u64 << fraction_bits;
        let magnitude = if biased == greatest {
            match fraction & (leading - 1) {
                0 => Magnitude::Infinite,
                _ => Magnitude::Nan,
            }
        } else {
            let is_normal = biased != 0;
            let mantissa = if is_normal { fraction | leading } else { fraction };
            Magnitude::Finite {
                mantissa,
                exponent: biased.max(1) - bias - fraction_bits as i32,
                unequal_margins: biased > 1 && fraction & (leading - 1) == 0,
            }
        };
        BinaryFloat { negative, magnitude }
    }

    /// Whether it is zero, and not -0.
    pub(crate) fn is_positive_zero(&self) -> bool {
        !self.negative && matches!(self.magnitude, Magnitude::Finite { mantissa: 0, .. })
    }
}
