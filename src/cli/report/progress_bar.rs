//! The progress bar and its words, on standard error if that is a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tslice::execute::Progress;
use tslice::source::remote;

use super::failure::human_bytes;

/// Jobs that take no longer show no bar.
const PATIENCE: Duration = Duration::from_secs(1);

const TICK: Duration = Duration::from_millis(100);

/// Do the work, and show how many of `total` bytes of output are written.
pub(crate) fn watch<T>(total: u64, quiet: bool, work: impl FnOnce(&Progress) -> T) -> T {
    let progress = &Progress::default();
    if quiet || !io::stderr().is_terminal() {
        return work(progress);
    }
    thread::scope(|scope| {
        let (done, over) = mpsc::channel::<()>();
        scope.spawn(move || show(progress, total, &over));
        let result = work(progress);
        drop(done);
        result
    })
}

/// Move the bar until the other end of `over` is dropped. It counts before it appears, for its rate.
fn show(progress: &Progress, total: u64, over: &Receiver<()>) {
    let start = Instant::now();
    let mut phase = Phase::of(progress, total);
    let mut bar = phase.bar();
    while over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let now = Phase::of(progress, total);
        if now.template != phase.template {
            bar.finish_and_clear();
            bar = now.bar();
        }
        phase = now;
        if let Some(total) = phase.total {
            bar.set_length(total);
        }
        bar.set_position(phase.done);
        if let Some(bytes) = remote::received() {
            bar.set_message(format!(", {} received", human_bytes(bytes)));
        }
        // no bytes are counted while an input is opened, unless a pipe is stored
        let has_bytes = phase.total != Some(0);
        if bar.is_hidden() && has_bytes && start.elapsed() >= PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
    bar.finish_and_clear();
}

/// A step of a job, which has a bar, a rate and a time left of its own.
struct Phase {
    template: &'static str,
    done: u64,
    /// In bytes; `None` for a pipe of unknown length.
    total: Option<u64>,
}

/// The bar while a pipe is stored in scratch, or a mask is counted, before anything is written.
const READING: &str = "reading {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                       {decimal_bytes_per_sec}, {eta} left{msg}";

const READING_PIPE: &str = "reading {decimal_bytes}, {decimal_bytes_per_sec}";

/// The bar while a file is copied before the copy is changed.
const COPYING: &str = "copying {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                       {decimal_bytes_per_sec}, {eta} left";

const WRITING: &str = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                       {decimal_bytes_per_sec}, {eta} left{msg}";

impl Phase {
    fn of(progress: &Progress, total: u64) -> Phase {
        let (template, done, total) = match (progress.keeping(), progress.copying()) {
            (Some((done, None)), _) => (READING_PIPE, done, None),
            (Some((done, total)), _) => (READING, done, total),
            (None, Some((done, total))) => (COPYING, done, Some(total)),
            (None, None) => (WRITING, progress.written(), Some(total)),
        };
        Phase { template, done, total }
    }

    fn bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(self.total, ProgressDrawTarget::hidden());
        match ProgressStyle::with_template(self.template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}
