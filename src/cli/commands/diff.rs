//! `tslice diff A B`: whether two files hold the same, and where not.

use serde_json::{Map, Value, json};
use tslice::compare::{Comparer, Findings, Largest, Rule, same_dtype};
use tslice::dtype::DType;
use tslice::error::ContainerError;
use tslice::execute::Progress;
use tslice::format::{Tensor, printable};
use tslice::input::{Input, Location, OpenOptions, SelectFault};
use tslice::job::{Comparison, Leader, compare, is_pipe};
use tslice::permutation::Transposition;
use tslice::print;
use tslice::shape::{AsList, AsTuple, Order};

use super::chosen::Chosen;
use super::index::Index;
use super::view::Values;
use super::{input, output};
use crate::cli::args::DiffArgs;
use crate::cli::report::{Exit, Failure, Json, percent_encoded, print, watch};

/// Compare two files; what keeps them from being compared is trouble, whatever it is.
pub(super) fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    let differences =
        differences(args).map_err(|failure| Failure { exit: Exit::Trouble, ..failure })?;
    let trouble = |failure| Failure { exit: Exit::Trouble, ..failure };
    if args.json {
        print(&format!("{}\n", Json(&differences.json()))).map_err(trouble)?;
    } else {
        print(&differences.text()).map_err(trouble)?;
    }
    Ok(if differences.any() { Exit::Different } else { Exit::Done })
}

/// What differs between two files.
struct Differences {
    /// The files.
    files: [Location; 2],
    /// The names of the tensors that only one of them has.
    only: [Vec<String>; 2],
    /// The tensors that both have.
    tensors: Vec<Compared>,
}

/// A tensor of both files.
struct Compared {
    name: Option<String>,
    shapes: [Vec<u64>; 2],
    dtypes: [DType; 2],
    /// What was found of the elements, where they could be compared.
    findings: Option<Findings>,
    /// The beginnings of the first two that differ, where elements are too large to be kept.
    large: Option<[String; 2]>,
}

/// How many characters of a large element are shown.
const SHOWN: usize = 1000;

fn differences(args: &DiffArgs) -> Result<Differences, Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    index.refuse_stdin(("A", &args.first))?;
    let workers = output::workers(args.threads);
    let index = index.open(args.from.io, &workers, args.quiet, ("B", &args.second))?;
    // a tensor may be missing from one of the files
    let options = OpenOptions { tensors: vec![], ..input::options_of_several(&args.from)? };
    let locations = [&args.first, &args.second].map(|path| input::location(path));
    if locations == [Location::Stdin, Location::Stdin] {
        return Err(Failure::usage("standard input can be read once, and is both A and B"));
    }
    let [first, second] = &locations;
    let mut a = input::open_watched(first, &options, args.quiet)?;
    let mut b = input::open_watched(second, &options, args.quiet)?;
    options.raw.check_used([&a, &b])?;
    let Paired { pairs, only } = pair(&a, &b, &args.from.tensor)?;
    if let Some(names) = &args.field.field {
        let numbers = |side: usize| pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>();
        a.take_fields(names, &numbers(0))?;
        b.take_fields(names, &numbers(1))?;
    }
    let rule = Rule {
        tolerance: match (args.rule.atol, args.rule.rtol) {
            (None, None) => None,
            (atol, rtol) => Some((atol.unwrap_or(0.0), rtol.unwrap_or(0.0))),
        },
        equal_nan: args.rule.equal_nan,
    };
    let several = pairs.len() > 1;
    let (mut tensors, mut comparisons) = (Vec::new(), Vec::new());
    for [of_a, of_b] in pairs {
        let both = &[a.contents().tensors.at(of_a), b.contents().tensors.at(of_b)];
        let name = both[0].name.clone().or_else(|| both[1].name.clone());
        let prepared = prepare(both, &index, rule).map_err(|failure| match &name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        })?;
        let (shapes, comparison) = prepared;
        let dtypes = both.each_ref().map(|tensor| tensor.dtype.clone());
        let findings = comparison.is_some().then(Findings::default);
        comparisons.extend(comparison);
        tensors.push(Compared { name, shapes, dtypes, findings, large: None });
    }
    let leader = leader([&a, &b]);
    let (progress, total) = (Progress::default(), comparisons.iter().map(Comparison::bytes).sum());
    let found = watch(&progress, total, args.quiet, || {
        compare((&mut a, &mut b), &comparisons, leader, &workers, &progress)
    });
    let found = found.map_err(|error| index.failure(error))?;
    let compared = tensors.iter_mut().filter_map(|tensor| tensor.findings.as_mut());
    compared.zip(found).for_each(|(place, found)| *place = found);
    let compared = tensors.iter_mut().filter(|tensor| tensor.findings.is_some());
    for (tensor, pair) in compared.zip(&comparisons).filter(|(_, pair)| pair.is_large()) {
        tensor.read_first(pair, (&mut a, &mut b))?;
    }
    Ok(Differences { files: locations, only, tensors })
}

/// The numbers of the tensors that belong together, and the names of the others.
struct Paired {
    pairs: Vec<[usize; 2]>,
    only: [Vec<String>; 2],
}

/// Pair the tensors that the patterns mean (all without any) by name; or the only ones of both
/// files, where one has no name.
fn pair(a: &Input, b: &Input, patterns: &[String]) -> Result<Paired, Failure> {
    let [of_a, of_b] = [find(a, patterns)?, find(b, patterns)?];
    // names that neither file has are a mistake; the tensor without a name has none of them
    let has = |input: &Input, found: &[usize]| !is_nameless(input) && !found.is_empty();
    if !patterns.is_empty() && !has(a, &of_a) && !has(b, &of_b) {
        if is_nameless(a) { b } else { a }.find(patterns)?;
    }
    let name =
        |input: &Input, number: usize| input.contents().tensors.name(number).map(str::to_owned);
    if let ([first], [second]) = (of_a.as_slice(), of_b.as_slice())
        && (name(a, *first).is_none() || name(b, *second).is_none())
    {
        return Ok(Paired { pairs: vec![[*first, *second]], only: [vec![], vec![]] });
    }
    let mut pairs = Vec::new();
    let mut only = [vec![], vec![]];
    for &first in &of_a {
        match of_b.iter().find(|&&second| name(a, first) == name(b, second)) {
            Some(&second) => pairs.push([first, second]),
            None => only[0].push(shown(name(a, first))),
        }
    }
    let missing = of_b.iter().filter(|&&second| !pairs.iter().any(|pair| pair[1] == second));
    only[1] = missing.map(|&second| shown(name(b, second))).collect();
    Ok(Paired { pairs, only })
}

fn shown(name: Option<String>) -> String {
    name.unwrap_or_else(|| "the tensor without a name".to_owned())
}

/// Whether it holds one tensor, without a name.
fn is_nameless(input: &Input) -> bool {
    let mut names = input.contents().tensors.names();
    names.len() == 1 && names.next() == Some(None)
}

/// The tensors that the patterns mean, as far as there are any; the one without a name is meant by
/// all.
fn find(input: &Input, patterns: &[String]) -> Result<Vec<usize>, ContainerError> {
    let tensors = &input.contents().tensors;
    if patterns.is_empty() || is_nameless(input) {
        return Ok((0..tensors.len()).collect());
    }
    let mut found = Vec::new();
    for pattern in patterns {
        match input.find(std::slice::from_ref(pattern)) {
            Ok(numbers) => found.extend(numbers),
            Err(error) => match error.cause.downcast_ref() {
                Some(SelectFault::NotFound { .. } | SelectFault::NoTensors) => {}
                _ => return Err(error),
            },
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The shapes of the selections and, where shapes and dtypes are the same, what to compare.
fn prepare(
    tensors: &[Tensor; 2],
    index: &Index,
    rule: Rule,
) -> Result<([Vec<u64>; 2], Option<Comparison>), Failure> {
    let fortran = tensors.iter().all(|tensor| tensor.order() == Order::F);
    let choose = |tensor, order| Chosen::of(tensor, (index, &Transposition::None), order);
    let [mut a, mut b] = [choose(&tensors[0], Order::C)?, choose(&tensors[1], Order::C)?];
    let shapes = [a.shape.clone(), b.shape.clone()];
    if a.shape != b.shape || !same_dtype(&a.dtype, &b.dtype) {
        return Ok((shapes, None));
    }
    let comparer = Comparer::new(&a.dtype, &b.dtype, rule).ok_or_else(|| {
        Failure::new(format_args!("elements of dtype {} cannot be compared", a.dtype))
    })?;
    let mut order = Order::C;
    if fortran && a.region.strided().is_some() && b.region.strided().is_some() {
        // both in the order of their files: contiguous where the selection is
        order = Order::F;
        (a, b) = (choose(&tensors[0], order)?, choose(&tensors[1], order)?);
    }
    let regions = [(a.region, tensors[0].part()), (b.region, tensors[1].part())];
    Ok((shapes, Some(Comparison::new(regions, comparer, &a.shape, order))))
}

/// Which file leads: one that is read once, or the one whose elements lie in another order.
fn leader([a, b]: [&Input; 2]) -> Leader {
    let is_fortran = |input: &Input| {
        let tensors = &input.contents().tensors;
        !tensors.is_empty() && tensors.iter().all(|tensor| tensor.order() == Order::F)
    };
    let second = is_pipe(b) || !is_pipe(a) && is_fortran(b) && !is_fortran(a);
    if second { Leader::Second } else { Leader::First }
}

impl Differences {
    fn any(&self) -> bool {
        self.only.iter().any(|names| !names.is_empty())
            || self.tensors.iter().any(Compared::differs)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (file, names) in self.files.iter().zip(&self.only) {
            for name in names {
                text.push_str(&printable(&format!("only in {file}: {name}")));
                text.push('\n');
            }
        }
        self.tensors.iter().for_each(|tensor| text.push_str(&tensor.text()));
        text
    }

    fn json(&self) -> Value {
        let tensors: Vec<Value> = self.tensors.iter().map(Compared::json).collect();
        let mut value = json!({
            "same": !self.any(),
            "files": self.files.each_ref().map(ToString::to_string),
            "only_in_a": self.only[0],
            "only_in_b": self.only[1],
            "tensors": tensors,
        });
        let encoded = |file: &Location| file.path().and_then(percent_encoded);
        let encoded = self.files.each_ref().map(encoded);
        if encoded.iter().any(Option::is_some) {
            value["files_percent"] = json!(encoded);
        }
        value
    }
}

impl Compared {
    fn differs(&self) -> bool {
        self.findings.as_ref().is_none_or(|findings| findings.differing > 0)
    }

    fn count(&self) -> u64 {
        self.shapes[0].iter().product()
    }

    /// The index of an element.
    fn place(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut place: Vec<u64> = self.shapes[0]
            .iter()
            .rev()
            .map(|&len| {
                let index = rest % len.max(1);
                rest /= len.max(1);
                index
            })
            .collect();
        place.reverse();
        place
    }

    /// Read the beginnings of the first large elements that differ.
    fn read_first(
        &mut self,
        pair: &Comparison,
        inputs: (&mut Input, &mut Input),
    ) -> Result<(), Failure> {
        let first = self.findings.as_ref().and_then(|findings| findings.first.as_ref());
        let Some(first) = first else { return Ok(()) };
        let (readers, number) = pair.readers(inputs, first.place)?;
        let mut texts = [String::new(), String::new()];
        for ((text, reader), dtype) in texts.iter_mut().zip(readers).zip(&self.dtypes) {
            *text = print::beginning(dtype, number, SHOWN, &mut Values::new(reader))?;
        }
        self.large = Some(texts);
        Ok(())
    }

    /// Both elements of a difference, as NumPy prints them.
    fn values(&self, found: &Largest) -> [String; 2] {
        if let Some(texts) = &self.large {
            return texts.clone();
        }
        // a void stands for what the other file says it is
        let known = |own: &DType, other: &DType| match (own, other) {
            (DType::Npy(_), DType::Scalar(..)) => other.clone(),
            _ => own.clone(),
        };
        let [a, b] = &self.dtypes;
        let (a, b) = (known(a, b), known(b, a));
        [print::element(&a, &found.values.0), print::element(&b, &found.values.1)]
    }

    fn text(&self) -> String {
        let prefix = self.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let prefix = printable(&prefix);
        let mut text = String::new();
        let [a, b] = &self.shapes;
        if a != b {
            text.push_str(&format!("{prefix}shape {} and {}\n", AsTuple(a), AsTuple(b)));
        }
        let [a, b] = &self.dtypes;
        if !same_dtype(a, b) {
            text.push_str(&format!("{prefix}dtype {a} and {b}\n"));
        }
        let Some(findings) = self.findings.as_ref().filter(|findings| findings.differing > 0)
        else {
            return text;
        };
        let (differing, count) = (findings.differing, self.count());
        let differ = if differing == 1 { "differs" } else { "differ" };
        let elements = if count == 1 { "element" } else { "elements" };
        text.push_str(&format!("{prefix}{differing} of {count} {elements} {differ}\n"));
        for (what, found) in self.found(findings) {
            let place = self.place(found.place);
            let [a, b] = self.values(found).map(|value| printable(&value).into_owned());
            let difference = match what {
                "first" => String::new(),
                _ => format!(" {}", found.difference),
            };
            let label = format!("{what}{difference}");
            text.push_str(&format!("  {label} at {}: {a} and {b}\n", AsList(&place)));
        }
        text
    }

    /// What is worth showing of the findings.
    fn found<'a>(&self, findings: &'a Findings) -> Vec<(&'static str, &'a Largest)> {
        let first = findings.first.iter().map(|found| ("first", found));
        let absolute = findings.absolute.iter().map(|found| ("largest absolute difference", found));
        let relative = findings.relative.iter().map(|found| ("largest relative difference", found));
        first.chain(absolute).chain(relative).collect()
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "same": !self.differs(),
            "shapes": self.shapes,
            "dtypes": self.dtypes.each_ref().map(ToString::to_string),
        });
        let Some(findings) = &self.findings else { return value };
        value["elements"] = self.count().into();
        value["differing"] = findings.differing.into();
        for (what, found) in self.found(findings) {
            let [a, b] = self.values(found);
            let mut entry = Map::new();
            if what != "first" {
                let difference = match found.difference.is_finite() {
                    true => json!(found.difference),
                    false => json!("Infinity"),
                };
                entry.insert("difference".to_owned(), difference);
            }
            entry.insert("place".to_owned(), json!(self.place(found.place)));
            entry.insert("values".to_owned(), json!([a, b]));
            value[what.replace(' ', "_")] = Value::Object(entry);
        }
        value
    }
}
