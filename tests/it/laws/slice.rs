//! The laws of the engine, as properties on random tensors and expressions.
//!
//! The oracle is a loop over elements that knows nothing of views, plans or kernels: it walks the
//! output's positions and computes each one's place in the input from the selection alone.

use proptest::prelude::*;
use tslice::execute::{self, Conversion, Progress, Transfer, Workers};
use tslice::index::resolve::{AxisSelection, Selection, resolve};
use tslice::index::strided_slice::StridedSlice;
use tslice::index::{IndexExpr, Item, SliceItem, numpy};
use tslice::plan::{Plan, Tiling};
use tslice::shape::{Order, Permutation, contiguous_strides};
use tslice::sink::WriteOrder;
use tslice::view::{Layout, View};

use super::cases;
use crate::memory::{Bytes, Memory};

/// A tensor whose bytes lie behind `before` others.
#[derive(Clone, Debug)]
struct TensorInfo {
    shape: Vec<u64>,
    itemsize: u64,
    order: Order,
    before: u64,
}

impl TensorInfo {
    fn layout(&self) -> Layout<'_> {
        let TensorInfo { shape, itemsize, order, before } = self;
        Layout::new(shape, itemsize * 8, *order, *before)
    }

    fn data(&self) -> Vec<u8> {
        let count = self.shape.iter().product::<u64>() * self.itemsize + self.before;
        (0..count).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }
}

/// The selected bytes, one element after the other.
fn naive(tensor: &TensorInfo, selection: &Selection, order: Order) -> Vec<u8> {
    let data = tensor.data();
    let strides = contiguous_strides(&tensor.shape, tensor.itemsize, tensor.order).unwrap();
    let mut axes = Vec::new();
    let mut first = tensor.before as i64;
    for selected in &selection.axes {
        match *selected {
            AxisSelection::Index { axis, at } => first += at as i64 * strides[axis],
            AxisSelection::Range { axis, start, step, len } => {
                axes.push((len, strides[axis] * step));
                first += start as i64 * strides[axis];
            }
            AxisSelection::NewAxis => axes.push((1, 0)),
            AxisSelection::List { .. } => unreachable!("no lists here"),
        }
    }
    if order == Order::F {
        axes.reverse();
    }
    let count: u64 = axes.iter().map(|axis| axis.0).product();
    let mut out = Vec::new();
    for number in 0..count {
        let (mut at, mut rest) = (first, number);
        for &(len, stride) in axes.iter().rev() {
            at += (rest % len) as i64 * stride;
            rest /= len;
        }
        out.extend_from_slice(&data[at as usize..][..tensor.itemsize as usize]);
    }
    out
}

/// How to run the engine.
#[derive(Clone, Debug)]
struct Way {
    threads: usize,
    piece_bytes: u64,
    first_bytes: Option<u64>,
    panel_bytes: Option<u64>,
    window: Option<u64>,
    write: WriteOrder,
}

fn engine(tensor: &TensorInfo, selection: &Selection, order: Order, way: &Way) -> Vec<u8> {
    let axes = Permutation::identity(selection.shape().len()).in_memory(order);
    let view = View::permuted(&tensor.layout(), selection, &axes).unwrap();
    let source = Bytes::new(tensor.data(), way.window);
    let sink = Memory::new(view.bytes(), way.write);
    let plan = match way.write {
        WriteOrder::Any => {
            let Way { piece_bytes, first_bytes, panel_bytes, .. } = *way;
            let tiling = Tiling {
                piece_bytes,
                first_bytes,
                box_bytes: piece_bytes * 3,
                width_bytes: piece_bytes / 9,
                pages_bytes: piece_bytes * 40,
                panel_bytes,
            };
            Plan::tiled(view.runs(), 1, tiling)
        }
        WriteOrder::Ascending => Plan::new(view.runs(), 1, way.piece_bytes),
    };
    let copies = [Transfer { source: &source, pieces: &plan, conversion: Conversion::None, at: 0 }];
    execute::run(&copies, &sink, &Workers::new(way.threads), &Progress::default()).unwrap();
    sink.into_bytes()
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

fn tensor() -> impl Strategy<Value = TensorInfo> {
    let shape = prop::collection::vec(prop_oneof![8 => 1u64..7, 1 => Just(0), 1 => 7u64..40], 0..7);
    let itemsize = prop_oneof![Just(1), Just(2), Just(3), Just(4), Just(8), Just(12), Just(16)];
    (shape, itemsize, order(), 0u64..9)
        .prop_filter("small", |(shape, ..)| shape.iter().product::<u64>() < 20_000)
        .prop_map(|(shape, itemsize, order, before)| TensorInfo { shape, itemsize, order, before })
}

fn slice(len: u64) -> impl Strategy<Value = SliceItem> {
    let reach = len as i64 + 3;
    let bound = move || prop::option::of(-reach..=reach);
    let step = prop::option::of((-4i64..=4).prop_filter("no step of 0", |step| *step != 0));
    (bound(), bound(), step).prop_map(|(start, stop, step)| SliceItem { start, stop, step })
}

/// An expression that fits a shape.
fn expression(shape: &[u64]) -> impl Strategy<Value = IndexExpr> + use<> {
    let items: Vec<_> = shape
        .iter()
        .map(|&len| {
            let integer = if len == 0 { 0..0 } else { -(len as i64)..len as i64 };
            let slices = slice(len).prop_map(Item::Slice).boxed();
            let item = if len == 0 {
                slices
            } else {
                prop_oneof![3 => slices, 1 => integer.prop_map(Item::Integer)].boxed()
            };
            (item, prop::bool::weighted(0.15))
        })
        .collect();
    (items, prop::option::of((0..=shape.len(), 0..=shape.len()))).prop_map(|(items, ellipsis)| {
        let mut all = Vec::new();
        let skipped = ellipsis.map_or(0..0, |(a, b)| a.min(b)..a.max(b));
        for (at, (item, new_axis)) in items.iter().enumerate() {
            if ellipsis.is_some() && at == skipped.start {
                all.push(Item::Ellipsis);
            }
            if *new_axis {
                all.push(Item::NewAxis);
            }
            if !skipped.contains(&at) {
                all.push(item.clone());
            }
        }
        IndexExpr::new(all)
    })
}

fn case() -> impl Strategy<Value = (TensorInfo, IndexExpr)> {
    tensor().prop_flat_map(|tensor| {
        let expr = expression(&tensor.shape);
        (Just(tensor), expr)
    })
}

fn way() -> impl Strategy<Value = Way> {
    let piece_bytes = prop_oneof![1u64..100, 100u64..5000, Just(1 << 18)];
    let window = prop::option::of(1u64..3000);
    let write = prop_oneof![Just(WriteOrder::Any), Just(WriteOrder::Ascending)];
    let first_bytes = prop::option::of(1u64..5000);
    let panel_bytes = prop::option::of(1u64..300_000);
    (1usize..4, piece_bytes, first_bytes, panel_bytes, window, write).prop_map(
        |(threads, piece_bytes, first_bytes, panel_bytes, window, write)| Way {
            threads,
            piece_bytes,
            first_bytes,
            panel_bytes,
            window,
            write,
        },
    )
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_engine_selects_what_a_loop_over_elements_does(
        (tensor, expr) in case(), out_order in order(), way in way(),
    ) {
        let selection = resolve(&expr, &tensor.shape, false).unwrap();
        let expected = naive(&tensor, &selection, out_order);
        prop_assert_eq!(engine(&tensor, &selection, out_order, &way), expected);
    }

    #[test]
    fn numpy_text_and_strided_slice_numbers_select_the_same((tensor, expr) in case()) {
        let text = numpy::format(&expr).text;
        let by_text = numpy::parse(&text).unwrap().expr;
        let by_numbers = StridedSlice::from_expr(&expr).unwrap().to_expr().unwrap();
        let selected = |expr| resolve(expr, &tensor.shape, false).unwrap();
        prop_assert_eq!(selected(&by_text), selected(&expr));
        prop_assert_eq!(selected(&by_numbers), selected(&expr));
    }

    #[test]
    fn a_forward_plan_reads_ascending_windows((tensor, expr) in case(), window in 64u64..4000) {
        let selection = resolve(&expr, &tensor.shape, false).unwrap();
        let view = View::new(&tensor.layout(), &selection).unwrap();
        let Some(plan) = Plan::forward(&view, 1, window) else { return Ok(()) };
        let (mut input, mut output) = (0, 0);
        for number in 0..plan.pieces() {
            let piece = plan.piece(number);
            prop_assert_eq!(piece.input.len(), 1);
            let span = piece.input[0].byte_bounds();
            prop_assert!((span.end - span.start) as u64 <= window);
            prop_assert!(span.start >= input);
            prop_assert_eq!(piece.output.offset, output);
            input = span.end;
            output += piece.output.bytes() as i64;
        }
        prop_assert_eq!(output as u64, view.bytes());
    }

    #[test]
    fn ascending_selections_of_c_order_tensors_are_forward((mut tensor, expr) in case()) {
        tensor.order = Order::C;
        let rising = |item: &Item| match item {
            Item::Slice(slice) => slice.step.unwrap_or(1) > 0,
            _ => true,
        };
        prop_assume!(expr.items.iter().all(rising));
        let selection = resolve(&expr, &tensor.shape, false).unwrap();
        let view = View::new(&tensor.layout(), &selection).unwrap();
        prop_assert!(Plan::forward(&view, 1, 64).is_some());
    }
}
