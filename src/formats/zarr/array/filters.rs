//! Filters of elements from numcodecs, undone on bytes: differences of neighbours, numbers with an offset and a
//! scale.

use half::f16;
use serde_json::{Map, Value};

use crate::dtype::{DType, Endian, NumberKind, Scalar};
use crate::formats::npy;

/// The key of a filter's configuration with the byte order of the stored elements, from the codec `bytes`; it
/// overrides the dtypes.
pub(super) const STORED_ENDIAN: &str = "endian";

/// The types of a filter's elements: before encoding, and stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    made: Number,
    stored: Number,
}

/// A type of integers, or of floats of 16 to 64 bits.
#[derive(Clone, Copy, Debug)]
struct Number {
    scalar: Scalar,
    endian: Endian,
}

impl Numbers {
    /// The types in the configuration of a codec.
    pub(super) fn of(codec: &str, said: &Map<String, Value>) -> Result<Numbers, String> {
        let number = |key: &str| said.get(key).and_then(Value::as_str);
        let parsed = |dtype: &str| {
            let unfit = || format!("the codec {codec} of elements {dtype:?} is not read");
            Number::parse(dtype).ok_or_else(unfit)
        };
        let undeclared = || format!("the codec {codec} has no dtype");
        let mut made = parsed(number("dtype").ok_or_else(undeclared)?)?;
        let mut stored = number("astype").map_or(Ok(made), parsed)?;
        if let Some(order) = number(STORED_ENDIAN) {
            made.endian = Endian::Little;
            stored.endian = if order == "big" { Endian::Big } else { Endian::Little };
        }
        Ok(Numbers { made, stored })
    }

    /// Whether the types differ and one of them is a float.
    pub(super) fn changes_floats(self) -> bool {
        let is_any =
            [self.made, self.stored].iter().any(|it| it.scalar.kind() == NumberKind::Float);
        is_any && self.made.scalar != self.stored.scalar
    }

    /// The decoded length of `stored` bytes.
    pub(super) fn made_len(self, stored: usize) -> usize {
        stored / self.stored.bytes() * self.made.bytes()
    }

    /// The stored length of `made` decoded bytes.
    pub(super) fn stored_len(self, made: u64) -> u64 {
        (made / self.made.bytes() as u64).saturating_mul(self.stored.bytes() as u64)
    }

    /// Decode differences to elements.
    pub(super) fn summed(self, encoded: &[u8]) -> Vec<u8> {
        let Numbers { made, stored } = self;
        let mut out = Vec::with_capacity(self.made_len(encoded.len()));
        let differences = encoded.chunks_exact(stored.bytes());
        if made.scalar.kind() == NumberKind::Float {
            let mut sum = None;
            for next in differences.map(|bytes| stored.float(bytes)) {
                let next = sum.map_or(next, |sum| made.rounded(sum + next));
                made.put_float(next, &mut out);
                sum = Some(next);
            }
            return out;
        }
        let mut sum = 0u64;
        for bits in differences.map(|bytes| stored.bits(bytes)) {
            sum = sum.wrapping_add(bits);
            made.put(sum, &mut out);
        }
        out
    }

    /// Decode scaled elements. As in NumPy, floats are computed in their own type, integers in float64.
    pub(super) fn scaled(self, encoded: &[u8], offset: f64, scale: f64) -> Vec<u8> {
        let Numbers { made, stored } = self;
        let [offset, scale] = [offset, scale].map(|value| stored.rounded(value));
        let mut out = Vec::with_capacity(self.made_len(encoded.len()));
        for bytes in encoded.chunks_exact(stored.bytes()) {
            let quotient = stored.rounded(stored.float(bytes) / scale);
            made.put_float(stored.rounded(quotient + offset), &mut out);
        }
        out
    }
}

impl Number {
    /// Parse the name of a type in NumPy, or its type string.
    fn parse(text: &str) -> Option<Number> {
        let named = Scalar::ALL.into_iter().find(|scalar| scalar.name() == text);
        let dtype = match named {
            Some(scalar) => DType::Scalar(scalar, Endian::Little),
            None => npy::parse_dtype(text).ok()?,
        };
        let DType::Scalar(scalar, endian) = dtype else { return None };
        let is_read = match scalar.kind() {
            NumberKind::Unsigned | NumberKind::Signed => matches!(scalar.bits(), 8 | 16 | 32 | 64),
            NumberKind::Float => matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64),
            _ => false,
        };
        is_read.then_some(Number { scalar, endian })
    }

    fn bytes(self) -> usize {
        (self.scalar.bits() / 8) as usize
    }

    /// An element in 64 bits; a signed element is sign-extended.
    fn bits(self, bytes: &[u8]) -> u64 {
        let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        let bits = match self.endian {
            Endian::Big => bytes.iter().fold(0, add),
            Endian::Little => bytes.iter().rev().fold(0, add),
        };
        let above = 64 - self.scalar.bits();
        match self.scalar.kind() {
            NumberKind::Signed => ((bits << above) as i64 >> above) as u64,
            _ => bits,
        }
    }

    fn put(self, bits: u64, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend(&bits.to_le_bytes()[..self.bytes()]);
        if self.endian == Endian::Big {
            out[at..].reverse();
        }
    }

    fn float(self, bytes: &[u8]) -> f64 {
        let bits = self.bits(bytes);
        match self.scalar {
            Scalar::F16 => f16::from_bits(bits as u16).to_f64(),
            Scalar::F32 => f32::from_bits(bits as u32).into(),
            Scalar::F64 => f64::from_bits(bits),
            _ if self.scalar.kind() == NumberKind::Signed => (bits as i64) as f64,
            _ => bits as f64,
        }
    }

    /// Append a value; for integers it is rounded towards zero.
    fn put_float(self, value: f64, out: &mut Vec<u8>) {
        let bits = match self.scalar {
            Scalar::F16 => f16::from_f64(value).to_bits().into(),
            Scalar::F32 => (value as f32).to_bits().into(),
            Scalar::F64 => value.to_bits(),
            _ if value < i64::MAX as f64 => value as i64 as u64,
            _ => value as u64,
        };
        self.put(bits, out);
    }

    /// A value rounded to this float type; unchanged for integers.
    fn rounded(self, value: f64) -> f64 {
        match self.scalar {
            Scalar::F16 => f16::from_f64(value).to_f64(),
            Scalar::F32 => f64::from(value as f32),
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(said: Value) -> Result<Numbers, String> {
        Numbers::of("delta", said.as_object().unwrap())
    }

    #[test]
    fn elements_are_those_of_numcodecs() {
        // numcodecs.FixedScaleOffset(offset=1577836801, scale=1, dtype=">f8", astype="<i2") of three seconds
        let numbers = of(json!({ "dtype": ">f8", "astype": "<i2" })).unwrap();
        let found = numbers.scaled(&[0, 0, 1, 0, 2, 0], 1_577_836_801.0, 1.0);
        let wanted = [1_577_836_801.0f64, 1_577_836_802.0, 1_577_836_803.0];
        assert_eq!(found, wanted.map(f64::to_be_bytes).concat());
        let numbers = of(json!({ "dtype": "int64", "astype": "uint8" })).unwrap();
        assert_eq!(numbers.scaled(&[3], 1.6e12, 2.0), 1_600_000_000_001i64.to_le_bytes());
        let numbers = of(json!({ "dtype": ">i2", "astype": ">i2", "endian": "big" })).unwrap();
        assert_eq!(numbers.scaled(&[0, 4], 1.0, 1.0), [5, 0]);
    }

    #[test]
    fn other_elements_are_refused() {
        for said in [json!({}), json!({ "dtype": "<c8" }), json!({ "dtype": "<M8[s]" })] {
            assert!(of(said).is_err());
        }
        let changes = |dtype: &str, astype: &str| {
            of(json!({ "dtype": dtype, "astype": astype })).unwrap().changes_floats()
        };
        assert!(changes("<f4", "<i2") && changes("f4", "float64"));
        assert!(!changes("<f4", "float32") && !changes("<i2", "<i4"));
    }
}
