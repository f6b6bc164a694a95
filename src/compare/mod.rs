//! Whether elements of two tensors are the same, and how far they are apart.
//!
//! Works on bytes of both in one order, in any portions and from several threads: a [`Comparer`]
//! knows the two dtypes and the [`Rule`], [`Findings`] are what portions add up to. They do not
//! depend on how the elements were divided.
//!
//! ```
//! use tslice::compare::{Comparer, Findings, Rule};
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = |endian| DType::Scalar(Scalar::I16, endian);
//! let comparer = Comparer::new(&dtype(Endian::Little), &dtype(Endian::Big), Rule::default()).unwrap();
//! let mut findings = Findings::default();
//! comparer.compare(&[1, 0, 7, 0], &[0, 1, 0, 9], |number| number, &mut findings);
//! assert_eq!((findings.differing, findings.absolute.unwrap().place), (1, 1));
//! ```

mod dtypes;
mod findings;
mod leaf;
mod rule;

use crate::dtype::DType;
pub use dtypes::same_dtype;
pub use findings::{Findings, Largest, Pair};
use leaf::{Leaf, leaves};
pub use rule::Rule;

/// Elements that are compared a block at a time: blocks of the same bytes are skipped.
const BLOCK_BYTES: usize = 4096;

/// Compares elements of two dtypes that are the same but for their byte order.
pub struct Comparer {
    rule: Rule,
    /// The parts of an element of each.
    leaves: Vec<(Leaf, Leaf)>,
    itemsize: usize,
    /// Whether elements of the same bytes are the same.
    bits_suffice: bool,
}

impl Comparer {
    /// `None` for dtypes that are not [the same](same_dtype), or whose elements are no whole bytes.
    pub fn new(a: &DType, b: &DType, rule: Rule) -> Option<Comparer> {
        if !same_dtype(a, b) || !a.item_bits().is_multiple_of(8) {
            return None;
        }
        let a_leaves = leaves(dtypes::with_meaning(a, b))?;
        let b_leaves = leaves(dtypes::with_meaning(b, a))?;
        let leaves: Vec<(Leaf, Leaf)> = a_leaves.into_iter().zip(b_leaves).collect();
        let same_order = leaves.iter().all(|(a, b)| a.endian() == b.endian());
        let has_nan = leaves.iter().any(|(a, _)| a.has_nan());
        let bits_suffice = same_order && (rule.same_nan_is_equal() || !has_nan);
        let itemsize = (a.item_bits() / 8) as usize;
        Some(Comparer { rule, leaves, itemsize, bits_suffice })
    }

    /// Bytes an element; 0 for `|S0` and the like.
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// Compare whole elements; `place` says which element of the tensor number n of these is.
    pub fn compare(&self, a: &[u8], b: &[u8], place: impl Fn(u64) -> u64, findings: &mut Findings) {
        let itemsize = self.itemsize.max(1);
        let block = (BLOCK_BYTES / itemsize).max(1) * itemsize;
        for (number, (a, b)) in a.chunks(block).zip(b.chunks(block)).enumerate() {
            if self.bits_suffice && a == b {
                continue;
            }
            let first = (number * block / itemsize) as u64;
            let elements = a.chunks_exact(itemsize).zip(b.chunks_exact(itemsize));
            for (at, (a, b)) in (first..).zip(elements) {
                if !self.leaves.iter().all(|(of_a, of_b)| self.same(of_a, a, of_b, b)) {
                    findings.add(place(at), self.pair(a, b));
                }
            }
        }
    }

    /// Whether a part of an element is the same.
    fn same(&self, of_a: &Leaf, a: &[u8], of_b: &Leaf, b: &[u8]) -> bool {
        (0..of_a.count).all(|item| self.rule.same(&of_a.value(a, item), &of_b.value(b, item)))
    }

    /// Two elements that differ, and by how much where they are numbers.
    fn pair<'a>(&self, a: &'a [u8], b: &'a [u8]) -> Pair<'a> {
        let distance = match self.leaves.as_slice() {
            [(of_a, of_b)] if of_a.is_alone(self.itemsize) => {
                of_a.value(a, 0).distance(&of_b.value(b, 0))
            }
            _ => None,
        };
        Pair { a, b, distance }
    }
}
