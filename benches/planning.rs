//! All that happens before the first byte moves: reading an index, resolving it, planning.
//!
//! None of it may grow with the tensor; a job of a few bytes consists of little else.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tslice::index::numpy;
use tslice::index::resolve::resolve;
use tslice::plan::{PIECE_BYTES, Plan, Tiling};
use tslice::shape::Order;
use tslice::view::{Layout, View};

/// Index, shape, memory order: views that plans find hard.
const VIEWS: [(&str, &str, &[u64], Order); 6] = [
    ("whole", "...", &[1 << 20, 1 << 10], Order::C),
    ("crop", ":, 3:-3, 5:-5, :", &[1 << 20, 480, 640, 3], Order::C),
    ("stride", "::7, ::-3, ::2", &[1 << 20, 999, 1001], Order::C),
    ("relayout", "...", &[1 << 20, 500, 3, 7], Order::F),
    ("columns", "..., 17", &[1 << 30, 64], Order::C),
    ("axes", "0, ..., None, ::2, ::-1, 1", &[3, 2, 5, 2, 3, 2, 7, 2, 3, 2, 5, 2], Order::C),
];

fn parsing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for (name, text, ..) in VIEWS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| numpy::parse(black_box(text)).is_ok());
        });
    }
    let list = format!("[{}]", (0..10_000).map(|n| format!("{n},")).collect::<String>());
    group.bench_function("a list of 10000", |bencher| {
        bencher.iter(|| numpy::parse(black_box(&list)).is_ok());
    });
    group.finish();
}

fn planning(criterion: &mut Criterion) {
    for (name, text, shape, order) in VIEWS {
        let Ok(parsed) = numpy::parse(text) else { continue };
        let layout = Layout::new(shape, 32, order, 128);
        let view = || {
            let selection = resolve(&parsed.expr, shape, false).ok()?;
            View::new(&layout, &selection).ok()
        };
        let mut group = criterion.benchmark_group(format!("plan/{name}"));
        group.bench_function("view", |bencher| bencher.iter(|| black_box(view())));
        if let Some(view) = view() {
            group.bench_function("ranges", |bencher| {
                bencher.iter(|| Plan::new(black_box(view.runs()), 1, PIECE_BYTES));
            });
            group.bench_function("tiled", |bencher| {
                bencher.iter(|| Plan::tiled(black_box(view.runs()), 1, Tiling::MAPPED));
            });
            let plan = Plan::tiled(view.runs(), 1, Tiling::MAPPED);
            group.bench_function("a piece", |bencher| {
                bencher.iter(|| plan.piece(black_box(plan.pieces() / 2)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, parsing, planning);
criterion_main!(benches);
