//! `tslice view --stats` in rows: one per tensor, or along axes one per position of the other axes.

use std::cmp::Ordering;

use serde_json::json;
use tslice::dtype::DType;
use tslice::execute::{Progress, Workers};
use tslice::input::Input;
use tslice::job::{AllSlices, Chosen, Slices, place};
use tslice::shape::{AsList, AsTuple};
use tslice::statistics::{Extreme, Facts, Summary};
use tslice::tensor::printable;

use super::stats::{Faults, add_counts, as_json, shown, title, value};
use crate::cli::args::{Column, StatsArgs, ViewArgs};
use crate::cli::report::{Align, Failure, Json, SortKey, Table, print, table, watch};

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
    /// What the row is sorted by, in the order of the columns asked for.
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

fn without_numbers(chosen: &Chosen) -> String {
    let record = json!({
        "name": chosen.name,
        "shape": chosen.shape,
        "dtype": chosen.dtype.to_string(),
        "reason": NO_NUMBERS,
    });
    format!("{}\n", Json(&record))
}

impl TensorRow {
    fn new(
        chosen: &Chosen,
        summary: Option<&Summary>,
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
            [name, dtype, shape, nan, inf, zero, min, max, mean, std].join("\n")
        });
        let keys = sort.iter().map(|&column| key(chosen, summary, column)).collect();
        TensorRow { text: text.into(), keys }
    }

    fn cells(&self) -> [&str; 10] {
        let mut cells = self.text.split('\n');
        std::array::from_fn(|_| cells.next().unwrap_or_default())
    }

    fn compare(&self, other: &TensorRow) -> Ordering {
        let keys = self.keys.iter().zip(&other.keys).map(|(ours, theirs)| ours.order(theirs));
        keys.fold(Ordering::Equal, Ordering::then)
    }
}

const TENSORS: [&str; 10] =
    ["name", "dtype", "shape", "nan", "inf", "zero", "min", "max", "mean", "std"];

pub(super) fn of_tensors(
    input: &mut Input,
    all: &AllSlices<'_>,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let StatsArgs { sort, fail_on, json, .. } = &args.stats;
    let mut rows = Vec::new();
    let mut faults = Faults::default();
    let mut held = Printing::default();
    watch_all(input, all, args.quiet, |input, slices, progress| {
        let chosen = &slices.chosen;
        if all.len() > 1 && slices.nothing(Facts::COUNTS).is_err() {
            match json.then(|| without_numbers(chosen)) {
                Some(text) if sort.is_empty() => held.push(&text)?,
                text => rows.push(TensorRow::new(chosen, None, sort, text)),
            }
            return Ok(());
        }
        let (summary, text) = if *json {
            let statistics = chosen.statistics(input, workers, progress)?;
            let text = format!("{}\n", Json(&as_json(chosen, &statistics)));
            (statistics.summary, Some(text))
        } else {
            (slices.summary(input, workers, progress)?, None)
        };
        faults.look(fail_on, chosen.name.as_deref(), &summary);
        match text {
            Some(text) if sort.is_empty() => held.push(&text)?,
            text => rows.push(TensorRow::new(chosen, Some(&summary), sort, text)),
        }
        Ok(())
    })?;
    rows.sort_by(TensorRow::compare);
    if *json {
        rows.iter().try_for_each(|row| held.push(&row.text))?;
    } else {
        let mut align = [Align::Right; 10];
        align[..3].fill(Align::Left);
        let lines = || std::iter::once(TENSORS).chain(rows.iter().map(TensorRow::cells));
        let columns = Table::of(lines(), align, 0);
        lines().try_for_each(|line| held.push(&columns.line(&line)))?;
    }
    held.flush()?;
    faults.failure(input)
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
                held.push(&without_numbers(chosen))
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
        faults.look(fail_on, chosen.name.as_deref(), &whole);
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
        let mut record = json!({ "name": name, "position": place(slices.lens(), at) });
        add_counts(&mut record, dtype, summary, |number| slices.place(at, number));
        held.push(&format!("{}\n", Json(&record)))
    })
}

/// The table of the slices of a tensor; of many, only those at both ends are shown.
struct SlicesTable<'a> {
    slices: &'a Slices,
    /// The rows at both ends, with their numbers, if only these are shown.
    ends: Option<Vec<([String; 8], u64)>>,
    /// Set by the first rows, which say how wide columns are.
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
            let position = AsList(&place(self.slices.lens(), at)).to_string();
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

/// Rows to show in full without --full: so many elements of an array NumPy prints in full.
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
