//! A job under way: the output that grows, the workers, the progress, and whose fault an error is.

use std::path::Path;

use tslice::execute::{self, Copy, ExecuteError, FillError, Progress, WINDOW_BYTES};
use tslice::plan::{PIECE_BYTES, Plan, Tiling};
use tslice::sink::{Sink, WriteOrder};
use tslice::source;
use tslice::view::View;

use super::args::OutputArgs;
use super::input::{Input, failed_source, finish, spool};
use super::output::Output;
use super::progress;
use super::report::Failure;

/// An output that is being written. Dropping it leaves what stood there before.
pub(crate) struct Job<'a> {
    output: &'a Output,
    sink: Box<dyn Sink>,
    progress: Progress,
    threads: usize,
    quiet: bool,
    /// Bytes of elements to write.
    bytes: u64,
}

impl<'a> Job<'a> {
    /// Create the output, and write its header; `bytes` of elements are to follow.
    pub(crate) fn begin(
        output: &'a Output,
        header: &[u8],
        bytes: u64,
        args: &OutputArgs,
    ) -> Result<Job<'a>, Failure> {
        let sink = output.create(header.len() as u64 + bytes)?;
        sink.write_at(0, header).map_err(|error| output.failed(&error))?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = args.threads.map_or_else(cores, usize::from);
        Ok(Job { output, sink, progress: Progress::default(), threads, quiet: args.quiet, bytes })
    }

    /// Write what a view takes of an input to the place `at` of the output, and make sure that
    /// all of the input was there.
    pub(crate) fn copy(
        &self,
        input: Input,
        view: &View,
        swap_width: usize,
        at: u64,
    ) -> Result<(), Failure> {
        progress::watch(&self.progress, self.bytes, self.quiet, || {
            self.copy_now(input, view, swap_width, at)
        })
    }

    fn copy_now(
        &self,
        input: Input,
        view: &View,
        swap_width: usize,
        at: u64,
    ) -> Result<(), Failure> {
        let Input { path, bytes, contents } = input;
        let (source, gone) = match bytes {
            source::Input::Random(source) => (source, 0),
            source::Input::Forward(mut stream) => {
                if let Some(plan) = Plan::forward(view, swap_width as u64, WINDOW_BYTES) {
                    let (sink, progress) = (self.sink.as_ref(), &self.progress);
                    execute::run_forward(&mut stream, &plan, swap_width, sink, at, progress)
                        .map_err(|error| self.failed(&[&path], error))?;
                    return finish(&path, stream, &contents);
                }
                spool(&path, stream, &contents)?
            }
        };
        let (view, unit) = (view.clone().after(gone), swap_width as u64);
        let plan = match self.sink.order() {
            WriteOrder::Any if source.window_limit().is_some() => {
                Plan::tiled(&view, unit, Tiling::READ)
            }
            WriteOrder::Any => Plan::tiled(&view, unit, Tiling::MAPPED),
            WriteOrder::Ascending => Plan::new(&view, unit, PIECE_BYTES),
        };
        let copy = Copy { source: source.as_ref(), pieces: &plan, swap_width, at };
        self.run(&[copy], &[&path])
    }

    /// Run copies, each from the file whose path stands at its place, and make sure that all of
    /// the inputs were there.
    pub(crate) fn run(&self, copies: &[Copy<'_>], paths: &[&Path]) -> Result<(), Failure> {
        let outcome = execute::run(copies, self.sink.as_ref(), self.threads, &self.progress);
        // an input that was cut short is the reason for whatever else went wrong
        for (copy, path) in copies.iter().zip(paths) {
            copy.source.verify().map_err(|error| failed_source(path, &error))?;
        }
        outcome.map_err(|error| self.failed(paths, error))
    }

    fn failed(&self, paths: &[&Path], error: ExecuteError) -> Failure {
        match error {
            ExecuteError::Fill { copy, error: FillError::Source(error) } => {
                failed_source(paths[copy], &error)
            }
            ExecuteError::Sink(error) => self.output.failed(&error),
            error => Failure::new(error),
        }
    }

    /// Put the output in place.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        self.sink.commit().map_err(|error| self.output.failed(&error))
    }
}
