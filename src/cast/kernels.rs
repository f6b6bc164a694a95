//! The loops over elements: one for each pair of real types, and what complex numbers need besides.

use half::slice::HalfFloatSliceExt;

use super::number::{
    BF16, Bool, Exact, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16, Number, table,
};
use crate::dtype::Scalar;
use crate::element::FloatFormat;

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
        // the parts of complex numbers are as many real ones
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

/// Move the real parts to the front of `elements`; returns how many bytes they take.
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

/// Evaluate `$value` with `$type` as the Rust type of a scalar, or `copy` for those not cast here.
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
            // no part of a cast
            Scalar::C64 | Scalar::C128 | Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4 => copy,
        }
    };
}

fn real(from: Scalar, to: Scalar) -> Kernel {
    match (from, to) {
        _ if from == to && from != Scalar::Bool => copy,
        (Scalar::F32, Scalar::F16) => f32_to_f16,
        (Scalar::F16, Scalar::F32) => f16_to_f32,
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

/// Elements that `half` converts in one call by the processor's own instructions.
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
