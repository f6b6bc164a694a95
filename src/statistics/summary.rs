//! Summaries of any number of elements, in a few hundred bytes each.

use std::sync::Arc;

use super::Keys;
use super::block::{self, BLOCK, Block};
use super::exact_sum::{ExactSum, Moments, Quotient, Terms, deviation};
use super::quantile::Tally;
use crate::cast::{Doubles, vectorized};
use crate::dtype::{Endian, NumberKind, Scalar};
use crate::element::FloatFormat;

/// Counts, extremes and exact sums of real numbers.
#[derive(Clone, Debug)]
pub struct Summary {
    pub(super) of: Arc<Elements>,
    /// The number of elements, and how many of them are NaN, infinite and zero.
    pub count: u64,
    pub nan: u64,
    pub infinite: u64,
    pub zero: u64,
    /// The smallest and the largest element, infinities included; `None` if all are NaN.
    pub range: Option<(Extreme, Extreme)>,
    sum: Option<ExactSum>,
    squares: Option<ExactSum>,
}

/// The elements that a summary is of, and the wanted results.
#[derive(Debug)]
pub(super) struct Elements {
    pub(super) scalar: Scalar,
    endian: Endian,
    pub(super) doubles: Doubles,
    pub(super) keys: Keys,
    pub(super) facts: Facts,
    /// The range of all numbers of the type.
    terms: Terms,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    pub(super) key: u64,
    pub bits: u64,
    /// The number of the first element with this value.
    pub position: u64,
}

/// The wanted results, besides the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The smallest and the largest element, and the number of NaN. Sums also count NaN and infinities, and
    /// report infinite extremes.
    pub extremes: bool,
    pub zeros: bool,
    pub sums: Sums,
}

impl Facts {
    /// All results except sums.
    pub const COUNTS: Facts = Facts { extremes: true, zeros: true, sums: Sums::None };
    pub const ALL: Facts = Facts { sums: Sums::Squares, ..Facts::COUNTS };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sums {
    None,
    Plain,
    Squares,
}

impl Summary {
    /// An empty summary; `None` if elements are not real numbers of whole bytes.
    pub fn new(scalar: Scalar, endian: Endian, facts: Facts) -> Option<Summary> {
        let fewer = 64u32.saturating_sub(scalar.bits() as u32);
        let keys = match scalar.kind() {
            NumberKind::Signed => Keys::Signed(fewer),
            NumberKind::Bool | NumberKind::Unsigned => Keys::Unsigned(fewer),
            NumberKind::Float if scalar.bits() >= 8 => Keys::Float,
            NumberKind::Float | NumberKind::Complex => return None,
        };
        let terms = match FloatFormat::of(scalar) {
            Some(format) => {
                Terms { lowest: format.least - format.mantissa as i32, below: format.top + 1 }
            }
            None => Terms { lowest: 0, below: scalar.bits() as i32 },
        };
        let doubles = Doubles::new(scalar, endian).ok()?;
        Some(Summary {
            of: Arc::new(Elements { scalar, endian, doubles, keys, facts, terms }),
            count: 0,
            nan: 0,
            infinite: 0,
            zero: 0,
            range: None,
            sum: (facts.sums >= Sums::Plain).then(|| ExactSum::new(terms)),
            squares: (facts.sums >= Sums::Squares).then(|| ExactSum::new(terms.squared())),
        })
    }

    pub fn bytes(&self) -> usize {
        let sums = [&self.sum, &self.squares].into_iter().flatten();
        size_of::<Summary>() + sums.map(ExactSum::bytes).sum::<usize>()
    }

    pub fn add(&mut self, bytes: &[u8], first: u64) {
        self.add_counted(bytes, first, None);
    }

    /// Add elements, and count their values in `tally`.
    pub(super) fn add_counted(&mut self, bytes: &[u8], first: u64, tally: Option<&mut Tally>) {
        let size = self.size();
        if size == 1 && bytes.len() >= CODES {
            return self.add_codes(bytes, first, tally);
        }
        if bytes.len() <= size * SHORT {
            return self.add_block::<SHORT>(bytes, first, tally);
        }
        add_blocks(self, bytes, first, tally);
    }

    /// Add at most `N` elements.
    #[inline(always)]
    fn add_block<const N: usize>(&mut self, bytes: &[u8], first: u64, tally: Option<&mut Tally>) {
        match self.of.scalar {
            Scalar::I64 | Scalar::U64 => self.add_integers::<N>(bytes, first, tally),
            _ => self.add_doubles::<N>(bytes, first, tally),
        }
    }

    /// Add elements of one byte: each code is counted, and its value is added so many times.
    fn add_codes(&mut self, bytes: &[u8], first: u64, mut tally: Option<&mut Tally>) {
        let codes: [u8; CODES] = std::array::from_fn(|code| code as u8);
        let mut values = [0.0; CODES];
        let values = self.of.doubles.read(&codes, &mut values);
        let keys = self.of.keys;
        let counts = counts(bytes);
        self.count += bytes.len() as u64;
        let mut ends = None;
        for (&value, &count) in values.iter().zip(&counts).filter(|(_, count)| **count > 0) {
            self.nan += if value.is_nan() { count } else { 0 };
            self.zero += if value == 0.0 { count } else { 0 };
            self.infinite += if value.is_infinite() { count } else { 0 };
            if value.is_nan() {
                continue;
            }
            let key = keys.of_value(value);
            let [least, greatest] = ends.unwrap_or([key, key]);
            ends = Some([key.min(least), key.max(greatest)]);
            if let Some(tally) = &mut tally {
                tally.add(std::iter::once((key, count)));
            }
            if value.is_finite() {
                // doubles hold these products: a value has at most 8 bits, a count few enough
                let terms = [(&mut self.sum, value), (&mut self.squares, value * value)];
                for (sum, term) in terms {
                    sum.iter_mut().for_each(|sum| sum.add(term * count as f64));
                }
            }
        }
        if let Some(ends) = ends {
            let is_float = self.is_float();
            self.widen(ends, first, |key| {
                let has_key = |&&code: &&u8| keys.of_value(values[usize::from(code)]) == key;
                let at = bytes.iter().position(|code| has_key(&code)).unwrap_or(0);
                let code = bytes[at];
                let value = values[usize::from(code)];
                (at, if is_float { u64::from(code) } else { value as i64 as u64 })
            });
        }
    }

    /// Add a block of elements that doubles hold exactly.
    #[inline(always)]
    fn add_doubles<const N: usize>(&mut self, bytes: &[u8], first: u64, tally: Option<&mut Tally>) {
        let mut values = [0.0; N];
        let values = self.of.doubles.read(bytes, &mut values);
        self.count += values.len() as u64;
        if self.of.facts.zeros {
            self.zero += block::count(values, |value| value == 0.0);
        }
        let Facts { extremes, sums, .. } = self.of.facts;
        if !extremes && (sums == Sums::None || self.add_sums(values)) {
            return;
        }
        let block = Block::of(values);
        self.nan += block.nan;
        let keys = self.of.keys;
        if block.nan < values.len() as u64 {
            let ends = [block.least, block.greatest].map(|value| keys.of_value(value));
            let endian = self.of.endian;
            let size = self.size();
            self.widen(ends, first, |key| {
                let at = values.iter().position(|&value| keys.of_value(value) == key).unwrap_or(0);
                let bits = match keys {
                    Keys::Float => endian.bits(&bytes[at * size..][..size]) as u64,
                    Keys::Signed(_) | Keys::Unsigned(_) => values[at] as i64 as u64,
                };
                (at, bits)
            });
        }
        if let Some(tally) = tally {
            let mut buffer = [0; N];
            let all = &mut buffer[..values.len()];
            all.iter_mut().zip(&*values).for_each(|(key, &value)| *key = keys.of_value(value));
            if block.nan == 0 {
                tally.add(all.iter().map(|&key| (key, 1)));
            } else {
                let numbers = all.iter().zip(&*values).filter(|(_, value)| !value.is_nan());
                tally.add(numbers.map(|(&key, _)| (key, 1)));
            }
        }
        if block.nan > 0 || block.has_infinite() {
            self.infinite += block::count(values, f64::is_infinite);
            let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
            values.iter_mut().for_each(|value| *value = finite(*value));
        }
        if sums > Sums::None {
            self.add_sums(values);
        }
    }

    /// Add values to the sums. Returns false, and adds nothing, if a value is NaN or infinite.
    #[inline(always)]
    fn add_sums(&mut self, values: &[f64]) -> bool {
        let terms = self.terms_of(values);
        let bits = self.value_bits();
        let Some(sum) = &mut self.sum else { return true };
        match block::exact_sum(values, terms) {
            Some(parts) if parts.iter().all(|part| part.is_finite()) => {
                parts.into_iter().for_each(|part| sum.add(part));
            }
            None if values.iter().all(|value| value.is_finite()) => {
                values.iter().for_each(|&value| sum.add(value));
            }
            _ => return false,
        }
        let Some(squares) = &mut self.squares else { return true };
        match block::exact_squares(values, terms, bits) {
            Some(parts) => parts.into_iter().for_each(|part| squares.add(part)),
            None => values.iter().for_each(|&value| squares.add_square(value)),
        }
        true
    }

    /// The range of finite values.
    #[inline(always)]
    pub(super) fn terms_of(&self, values: &[f64]) -> Terms {
        if self.of.facts.sums < Sums::Squares && self.of.terms.are_short() {
            return self.of.terms;
        }
        block::terms(values, self.value_bits(), self.of.terms.lowest)
    }

    pub(super) fn size(&self) -> usize {
        self.of.doubles.size()
    }

    /// The most bits from a value's highest to its lowest bit that is set.
    pub(super) fn value_bits(&self) -> i32 {
        FloatFormat::of(self.of.scalar)
            .map_or(self.of.scalar.bits() as i32, |format| format.mantissa as i32 + 1)
    }

    pub(super) fn add_to_sum(&mut self, term: f64) {
        self.sum.iter_mut().for_each(|sum| sum.add(term));
    }

    pub(super) fn add_to_squares(&mut self, term: f64) {
        self.squares.iter_mut().for_each(|sum| sum.add(term));
    }

    /// Count NaN or an infinity, which sums leave out.
    pub(super) fn add_special(&mut self, value: f64) {
        if value.is_nan() {
            self.nan += 1;
            return;
        }
        self.infinite += 1;
        self.widen_to(self.range_of(value, value));
    }

    /// The range between two values; -0 comes before 0.
    pub(super) fn range_of(&self, least: f64, greatest: f64) -> (Extreme, Extreme) {
        let found = |value: f64, is_early: bool| Extreme {
            key: self.of.keys.of_value(value),
            bits: FloatFormat::of(self.of.scalar)
                .map_or(value as i64 as u64, |format| format.bits(value)),
            position: u64::from(!is_early),
        };
        let is_minus = |value: f64| value.is_sign_negative();
        (found(least, is_minus(least)), found(greatest, !is_minus(greatest)))
    }

    pub(super) fn widen_to(&mut self, (least, greatest): (Extreme, Extreme)) {
        let (low, high) = self.range.get_or_insert((least, greatest));
        *low = std::cmp::min_by_key(*low, least, |it| (it.key, it.position));
        *high = std::cmp::min_by_key(*high, greatest, |it| (!it.key, it.position));
    }

    /// Add a block of integers of 64 bits.
    #[inline(always)]
    fn add_integers<const N: usize>(
        &mut self,
        bytes: &[u8],
        first: u64,
        tally: Option<&mut Tally>,
    ) {
        let mut bits = [0; N];
        let count = bytes.len() / 8;
        let bits = &mut bits[..count];
        for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
            *bits = match self.of.endian {
                Endian::Little => u64::from_le_bytes(*bytes),
                Endian::Big => u64::from_be_bytes(*bytes),
            };
        }
        let bits = &*bits;
        let keys = self.of.keys;
        let all_keys = || bits.iter().map(|&bits| keys.of_integer(bits));
        self.count += count as u64;
        if self.of.facts.zeros {
            self.zero += bits.iter().filter(|bits| **bits == 0).count() as u64;
        }
        if self.of.facts.extremes
            && let (Some(least), Some(greatest)) = (all_keys().min(), all_keys().max())
        {
            self.widen([least, greatest], first, |key| {
                let at = all_keys().position(|it| it == key).unwrap_or(0);
                (at, bits[at])
            });
        }
        if let Some(tally) = tally {
            tally.add(all_keys().map(|key| (key, 1)));
        }
        let value = |bits: u64| {
            if matches!(keys, Keys::Signed(_)) { i128::from(bits as i64) } else { i128::from(bits) }
        };
        if let Some(sum) = &mut self.sum {
            sum.add_integer(bits.iter().map(|&bits| value(bits)).sum(), 0);
        }
        if let Some(squares) = &mut self.squares {
            let [low, high] = sum_of_squares(bits.iter().map(|&bits| value(bits)));
            squares.add_integer(low, 0);
            squares.add_integer(high, 64);
        }
    }

    /// Update the extremes with the least and the greatest key of a block that begins at `first`; `find` gives
    /// the position in the block, and the bits, of the first number with a key.
    fn widen(&mut self, ends: [u64; 2], first: u64, find: impl Fn(u64) -> (usize, u64)) {
        let found = |key| {
            let (at, bits) = find(key);
            Extreme { key, bits, position: first + at as u64 }
        };
        let [least, greatest] = ends;
        let Some((low, high)) = &mut self.range else {
            self.range = Some((found(least), found(greatest)));
            return;
        };
        if least < low.key || least == low.key && first < low.position {
            *low = std::cmp::min_by_key(*low, found(least), |it| (it.key, it.position));
        }
        if greatest > high.key || greatest == high.key && first < high.position {
            *high = std::cmp::min_by_key(*high, found(greatest), |it| (!it.key, it.position));
        }
    }

    pub fn merge(&mut self, other: Summary) {
        self.count += other.count;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.zero += other.zero;
        for (ours, theirs) in [(&mut self.sum, other.sum), (&mut self.squares, other.squares)] {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.merge(&theirs);
            }
        }
        if let Some(range) = other.range {
            self.widen_to(range);
        }
    }

    pub fn is_float(&self) -> bool {
        self.of.keys == Keys::Float
    }

    pub fn finite(&self) -> u64 {
        self.count - self.nan - self.infinite
    }

    pub fn value(&self, extreme: &Extreme) -> f64 {
        self.of.keys.value(extreme.key)
    }

    /// The mean of the finite elements, rounded once; `None` without finite elements or sums.
    pub fn mean(&self) -> Option<f64> {
        self.exact_mean().map(Quotient::nearest)
    }

    /// The standard deviation of the finite elements, as by np.std, rounded once; `None` without finite elements
    /// or sums of squares.
    pub fn deviation(&self) -> Option<f64> {
        self.exact_deviation().map(Quotient::nearest)
    }

    pub(super) fn exact_mean(&self) -> Option<Quotient> {
        let sum = self.sum.as_ref().filter(|_| self.finite() > 0)?;
        Some(sum.divided(self.finite()))
    }

    pub(super) fn exact_deviation(&self) -> Option<Quotient> {
        let sums = self.exact_sums()?;
        (self.finite() > 0).then(|| deviation(&[sums], self.finite()))
    }

    pub(super) fn exact_sums(&self) -> Option<Moments<'_>> {
        Some(Moments { sum: self.sum.as_ref()?, squares: self.squares.as_ref()? })
    }

    pub(super) fn exact_sum(&self) -> Option<&ExactSum> {
        self.sum.as_ref()
    }

    /// The lowest 64 bits of the sum of integers; 0 without sums.
    pub(super) fn wrapped_sum(&self) -> u64 {
        self.sum.as_ref().map_or(0, ExactSum::wrapped)
    }
}

vectorized! {
    fn add_blocks(summary: &mut Summary, bytes: &[u8], first: u64, tally: Option<&mut Tally>) {
        let mut tally = tally;
        let block = summary.size() * BLOCK;
        for (bytes, first) in bytes.chunks(block).zip((first..).step_by(BLOCK)) {
            summary.add_block::<BLOCK>(bytes, first, tally.as_deref_mut());
        }
    }
}

/// The number of elements up to which buffers are small: slices along an axis may be so short, and very many.
const SHORT: usize = 32;

/// The number of values of a byte.
const CODES: usize = 256;

/// Count each byte. Each of four tables takes every fourth byte, so that equal neighbours do not wait for each
/// other.
fn counts(bytes: &[u8]) -> [u64; CODES] {
    let mut tables = [[0; CODES]; 4];
    let (chunks, rest) = bytes.as_chunks::<4>();
    for chunk in chunks {
        tables.iter_mut().zip(chunk).for_each(|(table, &code)| table[usize::from(code)] += 1);
    }
    rest.iter().for_each(|&code| tables[0][usize::from(code)] += 1);
    std::array::from_fn(|code| tables.iter().map(|table| table[code]).sum())
}

/// The sum of the squares of integers of 64 bits: its lower 64 bits, and the bits above.
#[inline(always)]
fn sum_of_squares(values: impl Iterator<Item = i128>) -> [i128; 2] {
    let mut low = 0;
    let mut high = 0;
    for value in values {
        let square = value.unsigned_abs().pow(2);
        low += i128::from(square as u64);
        high += (square >> 64) as i128;
    }
    [low, high]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Add element by element, with sums in digits: the reference for the tests.
    fn plainly(summary: &mut Summary, bytes: &[u8]) {
        let size = (summary.of.scalar.bits() / 8) as usize;
        for (position, item) in (0..).zip(bytes.chunks_exact(size)) {
            let raw = summary.of.endian.bits(item) as u64;
            let (key, bits) = match FloatFormat::of(summary.of.scalar) {
                Some(format) => {
                    let value = format.value(u128::from(raw));
                    summary.count += 1;
                    summary.nan += u64::from(value.is_nan());
                    summary.zero += u64::from(value == 0.0);
                    summary.infinite += u64::from(value.is_infinite());
                    if value.is_finite() {
                        summary.sum.as_mut().unwrap().add(value);
                        summary.squares.as_mut().unwrap().add_square(value);
                    }
                    if value.is_nan() {
                        continue;
                    }
                    (Keys::of_float(value), raw)
                }
                None => {
                    let unused = 64 - 8 * size as u32;
                    let raw =
                        if summary.of.scalar == Scalar::Bool { u64::from(raw > 0) } else { raw };
                    let number = match summary.of.keys {
                        Keys::Signed(_) => i128::from((raw << unused) as i64 >> unused),
                        _ => i128::from(raw),
                    };
                    summary.count += 1;
                    summary.zero += u64::from(number == 0);
                    summary.sum.as_mut().unwrap().add_integer(number, 0);
                    let square = number.unsigned_abs().pow(2);
                    let squares = summary.squares.as_mut().unwrap();
                    squares.add_integer(i128::from(square as u64), 0);
                    squares.add_integer((square >> 64) as i128, 64);
                    (summary.of.keys.of_integer(number as u64), number as u64)
                }
            };
            let found = Extreme { key, bits, position };
            let (least, greatest) = summary.range.get_or_insert((found, found));
            if key < least.key {
                *least = found;
            }
            if key > greatest.key {
                *greatest = found;
            }
        }
    }

    fn all(summary: &Summary) -> impl PartialEq + std::fmt::Debug + use<> {
        let Summary { count, nan, infinite, zero, range, .. } = *summary;
        let bits = |quotient: Option<Quotient>| quotient.map(|it| it.nearest().to_bits());
        let sums = [bits(summary.exact_mean()), bits(summary.exact_deviation())];
        (count, nan, infinite, zero, range, sums, summary.wrapped_sum())
    }

    proptest! {
        /// Bits are random, of few exponents (as in most blocks), or of few values.
        #[test]
        fn blocks_are_as_their_elements(
            scalar in prop::sample::select(&Scalar::ALL[..]),
            is_big: bool,
            random in prop::collection::vec(any::<u64>(), 0..3000),
            keep in prop::sample::select(&[0, 1, 3, 7, 12, 20, 40][..]),
            at: usize,
        ) {
            let endian = if is_big { Endian::Big } else { Endian::Little };
            let Some(empty) = Summary::new(scalar, endian, Facts::ALL) else { return Ok(()) };
            let size = (scalar.bits() / 8) as usize;
            let bits = scalar.bits() as u32;
            let mut bytes = Vec::new();
            for random in random {
                // the bits above the lowest ones of all elements are those of a number near 1.0 or 2.0
                let fixed = 0x3fff_ffff_ffff_ffff_u64 >> (64 - bits) & !(u64::MAX >> keep >> (64 - bits));
                let code = random >> (64 - bits) & (u64::MAX >> keep >> (64 - bits)) | fixed;
                let mut item = code.to_le_bytes()[..size].to_vec();
                if is_big {
                    item.reverse();
                }
                bytes.extend(item);
            }
            let mut plain = empty.clone();
            plainly(&mut plain, &bytes);
            let mut blocks = empty.clone();
            blocks.add(&bytes, 0);
            prop_assert_eq!(all(&blocks), all(&plain));
            // divided anywhere, the later part first
            let at = at % (bytes.len() / size + 1);
            let mut parts = empty.clone();
            parts.add(&bytes[at * size..], at as u64);
            let mut first = empty;
            first.add(&bytes[..at * size], 0);
            parts.merge(first);
            prop_assert_eq!(all(&parts), all(&plain));
        }
    }
}
