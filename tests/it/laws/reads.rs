//! How often the engine reads the bytes of an input that is read by position: about once, whatever
//! the shape, the item size, the order and the slice, and whatever the output takes.
//!
//! `TSLICE_READ_CASES=300 cargo test --release reads` tries more layouts and prints the ten that read
//! most.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use tslice::execute::{self, Conversion, Progress, Transfer, Workers};
use tslice::index::resolve::resolve;
use tslice::index::{IndexExpr, Item, SliceItem};
use tslice::plan::{Plan, Tiling};
use tslice::runs::Runs;
use tslice::shape::{Order, Permutation};
use tslice::sink::{Sink, SinkError, WriteOrder};
use tslice::source::{Advice, Source};
use tslice::view::{Layout, View};

use crate::memory::Bytes;

/// What a kernel reads at least.
const PAGE: u64 = 4096;

/// The byte at each position of the input.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// An output that compares what it takes with what `runs` say.
struct ComparingSink {
    order: WriteOrder,
    runs: Runs,
    written: AtomicU64,
}

impl Sink for ComparingSink {
    fn order(&self) -> WriteOrder {
        self.order
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        // the first and the last byte, and some between them: any mistake of place shows
        for at in (0..bytes.len()).step_by(997).chain([bytes.len() - 1]) {
            let dense = offset + at as u64;
            self.runs.split(dense..dense + 1, &mut |byte| {
                let expected = byte_at(byte.offset as u64);
                assert_eq!(bytes[at], expected, "byte {dense} of the output");
                Ok::<(), SinkError>(())
            })?;
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// A tensor of some MB, a slice of it, and an order of its axes in the output.
#[derive(Clone, Debug)]
struct Case {
    shape: Vec<u64>,
    itemsize: u64,
    order: Order,
    /// The order of the axes in the output, the slowest first.
    axes: Vec<i64>,
    slices: Vec<SliceItem>,
    ascending: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let itemsize = prop::sample::select(vec![1u64, 2, 3, 4, 6, 8, 12, 16, 24]);
    let axis = prop_oneof![2 => 2u64..6, 2 => 6u64..60, 3 => 60u64..900, 2 => 900u64..9000];
    let step =
        prop_oneof![4 => Just(1i64), 2 => Just(-1), 1 => Just(2), 1 => Just(-2), 1 => Just(3)];
    let slice = (step, 0u64..8, 0u64..8).prop_map(|(step, start, stop)| {
        // whole axes more often than not, in sixteenths else
        let (start, stop) = (start.saturating_sub(4) as i64, 16 - stop.saturating_sub(4) as i64);
        SliceItem { start: Some(start), stop: Some(stop), step: Some(step) }
    });
    let axes = prop::collection::vec((axis, slice), 2..5);
    let order = prop_oneof![Just(Order::C), Just(Order::F)];
    let with_axes = axes.prop_flat_map(|axes| {
        let ndim = axes.len() as i64;
        let same = Just((0..ndim).collect::<Vec<i64>>());
        let reversed = Just((0..ndim).rev().collect::<Vec<i64>>());
        let any = same.clone().prop_shuffle();
        (Just(axes), prop_oneof![1 => same, 2 => reversed, 2 => any])
    });
    (with_axes, itemsize, order, prop::bool::weighted(0.3))
        .prop_map(|((axes, out_axes), itemsize, order, ascending)| {
            let (shape, slices): (Vec<u64>, Vec<SliceItem>) = axes.into_iter().unzip();
            let slices = slices.into_iter().zip(&shape).map(|(slice, &len)| {
                let place =
                    |bound: Option<i64>| bound.map(|sixteenths| sixteenths * len as i64 / 16);
                match slice.step {
                    Some(step) if step < 0 => {
                        let before = place(slice.start).filter(|&start| start > 0);
                        let start = place(slice.stop).map(|stop| stop - 1);
                        SliceItem { start, stop: before.map(|start| start - 1), step: Some(step) }
                    }
                    _ => SliceItem { start: place(slice.start), stop: place(slice.stop), ..slice },
                }
            });
            let slices = slices.collect();
            Case { shape, itemsize, order, axes: out_axes, slices, ascending }
        })
        .prop_filter("some MB", |case| {
            let bytes = case.shape.iter().product::<u64>() * case.itemsize;
            (4 << 20..32 << 20).contains(&bytes)
        })
}

/// Read what a case selects, and return how many bytes were read for each that had to be, in whole
/// pages.
fn bytes_read_for_each_needed(case: &Case) -> f64 {
    let layout = Layout::new(&case.shape, case.itemsize * 8, case.order, 128);
    let items = case.slices.iter().copied().map(Item::Slice).collect();
    let selection = resolve(&IndexExpr::new(items), &case.shape, false).unwrap();
    let axes = Permutation::new(&case.axes, case.shape.len()).unwrap();
    let view = View::permuted(&layout, &selection, &axes).unwrap();
    if view.bytes() == 0 {
        return 1.0;
    }

    let len = case.shape.iter().product::<u64>() * case.itemsize + 128;
    let source = Bytes::new((0..len).map(byte_at).collect(), Some(1 << 20));
    let order = if case.ascending { WriteOrder::Ascending } else { WriteOrder::Any };
    let runs = view.runs().clone();
    let sink = ComparingSink { order, runs, written: AtomicU64::new(0) };
    let (plan, spooled) = if case.ascending {
        execute::in_order(&source, view.runs(), 1, 1, &Workers::new(2)).unwrap()
    } else {
        (Plan::tiled(view.runs(), 1, Tiling::of(source.window_limit())), None)
    };
    let source_of_plan = spooled.as_deref().unwrap_or(&source);
    let conversion = Conversion::None;
    let copy = Transfer { source: source_of_plan, pieces: &plan, conversion, at: 0 };
    execute::run(&[copy], &sink, &Workers::new(2), &Progress::default()).unwrap();
    assert_eq!(sink.written.into_inner(), view.bytes());
    let asked = source.asked.into_inner().unwrap();
    let lens = asked.iter().map(|range| range.end - range.start);
    assert!(lens.clone().all(|len| len <= 1 << 20), "a longer window than the source allows");

    let mut pages = vec![false; (len / PAGE + 1) as usize];
    for at in view.runs().starts() {
        let at = at as u64;
        pages[(at / PAGE) as usize] = true;
        pages[((at + view.runs().run - 1) / PAGE) as usize] = true;
    }
    let needed = pages.iter().filter(|&&page| page).count() as u64 * PAGE;
    lens.sum::<u64>() as f64 / needed as f64
}

#[test]
fn each_byte_is_read_about_once() {
    let more = std::env::var("TSLICE_READ_CASES");
    let count = more.as_ref().map_or(8, |count| count.parse().unwrap());
    let config = Config::with_cases(count);
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let mut ratios: Vec<(f64, Case)> = (0..count)
        .map(|_| {
            let case = case().new_tree(&mut runner).unwrap().current();
            (bytes_read_for_each_needed(&case), case)
        })
        .collect();
    ratios.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let worst: Vec<String> =
        ratios.iter().take(10).map(|(ratio, case)| format!("{ratio:.3} {case:?}")).collect();
    let worst = worst.join("\n");
    if more.is_ok() {
        writeln!(std::io::stdout(), "{worst}").unwrap();
    }
    assert!(ratios[0].0 <= 1.5, "{worst}");
}

/// Whether an input that is not in memory is asked for what pieces need, while rows of 64 KiB are
/// copied.
fn is_asked(slices: [SliceItem; 2], reads_ahead: bool) -> bool {
    let shape = [64, 1 << 16];
    let items = slices.map(Item::Slice).to_vec();
    let selection = resolve(&IndexExpr::new(items), &shape, false).unwrap();
    let view = View::new(&Layout::new(&shape, 8, Order::C, 128), &selection).unwrap();
    let mut source = Bytes::new((0..128 + (64 << 16)).map(byte_at).collect(), None);
    (source.is_cached, source.reads_ahead) = (false, reads_ahead);
    let runs = view.runs().clone();
    let sink = ComparingSink { order: WriteOrder::Any, runs, written: AtomicU64::new(0) };
    let plan = Plan::tiled(view.runs(), 1, Tiling::MAPPED);
    let copy = Transfer { source: &source, pieces: &plan, conversion: Conversion::None, at: 0 };
    execute::run(&[copy], &sink, &Workers::new(2), &Progress::default()).unwrap();
    assert_eq!(sink.written.into_inner(), view.bytes());
    let advised = source.advised.into_inner().unwrap();
    advised.iter().any(|(_, advice)| *advice == Advice::WillNeed)
}

#[test]
fn a_kernel_that_reads_ahead_is_not_asked_for_the_rest_of_a_range() {
    let all = SliceItem { start: None, stop: None, step: None };
    let every = |step| SliceItem { step: Some(step), ..all };
    assert!(!is_asked([all, all], true));
    assert!(is_asked([all, all], false));
    for scattered in [[all, every(2)], [every(-1), all]] {
        assert!(is_asked(scattered, true), "{scattered:?}");
    }
}
