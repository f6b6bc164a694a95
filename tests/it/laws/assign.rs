//! The laws of assignment, as properties on random tensors: what is assigned is what a slice then
//! gives, all else stays, and a scatter is a loop over its rows.

use std::fs;

use proptest::prelude::*;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{self, Assignment, Conversion, Progress, StridedSink, Transfer, Workers};
use tslice::gather::{Indices, OutOfRange};
use tslice::index::resolve::{Selection, resolve};
use tslice::index::{IndexExpr, Item, SliceItem};
use tslice::plan::Plan;
use tslice::runs::Runs;
use tslice::scatter::Scatter;
use tslice::shape::Order;
use tslice::sink::{InPlaceFile, Sink, WriteOrder};
use tslice::view::{Layout, View};

use super::cases;
use crate::memory::{Bytes, Memory};

/// A tensor's place in its file: shape, item size, order, bytes before it.
#[derive(Clone, Debug)]
struct Place {
    shape: Vec<u64>,
    itemsize: u64,
    order: Order,
    before: u64,
}

impl Place {
    fn layout(&self) -> Layout<'_> {
        let Place { shape, itemsize, order, before } = self;
        Layout::new(shape, itemsize * 8, *order, *before)
    }

    fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.itemsize
    }

    /// A file around the tensor, none of whose bytes is 0.
    fn file(&self, seed: u64) -> Vec<u8> {
        let hash = |at: u64| (at ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        (0..self.before + self.bytes() + 7).map(|at| hash(at) as u8 | 1).collect()
    }

    /// The place of an element in the file.
    fn at(&self, position: &[u64]) -> usize {
        let axes: Vec<usize> = match self.order {
            Order::C => (0..self.shape.len()).collect(),
            Order::F => (0..self.shape.len()).rev().collect(),
        };
        let number =
            axes.iter().fold(0, |number, &axis| number * self.shape[axis] + position[axis]);
        (self.before + number * self.itemsize) as usize
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

fn place() -> impl Strategy<Value = Place> {
    let shape = prop::collection::vec(prop_oneof![8 => 1u64..7, 1 => Just(0), 1 => 7u64..40], 0..5);
    let itemsize = prop_oneof![Just(1), Just(2), Just(3), Just(4), Just(8), Just(16)];
    (shape, itemsize, order(), 0u64..9)
        .prop_filter("small", |(shape, ..)| shape.iter().product::<u64>() < 20_000)
        .prop_map(|(shape, itemsize, order, before)| Place { shape, itemsize, order, before })
}

fn expression(shape: &[u64]) -> impl Strategy<Value = IndexExpr> + use<> {
    let item = |&len: &u64| {
        let bound = prop::option::of(-(len as i64) - 2..=len as i64 + 2);
        let step = prop::option::of((-3i64..=3).prop_filter("no step of 0", |step| *step != 0));
        let slice = (bound.clone(), bound, step)
            .prop_map(|(start, stop, step)| Item::Slice(SliceItem { start, stop, step }));
        match len {
            0 => slice.boxed(),
            len => prop_oneof![3 => slice, 1 => (0..len as i64).prop_map(Item::Integer)].boxed(),
        }
    };
    shape.iter().map(item).collect::<Vec<_>>().prop_map(IndexExpr::new)
}

fn case() -> impl Strategy<Value = (Place, IndexExpr)> {
    place().prop_flat_map(|place| {
        let expr = expression(&place.shape);
        (Just(place), expr)
    })
}

/// A file on the disk, open for patching.
fn patched(bytes: &[u8]) -> (tempfile::NamedTempFile, InPlaceFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let patch = InPlaceFile::open(file.path()).unwrap();
    (file, patch)
}

fn assign(target: &View, file: &[u8], value: &View, bytes: Vec<u8>, threads: usize) -> Vec<u8> {
    let (kept, patch) = patched(file);
    let source = Bytes::new(bytes, None);
    let (to, from) = Runs::pair_in_memory_order(target.runs(), value.runs());
    let pieces = Assignment::new(&to, &from, Conversion::None, &source);
    let copy = Transfer { source: &source, pieces: &pieces, conversion: Conversion::None, at: 0 };
    execute::run(
        &[copy],
        &StridedSink::new(&patch, &to),
        &Workers::new(threads),
        &Progress::default(),
    )
    .unwrap();
    patch.finish(false).unwrap();
    fs::read(kept.path()).unwrap()
}

fn slice(view: &View, bytes: Vec<u8>) -> Vec<u8> {
    let sink = Memory::new(view.bytes(), WriteOrder::Any);
    let plan = Plan::new(view.runs(), 1, 1 << 18);
    let source = Bytes::new(bytes, None);
    let copy = Transfer { source: &source, pieces: &plan, conversion: Conversion::None, at: 0 };
    execute::run(&[copy], &sink, &Workers::new(1), &Progress::default()).unwrap();
    sink.into_bytes()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn slicing_what_was_assigned_gives_the_value(
        (place, expr) in case(), value_order in order(), threads in 1usize..3,
    ) {
        let selection = resolve(&expr, &place.shape, false).unwrap();
        let target = View::new(&place.layout(), &selection).unwrap();
        let file = place.file(1);
        let own = Place { shape: selection.shape(), order: value_order, before: 3, ..place.clone() };
        let whole = Selection::whole(&own.shape);
        let value = View::new(&own.layout(), &whole).unwrap();
        let written = assign(&target, &file, &value, own.file(2), threads);
        prop_assert_eq!(slice(&target, written.clone()), slice(&value, own.file(2)));
        // as many bytes as the slice has may differ, and no more
        let changed = written.iter().zip(&file).filter(|(now, then)| now != then).count() as u64;
        prop_assert!(changed <= target.bytes());
        prop_assert_eq!(written.len(), file.len());
        // assigning what is there changes nothing
        let again = assign(&target, &file, &target, file.clone(), threads);
        prop_assert!(again == file);
    }

    /// Any sink that takes bytes in any order can be the target, not a file in place only.
    #[test]
    fn two_halves_of_a_tensor_joined_in_another_sink_are_the_tensor(
        place in place(), axis in 0usize..8, cut in 0.0f64..1.0, threads in 1usize..3,
    ) {
        prop_assume!(!place.shape.is_empty());
        let axis = axis % place.shape.len();
        let cut = (cut * (place.shape[axis] + 1) as f64) as i64;
        let file = place.file(5);
        let sink = Memory::new(file.len() as u64, WriteOrder::Any);
        for (start, stop) in [(None, Some(cut)), (Some(cut), None)] {
            let mut items = vec![Item::Slice(SliceItem::default()); axis];
            items.push(Item::Slice(SliceItem { start, stop, step: None }));
            let selection = resolve(&IndexExpr::new(items), &place.shape, false).unwrap();
            let half = View::new(&place.layout(), &selection).unwrap();
            let source = Bytes::new(slice(&half, file.clone()), None);
            let (to, from) = Runs::pair_in_memory_order(half.runs(), half.dense(0).runs());
            let pieces = Assignment::new(&to, &from, Conversion::None, &source);
            let conversion = Conversion::None;
            let transfer = Transfer { source: &source, pieces: &pieces, conversion, at: 0 };
            let target = StridedSink::new(&sink, &to);
            execute::run(&[transfer], &target, &Workers::new(threads), &Progress::default()).unwrap();
        }
        let (before, end) = (place.before as usize, (place.before + place.bytes()) as usize);
        sink.write_at(0, &file[..before]).unwrap();
        sink.write_at(end as u64, &file[end..]).unwrap();
        prop_assert!(sink.into_bytes() == file);
    }

    #[test]
    fn a_range_of_the_dense_bytes_is_the_sum_of_its_parts(
        (place, expr) in case(), cuts in prop::collection::vec(0.0f64..1.0, 0..5),
    ) {
        let selection = resolve(&expr, &place.shape, false).unwrap();
        let view = View::new(&place.layout(), &selection).unwrap();
        let runs = view.runs().coalesced();
        let file = place.file(3);
        let mut ends: Vec<u64> = cuts.iter().map(|cut| (cut * view.bytes() as f64) as u64).collect();
        ends.push(view.bytes());
        ends.sort_unstable();
        let (mut dense, mut start) = (vec![], 0);
        for end in ends {
            runs.split(start..end, &mut |part| {
                let mut out = vec![0; part.bytes() as usize];
                execute::pack::pack(&part.axes, part.run, &file, part.offset as usize, &mut out);
                dense.extend(out);
                Ok::<(), ()>(())
            }).unwrap();
            start = end;
        }
        prop_assert_eq!(dense, slice(&view, file));
    }

    #[test]
    fn a_scatter_is_a_loop_over_its_rows(
        place in place(), numbers in 0usize..5, rows in 0u64..30, seed in any::<u64>(),
        (value_order, index_order) in (order(), order()), skip in any::<bool>(),
        threads in 1usize..3,
    ) {
        let numbers = numbers.min(place.shape.len());
        let random = |at: u64| (at ^ seed).wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(23) >> 8;
        let tuple = |row: u64| -> Vec<i64> {
            (0..numbers).map(|axis| {
                let number = random(row * 8 + axis as u64);
                let len = place.shape[axis];
                // with `skip`, some are one past the end
                (number % (len + u64::from(skip)).max(1)) as i64
            }).collect()
        };
        let inside = |tuple: &[i64]| tuple.iter().zip(&place.shape).all(|(&at, &len)| (at as u64) < len);
        prop_assume!(skip || (0..rows).all(|row| inside(&tuple(row))));
        let index_place = Place { shape: vec![rows, numbers as u64], itemsize: 8, order: index_order, before: 5 };
        let mut indices = index_place.file(4);
        for row in 0..rows {
            for (column, number) in tuple(row).into_iter().enumerate() {
                let at = index_place.at(&[row, column as u64]);
                indices[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
        }
        let shape = [&[rows], &place.shape[numbers..]].concat();
        let values = Place { shape, order: value_order, before: 2, ..place.clone() };
        let (file, value_file) = (place.file(6), values.file(7));

        let mut expected = file.clone();
        let slab: u64 = place.shape[numbers..].iter().product();
        for row in (0..rows).filter(|&row| inside(&tuple(row))) {
            for number in 0..slab {
                let mut rest = number;
                let mut inner = vec![0; place.shape.len() - numbers];
                for (at, len) in inner.iter_mut().zip(&place.shape[numbers..]).rev() {
                    (*at, rest) = (rest % len, rest / len);
                }
                let outer: Vec<u64> = tuple(row).iter().map(|&at| at as u64).collect();
                let to = place.at(&[outer, inner.clone()].concat());
                let from = values.at(&[vec![row], inner].concat());
                let item = place.itemsize as usize;
                expected[to..to + item].copy_from_slice(&value_file[from..from + item]);
            }
        }

        let i64s = DType::Scalar(Scalar::I64, Endian::Little);
        let tensor = Layout::new(&index_place.shape, 64, index_order, 5);
        let tensor = Indices { dtype: &i64s, layout: tensor };
        let out_of_range = if skip { OutOfRange::Drop } else { OutOfRange::Error };
        let scatter =
            Scatter::new(&place.layout(), &tensor, &values.layout(), out_of_range, Conversion::None).unwrap();
        let (kept, patch) = patched(&file);
        let (source, indices) =
            (Bytes::new(value_file, None), Bytes::new(indices, None));
        scatter.check(&[&indices], &Workers::new(threads)).unwrap();
        let positions = scatter.positions(&[&indices], &Workers::new(threads)).unwrap();
        let (pieces, _) = scatter.pieces(&source, &Workers::new(threads)).unwrap();
        let copy = Transfer { source: &source, pieces: &pieces, conversion: Conversion::None, at: 0 };
        let sink = scatter.sink(&patch, &positions);
        execute::run(&[copy], &sink, &Workers::new(threads), &Progress::default()).unwrap();
        patch.finish(false).unwrap();
        prop_assert!(fs::read(kept.path()).unwrap() == expected);
    }
}
