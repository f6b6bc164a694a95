//! `tslice view --stats` in rows: one per tensor, or along axes one per position of the other axes.

use std::cmp::Ordering;
use std::path::PathBuf;

use serde_json::{Value, json};
use tslice::dtype::DType;
use tslice::execute::{Progress, Workers};
use tslice::input::{Input, OpenOptions};
use tslice::job::{AllSlices, Chosen, Slices, SlicesOptions, position_of};
use tslice::shape::{AsList, AsTuple};
use tslice::statistics::{Extreme, Facts, Summary};
use tslice::tensor::printable;

use super::index::Index;
use super::stats::{Faults, add_counts, as_json, shown, title, value};
use super::{input, output, tensors};
use crate::cli::args::{Column, StatsArgs, ViewArgs};
use crate::cli::report::{Align, Exit, Failure, Json, SortKey, Table, print, table, watch};

const PRINTED_BYTES: usize = 1 << 20;

/// Text that is collected, to be printed in large parts or at the end: a progress bar may be on the
/// screen.
#[derive(Default)]
struct Printing(String);

impl Printing {
    fn push(&mut self, text: &str) -> Result<(), Failure> {
        self.0.push_str(text);
        if self.0.len() >= PRINTED_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        print(&std::mem::take(&mut self.0))
    }
}

fn cells(dtype: &DType, summary: &Summary) -> [String; 7] {
    let extremes = summary.range.map(|(least, greatest)| [least, greatest]);
    let [least, greatest] =
        extremes.map_or_else(Default::default, |both| both.map(|extreme| value(dtype, &extreme)));
    let [mean, std] =
        [summary.mean(), summary.deviation()].map(|it| it.map(shown).unwrap_or_default());
    let [nan, inf, zero] =
        [summary.nan, summary.infinite, summary.zero].map(|count| count.to_string());
    [nan, inf, zero, least, greatest, mean, std]
}

/// A row of the table of tensors: its record, or its cells joined by line ends; small, for 100,000 of them.
struct TensorRow {
    text: Box<str>,
    /// The keys for sorting, in the order of the requested columns.
    keys: Box<[SortKey<'static>]>,
}

fn key(chosen: &Chosen, summary: Option<&Summary>, column: Column) -> SortKey<'static> {
    match column {
        Column::Name => return SortKey::Text(chosen.name.clone().unwrap_or_default().into()),
        Column::DType => return SortKey::Text(chosen.dtype.to_string().into()),
        Column::Shape => return SortKey::LargestShape(chosen.shape.clone()),
        _ => {}
    }
    let Some(summary) = summary else {
        // behind all that have numbers
        return match column {
            Column::Nan | Column::Infinite | Column::Zero => SortKey::Amount(0),
            _ => SortKey::Number(None),
        };
    };
    let extreme = |pick: fn((Extreme, Extreme)) -> Extreme| {
        SortKey::Number(summary.range.map(|range| summary.value(&pick(range))))
    };
    match column {
        Column::Nan => SortKey::Amount(summary.nan),
        Column::Infinite => SortKey::Amount(summary.infinite),
        Column::Zero => SortKey::Amount(summary.zero),
        Column::Min => extreme(|(least, _)| least),
        Column::Max => extreme(|(_, greatest)| greatest),
        Column::Mean => SortKey::Number(summary.mean()),
        _ => SortKey::Number(summary.deviation()),
    }
}

/// For tensors of strings, blocks or floats of 4 bits.
const NO_NUMBERS: &str = "no numbers";

fn without_numbers(chosen: &Chosen) -> Value {
    json!({
        "name": chosen.name,
        "shape": chosen.shape,
        "dtype": chosen.dtype.to_string(),
        "reason": NO_NUMBERS,
    })
}

impl TensorRow {
    fn new(
        chosen: &Chosen,
        summary: Option<&Summary>,
        file: Option<&str>,
        sort: &[Column],
        json: Option<String>,
    ) -> TensorRow {
        let text = json.unwrap_or_else(|| {
            let name = printable(chosen.name.as_deref().unwrap_or_default()).into_owned();
            let dtype = chosen.dtype.to_string();
            let shape = AsTuple(&chosen.shape).to_string();
            let empty =
                || std::array::from_fn(|at| if at == 0 { NO_NUMBERS } else { "" }.to_owned());
            let cells = summary.map_or_else(empty, |summary| cells(&chosen.dtype, summary));
            let [nan, inf, zero, min, max, mean, std] = cells;
            let file = printable(file.unwrap_or_default()).into_owned();
            [file, name, dtype, shape, nan, inf, zero, min, max, mean, std].join("\n")
        });
        let keys = sort.iter().map(|&column| key(chosen, summary, column)).collect();
        TensorRow { text: text.into(), keys }
    }

    fn cells(&self) -> [&str; 11] {
        let mut cells = self.text.split('\n');
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    }

    fn compare(&self, other: &TensorRow) -> Ordering {
        let keys = self.keys.iter().zip(&other.keys).map(|(ours, theirs)| ours.order(theirs));
        keys.fold(Ordering::Equal, Ordering::then)
    }
}

const TENSORS: [&str; 11] =
    ["file", "name", "dtype", "shape", "nan", "inf", "zero", "min", "max", "mean", "std"];

pub(super) fn of_tensors(
    input: &mut Input,
    all: &AllSlices<'_>,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let mut table = TensorTable::new(args, None);
    table.add(input, all, workers)?;
    let faults = table.finish()?;
    faults.failure(input)
}

/// Print one table of the tensors of many files. The others are shown even if one file cannot be read.
pub(super) fn of_files(
    files: &[PathBuf],
    options: &OpenOptions,
    slices: &SlicesOptions<'_>,
    index: &Index,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let mut table = TensorTable::new(args, Some(String::new()));
    let mut failed: Option<Failure> = None;
    for path in files {
        let location = input::location(path);
        let mut add = || {
            let mut input = input::open_watched(&location, options, args.quiet)?;
            let numbers = if options.tensors.is_empty() && options.exclude.is_empty() {
                (0..input.contents().tensors.len()).collect()
            } else {
                input.find(&options.tensors)?
            };
            tensors::note_packed(tensors::of_numbers(&input, &numbers));
            if numbers.len() > 1 {
                output::spool(&mut input, args.quiet)?;
            }
            let all = AllSlices::new(&mut input, &numbers, *slices);
            let all = all.map_err(|error| index.failure(error))?;
            table.file = Some(location.to_string());
            table.add(&mut input, &all, workers)
        };
        if let Err(failure) = add()
            && let Some(earlier) = failed.replace(failure)
        {
            earlier.print();
        }
    }
    let faults = table.finish()?;
    match failed {
        None => faults.failure_of_files(),
        Some(failure) => {
            if let Err(faults) = faults.failure_of_files() {
                faults.print();
            }
            Err(Failure { exit: Exit::Failed, ..failure })
        }
    }
}

/// The rows of tensors, held until the last one is known, unless they are printed one by one.
struct TensorTable<'a> {
    args: &'a ViewArgs,
    rows: Vec<TensorRow>,
    faults: Faults,
    held: Printing,
    /// The file of the next tensors, if there are many files.
    file: Option<String>,
}

impl<'a> TensorTable<'a> {
    fn new(args: &'a ViewArgs, file: Option<String>) -> TensorTable<'a> {
        let (faults, held) = (Faults::default(), Printing::default());
        TensorTable { args, rows: Vec::new(), faults, held, file }
    }

    fn add(
        &mut self,
        input: &mut Input,
        all: &AllSlices<'_>,
        workers: &Workers,
    ) -> Result<(), Failure> {
        let TensorTable { args, rows, faults, held, file } = self;
        let StatsArgs { sort, fail_on, json, .. } = &args.stats;
        let file = file.as_deref();
        let line = |mut record: Value| {
            if let Some(file) = file {
                record["file"] = file.into();
            }
            format!("{}\n", Json(&record))
        };
        watch_all(input, all, args.quiet, |input, slices, progress| {
            let chosen = &slices.chosen;
            let is_one = all.len() == 1 && file.is_none();
            let (summary, text) = if !is_one && slices.nothing(Facts::COUNTS).is_err() {
                (None, json.then(|| line(without_numbers(chosen))))
            } else if *json {
                let statistics = chosen.statistics(input, workers, progress)?;
                let text = line(as_json(chosen, &statistics));
                (Some(statistics.summary), Some(text))
            } else {
                (Some(slices.summary(input, workers, progress)?), None)
            };
            if let Some(summary) = &summary {
                faults.look(fail_on, file, chosen.name.as_deref(), summary);
            }
            match text {
                Some(text) if sort.is_empty() => held.push(&text)?,
                text => rows.push(TensorRow::new(chosen, summary.as_ref(), file, sort, text)),
            }
            Ok(())
        })
    }

    /// Print the rows.
    fn finish(self) -> Result<Faults, Failure> {
        let TensorTable { args, mut rows, faults, mut held, file } = self;
        rows.sort_by(TensorRow::compare);
        if args.stats.json {
            rows.iter().try_for_each(|row| held.push(&row.text))?;
        } else {
            let mut align = [Align::Right; 11];
            align[..4].fill(Align::Left);
            let lines = || std::iter::once(TENSORS).chain(rows.iter().map(TensorRow::cells));
            let columns = Table::of(lines(), align, 0);
            let first = usize::from(file.is_none());
            let columns = columns.columns((first..TENSORS.len()).collect());
            lines().try_for_each(|line| held.push(&columns.line(&line)))?;
        }
        held.flush()?;
        Ok(faults)
    }
}

const SLICES: [&str; 8] = ["position", "nan", "inf", "zero", "min", "max", "mean", "std"];

pub(super) fn of_slices(
    input: &mut Input,
    all: &AllSlices<'_>,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let StatsArgs { fail_on, json, .. } = &args.stats;
    let mut faults = Faults::default();
    let mut held = Printing::default();
    let mut tensors = 0;
    watch_all(input, all, args.quiet, |input, slices, progress| {
        let chosen = &slices.chosen;
        if !json {
            let between = if tensors > 0 { "\n" } else { "" };
            let title = title(chosen.name.as_ref(), &slices.selected(), &chosen.dtype);
            held.push(&format!("{between}{title}\n"))?;
        }
        tensors += 1;
        if all.len() > 1 && slices.nothing(Facts::COUNTS).is_err() {
            return if *json {
                held.push(&format!("{}\n", Json(&without_numbers(chosen))))
            } else {
                held.push(&format!("  {NO_NUMBERS}\n"))
            };
        }
        let mut whole = slices.nothing(Facts::COUNTS)?;
        let mut table = SlicesTable::new(slices, args.values.full);
        let empty = slices.nothing(Facts::ALL)?;
        slices.summaries(input, &empty, workers, progress, |first, band| {
            for summary in band.iter().filter(|_| !fail_on.is_empty()) {
                whole.merge(summary.clone());
            }
            if *json {
                print_records(slices, first, band, &mut held)
            } else {
                table.push(first, band, &mut held)
            }
        })?;
        if !json {
            table.finish(&mut held)?;
        }
        faults.look(fail_on, None, chosen.name.as_deref(), &whole);
        Ok(())
    })?;
    held.flush()?;
    faults.failure(input)
}

fn print_records(
    slices: &Slices,
    first: u64,
    band: &[Summary],
    held: &mut Printing,
) -> Result<(), Failure> {
    let Chosen { name, dtype, .. } = &slices.chosen;
    band.iter().zip(first..).try_for_each(|(summary, at)| {
        let mut record = json!({ "name": name, "position": position_of(slices.lens(), at) });
        add_counts(&mut record, dtype, summary, |number| slices.position(at, number));
        held.push(&format!("{}\n", Json(&record)))
    })
}

/// The table of the slices of a tensor; if there are many, only those at both ends are shown.
struct SlicesTable<'a> {
    slices: &'a Slices,
    /// The rows at both ends, with their numbers, if only these are shown.
    ends: Option<Vec<([String; 8], u64)>>,
    /// The columns, whose widths the first rows decide.
    columns: Option<Table<8>>,
}

impl<'a> SlicesTable<'a> {
    fn new(slices: &'a Slices, is_full: bool) -> SlicesTable<'a> {
        let is_short = !is_full && slices.count() > MOST_ROWS;
        SlicesTable { slices, ends: is_short.then(Vec::new), columns: None }
    }

    fn align() -> [Align; 8] {
        let mut align = [Align::Right; 8];
        align[0] = Align::Left;
        align
    }

    fn push(&mut self, first: u64, band: &[Summary], held: &mut Printing) -> Result<(), Failure> {
        let row = |(summary, at): (&Summary, u64)| {
            let cells = cells(&self.slices.chosen.dtype, summary);
            let [nan, inf, zero, min, max, mean, std] = cells;
            let position = AsList(&position_of(self.slices.lens(), at)).to_string();
            [position, nan, inf, zero, min, max, mean, std]
        };
        let rows: Vec<[String; 8]> = band.iter().zip(first..).map(row).collect();
        let count = self.slices.count();
        if let Some(ends) = &mut self.ends {
            let rows = rows.into_iter().zip(first..);
            ends.extend(rows.filter(|(_, at)| *at < EDGE || *at >= count - EDGE));
            return Ok(());
        }
        let columns = match &self.columns {
            Some(columns) => columns,
            None => {
                let heading = SLICES.map(str::to_owned);
                let lines = std::iter::once(&heading).chain(&rows);
                let columns = Table::of(lines, SlicesTable::align(), 2);
                held.push(&columns.line(&heading))?;
                self.columns.insert(columns)
            }
        };
        rows.iter().try_for_each(|row| held.push(&columns.line(row)))
    }

    fn finish(self, held: &mut Printing) -> Result<(), Failure> {
        let Some(ends) = self.ends else { return Ok(()) };
        let mut lines = vec![SLICES.map(str::to_owned)];
        for (row, at) in ends {
            if at == self.slices.count() - EDGE {
                lines.push(SLICES.map(|_| "...".to_owned()));
            }
            lines.push(row);
        }
        held.push(&table(&lines, SlicesTable::align(), 2))
    }
}

/// The most rows that are shown in full without --full: NumPy prints that many elements of an array
/// in full.
const MOST_ROWS: u64 = 1000;

/// Rows at each end of a shortened table, as many as NumPy shows of an axis.
const EDGE: u64 = 3;

/// Call `each` for every tensor, with a progress bar over all of them.
fn watch_all(
    input: &mut Input,
    all: &AllSlices<'_>,
    quiet: bool,
    mut each: impl FnMut(&mut Input, &Slices, &Progress) -> Result<(), Failure>,
) -> Result<(), Failure> {
    watch(all.bytes(), quiet, |progress| {
        (0..all.len()).try_for_each(|number| {
            let slices = all.at(input, number)?;
            each(input, &slices, progress).map_err(|failure| match &slices.chosen.name {
                Some(name) if all.len() > 1 => failure.of_tensor(name),
                _ => failure,
            })
        })
    })
}
