//! A job under way: the output that grows, the workers, the progress, and whose fault an error is.

use std::path::Path;

use tslice::execute::{
    self, Conversion, ExecuteError, FillError, Pieces, Progress, Transfer, WINDOW_BYTES,
};
use tslice::gather::{Gather, GatherPieces};
use tslice::plan::{PIECE_BYTES, Plan, Tiling};
use tslice::sink::{Sink, WriteOrder};
use tslice::source::{self, Forward, MemorySource, Source};
use tslice::view::View;

use super::args::OutputArgs;
use super::input::{Input, failed_source, failed_stream, finish, spool};
use super::output::{Output, Prepared};
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

/// What is taken of a tensor of an input.
pub(crate) enum Taken {
    /// Ranges of positions.
    View(View),
    /// Those of a list, along some axis.
    List(Box<(Gather, MemorySource)>),
}

/// What is taken of an input, on its way to its place in the output.
pub(crate) struct Cut {
    /// The part of the input that it is taken of.
    pub(crate) part: usize,
    pub(crate) taken: Taken,
    /// Bytes that change places on the way; 1 for none.
    pub(crate) swap_width: usize,
    /// Where it goes in the output, in bytes.
    pub(crate) at: u64,
}

impl Cut {
    /// The bytes that must not be parted.
    fn unit(&self) -> u64 {
        self.swap_width as u64
    }

    /// How it is had in one pass of what begins at byte `start` of the input, if it can be.
    fn forward(&self, start: u64) -> Option<Plan> {
        match &self.taken {
            Taken::View(view) => {
                Plan::forward(&view.clone().after(start), self.unit(), WINDOW_BYTES)
            }
            Taken::List(_) => None,
        }
    }
}

impl<'a> Job<'a> {
    /// Create the output, and write all of it that is not elements.
    pub(crate) fn begin(
        output: &'a Output,
        prepared: &Prepared,
        args: &OutputArgs,
    ) -> Result<Job<'a>, Failure> {
        Job::begin_checked(output, prepared, args, |_| Ok(()))
    }

    /// The same; `check` is asked before the first byte is written, and told in which order the
    /// output takes them: what is written in order cannot be taken back.
    pub(crate) fn begin_checked(
        output: &'a Output,
        prepared: &Prepared,
        args: &OutputArgs,
        check: impl FnOnce(bool) -> Result<(), Failure>,
    ) -> Result<Job<'a>, Failure> {
        let sink = output.create(prepared, check)?;
        let (progress, bytes, threads) =
            (Progress::default(), prepared.bytes, threads(args.threads));
        Ok(Job { output, sink, progress, threads, quiet: args.quiet, bytes })
    }

    /// Write what the views take of an input, and make sure that all of the input was there. The
    /// views stand in the order of the output; those of a pipe in the order of the pipe too.
    pub(crate) fn copy(&self, input: Input, cuts: &[Cut]) -> Result<(), Failure> {
        progress::watch(&self.progress, self.bytes, self.quiet, || self.copy_now(input, cuts))
    }

    fn copy_now(&self, input: Input, cuts: &[Cut]) -> Result<(), Failure> {
        let Input { path, bytes, contents, packed, .. } = input;
        let (source, gone) = match bytes {
            source::Opened::Random(source) => (source, 0),
            source::Opened::Forward(mut stream) => {
                let plans: Option<Vec<Plan>> = cuts.iter().map(|cut| cut.forward(0)).collect();
                if let Some(plans) = plans {
                    let cuts: Vec<&Cut> = cuts.iter().collect();
                    self.forward(&mut stream, &cuts, &plans).map_err(|error| match error {
                        ExecuteError::Fill { error: FillError::Source(error), .. } => {
                            failed_stream(&path, &stream, &contents, &error)
                        }
                        error => self.failed(&[&path], error),
                    })?;
                    return finish(&path, stream, &contents);
                }
                spool(&path, stream, &contents)?
            }
        };
        // what is deflated and can be had in one pass is had so; the rest in runs as long as may be
        let streamed = |cut: &Cut| {
            let packed = packed.get(cut.part.checked_sub(1)?)?;
            Some((packed, cut.forward(packed.start)?))
        };
        let mut rest = cuts;
        while let Some((first, others)) = rest.split_first() {
            if let Some((packed, plan)) = streamed(first) {
                let mut stream = packed.member.stream();
                self.forward(&mut stream, &[first], &[plan])
                    .map_err(|error| self.failed(&[&path], error))?;
                stream.finish().map_err(|error| failed_source(&path, &error))?;
                rest = others;
                continue;
            }
            let count = rest.iter().take_while(|cut| streamed(cut).is_none()).count();
            self.random(&path, source.as_ref(), gone, &rest[..count])?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Run copies from a source that has bytes in any order, but for the first `gone`.
    fn random(
        &self,
        path: &Path,
        source: &dyn Source,
        gone: u64,
        cuts: &[Cut],
    ) -> Result<(), Failure> {
        let pieces = |cut| self.pieces(cut, gone, source);
        let pieces: Vec<Box<dyn Pieces + '_>> =
            cuts.iter().map(pieces).collect::<Result<_, _>>()?;
        let copies = cuts.iter().zip(&pieces).map(|(cut, pieces)| Transfer {
            source,
            pieces: pieces.as_ref(),
            conversion: Conversion::swap_bytes(cut.swap_width),
            at: cut.at,
        });
        let copies: Vec<Transfer<'_>> = copies.collect();
        self.run(&copies, &vec![path; copies.len()])
    }

    /// What a cut is to the executor; the source lacks the input's first `gone` bytes.
    fn pieces<'c>(
        &self,
        cut: &'c Cut,
        gone: u64,
        source: &dyn Source,
    ) -> Result<Box<dyn Pieces + 'c>, Failure> {
        Ok(match &cut.taken {
            Taken::View(view) => Box::new(self.plan(&view.clone().after(gone), cut.unit(), source)),
            Taken::List(list) => {
                let (gather, indices) = list.as_ref();
                Box::new(gather.clone().after(gone).with(indices).map_err(Failure::new)?)
            }
        })
    }

    /// Cut a view as it suits both ends.
    fn plan(&self, view: &View, unit: u64, source: &dyn Source) -> Plan {
        match (self.sink.order(), source.window_limit()) {
            (WriteOrder::Ascending, _) => Plan::new(view, unit, PIECE_BYTES),
            (WriteOrder::Any, None) => Plan::tiled(view, unit, Tiling::MAPPED),
            (WriteOrder::Any, Some(_)) => Plan::tiled(view, unit, Tiling::READ),
        }
    }

    /// Run copies from a stream, in one pass.
    fn forward(
        &self,
        stream: &mut dyn Forward,
        cuts: &[&Cut],
        plans: &[Plan],
    ) -> Result<(), ExecuteError> {
        cuts.iter().zip(plans).try_for_each(|(cut, plan)| {
            let (sink, progress) = (self.sink.as_ref(), &self.progress);
            let conversion = Conversion::swap_bytes(cut.swap_width);
            execute::run_forward(stream, plan, conversion, sink, cut.at, progress)
        })
    }

    /// Write what is gathered to the place `at` of the output, and make sure that all of both
    /// inputs was there, each named by its path.
    pub(crate) fn gather(
        &self,
        gathering: &GatherPieces<'_>,
        params: (&Path, &dyn Source),
        indices: (&Path, &dyn Source),
        (swap_width, at): (usize, u64),
    ) -> Result<(), Failure> {
        let conversion = Conversion::swap_bytes(swap_width);
        let copies = [Transfer { source: params.1, pieces: gathering, conversion, at }];
        let outcome = progress::watch(&self.progress, self.bytes, self.quiet, || {
            execute::run(&copies, self.sink.as_ref(), self.threads, &self.progress)
        });
        for (path, source) in [params, indices] {
            source.verify().map_err(|error| failed_source(path, &error))?;
        }
        outcome.map_err(|error| match error {
            ExecuteError::Fill { error: FillError::Indices(error), .. } => {
                failed_source(indices.0, &error)
            }
            error => self.failed(&[params.0], error),
        })
    }

    /// Run copies, each from the file whose path stands at its place, and make sure that all of
    /// the inputs were there.
    pub(crate) fn run(&self, copies: &[Transfer<'_>], paths: &[&Path]) -> Result<(), Failure> {
        let outcome = execute::run(copies, self.sink.as_ref(), self.threads, &self.progress);
        // an input that was cut short is the reason for whatever else went wrong
        let mut verified: Option<&dyn Source> = None;
        for (copy, path) in copies.iter().zip(paths) {
            if !verified
                .replace(copy.source)
                .is_some_and(|last| std::ptr::addr_eq(last, copy.source))
            {
                copy.source.verify().map_err(|error| failed_source(path, &error))?;
            }
        }
        outcome.map_err(|error| self.failed(paths, error))
    }

    fn failed(&self, paths: &[&Path], error: ExecuteError) -> Failure {
        match error {
            ExecuteError::Fill { transfer, error: FillError::Source(error) } => {
                failed_source(paths[transfer], &error)
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

/// How many threads are to work: as many as were asked for, or as there are cores.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(cores, usize::from)
}
