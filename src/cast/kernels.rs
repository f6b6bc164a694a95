//! The loops over elements: one for each pair of real types, and the steps for complex numbers.

use half::slice::HalfFloatSliceExt;

use super::vectors::vectorized;
use crate::dtype::Scalar;
use crate::element::{FloatFormat, Magnitude};

type Kernel = fn(&[u8], &mut [u8]);

/// Cast little-endian numbers. `input` serves as scratch space.
pub(super) fn run(from: Scalar, to: Scalar, input: &mut [u8], output: &mut [u8]) {
    match (from.part(), to.part()) {
        (Some(_), None) if to == Scalar::Bool => truth(from, input, output),
        (Some(ours), None) => {
            let count = keep_real(ours, input);
            real(ours, to)(&input[..count], output);
        }
        (None, Some(theirs)) => {
            let half = output.len() / 2;
            real(from, theirs)(input, &mut output[half..]);
            add_imaginary(theirs, output);
        }
        // the parts of complex numbers are real numbers
        (ours, theirs) => real(ours.unwrap_or(from), theirs.unwrap_or(to))(input, output),
    }
}

/// Truncate strings of `from` bytes to `to` bytes, or pad them with zeros.
pub(super) fn fit(from: usize, to: usize, input: &[u8], output: &mut [u8]) {
    let kept = from.min(to);
    for (to, from) in output.chunks_exact_mut(to).zip(input.chunks_exact(from)) {
        to[..kept].copy_from_slice(&from[..kept]);
        to[kept..].fill(0);
    }
}

/// Move the real parts to the front of `elements`; returns the number of bytes that they take.
fn keep_real(part: Scalar, elements: &mut [u8]) -> usize {
    fn keep<const N: usize>(elements: &mut [u8]) -> usize {
        let parts = elements.as_chunks_mut::<N>().0;
        for at in 0..parts.len() / 2 {
            parts[at] = parts[2 * at];
        }
        parts.len() / 2 * N
    }
    match part {
        Scalar::F32 => keep::<4>(elements),
        _ => keep::<8>(elements),
    }
}

/// Spread the real parts in the second half of `elements`, each followed by an imaginary part of 0.
fn add_imaginary(part: Scalar, elements: &mut [u8]) {
    fn add<const N: usize>(elements: &mut [u8]) {
        let parts = elements.as_chunks_mut::<N>().0;
        let count = parts.len() / 2;
        for at in 0..count {
            parts[2 * at] = parts[count + at];
            parts[2 * at + 1] = [0; N];
        }
    }
    match part {
        Scalar::F32 => add::<4>(elements),
        _ => add::<8>(elements),
    }
}

fn truth(from: Scalar, input: &[u8], output: &mut [u8]) {
    fn any<T: Number>(input: &[u8], output: &mut [u8]) {
        let (elements, _) = T::items(input).as_chunks::<2>();
        for (truth, parts) in output.iter_mut().zip(elements) {
            let [real, imaginary] = parts.map(|part| T::read(part).exact().nearest::<Bool>());
            *truth = real.write()[0] | imaginary.write()[0];
        }
    }
    match from {
        Scalar::C64 => any::<f32>(input, output),
        _ => any::<f64>(input, output),
    }
}

/// Evaluate `$value` with `$type` as the Rust type of a scalar, or `copy` for scalars that are not
/// cast here.
macro_rules! with_type {
    ($scalar:expr, $type:ident => $value:expr) => {
        with_type!(
            $scalar, $type => $value;
            Bool: Bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
            F16: F16, F32: f32, F64: f64, BF16: BF16, F8E4M3: F8E4M3, F8E5M2: F8E5M2,
            F8E8M0: F8E8M0, F8E4M3Fnuz: F8E4M3Fnuz, F8E5M2Fnuz: F8E5M2Fnuz
        )
    };
    ($scalar:expr, $type:ident => $value:expr; $($known:ident: $number:ty),*) => {
        match $scalar {
            $(Scalar::$known => {
                type $type = $number;
                $value
            })*
            // never part of a cast
            Scalar::C64 | Scalar::C128 | Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4 => copy,
        }
    };
}

fn real(from: Scalar, to: Scalar) -> Kernel {
    match (from, to) {
        _ if from == to && from != Scalar::Bool => copy,
        (Scalar::F32, Scalar::F16) => f32_to_f16,
        (Scalar::F16, Scalar::F32) => f16_to_f32,
        (Scalar::F32, Scalar::F8E4M3) => narrow::<F8E4M3>,
        (Scalar::F32, Scalar::F8E5M2) => narrow::<F8E5M2>,
        (Scalar::F32, Scalar::F8E4M3Fnuz) => narrow::<F8E4M3Fnuz>,
        (Scalar::F32, Scalar::F8E5M2Fnuz) => narrow::<F8E5M2Fnuz>,
        (Scalar::F4, _) => with_type!(to, To => unpack_f4::<To>),
        _ => with_type!(from, From => real_from::<From>(to)),
    }
}

fn real_from<A: Number>(to: Scalar) -> Kernel {
    with_type!(to, To => convert::<A, To>)
}

fn convert<A: Number, B: Number>(input: &[u8], output: &mut [u8]) {
    for (to, from) in B::items_mut(output).iter_mut().zip(A::items(input)) {
        *to = A::read(*from).exact().nearest::<B>().write();
    }
}

vectorized! {
    /// Convert float32 numbers.
    fn narrow<B: Number>(input: &[u8], output: &mut [u8]) {
        for (to, from) in B::items_mut(output).iter_mut().zip(f32::items(input)) {
            *to = B::of_f32(f32::from_le_bytes(*from)).write();
        }
    }
}

static F4: [f32; 16] = table(FloatFormat::F4);

/// Convert two elements from each byte, the first from the low bits.
fn unpack_f4<B: Number>(input: &[u8], output: &mut [u8]) {
    let cast = |code: u8| F4[usize::from(code)].nearest::<B>().write();
    for ([low, high], byte) in B::items_mut(output).as_chunks_mut::<2>().0.iter_mut().zip(input) {
        (*low, *high) = (cast(byte & 15), cast(byte >> 4));
    }
}

fn copy(input: &[u8], output: &mut [u8]) {
    let len = input.len().min(output.len());
    output[..len].copy_from_slice(&input[..len]);
}

/// The number of elements that `half` converts in one call with the processor's own instructions.
const GROUP: usize = 256;

fn f32_to_f16(input: &[u8], output: &mut [u8]) {
    let mut wide = [0f32; GROUP];
    let mut narrow = [half::f16::ZERO; GROUP];
    let blocks = f32::items(input).chunks(GROUP).zip(F16::items_mut(output).chunks_mut(GROUP));
    for (from, to) in blocks {
        for (number, bytes) in wide.iter_mut().zip(from) {
            *number = f32::from_le_bytes(*bytes);
        }
        narrow[..from.len()].convert_from_f32_slice(&wide[..from.len()]);
        for (bytes, number) in to.iter_mut().zip(&narrow) {
            *bytes = number.to_le_bytes();
        }
    }
}

fn f16_to_f32(input: &[u8], output: &mut [u8]) {
    let mut wide = [0f32; GROUP];
    let mut narrow = [half::f16::ZERO; GROUP];
    let blocks = F16::items(input).chunks(GROUP).zip(f32::items_mut(output).chunks_mut(GROUP));
    for (from, to) in blocks {
        for (number, bytes) in narrow.iter_mut().zip(from) {
            *number = half::f16::from_le_bytes(*bytes);
        }
        narrow[..from.len()].convert_to_f32_slice(&mut wide[..from.len()]);
        for (bytes, number) in to.iter_mut().zip(&wide) {
            *bytes = number.to_le_bytes();
        }
    }
}

/// A little-endian number type of whole bytes.
trait Number: Copy {
    type Bytes: Copy;
    /// A type that represents all values of this type.
    type Exact: Exact;

    fn items(bytes: &[u8]) -> &[Self::Bytes];
    fn items_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn read(bytes: Self::Bytes) -> Self;
    fn write(self) -> Self::Bytes;

    fn exact(self) -> Self::Exact;
    fn of_f32(value: f32) -> Self;
    fn of_f64(value: f64) -> Self;
    fn of_i64(value: i64) -> Self;
    fn of_u64(value: u64) -> Self;
}

trait Exact: Copy {
    /// The number of `T` nearest to this value.
    fn nearest<T: Number>(self) -> T;
}

macro_rules! exact {
    ($($type:ty: $of:ident),*) => {$(
        impl Exact for $type {
            #[inline(always)]
            fn nearest<T: Number>(self) -> T {
                T::$of(self)
            }
        }
    )*};
}

exact!(f32: of_f32, f64: of_f64, i64: of_i64, u64: of_u64);

/// The storage methods of [`Number`].
macro_rules! stored {
    ($bits:ty, $bytes:ident => $from:expr, $self:ident => $to:expr) => {
        type Bytes = [u8; size_of::<$bits>()];

        #[inline(always)]
        fn items(bytes: &[u8]) -> &[Self::Bytes] {
            bytes.as_chunks().0
        }

        #[inline(always)]
        fn items_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
            bytes.as_chunks_mut().0
        }

        #[inline(always)]
        fn read(bytes: Self::Bytes) -> Self {
            let $bytes = <$bits>::from_le_bytes(bytes);
            $from
        }

        #[inline(always)]
        fn write($self) -> Self::Bytes {
            let bits: $bits = $to;
            bits.to_le_bytes()
        }
    };
}

/// The four `of_*` methods of [`Number`] from one expression; `$zero` is bound to a zero of the
/// type.
macro_rules! nearest {
    ($value:ident, $zero:pat => $nearest:expr) => {
        nearest!($value, $zero => $nearest; of_f32: f32, of_f64: f64, of_i64: i64, of_u64: u64);
    };
    ($value:ident, $zero:pat => $nearest:expr; $($of:ident: $exact:ty),*) => {$(
        #[inline(always)]
        fn $of($value: $exact) -> Self {
            let $zero = <$exact>::default();
            $nearest
        }
    )*};
}

/// Rust's own types. Rust's `as` drops high bits from integer to integer, saturates from float to
/// integer, and rounds to the nearest float.
macro_rules! primitives {
    ($($type:ty: $exact:ty),*) => {$(
        impl Number for $type {
            type Exact = $exact;

            stored!($type, value => value, self => self);

            #[inline(always)]
            fn exact(self) -> $exact {
                self as $exact
            }

            nearest!(value, _ => value as $type);
        }
    )*};
}

primitives!(
    i8: i64, i16: i64, i32: i64, i64: i64, u8: u64, u16: u64, u32: u64, u64: u64, f32: f32, f64: f64
);

/// A boolean: a byte that is zero or not.
#[derive(Clone, Copy)]
struct Bool(bool);

impl Number for Bool {
    type Exact = u64;

    stored!(u8, byte => Bool(byte != 0), self => u8::from(self.0));

    #[inline(always)]
    fn exact(self) -> u64 {
        u64::from(self.0)
    }

    nearest!(value, zero => Bool(value != zero));
}

/// Round an integer to odd: bits after the first 53 are dropped, and the last remaining bit is set
/// if a dropped bit was set. Such a float64 rounds to any float of at most 51 bits as the integer
/// itself would.
#[inline(always)]
fn rounded_to_odd(magnitude: u64) -> f64 {
    const DROPPED: u64 = (1 << 11) - 1;
    let sticky = u64::from(magnitude & DROPPED != 0) << 11;
    let kept = if magnitude >> 53 == 0 { magnitude } else { (magnitude & !DROPPED) | sticky };
    kept as f64
}

#[inline(always)]
pub(super) fn widen_f16(bits: u16) -> f32 {
    // the exponent moves to its new position; a multiplication corrects its bias, for subnormals
    // too
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let is_special = bits & 0x7c00 == 0x7c00;
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits(magnitude | 0x7f80_0000);
    let value = if is_special { special } else { scaled };
    f32::from_bits(value.to_bits() | (u32::from(bits & 0x8000) << 16))
}

#[inline(always)]
pub(super) fn narrow_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if value.is_nan() { bits >> 16 | 0x40 } else { rounded }
}

/// Floats of 8 and 16 bits, stored as their codes.
macro_rules! small_floats {
    ($($name:ident($bits:ty): $scalar:ident, $decode:expr, $of_f32:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name($bits);

        impl $name {
            const FORMAT: FloatFormat = match FloatFormat::of(Scalar::$scalar) {
                Some(format) => format,
                None => unreachable!(),
            };
        }

        impl Number for $name {
            type Exact = f32;

            stored!($bits, code => $name(code), self => self.0);

            #[inline(always)]
            fn exact(self) -> f32 {
                $decode(self.0)
            }

            #[inline(always)]
            fn of_f32(value: f32) -> Self {
                $name($of_f32(value) as $bits)
            }

            #[inline(always)]
            fn of_f64(value: f64) -> Self {
                $name(Self::FORMAT.round(value) as $bits)
            }

            #[inline(always)]
            fn of_i64(value: i64) -> Self {
                let magnitude = rounded_to_odd(value.unsigned_abs());
                Self::of_f64(if value < 0 { -magnitude } else { magnitude })
            }

            #[inline(always)]
            fn of_u64(value: u64) -> Self {
                Self::of_f64(rounded_to_odd(value))
            }
        }
    )*};
}

/// The values of all codes of a small float. A NaN takes the sign of its code, since constant
/// arithmetic does not promise to keep it.
const fn table<const CODES: usize>(format: FloatFormat) -> [f32; CODES] {
    const NAN: u32 = 0x7fc0_0000;
    let mut table = [0.0; CODES];
    let mut code = 0;
    while code < CODES {
        let float = format.decode(code as u128);
        table[code] = match float.magnitude {
            Magnitude::Nan => f32::from_bits(NAN | (float.negative as u32) << 31),
            _ => float.value() as f32,
        };
        code += 1;
    }
    table
}

macro_rules! decoded {
    ($name:ident) => {
        |code: u8| {
            static NUMBERS: [f32; 256] = table($name::FORMAT);
            NUMBERS[usize::from(code)]
        }
    };
}

small_floats! {
    F16(u16): F16, widen_f16, |value| F16::FORMAT.round_f32(value);
    BF16(u16): BF16, |code: u16| f32::from_bits(u32::from(code) << 16), narrow_bf16;
    F8E4M3(u8): F8E4M3, decoded!(F8E4M3), |value| F8E4M3::FORMAT.round_f32(value);
    F8E5M2(u8): F8E5M2, decoded!(F8E5M2), |value| F8E5M2::FORMAT.round_f32(value);
    F8E4M3Fnuz(u8): F8E4M3Fnuz, decoded!(F8E4M3Fnuz), |value| F8E4M3Fnuz::FORMAT.round_f32(value);
    F8E5M2Fnuz(u8): F8E5M2Fnuz, decoded!(F8E5M2Fnuz), |value| F8E5M2Fnuz::FORMAT.round_f32(value);
    F8E8M0(u8): F8E8M0, decoded!(F8E8M0), |value: f32| F8E8M0::FORMAT.round(f64::from(value));
}
