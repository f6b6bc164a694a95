//! The progress bar: for work beyond a second, on standard error, where that is a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tslice::execute::Progress;

/// Jobs that take no longer show nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Do the work while showing how much of `total` bytes of output is written.
pub(crate) fn watch<T>(
    progress: &Progress,
    total: u64,
    quiet: bool,
    work: impl FnOnce() -> T,
) -> T {
    if quiet || !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, over) = mpsc::channel::<()>();
        scope.spawn(move || show(progress, total, &over));
        let result = work();
        drop(done);
        result
    })
}

/// Move the bar until the other end of `over` is dropped.
fn show(progress: &Progress, total: u64, over: &Receiver<()>) {
    let working = |time| over.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !working(PATIENCE) {
        return;
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(
        "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left",
    ) {
        bar.set_style(style);
    }
    while working(TICK) {
        bar.set_position(progress.written());
    }
    bar.finish_and_clear();
}
