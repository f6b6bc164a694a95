//! Summaries of complex numbers: one for each part, and the extremes of both together.

use super::exact_sum::{Quotient, deviation};
use super::summary::{Facts, Summary};
use super::{Fold, Keys};
use crate::dtype::{Endian, Scalar};

/// The number of complex elements that are divided into real and imaginary parts at a time.
const PORTION: usize = 512;

/// The counts and sums of both parts of complex numbers, and the extremes in NumPy's order: by real
/// part, then by imaginary part.
#[derive(Clone, Debug)]
pub struct ComplexSummary {
    pub(super) parts: [Summary; 2],
    part: Scalar,
    endian: Endian,
    pub(super) zero: u64,
    /// The first element with a part that is NaN.
    pub(super) nan: Option<ComplexElement>,
    pub(super) range: Option<(ComplexElement, ComplexElement)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ComplexElement {
    keys: [u64; 2],
    pub(super) bits: [u64; 2],
    position: u64,
}

impl ComplexSummary {
    pub(super) fn new(scalar: Scalar, endian: Endian, facts: Facts) -> Option<ComplexSummary> {
        let part = scalar.part()?;
        let summary = Summary::new(part, endian, facts)?;
        let parts = [summary.clone(), summary];
        Some(ComplexSummary { parts, part, endian, zero: 0, nan: None, range: None })
    }

    /// The summaries of both parts, where only their sums are wanted.
    pub(super) fn parts_of_sums(&mut self) -> Option<&mut [Summary]> {
        let Facts { extremes, zeros, .. } = self.parts[0].of.facts;
        (!extremes && !zeros).then_some(&mut self.parts[..])
    }

    pub(super) fn count(&self) -> u64 {
        self.parts[0].count
    }

    /// The standard deviation, as by np.std; `None` if a part is infinite or NaN, or without
    /// elements or sums of squares.
    pub(super) fn exact_deviation(&self) -> Option<Quotient> {
        let [real, imaginary] = &self.parts;
        let sums = [real.exact_sums()?, imaginary.exact_sums()?];
        let is_finite = real.finite() + imaginary.finite() == 2 * self.count();
        (is_finite && self.count() > 0).then(|| deviation(&sums, self.count()))
    }

    fn portion<const WIDTH: usize>(
        &mut self,
        items: &[u8],
        first: u64,
        value: impl Fn(u64) -> f64,
    ) {
        let mut parts = [[0; 8 * PORTION]; 2];
        let mut count = 0;
        for (position, item) in (first..).zip(items.chunks_exact(2 * WIDTH)) {
            let mut bits = [0; 2];
            for (number, bytes) in item.as_chunks::<WIDTH>().0.iter().enumerate() {
                parts[number][count * WIDTH..][..WIDTH].copy_from_slice(bytes);
                bits[number] = self.endian.bits(bytes) as u64;
            }
            count += 1;
            self.element(bits, bits.map(&value), position);
        }
        for (summary, bytes) in self.parts.iter_mut().zip(&parts) {
            summary.add(&bytes[..count * WIDTH], first);
        }
    }

    fn element(&mut self, bits: [u64; 2], values: [f64; 2], position: u64) {
        self.zero += u64::from(values == [0.0; 2]);
        let found = ComplexElement { keys: values.map(Keys::of_float), bits, position };
        if values.iter().any(|value| value.is_nan()) {
            self.nan = earlier(self.nan, Some(found));
            return;
        }
        self.widen_to((found, found));
    }

    /// Update the extremes by those of other elements.
    fn widen_to(&mut self, (least, greatest): (ComplexElement, ComplexElement)) {
        let (low, high) = self.range.get_or_insert((least, greatest));
        *low = std::cmp::min_by_key(*low, least, |it| (it.keys, it.position));
        *high = std::cmp::min_by_key(*high, greatest, |it| (it.keys.map(|key| !key), it.position));
    }
}

impl Fold for ComplexSummary {
    fn bytes(&self) -> usize {
        size_of::<ComplexSummary>() + self.parts.iter().map(Summary::bytes).sum::<usize>()
    }

    fn add(&mut self, bytes: &[u8], first: u64) {
        let itemsize = (self.part.bits() / 4) as usize;
        for (number, items) in (0..).zip(bytes.chunks(PORTION * itemsize)) {
            let first = first + number * PORTION as u64;
            match self.part {
                Scalar::F32 => {
                    self.portion::<4>(items, first, |bits| f32::from_bits(bits as u32).into());
                }
                _ => self.portion::<8>(items, first, f64::from_bits),
            }
        }
    }

    fn merge(&mut self, other: ComplexSummary) {
        self.zero += other.zero;
        self.nan = earlier(self.nan, other.nan);
        if let Some(range) = other.range {
            self.widen_to(range);
        }
        self.parts.iter_mut().zip(other.parts).for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

fn earlier(one: Option<ComplexElement>, other: Option<ComplexElement>) -> Option<ComplexElement> {
    one.into_iter().chain(other).min_by_key(|element| element.position)
}
