//! `tslice view --stats`: statistics of one tensor.

use serde_json::{Value, json};
use tslice::dtype::{DType, Endian};
use tslice::execute::Workers;
use tslice::input::Input;
use tslice::job::{Chosen, position_of};
use tslice::print;
use tslice::shape::{AsList, AsTuple};
use tslice::statistics::{Bar, Extreme, Statistics, Summary};
use tslice::tensor::printable;

use crate::cli::args::{Column, ViewArgs};
use crate::cli::report::{Align, Failure, Json, print, table, watch};

const PARTS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

const BARS: usize = 10;

/// Characters of the longest bar.
const BAR_WIDTH: u64 = 30;

pub(super) fn run(
    input: &mut Input,
    chosen: &Chosen,
    args: &ViewArgs,
    workers: &Workers,
) -> Result<(), Failure> {
    let statistics =
        watch(chosen.bytes(), args.quiet, |progress| chosen.statistics(input, workers, progress))?;
    print(&if args.stats.json {
        format!("{}\n", Json(&as_json(chosen, &statistics)))
    } else {
        as_text(chosen, &statistics)
    })?;
    let mut faults = Faults::default();
    faults.look(&args.stats.fail_on, None, chosen.name.as_deref(), &statistics.summary);
    faults.failure(input)
}

/// An extreme element, as NumPy prints it.
pub(super) fn value(dtype: &DType, extreme: &Extreme) -> String {
    let DType::Scalar(scalar, _) = *dtype else { return String::new() };
    let itemsize = (scalar.bits() / 8) as usize;
    print::element(&DType::Scalar(scalar, Endian::Little), &extreme.bits.to_le_bytes()[..itemsize])
}

pub(super) fn title(name: Option<&String>, shape: &[u64], dtype: &DType) -> String {
    let name = name.map_or_else(String::new, |name| format!("{name}, "));
    printable(&format!("{name}shape {}, dtype {dtype}", AsTuple(shape))).into_owned()
}

fn as_text(chosen: &Chosen, statistics: &Statistics) -> String {
    let summary = &statistics.summary;
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
    row("count", summary.count.to_string());
    row("nan", summary.nan.to_string());
    row("infinite", summary.infinite.to_string());
    row("zero", summary.zero.to_string());
    if let Some((least, greatest)) = &summary.range {
        for (name, extreme) in [("minimum", least), ("maximum", greatest)] {
            let at = position_of(&chosen.shape, extreme.position);
            row(name, format!("{} at {}", value(&chosen.dtype, extreme), AsList(&at)));
        }
    }
    if let (Some(mean), Some(deviation)) = (summary.mean(), summary.deviation()) {
        row("mean", shown(mean));
        row("std", shown(deviation));
    }
    let mut text = format!("{}\n", title(chosen.name.as_ref(), &chosen.shape, &chosen.dtype));
    text.push_str(&table(&rows, [Align::Left, Align::Left], 2));
    if summary.range.is_some() {
        text.push('\n');
        text.push_str(&beside(statistics));
    }
    text
}

fn beside(statistics: &Statistics) -> String {
    let quantiles = statistics.quantiles(&PARTS);
    let error = quantiles.iter().map(|quantile| quantile.error).fold(0.0, f64::max);
    let mut quantiles = quantiles.iter().map(|quantile| {
        let value = match quantile.error {
            0.0 => shown(quantile.value),
            error => shown(rounded(quantile.value, error)),
        };
        [format!("{}%", (quantile.part * 100.0).round()), value]
    });
    let bars = statistics.histogram(BARS);
    let width = bars.first().map_or(0.0, |bar| bar.to - bar.from);
    let edge = |edge| shown(rounded(edge, width));
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let is_last = |number: usize| number + 1 == bars.len();
    let mut drawn = bars.iter().enumerate().map(|(number, bar)| {
        let close = if is_last(number) && statistics.summary.is_float() { ']' } else { ')' };
        let range = match single(bar, statistics) {
            Some(only) => only.to_string(),
            None => format!("[{}, {}{close}", edge(bar.from), edge(bar.to)),
        };
        [range, bar.count.to_string(), "█".repeat(length(bar.count, most))]
    });
    let mut rows = vec![["quantiles", "", "histogram", "", ""].map(str::to_owned)];
    for _ in 0..PARTS.len().max(bars.len()) {
        let [part, value] = quantiles.next().unwrap_or_default();
        let [range, count, bar] = drawn.next().unwrap_or_default();
        rows.push([part, value, range, count, bar]);
    }
    let left = Align::Left;
    let right = Align::Right;
    let mut text = table(&rows, [left, right, left, right, left], 2);
    text.push_str(&if error == 0.0 {
        "  the quantiles are exact\n".to_owned()
    } else {
        format!("  the quantiles are exact to the width of their bins, at most {error:.1e}\n")
    });
    text
}

/// The integer of a bar that covers only one.
fn single(bar: &Bar, statistics: &Statistics) -> Option<f64> {
    (!statistics.summary.is_float() && bar.to - bar.from == 1.0).then_some(bar.from)
}

/// Characters of a bar: at least one, if there is an element.
fn length(count: u64, most: u64) -> usize {
    (u128::from(count) * u128::from(BAR_WIDTH)).div_ceil(u128::from(most)) as usize
}

/// Round to the digits that distinguish a number from one that is `width` away.
fn rounded(value: f64, width: f64) -> f64 {
    if value.abs() < width * 1e-9 {
        // almost nothing, beside the others
        return 0.0;
    }
    if value == 0.0 || width.is_nan() || width <= 0.0 {
        return value;
    }
    let digits = 3.0 + (value.abs() / width).log10().max(0.0);
    let text = format!("{value:.*e}", (digits as usize).min(17) - 1);
    text.parse().unwrap_or(value)
}

/// Write a number with the fewest digits that distinguish it, and an exponent if it is long.
pub(super) fn shown(value: f64) -> String {
    let dtype = DType::Scalar(tslice::dtype::Scalar::F64, Endian::Little);
    let text = print::element(&dtype, &value.to_le_bytes());
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A number, or its name if JSON has none.
fn number(value: f64) -> Value {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => json!(value),
    }
}

pub(super) fn add_counts(
    record: &mut Value,
    dtype: &DType,
    summary: &Summary,
    position: impl Fn(u64) -> Vec<u64>,
) {
    let extreme = |extreme: &Extreme| {
        let text = value(dtype, extreme);
        let value = match text.parse::<f64>() {
            // integers beyond 2^53 keep their digits
            Ok(float) if summary.is_float() => number(float),
            _ => serde_json::from_str(&text.to_lowercase()).unwrap_or(Value::String(text)),
        };
        json!({ "value": value, "position": position(extreme.position) })
    };
    record["dtype"] = json!(dtype.to_string());
    record["count"] = json!(summary.count);
    record["nan"] = json!(summary.nan);
    record["infinite"] = json!(summary.infinite);
    record["zero"] = json!(summary.zero);
    record["min"] = json!(summary.range.map(|(least, _)| extreme(&least)));
    record["max"] = json!(summary.range.map(|(_, greatest)| extreme(&greatest)));
    record["mean"] = json!(summary.mean().map(number));
    record["std"] = json!(summary.deviation().map(number));
}

pub(super) fn as_json(chosen: &Chosen, statistics: &Statistics) -> Value {
    let quantile = |quantile: &tslice::statistics::Quantile| {
        json!({
            "q": quantile.part,
            "value": number(quantile.value),
            "error": number(quantile.error),
        })
    };
    let bars = statistics.histogram(BARS);
    let edges = bars.iter().map(|bar| bar.from).chain(bars.last().map(|bar| bar.to));
    let summary = &statistics.summary;
    let mut record = json!({ "name": chosen.name, "shape": chosen.shape });
    add_counts(&mut record, &chosen.dtype, summary, |number| position_of(&chosen.shape, number));
    record["quantiles"] = match summary.range {
        Some(_) => statistics.quantiles(&PARTS).iter().map(quantile).collect(),
        None => json!([]),
    };
    record["histogram"] = json!({
        "edges": edges.map(number).collect::<Vec<_>>(),
        "counts": bars.iter().map(|bar| bar.count).collect::<Vec<_>>(),
    });
    record
}

/// Tensors with elements that none should have, for `--fail-on`.
#[derive(Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    pub(super) fn look(
        &mut self,
        asked: &[Column],
        file: Option<&str>,
        name: Option<&str>,
        summary: &Summary,
    ) {
        let counts = [
            (Column::Nan, summary.nan, "nan"),
            (Column::Infinite, summary.infinite, "inf"),
            (Column::Zero, summary.zero, "zero"),
        ];
        let found = counts.iter().filter(|(column, count, _)| asked.contains(column) && *count > 0);
        let found: Vec<String> = found.map(|(_, count, what)| format!("{count} {what}")).collect();
        if !found.is_empty() {
            let name = name.map(|name| format!("{name} ")).unwrap_or_default();
            let file = file.map(|file| format!("{file}: ")).unwrap_or_default();
            self.0.push(format!("{file}{name}has {}", found.join(", ")));
        }
    }

    /// The failure for tensors of many files, which are named.
    pub(super) fn failure_of_files(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::new(self.0.join("; "))) }
    }

    pub(super) fn failure(self, input: &Input) -> Result<(), Failure> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(format_args!("{}: {}", input.location(), self.0.join("; "))))
        }
    }
}
