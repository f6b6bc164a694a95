//! The progress bar: for work beyond a second, on standard error, where that is a terminal.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tslice::internals::execute::Progress;
use tslice::internals::source::remote;

use super::failure::human_bytes;

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

/// Move the bar until the other end of `over` is dropped. It counts from the beginning, so that the
/// rate is right when it appears; each phase has its own, with its own rate and time left.
fn show(progress: &Progress, total: u64, over: &Receiver<()>) {
    let start = Instant::now();
    let mut phase = Phase::of(progress, total);
    let mut bar = phase.bar();
    while over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let now = Phase::of(progress, total);
        if now.name != phase.name {
            bar.finish_and_clear();
            bar = now.bar();
        }
        phase = now;
        if let Some(total) = phase.total {
            bar.set_length(total);
        }
        bar.set_position(phase.done);
        if let Some((_, bytes)) = remote::traffic() {
            bar.set_message(format!(", {} received", human_bytes(bytes)));
        }
        // while an input is opened there is nothing to count, until a pipe must be kept
        let has_bytes = phase.total != Some(0);
        if bar.is_hidden() && has_bytes && start.elapsed() >= PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
    bar.finish_and_clear();
}

/// What a job is doing, and how far it is, in bytes.
struct Phase {
    name: PhaseName,
    done: u64,
    /// Not known of a pipe that does not say how long it is.
    total: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhaseName {
    /// A pipe is kept in a temporary file, or a mask is counted, before anything is written.
    Keeping,
    /// The same, of a pipe that does not say how long it is.
    KeepingAll,
    /// A file is copied, which is changed then.
    Copying,
    Writing,
}

impl Phase {
    fn of(progress: &Progress, total: u64) -> Phase {
        let phase = |name, done, total| Phase { name, done, total };
        match (progress.keeping(), progress.copying()) {
            (Some((done, None)), _) => phase(PhaseName::KeepingAll, done, None),
            (Some((done, total)), _) => phase(PhaseName::Keeping, done, total),
            (None, Some((done, total))) => phase(PhaseName::Copying, done, Some(total)),
            (None, None) => phase(PhaseName::Writing, progress.written(), Some(total)),
        }
    }

    /// A bar that is not shown yet.
    fn bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(self.total, ProgressDrawTarget::hidden());
        match ProgressStyle::with_template(self.name.template()) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

impl PhaseName {
    fn template(self) -> &'static str {
        match self {
            PhaseName::Keeping => {
                "reading {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                 {decimal_bytes_per_sec}, {eta} left{msg}"
            }
            PhaseName::KeepingAll => "reading {decimal_bytes}, {decimal_bytes_per_sec}",
            PhaseName::Copying => {
                "copying {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
                 {decimal_bytes_per_sec}, {eta} left"
            }
            PhaseName::Writing => {
                "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, \
                 {eta} left{msg}"
            }
        }
    }
}
