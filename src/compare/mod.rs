//! Comparison of the elements of two tensors: which differ, and by how much.
//!
//! A [`Comparer`] knows the two dtypes and the [`Rule`], and takes the bytes of both tensors in
//! portions of any size, from several threads. The [`Findings`] of all portions are merged; they do
//! not depend on how the elements were divided.
//!
//! ```
//! use tslice::compare::{Comparer, Findings, Rule};
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = |endian| DType::Scalar(Scalar::I16, endian);
//! let comparer = Comparer::new(&dtype(Endian::Little), &dtype(Endian::Big), Rule::default()).unwrap();
//! let mut findings = Findings::default();
//! comparer.compare(&[1, 0, 7, 0], &[0, 1, 0, 9], |number| number, &mut findings);
//! assert_eq!((findings.differing, findings.absolute.unwrap().position), (1, 1));
//! ```

use closeness::{Closeness, Distances, GROUP, Group, measure};
use element::{Leaf, all_parts, types};

use crate::cast::{swap, vectorized};
use crate::dtype::{DType, Endian, Field, NpyType, stored_by_numpy};

mod closeness;
mod element;

pub use crate::element::{LargeElement, check_held};
pub use element::Rule;

/// The bytes compared at a time: blocks of equal bytes are skipped without a look at their elements.
const BLOCK_BYTES: usize = 4096;

/// The size of an element, in bytes, above which neither its parts nor its value are stored.
const LARGE: usize = 64 << 10;

/// A comparison of elements of two dtypes that differ only in byte order, or of numbers of different types by their
/// exact values.
pub struct Comparer {
    rule: Rule,
    /// The dtype of the first side.
    dtype: DType,
    /// The types of the parts on both sides.
    types: Vec<(Leaf, Leaf)>,
    /// The parts of an element on both sides; empty if elements are large.
    leaves: Vec<(Leaf, Leaf)>,
    itemsizes: [usize; 2],
    same_dtype: bool,
    /// The number of bytes of the second side to reverse together first (1 for none), if equal bits
    /// are equal elements.
    bits: Option<usize>,
    closeness: Option<Closeness>,
}

impl Comparer {
    /// A comparer of two dtypes. `None` if elements are not whole bytes, or the dtypes are not [the same](same_dtype),
    /// unless the rule has a tolerance and both are numbers.
    pub fn new(a: &DType, b: &DType, rule: Rule) -> Option<Comparer> {
        let same_dtype = same_dtype(a, b);
        let by_value = rule.tolerance.is_some() && are_numbers([a, b]);
        if !same_dtype && !by_value || !a.item_bits().is_multiple_of(8) {
            return None;
        }
        let dtypes = (with_meaning(a, b), with_meaning(b, a));
        let of_a = types(&dtypes.0)?;
        let of_b = types(&dtypes.1)?;
        let same_order = of_a.iter().zip(&of_b).all(|(a, b)| a.endian() == b.endian());
        let has_nan = of_a.iter().any(Leaf::has_nan);
        let width = match &dtypes {
            _ if same_order => Some(1),
            (DType::Scalar(..), of_b) => Some(of_b.swap_width()),
            _ => None,
        };
        let bits = width.filter(|_| same_dtype && (rule.same_nan_is_equal() || !has_nan));
        let itemsizes = [a, b].map(|dtype| (dtype.item_bits() / 8) as usize);
        let types: Vec<(Leaf, Leaf)> = of_a.into_iter().zip(of_b).collect();
        let mut leaves = Vec::new();
        if itemsizes[0] <= LARGE {
            all_parts(&dtypes.0, &types, |a, b| {
                leaves.push((*a, *b));
                true
            });
        }
        let closeness = Closeness::new(rule, &dtypes.0, &dtypes.1);
        let dtype = dtypes.0;
        Some(Comparer { rule, dtype, types, leaves, itemsizes, same_dtype, bits, closeness })
    }

    /// Whether elements are so large that findings have only positions, no bytes.
    pub fn is_large(&self) -> bool {
        self.itemsizes[0] > LARGE
    }

    /// Whether a condition holds for all items of all parts of an element.
    fn all(&self, holds: impl Fn(&Leaf, &Leaf, usize) -> bool) -> bool {
        let of_part = |a: &Leaf, b: &Leaf| (0..a.count).all(|item| holds(a, b, item));
        if !self.is_large() {
            return self.leaves.iter().all(|(a, b)| of_part(a, b));
        }
        all_parts(&self.dtype, &self.types, of_part)
    }

    /// Bytes per element on each side; equal if elements are large, 0 for `|S0` and the like.
    pub fn itemsizes(&self) -> [usize; 2] {
        self.itemsizes
    }

    /// Compare whole elements. `position(n)` is the position of the n-th of these elements in the tensor.
    pub fn compare(
        &self,
        a: &[u8],
        b: &[u8],
        position: impl Fn(u64) -> u64,
        findings: &mut Findings,
    ) {
        let [of_a, of_b] = self.itemsizes.map(|size| size.max(1));
        let block = (BLOCK_BYTES / of_a).max(1);
        let blocks = a.chunks(block * of_a).zip(b.chunks(block * of_b));
        let mut distances = None;
        for (number, (a, b)) in blocks.enumerate() {
            if self.bits.is_some_and(|width| same_bits(a, b, width)) {
                continue;
            }
            let first = (number * block) as u64;
            let Some(closeness) = &self.closeness else {
                self.compare_each(a, b, |_| true, |at| position(first + at), findings);
                continue;
            };
            let groups = a.chunks(GROUP * of_a).zip(b.chunks(GROUP * of_b));
            for ((a, b), first) in groups.zip((first..).step_by(GROUP)) {
                let position = |at: u64| position(first + at);
                let distances = distances.get_or_insert_with(Distances::default);
                let found = measure(distances, closeness, a, b);
                if found.differing > 0 {
                    let item = |at: usize| (&a[at * of_a..][..of_a], &b[at * of_b..][..of_b]);
                    findings.add_group(&found, distances, position, item);
                }
                if found.unsure {
                    let is_unsure = |at: usize| distances.absolute[at].is_nan();
                    self.compare_each(a, b, is_unsure, position, findings);
                }
            }
        }
    }

    /// Compare the elements for which `may_differ` is true of their number.
    fn compare_each(
        &self,
        a: &[u8],
        b: &[u8],
        may_differ: impl Fn(usize) -> bool,
        position: impl Fn(u64) -> u64,
        findings: &mut Findings,
    ) {
        let [of_a, of_b] = self.itemsizes.map(|size| size.max(1));
        let elements = a.chunks_exact(of_a).zip(b.chunks_exact(of_b)).enumerate();
        for (at, (a, b)) in elements.filter(|(at, _)| may_differ(*at)) {
            if !self.all(|of_a, of_b, item| self.same_item(of_a, a, of_b, b, item)) {
                self.add(position(at as u64), a, b, findings);
            }
        }
    }

    fn same_item(&self, of_a: &Leaf, a: &[u8], of_b: &Leaf, b: &[u8], item: usize) -> bool {
        let a = of_a.value(a, item);
        let b = of_b.value(b, item);
        if self.same_dtype { self.rule.same(&a, &b) } else { self.rule.same_numbers(&a, &b) }
    }

    /// Add two elements that differ to the findings; only elements that are one finite number have a distance.
    fn add(&self, position: u64, a: &[u8], b: &[u8], findings: &mut Findings) {
        // items that differ, one of them NaN, NaT or infinite
        let not_finite = !self.all(|of_a, of_b, item| {
            let is_finite = of_a.is_finite(a, item) && of_b.is_finite(b, item);
            is_finite || self.same_item(of_a, a, of_b, b, item)
        });
        let distance = match self.leaves.as_slice() {
            [(of_a, of_b)] if !not_finite && of_a.is_alone(self.itemsizes[0]) => {
                of_a.value(a, 0).distance(&of_b.value(b, 0))
            }
            _ => None,
        };
        let [a, b] = if self.is_large() { [&[][..]; 2] } else { [a, b] };
        let values = || (a.to_vec(), b.to_vec());
        findings.differing += 1;
        Largest::update(&mut findings.first, 0.0, position, values);
        if not_finite {
            findings.not_finite += 1;
            Largest::update(&mut findings.first_not_finite, 0.0, position, values);
        }
        let Some((absolute, relative)) = distance else { return };
        Largest::update(&mut findings.absolute, absolute, position, values);
        if !relative.is_nan() {
            Largest::update(&mut findings.relative, relative, position, values);
        }
    }
}

/// Whether two blocks are equal after reversing every `width` bytes of the second.
fn same_bits(a: &[u8], b: &[u8], width: usize) -> bool {
    if width > 1 && b.len() <= BLOCK_BYTES { same_reversed(a, b, width) } else { a == b }
}

vectorized! {
    fn same_reversed(a: &[u8], b: &[u8], width: usize) -> bool {
        let mut reversed = [0; BLOCK_BYTES];
        let reversed = &mut reversed[..b.len()];
        reversed.copy_from_slice(b);
        swap(reversed, width);
        a == &*reversed
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub differing: u64,
    pub first: Option<Largest>,
    /// The number of differing elements with NaN, NaT or an infinity on at least one side.
    pub not_finite: u64,
    pub first_not_finite: Option<Largest>,
    /// The element with the largest absolute difference of finite numbers.
    pub absolute: Option<Largest>,
    /// The element with the largest difference of finite numbers, relative to the second number.
    pub relative: Option<Largest>,
}

/// Two elements that differ, and their position.
#[derive(Clone, Debug, PartialEq)]
pub struct Largest {
    /// The absolute or relative difference; 0 where only the position matters.
    pub difference: f64,
    pub position: u64,
    /// The bytes of both elements; empty if elements are large.
    pub values: (Vec<u8>, Vec<u8>),
}

impl Findings {
    /// Add the surely different elements of a group; `item` gives the bytes of both sides.
    fn add_group<'a>(
        &mut self,
        found: &Group,
        distances: &Distances,
        position: impl Fn(u64) -> u64,
        item: impl Fn(usize) -> (&'a [u8], &'a [u8]),
    ) {
        let values = |at: usize| {
            let (a, b) = item(at);
            (a.to_vec(), b.to_vec())
        };
        self.differing += found.differing;
        let differing = distances.absolute.iter().enumerate().filter(|(_, apart)| **apart > 0.0);
        if let Some((position, at)) = differing.map(|(at, _)| (position(at as u64), at)).min() {
            Largest::update(&mut self.first, 0.0, position, || values(at));
        }
        let of_both = [
            (&mut self.absolute, &distances.absolute, found.absolute),
            (&mut self.relative, &distances.relative, found.relative),
        ];
        for (ours, all, most) in of_both {
            if ours.as_ref().is_some_and(|ours| most < ours.difference) {
                continue;
            }
            for (at, _) in all.iter().enumerate().filter(|(_, apart)| **apart == most) {
                Largest::update(ours, most, position(at as u64), || values(at));
            }
        }
    }

    pub fn merge(&mut self, other: Findings) {
        self.differing += other.differing;
        self.not_finite += other.not_finite;
        Largest::merge(&mut self.first, other.first);
        Largest::merge(&mut self.first_not_finite, other.first_not_finite);
        Largest::merge(&mut self.absolute, other.absolute);
        Largest::merge(&mut self.relative, other.relative);
    }
}

impl Largest {
    /// Replace `ours` by a larger difference, or by an equal one at an earlier position.
    fn update(
        ours: &mut Option<Largest>,
        difference: f64,
        position: u64,
        values: impl FnOnce() -> (Vec<u8>, Vec<u8>),
    ) {
        let is_exceeded = ours.as_ref().is_none_or(|ours| {
            difference > ours.difference
                || difference == ours.difference && position < ours.position
        });
        if is_exceeded {
            *ours = Some(Largest { difference, position, values: values() });
        }
    }

    fn merge(ours: &mut Option<Largest>, theirs: Option<Largest>) {
        if let Some(Largest { difference, position, values }) = theirs {
            Largest::update(ours, difference, position, || values);
        }
    }
}

/// Whether two dtypes differ at most in byte order; a void type that `.npy` stores instead of a dtype equals that
/// dtype.
pub fn same_dtype(a: &DType, b: &DType) -> bool {
    match (a, b) {
        (DType::Scalar(a, _), DType::Scalar(b, _)) => a == b,
        (DType::Blocks(a), DType::Blocks(b)) => a == b,
        (DType::Npy(a), DType::Npy(b)) => same_type(a, b),
        _ => is_stored_as(a, b) || is_stored_as(b, a),
    }
}

fn are_numbers(dtypes: [&DType; 2]) -> bool {
    let is_number = |dtype: &DType| match dtype {
        DType::Scalar(scalar, _) => scalar.bits().is_multiple_of(8),
        DType::Npy(dtype) => {
            matches!(dtype, NpyType::LongDouble(_) | NpyType::ComplexLongDouble(_))
        }
        DType::Blocks(_) => false,
    };
    dtypes.into_iter().all(is_number)
}

/// The more precise of two dtypes: `other`, little-endian, if `dtype` is the void type stored instead of it.
fn with_meaning(dtype: &DType, other: &DType) -> DType {
    match other {
        _ if !is_stored_as(other, dtype) => dtype.clone(),
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        _ => other.clone(),
    }
}

fn is_stored_as(dtype: &DType, void: &DType) -> bool {
    dtype != void && void.is_void() && stored_by_numpy(dtype).as_ref() == Some(void)
}

fn same_type(a: &NpyType, b: &NpyType) -> bool {
    match (a, b) {
        (NpyType::Void(a, _), NpyType::Void(b, _)) => a == b,
        (NpyType::Structure(a), NpyType::Structure(b)) => {
            a.itemsize == b.itemsize
                && a.fields.len() == b.fields.len()
                && a.fields.iter().zip(&b.fields).all(|(a, b)| same_field(a, b))
        }
        (a, b) => a == b || a.swap_width_to(b).is_some(),
    }
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name == b.name
        && (&a.shape, &a.nesting, a.offset) == (&b.shape, &b.nesting, b.offset)
        && same_dtype(&a.dtype, &b.dtype)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy};

    use super::*;
    use crate::dtype::{Endian, Scalar};
    use crate::formats::npy::dtype_of_descr;

    /// A change of any byte is found, also in an element that is compared part by part.
    #[test]
    fn all_bytes_of_an_element_count() {
        let a = "('a', 'i1'), ('b', '<f4', (2, 3)), ('c', 'S3', 4), ('d', '<U2'), ('e', '<c16', 2), ('f', 'V5'), \
                 ('g', '<M8[s]')";
        for large in ["", ", ('h', 'V65536')"] {
            let [a, b] = [a.to_owned(), a.replace('<', ">")]
                .map(|fields| dtype_of_descr(&format!("[{fields}{large}]")));
            let size = (a.item_bits() / 8) as usize;
            let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
            for (other, is_other) in [(&a, false), (&b, true)] {
                let comparer = Comparer::new(&a, other, Rule::default()).unwrap();
                assert_eq!(comparer.is_large(), !large.is_empty());
                let mut theirs = bytes.clone();
                let widths = [(1, 4, 6), (37, 4, 2), (45, 8, 4), (82, 8, 1)];
                for (start, width, count) in widths.into_iter().filter(|_| is_other) {
                    theirs[start..start + width * count]
                        .chunks_mut(width)
                        .for_each(<[u8]>::reverse);
                }
                for changed in (0..100).chain([size]) {
                    let mut theirs = theirs.clone();
                    let is_changed = theirs.get_mut(changed).map(|byte| *byte ^= 1).is_some();
                    let mut findings = Findings::default();
                    comparer.compare(&bytes, &theirs, |number| number, &mut findings);
                    assert_eq!(findings.differing, u64::from(is_changed), "{changed}");
                }
            }
        }
    }

    #[test]
    fn long_doubles_are_compared_with_doubles() {
        let power_of_two = |exponent: u16| {
            let mut bytes = [0; 16];
            bytes[7] = 0x80;
            bytes[8..10].copy_from_slice(&exponent.to_le_bytes());
            bytes
        };
        let a = [power_of_two(0x3fff), power_of_two(0x4000)].concat();
        let b: Vec<u8> = [1.0, 2.5].into_iter().flat_map(f64::to_le_bytes).collect();
        let double = DType::Scalar(Scalar::F64, Endian::Little);
        let rule = Rule { tolerance: Some((0.0, 1e-3)), ..Rule::default() };
        let long = dtype_of_descr("'<f16'");
        for (dtypes, sides, relative) in
            [([&long, &double], [&a, &b], 0.2), ([&double, &long], [&b, &a], 0.25)]
        {
            let comparer = Comparer::new(dtypes[0], dtypes[1], rule).unwrap();
            let mut findings = Findings::default();
            comparer.compare(sides[0], sides[1], |number| number, &mut findings);
            assert_eq!(findings.differing, 1);
            let found = [findings.absolute, findings.relative].map(|it| it.unwrap());
            assert_eq!(found.map(|it| (it.difference, it.position)), [(0.5, 1), (relative, 1)]);
        }
    }

    proptest::proptest! {
        #[test]
        fn numbers_in_a_loop_are_close_as_each_is(
            scalars in proptest::sample::select(&Scalar::ALL[..]).prop_flat_map(|a| {
                (Just(a), proptest::sample::select(vec![a, a, Scalar::F32, Scalar::BF16, Scalar::I16]))
            }),
            random in proptest::collection::vec((proptest::num::u64::ANY, -3i64..4), 1..1500),
            has_tolerance: bool,
            absolute in proptest::sample::select(vec![0.0, 1e-7, 1e-3, 1.0, 1e5]),
            relative in proptest::sample::select(vec![0.0, 1e-6, 1e-3, 0.1]),
            equal_nan: bool,
            order in 0u64..8,
        ) {
            let [a, b] = [scalars.0, scalars.1].map(|it| DType::Scalar(it, Endian::Little));
            let rule = Rule { tolerance: has_tolerance.then_some((absolute, relative)), equal_nan };
            let Some(mut comparer) = Comparer::new(&a, &b, rule) else { return Ok(()) };
            let bytes = |dtype: &DType, step: i64| -> Vec<u8> {
                let size = (dtype.item_bits() / 8) as usize;
                let code = |(bits, apart): &(u64, i64)| bits.wrapping_add_signed(step * apart).to_le_bytes();
                let items = random.iter().map(|it| code(it).repeat(4));
                items.flat_map(|code| code[..size].to_vec()).collect()
            };
            let a = bytes(&a, 0);
            let b = bytes(&b, 1);
            let mut compared = [Findings::default(), Findings::default()];
            for found in &mut compared {
                comparer.compare(&a, &b, |number| number ^ order, found);
                comparer.closeness = None;
            }
            proptest::prop_assert_eq!(&compared[0], &compared[1]);
        }
    }
}
