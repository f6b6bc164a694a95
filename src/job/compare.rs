//! Comparing tensors of two inputs, in one pass over both.
//!
//! One input leads: its bytes are scanned in the way that slices are copied, and the same elements of the other input are
//! read to be compared. The leading input is the one whose bytes are in the less convenient order, because the engine
//! cuts pieces to suit it; rows of the other input are contiguous.
//! Where both tensors have the same chunks, the same chunk is decoded at about the same time. Where
//! chunks differ, the other tensor is put in order in scratch.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::rename::{NewName, rename};
use super::statistics::Chosen;
use crate::compare::{Comparer, Findings, LargeElement, Rule, check_held, same_dtype};
use crate::dtype::{DType, NpyType};
use crate::error::{Cause, Error, Fault};
use crate::execute::{Progress, Workers};
use crate::input::{Bytes, Input, SelectFault, Transform};
use crate::job::copy::{Writing, scan};
use crate::print;
use crate::region::{OpenIndex, RegionReader};
use crate::runs::unravel_index;
use crate::shape::{Order, Transposition};
use crate::sink::WriteOrder;
use crate::tensor::TensorInfo;

pub(super) struct Comparison {
    chosen: [Chosen; 2],
    comparer: Comparer,
    /// For bytes in Fortran order, each axis from the last to the first: its length, and the number
    /// of elements that a step along it is in C order.
    axes: Vec<(u64, u64)>,
}

impl Comparison {
    /// Compare selections of the same shape, both read in this memory order.
    pub(super) fn new(chosen: [Chosen; 2], comparer: Comparer, order: Order) -> Comparison {
        let shape = &chosen[0].shape;
        let mut step = 1;
        let mut axes: Vec<(u64, u64)> = Vec::new();
        for &len in shape.iter().rev() {
            axes.push((len, step));
            // may overflow only if an axis has length 0: then the step is not used
            step = step.wrapping_mul(len);
        }
        if order == Order::C {
            axes.clear();
        }
        Comparison { chosen, comparer, axes }
    }

    pub(super) fn bytes(&self, side: usize) -> u64 {
        self.chosen.get(side).map_or(0, Chosen::bytes)
    }

    /// Readers of both tensors, and the function that numbers an element in C order by its number
    /// in the order of the bytes, for the findings.
    pub(super) fn readers(
        &self,
        inputs: [&mut Input; 2],
        position: u64,
    ) -> Result<([RegionReader<'_>; 2], u64), Error> {
        let first = RegionReader::of_few(inputs[0], self.chosen[0].region.as_ref())?;
        let second = RegionReader::of_few(inputs[1], self.chosen[1].region.as_ref())?;
        let mut number = 0;
        let mut along = 1;
        for &(len, step) in self.axes.iter().rev() {
            number += position / step % len * along;
            along *= len;
        }
        let number = if self.axes.is_empty() { position } else { number };
        Ok(([first, second], number))
    }

    /// Whether elements are so large that the findings do not store their bytes.
    pub(super) fn is_large(&self) -> bool {
        self.comparer.is_large()
    }

    /// The number of an element in C order, by its number in the order of the bytes.
    fn position(&self, number: u64) -> u64 {
        if self.axes.is_empty() {
            return number;
        }
        let lens = self.axes.iter().rev().map(|(len, _)| *len);
        let steps = self.axes.iter().rev().map(|(_, step)| step);
        unravel_index(lens, number).zip(steps).map(|(index, step)| index * step).sum()
    }
}

/// Compare each pair, with these workers; `second_leads` is whether the second input leads.
pub(super) fn compare(
    inputs: [&mut Input; 2],
    comparisons: &[Comparison],
    second_leads: bool,
    workers: &Workers,
    progress: &Progress,
) -> Result<Vec<Findings>, Error> {
    if comparisons.is_empty() {
        return Ok(Vec::new());
    }
    let [mut leading, mut following] = inputs;
    if second_leads {
        std::mem::swap(&mut leading, &mut following);
    }
    let any_large = comparisons.iter().any(Comparison::is_large);
    // a worker holds an element of both sides
    let workers = if any_large { &Workers::new(1) } else { workers };
    if comparisons.len() > 1 || any_large {
        // the pairs may be in another order than the tensors of a pipe, and large elements are read again
        leading.spool_watched(progress)?;
    }
    let bytes = following.spool_watched(progress)?;
    let mut at = 0;
    let mut takes = Vec::new();
    let mut pairs = Vec::new();
    for pair in comparisons {
        let [leads, follows] =
            [second_leads, !second_leads].map(|it| &pair.chosen[usize::from(it)]);
        takes.push(leads.take(at));
        let [leads_by, region] = [leads, follows].map(|chosen| chosen.region.as_ref());
        let source = Arc::clone(&bytes);
        let other = RegionReader::beside(
            leads_by,
            following.location(),
            source,
            region,
            workers,
            progress,
        )?;
        pairs.push(Other { pair, other, at, findings: Mutex::default() });
        at += leads.bytes();
    }
    let counterpart = Counterpart::default();
    let look = |offset: u64, bytes: &[u8]| {
        let number = pairs.partition_point(|pair| pair.at <= offset).saturating_sub(1);
        let Some(Other { pair, other, at, findings }) = pairs.get(number) else { return Ok(()) };
        let start = offset - at;
        let mut sizes = pair.comparer.itemsizes().map(|size| (size as u64).max(1));
        if second_leads {
            sizes.reverse();
        }
        let [own, theirs] = sizes;
        let first = start / own;
        let count = bytes.len() as u64 / own;
        counterpart.read(other, first * theirs, (count * theirs) as usize, |theirs| {
            let (a, b) = if second_leads { (theirs, bytes) } else { (bytes, theirs) };
            let mut found = Findings::default();
            pair.comparer.compare(a, b, |number| pair.position(first + number), &mut found);
            if found.differing > 0 {
                findings.lock().unwrap_or_else(PoisonError::into_inner).merge(found);
            }
        })
    };
    let copy = |job: &Writing<'_>| job.copy(leading, &takes);
    scan(WriteOrder::Any, &takes, workers, progress, look, copy)?;
    bytes.verify().map_err(|error| Error::file(following.location(), error))?;
    let findings =
        |pair: Other<'_>| pair.findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(pairs.into_iter().map(findings).collect())
}

/// The tensor of the input that does not lead.
struct Other<'a> {
    pair: &'a Comparison,
    other: RegionReader<'a>,
    /// The position of the tensor's first byte in the bytes of all pairs.
    at: u64,
    findings: Mutex<Findings>,
}

/// A reader of the bytes that scanned bytes are compared with. It holds the buffers that no worker uses at the moment:
/// pairs of a buffer for the bytes, and one for reading them.
#[derive(Default)]
pub(super) struct Counterpart(Mutex<Vec<(Vec<u8>, Vec<u8>)>>);

impl Counterpart {
    /// Pass `len` bytes of a region, from position `start` on, to `compare`. The region's source is verified after the
    /// last of them.
    pub(super) fn read(
        &self,
        from: &RegionReader<'_>,
        start: u64,
        len: usize,
        compare: impl FnOnce(&[u8]),
    ) -> Result<(), Error> {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut there, mut scratch) = spare().pop().unwrap_or_default();
        there.resize(len, 0);
        from.read_unverified(start, &mut scratch, &mut there)?;
        compare(&there);
        spare().push((there, scratch));
        Ok(())
    }
}

pub struct CompareOptions<'a> {
    /// Names or globs of the tensors; all if empty.
    pub tensors: Vec<String>,
    /// The dtypes, shapes or fields that the tensors of both inputs are read as.
    pub transform: Transform,
    pub index: OpenIndex<'a>,
    /// New names of tensors of the first input.
    pub renames: Vec<NewName>,
    pub rule: Rule,
    /// Whether dtypes must be the same even if the rule has a tolerance.
    pub dtypes: bool,
    pub workers: Workers,
}

pub struct Comparing {
    inputs: [Input; 2],
    only: [Vec<Option<String>>; 2],
    tensors: Vec<Compared>,
    /// The comparisons of tensors whose elements can be compared, in the same order.
    comparisons: Vec<Comparison>,
    workers: Workers,
}

pub struct Differences {
    /// The names of the tensors that only one input has.
    pub only: [Vec<Option<String>>; 2],
    pub tensors: Vec<Compared>,
}

pub struct Compared {
    /// The name, if either tensor has one.
    pub name: Option<String>,
    pub shapes: [Vec<u64>; 2],
    pub dtypes: [DType; 2],
    /// The findings about the elements, if they could be compared.
    pub findings: Option<Findings>,
    /// For findings whose elements are too large to be stored: the position, and the beginnings of both elements as text.
    pub large: Vec<(u64, [String; 2])>,
}

impl Differences {
    pub fn any(&self) -> bool {
        self.only.iter().any(|names| !names.is_empty())
            || self.tensors.iter().any(Compared::differs)
    }
}

impl Compared {
    pub fn differs(&self) -> bool {
        self.findings.as_ref().is_none_or(|findings| findings.differing > 0)
    }
}

const SHOWN: usize = 1000;

impl Comparing {
    /// Pair the tensors of both inputs: those of the same name, after the first input's are
    /// renamed, or the only tensor of each, where one has no name.
    pub fn new(inputs: [Input; 2], options: &CompareOptions<'_>) -> Result<Comparing, Error> {
        let [mut a, mut b] = inputs;
        rename_tensors(&mut a, &options.renames)?;
        if a.exclude.iter().any(|pattern| a.lacks(pattern) && b.lacks(pattern)) {
            // a name that neither input has is a mistake
            if a.is_nameless() { &b } else { &a }.excluded()?;
        }
        a.may_lack_excluded = true;
        b.may_lack_excluded = true;
        let (pairs, only) = pair(&a, &b, &options.tensors)?;
        let numbers = |side: usize| pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>();
        a.transform(&options.transform, &numbers(0))?;
        b.transform(&options.transform, &numbers(1))?;
        let several = pairs.len() > 1;
        let mut tensors = Vec::new();
        let mut comparisons = Vec::new();
        for [of_a, of_b] in pairs {
            let both = &[a.contents.tensors.at(of_a), b.contents.tensors.at(of_b)];
            let name = both[0].name.clone().or_else(|| both[1].name.clone());
            let prepared = prepare(both, options);
            let (shapes, comparison) =
                prepared.map_err(|cause| Error::from(cause).of_tensor(name.as_deref(), several))?;
            let dtype = |side: usize| match &comparison {
                Some(Comparison { chosen, .. }) => chosen[side].dtype.clone(),
                None => both[side].dtype.clone(),
            };
            let dtypes = [dtype(0), dtype(1)];
            let findings = comparison.is_some().then(Findings::default);
            comparisons.extend(comparison);
            tensors.push(Compared { name, shapes, dtypes, findings, large: Vec::new() });
        }
        let workers = options.workers.clone();
        Ok(Comparing { inputs: [a, b], only, tensors, comparisons, workers })
    }

    pub fn bytes(&self) -> u64 {
        let [a, b] = &self.inputs;
        let side = usize::from(second_leads(a, b));
        self.comparisons.iter().map(|comparison| comparison.bytes(side)).sum()
    }

    /// Compare the elements, in one pass over both inputs.
    pub fn run(self, progress: &Progress) -> Result<Differences, Error> {
        let Comparing { inputs: [mut a, mut b], only, mut tensors, comparisons, workers } = self;
        let second_leads = second_leads(&a, &b);
        let found = compare([&mut a, &mut b], &comparisons, second_leads, &workers, progress)?;
        let compared = tensors.iter_mut().filter(|tensor| tensor.findings.is_some());
        for ((tensor, pair), found) in compared.zip(&comparisons).zip(found) {
            let shown = found.first.iter().chain(&found.first_not_finite);
            for found in shown.filter(|_| pair.is_large()) {
                let (readers, number) = pair.readers([&mut a, &mut b], found.position)?;
                let mut texts = [String::new(), String::new()];
                for ((text, reader), dtype) in texts.iter_mut().zip(readers).zip(&tensor.dtypes) {
                    let mut element = vec![0; (dtype.item_bits() / 8) as usize];
                    let start = number * element.len() as u64;
                    reader.read(start, &mut Vec::new(), &mut element)?;
                    *text = print::beginning(dtype, &element, SHOWN);
                }
                tensor.large.push((found.position, texts));
            }
            tensor.findings = Some(found);
        }
        Ok(Differences { only, tensors })
    }
}

/// The numbers of the tensors of each pair, and the names of the tensors of each input without a
/// partner.
type Paired = (Vec<[usize; 2]>, [Vec<Option<String>>; 2]);

/// Pair the tensors that the patterns choose.
fn pair(a: &Input, b: &Input, patterns: &[String]) -> Result<Paired, Error> {
    let [of_a, of_b] = [find(a, patterns)?, find(b, patterns)?];
    // a name that neither input has is a mistake; the tensor without a name has none of them
    let has = |input: &Input, found: &[usize]| !input.is_nameless() && !found.is_empty();
    let chooses = !patterns.is_empty() || !a.exclude.is_empty();
    if chooses && !has(a, &of_a) && !has(b, &of_b) {
        if a.is_nameless() { b } else { a }.find(patterns)?;
    }
    fn name(input: &Input, number: usize) -> Option<&str> {
        input.contents.tensors.name(number)
    }
    if let ([first], [second]) = (of_a.as_slice(), of_b.as_slice())
        && (name(a, *first).is_none() || name(b, *second).is_none())
    {
        return Ok((vec![[*first, *second]], [vec![], vec![]]));
    }
    let mut pairs = Vec::new();
    let mut only = [vec![], vec![]];
    let mut by_name: HashMap<_, _> = of_b.iter().map(|&number| (name(b, number), number)).collect();
    for &first in &of_a {
        match by_name.remove(&name(a, first)) {
            Some(second) => pairs.push([first, second]),
            None => only[0].push(name(a, first).map(str::to_owned)),
        }
    }
    let missing = of_b.iter().filter(|&&second| by_name.contains_key(&name(b, second)));
    only[1] = missing.map(|&second| name(b, second).map(str::to_owned)).collect();
    Ok((pairs, only))
}

fn rename_tensors(input: &mut Input, renames: &[NewName]) -> Result<(), Error> {
    if renames.is_empty() {
        return Ok(());
    }
    let names = Vec::from_iter(input.contents.tensors.names());
    let renamed = rename(&names, renames, &input.notes).map_err(|fault| match fault {
        SelectFault::RenameNotFound { old, .. } => {
            let names = names.iter().map(|name| name.unwrap_or("-").to_owned()).collect();
            input.failed(SelectFault::NotFound { pattern: old, names, links: false })
        }
        fault => fault.into(),
    })?;
    let tensors = Arc::make_mut(&mut input.contents.tensors);
    for (number, name) in renamed {
        let tensor = tensors.at(number);
        tensors.replace(number, &TensorInfo { name: Some(name), ..tensor });
    }
    let mut names = HashSet::new();
    let twice = input.contents.tensors.names().flatten().find(|name| !names.insert(*name));
    twice.map_or(Ok(()), |twice| Err(input.failed(SelectFault::SameNewName(twice.to_owned()))))
}

/// The tensors that the patterns choose, if any; a tensor without a name is chosen by all patterns.
fn find(input: &Input, patterns: &[String]) -> Result<Vec<usize>, Error> {
    let tensors = &input.contents.tensors;
    if patterns.is_empty() || input.is_nameless() {
        let excluded = input.excluded()?;
        let is_meant = |number: &usize| excluded.binary_search(number).is_err();
        input.note_unreadable((tensors.len()..input.named_count()).filter(is_meant))?;
        return Ok((0..tensors.len()).filter(is_meant).collect());
    }
    let mut found = Vec::new();
    for pattern in patterns {
        match input.find(std::slice::from_ref(pattern)) {
            Ok(numbers) => found.extend(numbers),
            Err(error) => match error.cause.downcast_ref() {
                Some(
                    SelectFault::NotFound { .. }
                    | SelectFault::NoTensors
                    | SelectFault::NothingLeft,
                ) => {}
                _ => return Err(error),
            },
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The shapes of the selections and, if these are the same and the elements comparable, the
/// comparison.
fn prepare(
    tensors: &[TensorInfo; 2],
    options: &CompareOptions<'_>,
) -> Result<([Vec<u64>; 2], Option<Comparison>), Cause> {
    let choose = |tensor, order| Chosen::of(tensor, options.index, &Transposition::None, order);
    let mut both = [choose(&tensors[0], Order::C)?, choose(&tensors[1], Order::C)?];
    let [a, b] = &both;
    let same_dtype = same_dtype(&a.dtype, &b.dtype);
    let shapes = if same_dtype {
        [a.shape.clone(), b.shape.clone()]
    } else {
        // one may count blocks, and the other not
        let [a, b] = tensors;
        [options.index.element_shape(a)?, options.index.element_shape(b)?]
    };
    if shapes[0] != shapes[1] || options.dtypes && !same_dtype {
        return Ok((shapes, None));
    }
    check_held(&a.dtype)?;
    let comparer = match Comparer::new(&a.dtype, &b.dtype, options.rule) {
        Some(comparer) => comparer,
        None if same_dtype && both.iter().all(Chosen::is_whole_bytes) => {
            // elements that share bytes: the bytes are compared
            let byte = DType::Npy(NpyType::Void(1, None));
            let comparer = Comparer::new(&byte, &byte, Rule::default());
            let comparer = comparer.ok_or_else(|| CompareFault(a.dtype.clone()))?;
            both.iter_mut().for_each(|one| one.see_bytes(&byte));
            let shapes = both.each_ref().map(|one| one.shape.clone());
            return Ok((shapes, Some(Comparison::new(both, comparer, Order::C))));
        }
        None if same_dtype => return Err(CompareFault(a.dtype.clone()).into()),
        None => return Ok((shapes, None)),
    };
    let fortran = tensors.iter().all(|tensor| tensor.order() == Order::F);
    let mut order = Order::C;
    if fortran && both.iter().all(|one| one.region.strided().is_some()) {
        // both in the order of their files: selections are contiguous where possible
        order = Order::F;
        both = [choose(&tensors[0], order)?, choose(&tensors[1], order)?];
    }
    Ok((shapes, Some(Comparison::new(both, comparer, order))))
}

/// Whether the second input leads: because it is read once, or has chunks, or its elements lie in
/// another order.
fn second_leads(a: &Input, b: &Input) -> bool {
    let is_pipe = |input: &Input| matches!(input.bytes, Bytes::Stream(_));
    let is_fortran = |input: &Input| {
        let tensors = &input.contents.tensors;
        !tensors.is_empty() && tensors.iter().all(|tensor| tensor.order() == Order::F)
    };
    let is_chunked =
        |input: &Input| input.contents.tensors.iter().any(|tensor| tensor.chunk_shape().is_some());
    let [of_a, of_b] = [a, b].map(is_chunked);
    let suits_better = if of_a == of_b { is_fortran(b) && !is_fortran(a) } else { of_b };
    is_pipe(b) || !is_pipe(a) && suits_better
}

#[derive(Debug, thiserror::Error)]
#[error("elements of dtype {0} cannot be compared")]
pub struct CompareFault(pub DType);

impl Fault for CompareFault {}

impl Fault for LargeElement {}
