//! Small reads by the library, as a loader of random rows makes them: rows of 1 KiB of a tensor in memory.
//!
//! Threads are those of the file; none of these reads is worth more than one. docs/library.md has the times.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use tslice::{Tensor, WriteOptions};

const ROWS: u64 = 100_000;
const ROW: usize = 256;

fn embed(folder: &Path, threads: usize) -> Result<Tensor, tslice::Error> {
    let path = folder.join("embed.npy");
    let elements: Vec<f32> = (0..ROWS as usize * ROW).map(|at| at as f32).collect();
    let made = tslice::tensor("embed", &[ROWS, ROW as u64], elements)?;
    made.all().write_with(&path, &WriteOptions::default().force(true))?;
    tslice::open(&path)?.threads(threads).only()
}

fn reads(criterion: &mut Criterion) {
    let Ok(folder) = tempfile::tempdir() else { return };
    for threads in [1, 2] {
        let Ok(embed) = embed(folder.path(), threads) else { return };
        let (mut at, mut batch) = (0, vec![0f32; 64 * ROW]);
        let mut random = || {
            at = (at * 48_271 + 11) % i64::from(i32::MAX);
            at % ROWS as i64
        };
        let mut group = criterion.benchmark_group(format!("threads {threads}"));
        group.bench_function("slice by text", |bencher| {
            bencher.iter(|| {
                let row = embed.slice(format!("[{}]", random()).as_str());
                row.and_then(|row| row.read_into(black_box(&mut batch[..ROW])))
            });
        });
        group.bench_function("slice by number", |bencher| {
            bencher.iter(|| {
                let row = embed.slice(random());
                row.and_then(|row| row.read_into(black_box(&mut batch[..ROW])))
            });
        });
        for rows in [1, 64] {
            group.bench_function(format!("take {rows}"), |bencher| {
                bencher.iter(|| {
                    let list: Vec<i64> = (0..rows).map(|_| random()).collect();
                    let rows = embed.take(&list[..], 0);
                    rows.and_then(|it| it.read_into(black_box(&mut batch[..list.len() * ROW])))
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, reads);
criterion_main!(benches);
