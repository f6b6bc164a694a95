//! `tslice view --stats` of several tensors, a row each, or along axes, a row for each position of the
//! others.

use serde_json::json;
use tslice::internals::dtype::DType;
use tslice::internals::execute::{Progress, Workers};
use tslice::internals::format::printable;
use tslice::internals::input::Input;
use tslice::internals::job::{Chosen, Slices, place};
use tslice::internals::shape::{AsList, AsTuple};
use tslice::internals::statistics::{Summary, Sums};

use super::faults::Faults;
use super::stats::{add_counts, as_json, shown, title, value};
use crate::cli::args::{Column, StatsArgs, ViewArgs};
use crate::cli::report::{Align, Failure, Json, SortKey, Table, print, sort_rows, table, watch};

/// How much text is printed at a time.
const PRINTED_BYTES: usize = 1 << 20;

/// Text that is printed when there is much of it, or at the end: a progress bar may be on the screen.
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

/// The cells of a summary: NaN, infinite, zero, minimum, maximum, mean, deviation.
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

/// What a tensor of several is, and what is known of it.
struct TensorRow {
    cells: [String; 10],
    shape: Vec<u64>,
    /// By the columns from NaN on.
    numbers: [Option<f64>; 7],
    json: String,
}

impl TensorRow {
    fn new(chosen: &Chosen, summary: &Summary, json: String) -> TensorRow {
        let Chosen { name, dtype, shape, .. } = chosen;
        let [nan, inf, zero, min, max, mean, std] = cells(dtype, summary);
        let name = printable(name.as_deref().unwrap_or_default()).into_owned();
        let (dtype, shape_cell) = (dtype.to_string(), AsTuple(shape).to_string());
        let cells = [name, dtype, shape_cell, nan, inf, zero, min, max, mean, std];
        let counts = [summary.nan, summary.infinite, summary.zero];
        let [nan, inf, zero] = counts.map(|count| Some(count as f64));
        let min = summary.range.map(|(least, _)| summary.value(&least));
        let max = summary.range.map(|(_, greatest)| summary.value(&greatest));
        let numbers = [nan, inf, zero, min, max, summary.mean(), summary.deviation()];
        TensorRow { cells, shape: shape.clone(), numbers, json }
    }

    /// What it is sorted by.
    fn key(&self, column: Column) -> SortKey<'_> {
        let number = |at: usize| SortKey::Number(self.numbers[at]);
        match column {
            Column::Name => SortKey::Text(self.cells[0].as_str().into()),
            Column::DType => SortKey::Text(self.cells[1].as_str().into()),
            Column::Shape => SortKey::LargestShape(self.shape.clone()),
            Column::Nan => number(0),
            Column::Infinite => number(1),
            Column::Zero => number(2),
            Column::Min => number(3),
            Column::Max => number(4),
            Column::Mean => number(5),
            Column::Std => number(6),
        }
    }
}

/// The columns of the table of tensors.
const TENSORS: [&str; 10] =
    ["name", "dtype", "shape", "nan", "inf", "zero", "min", "max", "mean", "std"];

/// Show a row for each of several tensors.
pub(super) fn of_tensors(
    input: &mut Input,
    all: &[Slices],
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let StatsArgs { sort, fail_on, json, .. } = &args.stats;
    let (mut rows, mut faults, mut held) = (Vec::new(), Faults::default(), Printing::default());
    watch_all(all, args.quiet, |slices, progress| {
        let chosen = &slices.chosen;
        let (summary, text) = match json {
            true => {
                let statistics = chosen.statistics(input, workers, progress)?;
                let text = format!("{}\n", Json(&as_json(chosen, &statistics)));
                (statistics.summary, text)
            }
            false => (slices.summary(input, workers, progress)?, String::new()),
        };
        faults.look(fail_on, chosen.name.as_deref(), &summary);
        if *json && sort.is_empty() {
            return held.push(&text);
        }
        rows.push(TensorRow::new(chosen, &summary, text));
        Ok(())
    })?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for &column in sort.iter().rev() {
        sort_rows(&mut order, |row| rows[row].key(column));
    }
    let rows = order.into_iter().map(|row| &rows[row]);
    if *json {
        rows.map(|row| &row.json).try_for_each(|line| held.push(line))?;
    } else {
        let mut cells = vec![TENSORS.map(str::to_owned)];
        cells.extend(rows.map(|row| row.cells.clone()));
        let mut align = [Align::Right; 10];
        align[..3].fill(Align::Left);
        held.push(&table(&cells, align, 0))?;
    }
    held.flush()?;
    faults.failure(input)
}

/// The columns of a table of slices.
const SLICES: [&str; 8] = ["position", "nan", "inf", "zero", "min", "max", "mean", "std"];

/// Show a row for each slice of each tensor.
pub(super) fn of_slices(
    input: &mut Input,
    all: &[Slices],
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let StatsArgs { fail_on, json, .. } = &args.stats;
    let (mut faults, mut held) = (Faults::default(), Printing::default());
    let mut tensors = 0;
    watch_all(all, args.quiet, |slices, progress| {
        let chosen = &slices.chosen;
        if !json {
            let between = if tensors > 0 { "\n" } else { "" };
            held.push(&format!(
                "{between}{}\n",
                title(chosen.name.as_ref(), &slices.selected(), &chosen.dtype)
            ))?;
        }
        tensors += 1;
        let mut whole = slices.nothing(Sums::None)?;
        let mut shown = None;
        let empty = slices.nothing(Sums::Squares)?;
        slices.summaries(input, &empty, workers, progress, |first, band| {
            for summary in band.iter().filter(|_| !fail_on.is_empty()) {
                whole.merge(summary.clone());
            }
            let position = |at: usize| place(slices.lens(), first + at as u64);
            if *json {
                return band.iter().enumerate().try_for_each(|(at, summary)| {
                    let place = |number| slices.place(first + at as u64, number);
                    let mut record = json!({ "name": chosen.name, "position": position(at) });
                    add_counts(&mut record, &chosen.dtype, summary, place);
                    held.push(&format!("{}\n", Json(&record)))
                });
            }
            let row = |(at, summary): (usize, &Summary)| {
                let [nan, inf, zero, min, max, mean, std] = cells(&chosen.dtype, summary);
                [AsList(&position(at)).to_string(), nan, inf, zero, min, max, mean, std]
            };
            let rows: Vec<[String; 8]> = band.iter().enumerate().map(row).collect();
            let heading = SLICES.map(str::to_owned);
            let mut align = [Align::Right; 8];
            align[0] = Align::Left;
            // of very many rows, the first ones say how wide the columns are
            let is_first = shown.is_none();
            let columns = shown
                .get_or_insert_with(|| Table::of(std::iter::once(&heading).chain(&rows), align, 2));
            if is_first {
                held.push(&columns.line(&heading))?;
            }
            rows.iter().try_for_each(|row| held.push(&columns.line(row)))
        })?;
        faults.look(fail_on, chosen.name.as_deref(), &whole);
        Ok(())
    })?;
    held.flush()?;
    faults.failure(input)
}

/// Do something with each tensor, while showing how much of all is done.
fn watch_all(
    all: &[Slices],
    quiet: bool,
    mut each: impl FnMut(&Slices, &Progress) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let total = all.iter().map(|slices| slices.chosen.bytes()).sum();
    watch(total, quiet, |progress| {
        all.iter().try_for_each(|slices| {
            each(slices, progress).map_err(|failure| match &slices.chosen.name {
                Some(name) if all.len() > 1 => failure.of_tensor(name),
                _ => failure,
            })
        })
    })
}
