//! The laws of lists and masks in an index, as properties on random tensors.
//!
//! The oracle is a loop over the elements of the output, which looks up one position of each list
//! by itself. Where lists stand in the result, and to which shape they are broadcast, is compared
//! with NumPy elsewhere (the unit tests of `resolve`, tests/python/lists_differential.py).

use proptest::prelude::*;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{self, Conversion, Progress, Transfer, Workers};
use tslice::gather::{Gather, Indexed, Indices, ListTensor, Mask, Options, Truth};
use tslice::index::resolve::{AxisSelection, ListShape, Rules, Selection, resolve_with};
use tslice::index::{FileRef, IndexExpr, Item, List, SliceItem};
use tslice::shape::{Order, contiguous_strides};
use tslice::sink::WriteOrder;
use tslice::source::Source;
use tslice::view::Layout;

use crate::memory::{Bytes, Memory};

/// A list in a file: integers, negative ones too, or a mask.
#[derive(Clone, Debug)]
struct Listed {
    is_mask: bool,
    shape: Vec<u64>,
    order: Order,
    /// Positions as they count from the beginning, or 1 and 0; in C order.
    values: Vec<u64>,
    /// The length of the axis of integers.
    len: u64,
}

/// The index of element `number` in C order.
fn unravel(shape: &[u64], mut number: u64) -> Vec<u64> {
    let mut at = vec![0; shape.len()];
    for (at, len) in at.iter_mut().zip(shape).rev() {
        (*at, number) = (number % len, number / len);
    }
    at
}

fn dot(at: &[u64], strides: &[i64]) -> usize {
    at.iter().zip(strides).map(|(at, stride)| *at as usize * *stride as usize).sum()
}

impl Listed {
    fn dtype(&self) -> DType {
        let scalar = if self.is_mask { Scalar::Bool } else { Scalar::I32 };
        DType::Scalar(scalar, Endian::Little)
    }

    /// The file, in which 3 bytes stand before it.
    fn file(&self) -> Vec<u8> {
        let width = if self.is_mask { 1 } else { 4 };
        let mut file = vec![7; 3 + self.values.len() * width];
        let strides = contiguous_strides(&self.shape, 1, self.order).unwrap();
        for (number, &value) in self.values.iter().enumerate() {
            let place = 3 + dot(&unravel(&self.shape, number as u64), &strides) * width;
            // every third integer counts from the end
            let back = if number % 3 == 0 { self.len as i32 } else { 0 };
            let value = if self.is_mask { value as i32 } else { value as i32 - back };
            file[place..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        file
    }

    /// Its tuples, in C order.
    fn tuples(&self) -> Vec<Vec<u64>> {
        if !self.is_mask {
            return self.values.iter().map(|&value| vec![value]).collect();
        }
        let places = (0u64..).zip(&self.values).filter(|(_, value)| **value != 0);
        places.map(|(number, _)| unravel(&self.shape, number)).collect()
    }

    fn known(&self) -> ListShape {
        let (shape, count) = (self.shape.clone(), self.tuples().len() as u64);
        if self.is_mask { ListShape::Mask { shape, count } } else { ListShape::Integers(shape) }
    }
}

#[derive(Clone, Debug)]
struct Case {
    params: Vec<u64>,
    order: Order,
    itemsize: u64,
    expr: IndexExpr,
    lists: Vec<Listed>,
    outer: bool,
    options: Options,
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

/// What an item takes of the axes from the first of `shape` on, its list if it is one, and how many
/// axes it takes. `common` is the shape to which lists are broadcast.
fn item(shape: &[u64], common: &[u64], dice: &[u8]) -> (Item, Option<Listed>, usize) {
    let [kind, first, second, third, ..] = *dice else { return (Item::NewAxis, None, 0) };
    let Some(&len) = shape.first() else { return (Item::NewAxis, None, 0) };
    let random = |at: u64| {
        let seed = u64::from(first) << 8 | u64::from(second);
        at.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    };
    let order = if third % 2 == 0 { Order::C } else { Order::F };
    let file = || {
        Item::List(List::File(FileRef {
            path: String::new(),
            name: None,
            opposite: false,
            comparison: None,
        }))
    };
    match kind % 6 {
        0 => (Item::NewAxis, None, 0),
        1 if len > 0 => (Item::Integer((u64::from(first) % len) as i64), None, 1),
        2 => {
            let step = [None, Some(-1), Some(2), Some(-3)][first as usize % 4];
            let start = if step.is_none() { Some(i64::from(second % 4)) } else { None };
            (Item::Slice(SliceItem { start, stop: None, step }), None, 1)
        }
        3 => {
            // a mask of one axis or two, of one true element or as many as the lists are long
            let axes = if shape.len() > 1 && second % 2 == 0 { 2 } else { 1 };
            let (shape, count) = (shape[..axes].to_vec(), shape[..axes].iter().product::<u64>());
            let wanted = if common.len() == 1 { common[0] } else { 1 };
            let mut values = vec![0; count as usize];
            for at in 0..wanted.min(count) {
                values[((random(0) + at) % count) as usize] = 1;
            }
            (file(), Some(Listed { is_mask: true, shape, order, values, len }), axes)
        }
        _ => {
            // integers, broadcast along some axes
            let dropped = usize::from(second) % (common.len() + 1);
            let shape = common[dropped..].iter().enumerate();
            let shape = shape.map(|(axis, &len)| if third >> axis & 1 == 1 { 1 } else { len });
            let shape: Vec<u64> = shape.collect();
            let count = shape.iter().product::<u64>();
            if len == 0 && count > 0 {
                return (Item::Slice(SliceItem::default()), None, 1);
            }
            // every other list ascends, with a step to another place now and then
            let value = |at| match first % 2 {
                0 => random(at) % len,
                _ => (random(at / (u64::from(second) + 1)) + at) % len,
            };
            let values = (0..count).map(value).collect();
            (file(), Some(Listed { is_mask: false, shape, order, values, len }), 1)
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let lens = prop_oneof![1 => Just(0u64), 9 => 1u64..6];
    // one axis of the tensor, and one of the lists, may be long: there neighbours are taken together
    let long = || prop::option::of((0usize..4, 20u64..150));
    let with_long = |mut lens: Vec<u64>, long: Option<(usize, u64)>| {
        if let Some((axis, len)) = long
            && let Some(axis) = lens.get_mut(axis)
        {
            *axis = len;
        }
        lens
    };
    let options = (order(), prop_oneof![Just(0u64), Just(1 << 16)], 1u64..3000).prop_map(
        |(order, hold, piece_bytes)| Options { order, hold, piece_bytes, ..Options::default() },
    );
    (
        (prop::collection::vec(lens, 1..5), long())
            .prop_map(move |(lens, long)| with_long(lens, long)),
        (prop::collection::vec(prop_oneof![1 => Just(0u64), 12 => 1u64..5], 0..3), long())
            .prop_map(move |(lens, long)| with_long(lens, long)),
        prop::collection::vec(any::<[u8; 4]>(), 1..7),
        (
            order(),
            prop_oneof![Just(1u64), Just(2), Just(3), Just(4), Just(8), Just(16)],
            any::<bool>(),
        ),
        options,
    )
        .prop_map(|(params, common, dice, (order, itemsize, outer), options)| {
            let (mut items, mut lists, mut taken) = (Vec::new(), Vec::new(), 0);
            for dice in &dice {
                let (item, list, axes) = item(&params[taken..], &common, dice);
                items.push(item);
                lists.extend(list);
                taken += axes;
            }
            let expr = IndexExpr::new(items);
            Case { params, order, itemsize, expr, lists, outer, options }
        })
}

impl Case {
    fn file(&self) -> Vec<u8> {
        let count = 5 + self.params.iter().product::<u64>() * self.itemsize;
        (0..count).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }

    /// One element of the output after the other.
    fn naive(&self, selection: &Selection) -> Vec<u8> {
        let (file, shape) = (self.file(), selection.shape());
        let strides = contiguous_strides(&self.params, 1, self.order).unwrap();
        let tuples: Vec<Vec<Vec<u64>>> = self.lists.iter().map(Listed::tuples).collect();
        let mut out = Vec::new();
        let reversed: Vec<u64> = shape.iter().rev().copied().collect();
        for number in 0..shape.iter().product() {
            let at = match self.options.order {
                Order::C => unravel(&shape, number),
                Order::F => unravel(&reversed, number).into_iter().rev().collect(),
            };
            // the part of each block, and what is left for the other axes
            let (mut kept, mut before, mut listed) = (Vec::<u64>::new(), 0, vec![0; tuples.len()]);
            let mut rest = &at[..];
            for block in &selection.blocks {
                let (now, later) = rest.split_at(block.at - before);
                kept.extend(now);
                let (own, later) = later.split_at(block.shape.len());
                (rest, before) = (later, block.at);
                for list in block.lists.clone() {
                    let shape = &selection.lists[list].shape;
                    let own = own[own.len() - shape.len()..].iter().zip(shape);
                    let own: Vec<u64> =
                        own.map(|(&at, &len)| if len == 1 { 0 } else { at }).collect();
                    listed[list] = dot(&own, &contiguous_strides(shape, 1, Order::C).unwrap());
                }
            }
            kept.extend(rest);
            let mut kept = kept.into_iter();
            let mut place = Vec::new();
            for selected in &selection.axes {
                match selected {
                    AxisSelection::Index { at, .. } => place.push(*at),
                    AxisSelection::Range { start, step, .. } => {
                        place.push((*start as i64 + kept.next().unwrap() as i64 * step) as u64);
                    }
                    AxisSelection::List { axis, list } => {
                        let first = selection.lists[*list].axes.start;
                        place.push(tuples[*list][listed[*list]][axis - first]);
                    }
                    AxisSelection::NewAxis => drop(kept.next()),
                }
            }
            let itemsize = self.itemsize as usize;
            out.extend_from_slice(&file[5 + dot(&place, &strides) * itemsize..][..itemsize]);
        }
        out
    }
}

proptest! {
    #[test]
    fn lists_are_a_loop_over_elements(
        case in cases(),
        (threads, window, list_window) in
            (1usize..4, prop::option::of(1u64..3000), prop::option::of(1u64..3000)),
        write in prop_oneof![Just(WriteOrder::Any), Just(WriteOrder::Ascending)],
    ) {
        let files: Vec<ListShape> = case.lists.iter().map(Listed::known).collect();
        let rules = Rules { outer: case.outer, ..Rules::default() };
        // what does not fit is compared with NumPy
        let Ok(selection) = resolve_with(&case.expr, &case.params, rules, &files) else { return Ok(()) };
        prop_assume!(!selection.lists.is_empty());
        let sources: Vec<Bytes> =
            case.lists.iter().map(|list| Bytes::new(list.file(), list_window)).collect();
        let dtypes: Vec<DType> = case.lists.iter().map(Listed::dtype).collect();
        let tensors = case.lists.iter().zip(&dtypes).zip(&sources).map(|((list, dtype), source)| {
            match list.is_mask {
                true => ListTensor::Mask(Mask::count(&Layout::new(&list.shape, 8, list.order, 3), Truth::of_mask(), source, &Workers::new(2), &Progress::default()).unwrap()),
                false => {
                    let layout = Layout::new(&list.shape, dtype.item_bits(), list.order, 3);
                    ListTensor::Integers(Indices { dtype, layout })
                }
            }
        });
        let tensors: Vec<ListTensor<'_>> = tensors.collect();
        let layout = Layout::new(&case.params, case.itemsize * 8, case.order, 5);
        let indexed = Indexed::select(&layout, &selection, &tensors).unwrap();
        let gather = Gather::new(&layout, indexed, &case.options).unwrap();
        prop_assert_eq!(gather.shape(), selection.shape());
        let sink = Memory::new(gather.bytes(), write);
        let sources: Vec<&dyn Source> = sources.iter().map(|source| source as &dyn Source).collect();
        gather.check(&sources, &Workers::new(threads)).unwrap();
        let gathering = gather.with(&sources, 1, &Workers::new(threads)).unwrap();
        let source = Bytes::new(case.file(), window);
        let copies =
            [Transfer { source: &source, pieces: &gathering, conversion: Conversion::None, at: 0 }];
        execute::run(&copies, &sink, &Workers::new(threads), &Progress::default()).unwrap();
        prop_assert_eq!(sink.into_bytes(), case.naive(&selection));
    }
}
