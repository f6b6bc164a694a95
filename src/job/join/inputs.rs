//! The inputs of a join: opened, checked against the first one, and opened again when they are
//! copied.

use crate::shape::AsTuple;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cast::{Cast, CastError, Casting, result_type};
use crate::dtype::DType;
use crate::error::{Cause, ContainerError, Fault};
use crate::execute::{Conversion, Workers};
use crate::format::Tensor;
use crate::index::resolve::Selection;
use crate::input::{Bytes, Input, Location};
use crate::input::{OpenOptions, open};
use crate::job::axes::Axes;
use crate::job::casts::Casts;
use crate::job::edit::conversion::conversion;
use crate::job::parallel;
use crate::job::select::{Select, Selected, select};
use crate::output::LayoutFault;
use crate::output::{Item, Output, Prepared};
use crate::region::OpenIndex;
use crate::shape::{Order, normalize_axis};
use crate::source::IoMode;

/// As many descriptors as all inputs together may take to stay open.
const HELD: usize = 96;

/// Files of fewer bytes are read rather than mapped, which costs more than reading them once.
const SMALL: u64 = 1 << 20;

/// As many inputs as are looked at between two checks for the first that does not fit.
const CHUNK: usize = 4096;

/// The kind of axis along which tensors are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// One that they have (np.concatenate).
    Existing,
    /// A new one (np.stack).
    New,
}

/// How inputs are joined.
pub struct JoinOptions<'a> {
    /// The kind of axis.
    pub along: Along,
    /// Which axis, for each tensor.
    pub axes: Axes,
    /// How the inputs are opened; names or globs of the tensors that are joined, and whether the
    /// others are kept, stand here too.
    pub open: OpenOptions,
    /// Names of fields, where those are taken in place of structures.
    pub fields: Option<String>,
    /// What is taken of every tensor before it is joined.
    pub index: OpenIndex<'a>,
    /// What the elements of joined tensors are cast to.
    pub casts: Casts,
    /// How many inputs are opened at a time.
    pub workers: Workers,
}

impl JoinOptions<'_> {
    /// Open an input, and take the fields of its tensors that are joined.
    fn open(&self, location: &Location, io: IoMode) -> Result<Input, ContainerError> {
        let mut input = open(location, &OpenOptions { io, ..self.open.clone() })?;
        if self.fields.is_some() {
            let numbers = input.find(&self.open.tensors)?;
            input.take_fields(self.fields.as_deref(), &numbers)?;
        }
        Ok(input)
    }
}

/// Inputs that fit together.
pub(super) struct Joined<'a> {
    pub(super) options: JoinOptions<'a>,
    pub(super) locations: &'a [Location],
    /// The first input, pipes, and where there are few, all others.
    pub(super) held: BTreeMap<usize, Input>,
    /// The files of those inputs that are sharded checkpoints.
    pub(super) shards: BTreeMap<usize, Vec<PathBuf>>,
    /// The tensors of the output, in the order of the first input.
    pub(super) tensors: Vec<Target>,
    /// The shapes that the index is applied to, where its lists are in files.
    indexed_shapes: BTreeSet<Vec<u64>>,
    /// The dtypes of tensors that are of another type than those of the first input.
    other_dtypes: Vec<DType>,
}

/// A tensor of the output.
pub(super) struct Target {
    /// Its number in the first input.
    pub(super) number: usize,
    /// How it is joined; `None` for a tensor that is taken once.
    pub(super) join: Option<JoinedTensor>,
}

/// A tensor that is joined.
pub(super) struct JoinedTensor {
    /// The shape of the first input's, after the index, and with the new axis of a stack.
    shape: Vec<u64>,
    /// The axis along which it is joined.
    axis: usize,
    /// Where each input ends along that axis; empty where all have length 1.
    ends: Vec<u64>,
    /// The length of the result.
    total: u64,
}

/// What is copied of one tensor of one input.
pub(super) struct Chosen {
    /// The number of the tensor in its input.
    pub(super) number: usize,
    pub(super) selection: Selection,
    pub(super) step: Step,
    /// Its length along the joined axis.
    len: u64,
}

/// What the elements of an input go through.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// What those of the first do, after so many bytes were reversed together: of the same type, in
    /// another byte order at most.
    AsFirst(usize),
    /// A cast of their own, to the dtype that those of the first have afterwards.
    Own(Cast),
}

/// An input that is held, or was opened again.
pub(super) enum Lent<'a> {
    Held(&'a Input),
    Again(Box<Input>),
}

impl Deref for Lent<'_> {
    type Target = Input;

    fn deref(&self) -> &Input {
        match self {
            Lent::Held(input) => input,
            Lent::Again(input) => input,
        }
    }
}

impl<'a> Joined<'a> {
    /// Read the headers of all inputs, and check that they fit together.
    ///
    /// # Errors
    /// [`JoinFault`], for the first input that does not fit; those of [`open`].
    pub(super) fn open(
        locations: &'a [Location],
        options: JoinOptions<'a>,
    ) -> Result<Joined<'a>, ContainerError> {
        let location = locations.first().ok_or(JoinFault::Nothing)?;
        if locations.iter().filter(|location| **location == Location::Stdin).count() > 1 {
            return Err(JoinFault::StdinTwice.into());
        }
        let first = options.open(location, options.open.io)?;
        let cost = descriptors(&first);
        let tensors = targets(&first, &options)?;
        let indexed_shapes = BTreeSet::new();
        let shards = shards(&first).map(|files| (0, files)).into_iter().collect();
        let held = BTreeMap::new();
        let other_dtypes = Vec::new();
        let mut joined =
            Joined { options, locations, held, shards, tensors, indexed_shapes, other_dtypes };
        let joins = joined.tensors.iter().filter(|target| target.join.is_some());
        let shapes = joins.map(|target| first.contents.tensors.at(target.number).shape);
        joined.indexed_shapes = shapes.collect();
        let speaks = joined.options.open.raw.speaks_of(&first);
        joined.held.insert(0, first);
        let keep = locations.len().saturating_mul(cost) <= HELD;
        let speaks = joined.look_at_all(keep)? || speaks;
        joined.options.open.raw.check_any(speaks)?;
        if keep && joined.held.values().map(descriptors).sum::<usize>() > HELD {
            joined.held.retain(|&number, input| number == 0 || is_stream(input));
        }
        Ok(joined)
    }

    /// Look at all inputs but the first, and keep those that cannot be opened again, or all. Whether
    /// one of them is such that what is said of raw bytes speaks of it.
    fn look_at_all(&mut self, keep: bool) -> Result<bool, ContainerError> {
        let count = self.locations.len();
        let speaks = AtomicBool::new(false);
        for start in (1..count).step_by(CHUNK) {
            let chunk = CHUNK.min(count - start);
            let seen = parallel::each(chunk, &self.options.workers, |at| {
                let number = start + at;
                let io = if keep { self.options.open.io } else { IoMode::Read };
                let input = self.open_one(number, io)?;
                if self.options.open.raw.speaks_of(&input) {
                    speaks.store(true, Ordering::Relaxed);
                }
                let chosen = self.choose(number, &input)?;
                let lens: Vec<u64> = chosen.iter().map(|chosen| chosen.len).collect();
                let dtypes: Vec<DType> = chosen.iter().filter_map(Chosen::other_dtype).collect();
                let shapes: Vec<Vec<u64>> = match self.options.index.lists.is_empty() {
                    true => Vec::new(),
                    false => chosen.into_iter().map(|one| one.selection.source_shape).collect(),
                };
                let shards = shards(&input);
                let kept = (keep || is_stream(&input)).then(|| Box::new(input));
                Ok::<_, ContainerError>((lens, dtypes, shapes, shards, kept))
            })?;
            for (at, (lens, dtypes, shapes, shards, input)) in seen.into_iter().enumerate() {
                for dtype in dtypes {
                    if !self.other_dtypes.contains(&dtype) {
                        self.other_dtypes.push(dtype);
                    }
                }
                let joins = self.tensors.iter_mut().filter_map(|target| target.join.as_mut());
                for (join, len) in joins.zip(lens) {
                    let before = join.total;
                    join.total = before.checked_add(len).ok_or(LayoutFault::TooLarge)?;
                    if join.ends.is_empty() && len == 1 {
                        continue;
                    }
                    if join.ends.is_empty() {
                        join.ends = (1..=before).collect();
                    }
                    join.ends.push(join.total);
                }
                self.indexed_shapes.extend(shapes);
                self.shards.extend(shards.map(|files| (start + at, files)));
                if let Some(input) = input {
                    self.held.insert(start + at, *input);
                }
            }
        }
        Ok(speaks.into_inner())
    }

    fn open_one(&self, number: usize, io: IoMode) -> Result<Input, ContainerError> {
        let io = if self.options.open.io == IoMode::Auto { io } else { self.options.open.io };
        self.options.open(&self.locations[number], io)
    }

    /// Look at all positions in the files of lists, for every shape of an input.
    ///
    /// # Errors
    /// The first bad position of the first list that has one, for the smallest shape that it does not
    /// fit.
    pub(super) fn check_lists(&self) -> Result<(), ContainerError> {
        let index = &self.options.index;
        if index.lists.is_empty() {
            return Ok(());
        }
        self.indexed_shapes.iter().try_for_each(|shape| {
            let selection = index.resolve(shape)?;
            index.lists.check(&selection)
        })
    }

    /// The first input, whose names and metadata the output has.
    pub(super) fn first(&self) -> &Input {
        &self.held[&0]
    }

    /// What the elements of joined tensors are cast to.
    pub(super) fn casts(&self) -> &Casts {
        &self.options.casts
    }

    /// The dtypes of the tensors that are joined.
    pub(super) fn dtypes(&self) -> impl Iterator<Item = DType> + Clone {
        let joined = self.tensors.iter().filter(|target| target.join.is_some());
        let first = joined.map(|target| self.first().contents.tensors.at(target.number).dtype);
        first.chain(self.other_dtypes.iter().cloned())
    }

    /// Whether the elements of some inputs go through a cast of their own.
    pub(super) fn is_mixed(&self) -> bool {
        !self.other_dtypes.is_empty()
    }

    /// The input with that number, opened again where it is not held.
    pub(super) fn lend(&self, number: usize) -> Result<Lent<'_>, ContainerError> {
        match self.held.get(&number) {
            Some(input) => Ok(Lent::Held(input)),
            None => {
                let path = self.locations[number].path();
                let small = path.and_then(|path| path.metadata().ok());
                let small = small.is_some_and(|metadata| metadata.len() < SMALL);
                let io = if small { IoMode::Read } else { IoMode::Auto };
                Ok(Lent::Again(Box::new(self.open_one(number, io)?)))
            }
        }
    }

    /// The same for what is to be copied, with what is copied of each joined tensor.
    pub(super) fn lend_checked(
        &self,
        number: usize,
    ) -> Result<(Lent<'_>, Vec<Chosen>), ContainerError> {
        let input = self.lend(number)?;
        let chosen = self.choose(number, &input)?;
        let joins = self.tensors.iter().filter_map(|target| target.join.as_ref());
        if joins.zip(&chosen).any(|(join, chosen)| join.len(number) != chosen.len) {
            return Err(ContainerError::file(&input.location, JoinFault::Changed));
        }
        Ok((input, chosen))
    }

    /// What is joined of an input, checked against the first one.
    fn choose(&self, number: usize, input: &Input) -> Result<Vec<Chosen>, ContainerError> {
        let failed = |fault: JoinFault| ContainerError::file(&input.location, fault);
        let ours = input.find(&self.options.open.tensors)?;
        let joins = || self.tensors.iter().filter(|target| target.join.is_some());
        let first = &self.held[&0].contents.tensors;
        let by_name = !self.options.open.tensors.is_empty();
        let names: BTreeSet<_> = joins().map(|target| first.name(target.number)).collect();
        let surplus = |&number: &usize| by_name && !names.contains(&name(input, number));
        if let Some(surplus) = ours.iter().copied().find(surplus) {
            let name = name(input, surplus).unwrap_or("-").to_owned();
            return Err(failed(JoinFault::Surplus { number, name }));
        }
        let mut all = Vec::with_capacity(ours.len());
        for target in joins() {
            let Some(join) = &target.join else { continue };
            let theirs = &first.at(target.number);
            let found = match by_name {
                true => ours.iter().copied().find(|&at| name(input, at) == theirs.name.as_deref()),
                false => ours.first().copied(),
            };
            let Some(found) = found else {
                let name = theirs.name.clone().unwrap_or_default();
                return Err(failed(JoinFault::Missing { number, name }));
            };
            let several = names.len() > 1;
            let tensor = &input.contents.tensors.at(found);
            let chosen = self.fit(number, (found, tensor), (theirs, join));
            all.push(chosen.map_err(|cause| input.failed_tensor(tensor, several, cause))?);
        }
        Ok(all)
    }

    /// Check the dtype and the shape of a tensor against those of the first input.
    fn fit(
        &self,
        number: usize,
        (found, tensor): (usize, &Tensor),
        (theirs, join): (&Tensor, &JoinedTensor),
    ) -> Result<Chosen, Cause> {
        let step = match conversion(&tensor.dtype, &theirs.dtype) {
            Ok(Conversion::SwapBytes { width }) => Step::AsFirst(width),
            Ok(_) => Step::AsFirst(1),
            Err(_) => Step::Own(self.own_cast(number, &tensor.dtype, &theirs.dtype)?),
        };
        let selection = self.options.index.resolve(&tensor.shape)?;
        let (shape, ours) = (selection.shape(), &join.shape);
        let fits = match self.options.along {
            Along::New => {
                let mut first = ours.clone();
                first.remove(join.axis);
                (shape != first).then_some((first, None))
            }
            Along::Existing => {
                let differs = |(axis, (a, b)): (usize, (&u64, &u64))| axis != join.axis && a != b;
                let misfit =
                    shape.len() != ours.len() || shape.iter().zip(ours).enumerate().any(differs);
                misfit.then(|| (ours.clone(), Some(join.axis)))
            }
        };
        if let Some((first, axis)) = fits {
            return Err(JoinFault::Shape { number, shape, first, axis }.into());
        }
        let len = match self.options.along {
            Along::New => 1,
            Along::Existing => shape[join.axis],
        };
        Ok(Chosen { number: found, selection, step, len })
    }

    /// The cast of elements of another type than those of the first input, to what those become.
    fn own_cast(&self, number: usize, dtype: &DType, first: &DType) -> Result<Cast, Cause> {
        let casts = &self.options.casts;
        let after = |dtype: &DType| -> Result<DType, CastError> {
            Ok(casts.of(dtype)?.map_or_else(|| dtype.clone(), Cast::to))
        };
        let (ours, theirs) = (after(dtype)?, after(first)?);
        let is_whole = |dtype: &DType| dtype.item_bits().is_multiple_of(8);
        if conversion(&ours, &theirs).is_ok() && is_whole(dtype) && is_whole(first) {
            return Ok(match casts.of(dtype)? {
                Some(cast) => cast.with_order_of(&theirs),
                None => Cast::new(dtype, &theirs, Casting::Unsafe)?,
            });
        }
        let can_be = |common: &DType| {
            let can =
                |dtype| Cast::new(dtype, common, Casting::SameKind).is_ok() && is_whole(dtype);
            can(dtype) && can(first)
        };
        let common = result_type(&ours, &theirs).filter(can_be);
        let (dtype, first) = (dtype.clone(), first.clone());
        Err(JoinFault::DType { number, dtype, first, common }.into())
    }

    /// Give the tensors of the output their places.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault), and those of [`Output::prepare`];
    /// [`JoinFault::CutsByte`].
    pub(super) fn prepare(&self, output: &Output) -> Result<Prepared, ContainerError> {
        let first = self.first();
        let patterns = self.options.open.tensors.clone();
        let select_all =
            Select { patterns, keep_rest: self.options.open.rest, ..Select::default() };
        let selected = select(first, &select_all, output)?;
        let mut preparation = output.begin_preparing(Some(first))?;
        let several = selected.len() > 1;
        for (Selected { number, tensor, name, .. }, target) in selected.iter().zip(&self.tensors) {
            let shape = target.join.as_ref().map_or(tensor.shape.clone(), JoinedTensor::result);
            let cast = target.join.as_ref().map(|_| self.options.casts.of(&tensor.dtype));
            let cast = cast.transpose()?.flatten();
            let (dtype, part) = (&tensor.dtype, tensor.part());
            let item = Item { name: &name, dtype, shape, cast, part, number };
            let pushed = preparation.push(&item);
            pushed.map_err(|error| if several { error.of_tensor(&name) } else { error })?;
        }
        let prepared = preparation.finish(&first.contents.metadata)?;
        for target in &self.tensors {
            let bits = first.contents.tensors.at(target.number).dtype.item_bits();
            if let Some(join) = target.join.as_ref().filter(|_| !bits.is_multiple_of(8)) {
                self.check_bytes(join, bits, output.options().order)?;
            }
        }
        Ok(prepared)
    }

    /// Elements smaller than a byte: each row of each input must be whole bytes.
    fn check_bytes(
        &self,
        join: &JoinedTensor,
        item_bits: u64,
        order: Order,
    ) -> Result<(), ContainerError> {
        let (_, inner) = join.rows_and_inner(order);
        let cuts = |number: &usize| {
            let bits = u128::from(join.len(*number)) * u128::from(inner) * u128::from(item_bits);
            bits % 8 != 0
        };
        match (0..self.locations.len()).find(cuts) {
            Some(number) => Err(ContainerError::file(
                &self.locations[number],
                JoinFault::CutsByte { number, item_bits },
            )),
            None => Ok(()),
        }
    }
}

impl Chosen {
    /// The dtype of elements that are of another type than those of the first input.
    fn other_dtype(&self) -> Option<DType> {
        match self.step {
            Step::AsFirst(_) => None,
            Step::Own(cast) => Some(cast.from()),
        }
    }

    /// What its elements go through, where those of the first input go through `first`.
    pub(super) fn conversion(&self, first: Conversion) -> Conversion {
        let cast = match (self.step, first) {
            (Step::AsFirst(1), _) => return first,
            (Step::AsFirst(width), Conversion::None) => {
                return Conversion::swap_bytes(width);
            }
            (Step::AsFirst(_), Conversion::SwapBytes { .. }) => return Conversion::None,
            (Step::AsFirst(_), Conversion::Cast(cast)) => cast.of_swapped(),
            (Step::Own(cast), Conversion::Cast(theirs)) => cast.with_order_of(&theirs.to()),
            (Step::Own(cast), Conversion::SwapBytes { .. }) => cast.to_swapped(),
            (Step::Own(cast), Conversion::None) => cast,
        };
        match cast.swap_width() {
            Some(width) => Conversion::swap_bytes(width),
            None => Conversion::Cast(cast),
        }
    }

    /// How the bytes of a part of it are read, where those of the first input go through `first`:
    /// how many are reversed together, and what all parts that are copied with it go through.
    pub(super) fn part_conversion(&self, first: Conversion) -> (usize, Conversion) {
        match self.step {
            Step::AsFirst(width) => (width, first),
            Step::Own(_) => (1, self.conversion(first)),
        }
    }
}

impl JoinedTensor {
    /// Where an input lies along the joined axis of the result.
    pub(super) fn range(&self, number: usize) -> Range<u64> {
        let start = match number.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(number as u64),
            None => 0,
        };
        start..self.ends.get(number).copied().unwrap_or(start + 1)
    }

    /// The length of an input along the joined axis.
    fn len(&self, number: usize) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    /// The shape of the result.
    fn result(&self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        shape[self.axis] = self.total;
        shape
    }

    /// The number of rows of the result, one for each position on the axes before the joined one in
    /// the order of the output; and how many elements each position on the joined axis has in a row.
    pub(super) fn rows_and_inner(&self, order: Order) -> (u64, u64) {
        let (before, after) = (&self.shape[..self.axis], &self.shape[self.axis + 1..]);
        let (rows, inner) = if order == Order::C { (before, after) } else { (after, before) };
        // a result without elements may have axes of any length
        let product = |lens: &[u64]| lens.iter().fold(1u64, |all, &len| all.saturating_mul(len));
        (product(rows), product(inner))
    }
}

/// The tensors of the output, by what the first input holds.
fn targets(first: &Input, options: &JoinOptions<'_>) -> Result<Vec<Target>, ContainerError> {
    let chosen = first.find(&options.open.tensors)?;
    let axes = options.axes.of_tensors(first, &chosen)?;
    let several = chosen.len() > 1;
    let mut targets = Vec::new();
    for (number, tensor) in first.contents.tensors.iter().enumerate() {
        let join = if let Ok(at) = chosen.binary_search(&number) {
            let join = joined_tensor(&tensor, axes[at], options);
            Some(join.map_err(|cause| first.failed_tensor(&tensor, several, cause))?)
        } else if options.open.rest {
            None
        } else {
            continue;
        };
        targets.push(Target { number, join });
    }
    Ok(targets)
}

/// How a tensor of the first input is joined.
fn joined_tensor(
    tensor: &Tensor,
    asked: i64,
    options: &JoinOptions<'_>,
) -> Result<JoinedTensor, Cause> {
    let mut shape = options.index.resolve(&tensor.shape)?.shape();
    let ndim = match options.along {
        Along::Existing if shape.is_empty() => return Err(JoinFault::NoAxes.into()),
        Along::Existing => shape.len(),
        Along::New => shape.len() + 1,
    };
    let axis = normalize_axis(asked, ndim).ok_or(JoinFault::Axis { axis: asked, ndim })?;
    if options.along == Along::New {
        shape.insert(axis, 1);
    }
    let total = shape[axis];
    let ends = if total == 1 { vec![] } else { vec![total] };
    Ok(JoinedTensor { shape, axis, ends, total })
}

fn name(input: &Input, number: usize) -> Option<&str> {
    input.contents.tensors.name(number)
}

/// Whether an input can be read only once.
pub(super) fn is_stream(input: &Input) -> bool {
    matches!(input.bytes, Bytes::Stream(_)) || input.location == Location::Stdin
}

/// The files of a sharded checkpoint.
fn shards(input: &Input) -> Option<Vec<PathBuf>> {
    input.checkpoint.as_ref().and_then(|_| input.files())
}

/// The descriptors that an input takes: a file, or several, and one for each inflated member.
pub(super) fn descriptors(input: &Input) -> usize {
    let shards = input.checkpoint().map_or(0, |checkpoint| checkpoint.index.files.len());
    1 + shards + input.deflated.len()
}

/// Why inputs do not fit together. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum JoinFault {
    /// There are no inputs.
    #[error("at least one input is needed")]
    Nothing,
    /// Standard input is named twice.
    #[error("standard input can be only one of the inputs")]
    StdinTwice,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// A tensor without axes has none to be joined along.
    #[error("zero-dimensional arrays cannot be concatenated")]
    NoAxes,
    /// Another shape than that of the first input.
    #[error(
        "input {number} has shape {}, which does not fit shape {} of input 0: {}",
        AsTuple(shape), AsTuple(first),
        match axis {
            _ if shape.len() != first.len() => "they need as many axes".to_owned(),
            Some(axis) => format!("they may differ along axis {axis} only"),
            None => "they must be equal".to_owned(),
        }
    )]
    Shape {
        /// The number of the input, from 0.
        number: usize,
        /// The shape of the input, after an index.
        shape: Vec<u64>,
        /// The shape of the first input.
        first: Vec<u64>,
        /// The axis along which they may differ.
        axis: Option<usize>,
    },
    /// Another dtype than that of the first input.
    #[error("input {number} has dtype {dtype}, input 0 has {first}")]
    DType {
        /// The number of the input, from 0.
        number: usize,
        /// The dtype of the input.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
        /// The dtype that both can be cast to (np.result_type), where there is one.
        common: Option<DType>,
    },
    /// A tensor of the first input is missing.
    #[error("input {number} has no tensor {name:?}, which input 0 has")]
    Missing {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that the first input does not have.
    #[error("input {number} has a tensor {name:?}, which input 0 does not have")]
    Surplus {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that is to be taken once differs.
    #[error("input {number} has other bytes than input 0, so that it cannot be taken once")]
    Differs {
        /// The number of the input, from 0.
        number: usize,
    },
    /// Elements smaller than a byte, and a part would not begin on a whole byte.
    #[error("input {number} has {item_bits}-bit elements that do not fill whole bytes here")]
    CutsByte {
        /// The number of the input, from 0.
        number: usize,
        /// Bits an element.
        item_bits: u64,
    },
    /// An input is not what it was when its header was read first.
    #[error("the file was changed while it was being read")]
    Changed,
}

impl Fault for JoinFault {}
