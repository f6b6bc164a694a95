//! The kernels, in bytes of output a second: `pack` against `pack_plainly`, its reference.
//!
//! Every pattern fills a piece of the size that plans cut, 256 KiB, from memory: this is the part of
//! a job that must hide behind writing the output.
//!
//! ```text
//! cargo bench --bench kernels -- 'flip/4'      channel flips of 4-byte items
//! ```

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tslice::execute::pack::{pack, pack_plainly};
use tslice::plan::PIECE_BYTES;
use tslice::runs::{Axis, byte_bounds};

/// Runs along axes, as a plan hands them to the kernels.
struct Pattern {
    name: String,
    axes: Vec<Axis>,
    run: u64,
}

fn patterns() -> Vec<Pattern> {
    let axis = |len: u64, stride: u64| Axis { len, stride: stride as i64 };
    let backwards = |len: u64, stride: u64| Axis { len, stride: -(stride as i64) };
    let pattern = |name: String, axes: &[Axis], run| Pattern { name, axes: axes.to_vec(), run };
    let mut patterns = Vec::new();
    for run in [64, 2048] {
        patterns.push(pattern(format!("runs/{run}"), &[axis(PIECE_BYTES / run, 2 * run)], run));
    }
    for size in [1, 2, 4, 8, 16] {
        let items = PIECE_BYTES / size;
        for step in [2, 3, 4] {
            let name = format!("stride {step}/{size}");
            patterns.push(pattern(name, &[axis(items, step * size)], size));
        }
        patterns.push(pattern(format!("reversed/{size}"), &[backwards(items, size)], size));
        let channels = [axis(items / 3, 3 * size), backwards(3, size)];
        patterns.push(pattern(format!("flip/{size}"), &channels, size));
        let columns = [axis(128, size), axis(items / 128, 128 * size)];
        patterns.push(pattern(format!("transposed/{size}"), &columns, size));
    }
    // the tail of random layouts: short rows, runs of odd lengths, long and narrow matrices
    let rows = [axis(PIECE_BYTES / 56, 112), backwards(7, 16)];
    patterns.push(pattern("short rows/8".into(), &rows, 8));
    for run in [3, 12, 24, 33] {
        let rows = [axis(PIECE_BYTES / run / 2, 8 * run), backwards(2, 3 * run)];
        patterns.push(pattern(format!("pairs/{run}"), &rows, run));
    }
    for size in [1, 4, 8] {
        let matrix = [axis(PIECE_BYTES / size / 4, size), axis(4, PIECE_BYTES / 4 + 24)];
        patterns.push(pattern(format!("narrow/{size}"), &matrix, size));
        let planes = [axis(PIECE_BYTES / size / 3, size), axis(3, PIECE_BYTES / 3 + 24)];
        patterns.push(pattern(format!("planes/{size}"), &planes, size));
        let channels = [axis(28, size), axis(PIECE_BYTES / size / 28, 28 * size)];
        patterns.push(pattern(format!("28 channels/{size}"), &channels, size));
    }
    // few channels of many pixels, some of their items, or several lines of them, in an order of their own
    for size in [1, 2, 4, 8] {
        let pixels = PIECE_BYTES / size / 14;
        let items = [axis(pixels, 32 * size), backwards(2, size), axis(7, 4 * size)];
        patterns.push(pattern(format!("short pairs/{size}"), &items[..], size));
        let few = [axis(7, size), axis(pixels, 28 * size), axis(2, 28 * size * pixels)];
        patterns.push(pattern(format!("two lines/{size}"), &few, size));
        let sparse = [axis(3, 7 * size), axis(pixels, 24 * size), axis(4, 24 * size * pixels)];
        patterns.push(pattern(format!("sparse lines/{size}"), &sparse, size));
        let pixel = [axis(5, size), axis(pixels / 3, 5 * size), backwards(8, 7 * size * pixels)];
        patterns.push(pattern(format!("5 channels/{size}"), &pixel, size));
    }
    patterns
}

fn kernels(criterion: &mut Criterion) {
    for Pattern { name, axes, run } in patterns() {
        let reach = byte_bounds(&axes, run);
        let input = vec![1u8; (reach.end - reach.start) as usize];
        let first = -reach.start as usize;
        let bytes = run * axes.iter().map(|axis| axis.len).product::<u64>();
        let mut out = vec![0u8; bytes as usize];
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function("pack", |bencher| {
            bencher.iter(|| pack(black_box(&axes), run, &input, first, black_box(&mut out)));
        });
        group.bench_function("plainly", |bencher| {
            bencher
                .iter(|| pack_plainly(black_box(&axes), run, &input, first, black_box(&mut out)));
        });
        group.finish();
    }
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group!(name = benches; config = short(); targets = kernels);
criterion_main!(benches);
