//! Statistics of columns, where rows come one after the other, as in slices along an outer axis: rows are added
//! to rows.
//!
//! A column has a few doubles for each result. Its sum is exact, as in a [block](super::block): a first double
//! takes multiples of a power of two so large that rows add up without rounding, a second one takes the rests of
//! numbers with many bits. Smaller rests, of numbers far below others of their row, go directly to the
//! [`Summary`] of the column, as do NaN and infinities.

use super::block::{self, BLOCK, DOUBLE, SUM_BITS};
use super::exact_sum::Terms;
use super::summary::{Facts, Summary, Sums};
use crate::cast::vectorized;

/// Access to the summary of a column, by the column's number in a row.
pub type Reach<'a> = &'a dyn Fn(usize, &mut dyn FnMut(&mut Summary));

/// The pending rows of a group of columns, and a summary for each column.
pub struct Columns {
    empty: Summary,
    width: usize,
    /// The columns that are added at once: a number of whole rows side by side, where rows are short.
    lanes: usize,
    stripes: Vec<Stripe>,
}

/// At most [`BLOCK`] consecutive columns.
struct Stripe {
    zeros: Vec<u64>,
    least: Vec<f64>,
    greatest: Vec<f64>,
    sum: Sum,
    squares: Sum,
}

#[derive(Default)]
struct Sum {
    /// For each column, the sum of multiples of `2^lowest`, and the sum of the rests, [`WINDOW`] bits lower.
    levels: Vec<Vec<f64>>,
    lowest: i32,
    /// The magnitude that can still be added without rounding.
    room: f64,
}

/// The bits of a level's terms.
const WINDOW: i32 = DOUBLE - SUM_BITS;

impl Columns {
    /// The bytes of a column; `None` if columns cannot give the wanted result.
    pub(super) fn bytes(empty: &Summary) -> Option<usize> {
        let Facts { extremes, zeros, sums } = empty.of.facts;
        let levels = Columns::levels(empty);
        let has_one = u8::from(extremes) + u8::from(zeros) + u8::from(sums > Sums::None) == 1;
        // a double holds the values, and their squares where these are wanted
        let most = if sums == Sums::Squares { DOUBLE / 2 } else { DOUBLE };
        let doubles = 2 * usize::from(extremes) + usize::from(zeros) + levels.iter().sum::<usize>();
        (has_one && empty.value_bits() <= most).then_some(doubles * size_of::<f64>())
    }

    /// The number of levels of the sum, and of the sum of squares.
    fn levels(empty: &Summary) -> [usize; 2] {
        let of_sum = if empty.value_bits() > DOUBLE / 2 && empty.is_float() { 2 } else { 1 };
        match empty.of.facts.sums {
            Sums::None => [0, 0],
            Sums::Plain => [of_sum, 0],
            Sums::Squares => [of_sum, 2],
        }
    }

    pub fn new(empty: &Summary, width: usize) -> Columns {
        let lanes = width * (BLOCK / width).max(1);
        let stripe = |first: usize| {
            let count = (lanes - first).min(BLOCK);
            let filled =
                |is_asked: bool, value: f64| if is_asked { vec![value; count] } else { Vec::new() };
            let zeros = if empty.of.facts.zeros { vec![0; count] } else { Vec::new() };
            let sum = |levels: usize| Sum {
                levels: vec![vec![0.0; count]; levels],
                lowest: 0,
                room: 0.0,
            };
            let [of_sum, of_squares] = Columns::levels(empty);
            Stripe {
                zeros,
                least: filled(empty.of.facts.extremes, f64::INFINITY),
                greatest: filled(empty.of.facts.extremes, f64::NEG_INFINITY),
                sum: sum(of_sum),
                squares: sum(of_squares),
            }
        };
        let stripes = (0..lanes).step_by(BLOCK).map(stripe).collect();
        Columns { empty: empty.clone(), width, lanes, stripes }
    }

    /// Add elements; the first has number `first`, counted through all rows.
    pub fn add(&mut self, bytes: &[u8], first: u64, reach: Reach<'_>) {
        add(self, bytes, first, reach);
    }

    /// Add the results to the summaries of the columns, and start anew.
    pub fn flush(&mut self, reach: Reach<'_>) {
        let Columns { empty, width, stripes, .. } = self;
        for (number, stripe) in stripes.iter_mut().enumerate() {
            let column = |lane: usize| (number * BLOCK + lane) % *width;
            stripe
                .sum
                .flush(&mut |lane, value| reach(column(lane), &mut |it| it.add_to_sum(value)));
            stripe
                .squares
                .flush(&mut |lane, value| reach(column(lane), &mut |it| it.add_to_squares(value)));
            for (lane, zeros) in
                stripe.zeros.iter_mut().enumerate().filter(|(_, zeros)| **zeros > 0)
            {
                reach(column(lane), &mut |it| it.zero += *zeros);
                *zeros = 0;
            }
            let ends = stripe.least.iter_mut().zip(&mut stripe.greatest);
            for (lane, (least, greatest)) in
                ends.enumerate().filter(|(_, (least, greatest))| least <= greatest)
            {
                let range = empty.range_of(*least, *greatest);
                reach(column(lane), &mut |it| it.widen_to(range));
                (*least, *greatest) = (f64::INFINITY, f64::NEG_INFINITY);
            }
        }
    }
}

vectorized! {
    fn add(columns: &mut Columns, bytes: &[u8], first: u64, reach: Reach<'_>) {
        let Columns { empty, width, lanes, stripes } = columns;
        let size = empty.size();
        let mut rest = bytes;
        let mut at = (first % *lanes as u64) as usize;
        while !rest.is_empty() {
            let within = at % BLOCK;
            let stripe = &mut stripes[at / BLOCK];
            let count = (BLOCK - within).min(*lanes - at).min(rest.len() / size);
            let (now, later) = rest.split_at(count * size);
            let of_stripe = |lane: usize, look: &mut dyn FnMut(&mut Summary)| {
                reach((at - within + lane) % *width, look);
            };
            stripe.add(empty, now, within, &of_stripe);
            rest = later;
            at = (at + count) % *lanes;
        }
    }
}

impl Stripe {
    /// Add elements to the columns from column `at`.
    #[inline(always)]
    fn add(&mut self, empty: &Summary, bytes: &[u8], at: usize, reach: Reach<'_>) {
        let Facts { extremes, zeros, sums } = empty.of.facts;
        // an integer of one byte is zero where its byte is
        if zeros && empty.size() == 1 && !empty.is_float() {
            let zeros = self.zeros[at..].iter_mut().zip(bytes);
            return zeros.for_each(|(zeros, &byte)| *zeros += u64::from(byte == 0));
        }
        let mut values = [0.0; BLOCK];
        let values = empty.of.doubles.read(bytes, &mut values);
        if zeros {
            let zeros = self.zeros[at..].iter_mut().zip(&*values);
            zeros.for_each(|(zeros, &value)| *zeros += u64::from(value == 0.0));
        }
        if extremes {
            self.widen(values, at, empty.is_float(), reach);
        }
        if sums > Sums::None {
            self.add_sums(empty, values, at, reach);
        }
    }

    /// Update extremes. -0 counts as less than 0, so that the extremes do not depend on the order of elements.
    #[inline(always)]
    fn widen(&mut self, values: &mut [f64], at: usize, is_float: bool, reach: Reach<'_>) {
        let ends = self.least[at..].iter_mut().zip(&mut self.greatest[at..]).zip(&*values);
        if is_float && block::has_nan_or_minus_zero(values) {
            for (lane, ((least, greatest), &value)) in ends.enumerate() {
                if value.is_nan() {
                    reach(at + lane, &mut |it| it.nan += 1);
                } else {
                    *least = std::cmp::min_by(*least, value, f64::total_cmp);
                    *greatest = std::cmp::max_by(*greatest, value, f64::total_cmp);
                }
            }
            return;
        }
        for ((least, greatest), &value) in ends {
            *least = if value < *least { value } else { *least };
            // of -0 and 0, the last one, 0
            *greatest = if *greatest > value { *greatest } else { value };
        }
    }

    #[inline(always)]
    fn add_sums(&mut self, empty: &Summary, values: &mut [f64], at: usize, reach: Reach<'_>) {
        if empty.is_float() && !block::are_finite(values) {
            for (lane, value) in values.iter_mut().enumerate().filter(|(_, it)| !it.is_finite()) {
                reach(at + lane, &mut |it| it.add_special(*value));
                *value = 0.0;
            }
        }
        let terms = empty.terms_of(values);
        if empty.of.facts.sums == Sums::Squares {
            let mut squared = [0.0; BLOCK];
            let squared = &mut squared[..values.len()];
            squared.iter_mut().zip(&*values).for_each(|(to, value)| *to = value * value);
            self.squares.add(squared, at, terms.squared(), &mut |lane, value| {
                reach(lane, &mut |it| it.add_to_squares(value));
            });
        }
        self.sum
            .add(values, at, terms, &mut |lane, value| reach(lane, &mut |it| it.add_to_sum(value)));
    }
}

impl Sum {
    /// Add terms to the columns from column `at`; rests that no level holds are passed to `add`.
    #[inline(always)]
    fn add(&mut self, terms: &mut [f64], at: usize, range: Terms, add: &mut dyn FnMut(usize, f64)) {
        if !(Terms { lowest: range.below - 2 * WINDOW, ..range }).are_in_reach() {
            return (at..).zip(terms).for_each(|(lane, term)| add(lane, *term));
        }
        let needed = |lowest: i32| block::power(range.below.max(lowest + WINDOW));
        if range.below > self.lowest + WINDOW || self.room < needed(self.lowest) {
            self.flush(add);
            self.lowest = range.below - WINDOW;
            self.room = block::power(range.below + SUM_BITS);
        }
        self.room -= needed(self.lowest);
        let mut lowest = self.lowest;
        for level in &mut self.levels {
            let sums = level[at..].iter_mut().zip(&mut *terms);
            if range.lowest >= lowest {
                return sums.for_each(|(sum, term)| *sum += *term);
            }
            let cut = block::rounder(lowest);
            for (sum, term) in sums {
                let high = (*term + cut) - cut;
                *sum += high;
                *term -= high;
            }
            lowest -= WINDOW;
        }
        (at..)
            .zip(terms)
            .filter(|(_, rest)| **rest != 0.0)
            .for_each(|(lane, rest)| add(lane, *rest));
    }

    fn flush(&mut self, add: &mut dyn FnMut(usize, f64)) {
        for level in &mut self.levels {
            for (lane, sum) in level.iter_mut().enumerate().filter(|(_, sum)| **sum != 0.0) {
                add(lane, *sum);
                *sum = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::dtype::{Endian, Scalar};

    fn facts(summary: &Summary) -> impl PartialEq + std::fmt::Debug + use<> {
        let value = |it: &super::super::Extreme| summary.value(it);
        let ends = summary.range.map(|(least, greatest)| (value(&least), value(&greatest)));
        let Summary { nan, infinite, zero, .. } = *summary;
        let has_sums = summary.of.facts.sums > Sums::None;
        // sums report extremes where these are infinite
        let ends = ends.filter(|_| !has_sums || infinite > 0);
        let sums = [summary.mean(), summary.deviation()].map(|it| it.map(f64::to_bits));
        (nan, has_sums.then_some(infinite), zero, ends, sums)
    }

    proptest! {
        /// Two workers take turns. Most rows have few exponents; in some they are far apart.
        #[test]
        fn columns_are_as_their_elements(
            scalar in prop::sample::select(&Scalar::ALL[..]),
            what in 0..4,
            width in 1usize..40,
            random in prop::collection::vec(any::<u64>(), 1..3000),
            keep in prop::sample::select(&[0, 1, 7, 12, 20][..]),
            cut in 1usize..500,
        ) {
            let nothing = Facts { extremes: false, zeros: false, sums: Sums::None };
            let asked = match what {
                0 => Facts { extremes: true, ..nothing },
                1 => Facts { zeros: true, ..nothing },
                2 => Facts { sums: Sums::Plain, ..nothing },
                _ => Facts { sums: Sums::Squares, ..nothing },
            };
            let Some(empty) = Summary::new(scalar, Endian::Little, asked) else { return Ok(()) };
            if Columns::bytes(&empty).is_none() {
                return Ok(());
            }
            let size = empty.size();
            let bits = 8 * size as u32;
            let rows = random.len().div_ceil(width);
            let code = |number: usize| {
                let random = random[number % random.len()];
                let keep = if random.is_multiple_of(97) { 0 } else { keep };
                let mask = u64::MAX >> keep >> (64 - bits);
                (random.rotate_left(7) & mask | 0x3fff_ffff_ffff_ffff >> (64 - bits) & !mask).to_le_bytes()
            };
            let bytes: Vec<u8> = (0..rows * width).flat_map(|number| code(number)[..size].to_vec()).collect();
            let mut plain = vec![empty.clone(); width];
            for (number, item) in bytes.chunks(size).enumerate() {
                plain[number % width].add(item, (number / width) as u64);
            }
            let found: Vec<Mutex<Summary>> = (0..width).map(|_| Mutex::new(empty.clone())).collect();
            let reach = |column: usize, look: &mut dyn FnMut(&mut Summary)| look(&mut found[column].lock().unwrap());
            let mut workers = [Columns::new(&empty, width), Columns::new(&empty, width)];
            for (number, part) in bytes.chunks(cut * size).enumerate() {
                workers[number % 2].add(part, (number * cut) as u64, &reach);
            }
            workers.iter_mut().for_each(|worker| worker.flush(&reach));
            for (found, plain) in found.iter().zip(&plain) {
                let mut found = found.lock().unwrap().clone();
                found.count = plain.count;
                prop_assert_eq!(facts(&found), facts(plain));
            }
        }
    }
}
