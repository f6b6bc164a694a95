//! However the elements of a tensor are stored, what is taken of it is what is taken of the same
//! elements one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use tslice::dtype::{DType, NpyType};
use tslice::execute::{self, Conversion, Progress, Transfer, Workers};
use tslice::index::numpy;
use tslice::index::resolve::{Selection, resolve};
use tslice::region::{ReadBy, ReadFor, Region, layout_of};
use tslice::shape::{Order, Permutation};
use tslice::sink::WriteOrder;
use tslice::source::Source;
use tslice::tensor::{StorageKind, TensorInfo};
use tslice::view::{View, ViewError};

use super::cases;
use crate::chunks::{Grid, source};
use crate::memory::{Bytes, Memory};

/// What is taken of a tensor, and how it is read.
#[derive(Clone, Debug)]
struct Taken {
    shape: Vec<u64>,
    itemsize: u64,
    index: String,
    /// The axes of the result are reversed.
    transposed: bool,
    order: Order,
    write: WriteOrder,
    threads: usize,
    /// Where the result is cut in two parts, in thousandths.
    cut: u64,
}

fn bytes(count: u64) -> Vec<u8> {
    (0..count).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// An index of an axis of that length as text; `list` may be one of so many positions.
fn item(len: u64, [kind, first, second]: [u8; 3], list: Option<u64>) -> String {
    let (first, second) = (u64::from(first), u64::from(second));
    match (kind % 8, list) {
        (0, _) if len > 0 => (first % len).to_string(),
        (1, _) => format!("{}:", first % (len + 1)),
        (2, _) => format!(":{}", first % (len + 1)),
        (3, _) => format!("{}::-{}", first % (len + 2), second % 4 + 1),
        (4, _) => format!("::{}, None", second % 5 + 1),
        (5 | 6, Some(count)) if len > 0 => {
            let at = (0..count).map(|at| (at * (second + 1) + first) % len);
            let at: Vec<String> = at.map(|at| at.to_string()).collect();
            format!("[{}]", at.join(", "))
        }
        _ => ":".to_owned(),
    }
}

fn taken() -> impl Strategy<Value = Taken> {
    let lens = prop_oneof![1 => Just(0u64), 20 => 1u64..8, 2 => 20u64..60];
    let shape = prop::collection::vec(lens, 0..5);
    let shape = shape.prop_filter("small", |shape| shape.iter().product::<u64>() < 20_000);
    let items = prop::collection::vec(any::<[u8; 3]>(), 5);
    let order = prop_oneof![Just(Order::C), Just(Order::F)];
    let write = prop_oneof![Just(WriteOrder::Any), Just(WriteOrder::Ascending)];
    let list = prop::option::of(1u64..6);
    let itemsize = prop_oneof![Just(1u64), Just(2), Just(3), Just(4), Just(8), Just(16)];
    let how = (any::<bool>(), order, write, 1usize..4, 0u64..=1000);
    (shape, itemsize, (items, list), how).prop_map(|(shape, itemsize, (items, list), how)| {
        let index = shape.iter().zip(items).map(|(&len, dice)| item(len, dice, list));
        let index = format!("[{}]", index.collect::<Vec<_>>().join(", "));
        let (transposed, order, write, threads, cut) = how;
        Taken { shape, itemsize, index, transposed, order, write, threads, cut }
    })
}

impl Taken {
    fn dtype(&self) -> DType {
        DType::Npy(NpyType::Bytes(self.itemsize))
    }

    fn selection(&self) -> Selection {
        let index = numpy::parse(&self.index).unwrap().expr;
        resolve(&index, &self.shape, false).unwrap()
    }

    fn region(&self, tensor: &TensorInfo) -> Arc<dyn Region> {
        let selection = self.selection();
        let ndim = selection.shape().len();
        let mut axes: Vec<i64> = (0..ndim as i64).collect();
        if self.transposed {
            axes.reverse();
        }
        let axes = Permutation::new(&axes, ndim).unwrap();
        <dyn Region>::of(tensor, &selection, &axes, self.order).unwrap()
    }

    /// The bytes of a region: whole, and in the parts of it that are left and right of the cut.
    fn read(&self, region: &dyn Region, source: &dyn Source) -> Vec<u8> {
        let whole = self.read_one(region, source);
        let cut = region.bytes() * self.cut / 1000;
        let ranges: [Range<u64>; 2] = [0..cut, cut..region.bytes()];
        let parts = ranges.into_iter().filter(|range| !range.is_empty());
        let parts = parts.flat_map(|range| region.within(range));
        let parts: Vec<u8> = parts.flat_map(|part| self.read_one(part.as_ref(), source)).collect();
        assert_eq!(whole, parts, "in parts");
        whole
    }

    fn read_one(&self, region: &dyn Region, source: &dyn Source) -> Vec<u8> {
        let workers = &Workers::new(self.threads);
        let to = match self.write {
            WriteOrder::Any => ReadFor::Position(0),
            WriteOrder::Ascending => ReadFor::Stream,
        };
        let conversion = Conversion::None;
        let prepared = region
            .pieces(&ReadBy {
                source,
                conversion,
                unit: conversion.unit(),
                to,
                workers,
                progress: &Progress::default(),
            })
            .unwrap();
        let source = prepared.copied.as_deref().unwrap_or(source);
        let transfer = Transfer { source, pieces: prepared.pieces.as_ref(), conversion, at: 0 };
        let sink = Memory::new(region.bytes(), self.write);
        execute::run(&[transfer], &sink, workers, &Progress::default()).unwrap();
        sink.into_bytes()
    }

    /// What is taken of elements that follow each other in C order.
    fn of_plain(&self, elements: Vec<u8>) -> Vec<u8> {
        let tensor = TensorInfo::new(self.dtype(), self.shape.clone(), Order::C, 0);
        self.read(self.region(&tensor).as_ref(), &Bytes::new(elements, None))
    }
}

/// The same elements in C order.
fn dense(tensor: &TensorInfo, file: &[u8], itemsize: u64) -> Vec<u8> {
    let StorageKind::Strided { first, strides, .. } = &tensor.storage.kind else { unreachable!() };
    let mut all = Vec::new();
    for number in 0..tensor.shape.iter().product::<u64>() {
        let (mut rest, mut at) = (number, (tensor.data().start + first) as i64);
        for (&len, stride) in tensor.shape.iter().zip(strides).rev() {
            at += (rest % len) as i64 * stride;
            rest /= len;
        }
        all.extend(&file[at as usize..][..itemsize as usize]);
    }
    all
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn strides_may_lead_anywhere_in_the_bytes_of_a_tensor(
        taken in taken(),
        (keys, ways) in (any::<[u8; 5]>(), prop::collection::vec(0u8..4, 5)),
        (apart, before, window) in (0u64..4, 0u64..9, prop::option::of(1u64..3000)),
    ) {
        let Taken { shape, itemsize, .. } = &taken;
        // the axes lie in memory in any order, some backwards, some with one element for all
        let mut inside: Vec<usize> = (0..shape.len()).collect();
        inside.sort_by_key(|&axis| keys[axis]);
        let (mut strides, mut first, mut span) = (vec![0; shape.len()], 0, *itemsize);
        for axis in inside {
            let stride = (span + apart) as i64;
            match ways[axis] {
                0 => continue,
                1 => {
                    strides[axis] = -stride;
                    first += stride as u64 * shape[axis].saturating_sub(1);
                }
                _ => strides[axis] = stride,
            }
            span += stride as u64 * shape[axis].saturating_sub(1);
        }
        let file = bytes(before + span);
        let mut tensor = TensorInfo::new(taken.dtype(), shape.clone(), Order::C, before);
        tensor.storage.data = before..before + span;
        tensor.storage.kind = StorageKind::Strided { first, strides, ranges: Vec::new() };
        let expected = taken.of_plain(dense(&tensor, &file, *itemsize));
        let source = Bytes::new(file, window);
        prop_assert_eq!(taken.read(taken.region(&tensor).as_ref(), &source), expected);

        // no view of them leads out of it
        for data in [before + 1..before + span, before..before + span - 1] {
            let mut tensor = tensor.clone();
            tensor.storage.data = data;
            let view = View::new(&layout_of(&tensor).unwrap(), &Selection::whole(shape));
            let is_empty = shape.contains(&0);
            prop_assert!(is_empty || matches!(view, Err(ViewError::Outside)));
        }
    }

    #[test]
    fn what_is_taken_of_chunks_is_taken_of_the_elements(
        taken in taken(),
        lens in prop::collection::vec(prop_oneof![8 => 1u64..6, 1 => 6u64..70], 5),
    ) {
        let Taken { shape, itemsize, .. } = &taken;
        let count: u64 = shape.iter().product();
        let elements = bytes(count * itemsize);
        let chunk = &lens[..shape.len()];
        let grid = Grid::new(shape, chunk, *itemsize, &elements);
        let region = taken.region(&grid.tensor(&taken.dtype()));
        // each element replaced by the number of its chunk
        let numbers = (0..count).flat_map(|number| {
            let (mut rest, mut place) = (number, Vec::new());
            for (&len, chunk) in shape.iter().zip(chunk).rev() {
                place.push((rest % len / chunk) as u8);
                rest /= len;
            }
            place.resize(4, 0);
            place
        });
        let of_four = TensorInfo::new(DType::Npy(NpyType::Bytes(4)), shape.clone(), Order::C, 0);
        let needed = Bytes::new(numbers.collect(), None);
        let needed = taken.read_one(taken.region(&of_four).as_ref(), &needed);
        let needed: BTreeMap<Vec<u64>, u64> = needed
            .chunks(4)
            .map(|place| {
                let place = place[..shape.len()].iter().rev();
                (place.map(|&at| u64::from(at)).collect(), 1)
            })
            .collect();
        let found = taken.read_one(region.as_ref(), &source());
        // none twice and, but for gathers, which hold few elements as a whole, none without need
        let mut decoded = grid.decoded.lock().unwrap().clone();
        if region.gathered().is_some() {
            decoded.retain(|at, times| *times > 1 || needed.contains_key(at));
        }
        prop_assert_eq!(decoded, needed);
        let expected = taken.of_plain(elements);
        prop_assert_eq!(found, &expected[..]);
        prop_assert_eq!(taken.read(region.as_ref(), &source()), expected);
    }
}
