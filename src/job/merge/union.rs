//! The tensors of all inputs, and which of them the output has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::super::rename::{NewName, Rename, rename_some};
use super::super::select::Casts;
use super::MergeFault;
use crate::error::{Cause, Error, FileName};
use crate::execute::Workers;
use crate::format::{TensorInfo, Tensors};
use crate::input::{Input, Location, OpenOptions, Seen, SelectFault, find, take_fields};
use crate::job::inputs::Inputs;
use crate::job::join::JoinFault;
use crate::job::select::check_holds;
use crate::output::{Becomes, Output, Prepared};

pub struct MergeOptions {
    pub open: OpenOptions,
    /// Names or globs of the tensors that are taken; without any, all.
    pub patterns: Vec<String>,
    /// Names or globs of tensors that are left out.
    pub exclude: Vec<String>,
    /// New names, applied one after the other.
    pub renames: Vec<NumberedRename>,
    /// Which of several tensors of one name is taken; without, there may be one.
    pub wins: Option<Precedence>,
    /// Names of fields, where those are taken in place of structures.
    pub fields: Option<String>,
    pub casts: Casts,
    pub workers: Workers,
}

/// A new name for tensors of all inputs or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedRename {
    /// The number of the input, from 0; `None` for all.
    pub input: Option<usize>,
    pub name: NewName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    First,
    Last,
}

pub(super) struct Union<'a> {
    pub(super) inputs: Inputs<'a>,
    pub(super) options: MergeOptions,
    /// All of them, as they are in the inputs; the part of each is the number of its input. Arrays
    /// without a name have the stem of their file.
    tensors: Arc<Tensors>,
    /// The number of the first tensor of each input, and how many there are.
    firsts: Vec<usize>,
    /// Those that the output has, in its order.
    taken: Vec<u32>,
    renamed: HashMap<usize, String>,
    metadata: MetadataUnion<'a>,
    /// The first text that contradicts one of an earlier input.
    contradiction: Option<Error>,
    /// What has a name in an input, and cannot be read.
    unreadable: Vec<UnreadableName>,
}

/// The metadata of several inputs: texts, and where each is from.
#[derive(Default)]
pub(super) struct MetadataUnion<'a> {
    texts: BTreeMap<String, (String, &'a Location)>,
}

impl<'a> MetadataUnion<'a> {
    /// Add those of the next input. Returns the error of the first text that the output has, and that
    /// contradicts one of an earlier input, where no input `wins`.
    pub(super) fn add(
        &mut self,
        location: &'a Location,
        metadata: &BTreeMap<String, String>,
        wins: Option<Precedence>,
        output: &Output,
    ) -> Option<Error> {
        let mut contradiction = None;
        for (key, value) in metadata {
            match (self.texts.get(key), wins) {
                (Some((other, first)), None) if other != value && output.needs_metadata(key) => {
                    contradiction.get_or_insert_with(|| {
                        let [key, value, other] = [key, value, other].map(String::clone);
                        let first = FileName::from(*first);
                        Error::file(location, MergeFault::Metadata { key, value, other, first })
                    });
                }
                (Some(_), None | Some(Precedence::First)) => {}
                (None, _) | (Some(_), Some(Precedence::Last)) => {
                    self.texts.insert(key.clone(), (value.clone(), location));
                }
            }
        }
        contradiction
    }

    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        self.texts.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect()
    }
}

/// What has a name in an input, and cannot be read.
struct UnreadableName {
    name: String,
    is_missing: bool,
    error: Error,
}

struct InputNames {
    tensors: Tensors,
    unreadable: Vec<UnreadableName>,
    metadata: BTreeMap<String, String>,
}

impl InputNames {
    fn new(number: usize, input: &Input, output: &Output) -> InputNames {
        let readable = &input.contents.tensors;
        let tensors = readable.iter().map(|tensor| {
            let name = output.tensor_name(&tensor, &input.location, false);
            TensorInfo { name: Some(name), ..tensor.placed(number, 0) }
        });
        let hidden = input.unreadable().iter().map(|member| (member.name.as_str(), false));
        let missing = (0..input.missing_count()).filter_map(|at| input.missing_named(at));
        let names = hidden.chain(missing.map(|it| (it.name(), true)));
        let unreadable = names.zip(readable.len()..).filter_map(|((name, is_missing), number)| {
            let error = input.refuse_unreadable(number).err()?;
            Some(UnreadableName { name: name.to_owned(), is_missing, error })
        });
        let unreadable = unreadable.collect();
        let mut tensors: Tensors = tensors.collect();
        for (path, annotated) in readable.groups() {
            tensors.annotate_group(path.clone(), annotated.clone());
        }
        InputNames { tensors, unreadable, metadata: input.contents.metadata.clone() }
    }
}

impl<'a> Union<'a> {
    /// Read the headers of all inputs, and find out what the output has of them.
    pub(super) fn open(
        locations: &'a [Location],
        options: MergeOptions,
        output: &Output,
    ) -> Result<Union<'a>, Error> {
        let inputs = Inputs::open(locations, &options.open, Seen::default())?;
        let first = InputNames::new(0, inputs.first(), output);
        let mut tensors = Tensors::default();
        let mut union = Union {
            inputs,
            options,
            tensors: Arc::default(),
            firsts: vec![0],
            taken: Vec::new(),
            renamed: HashMap::new(),
            metadata: MetadataUnion::default(),
            contradiction: None,
            unreadable: Vec::new(),
        };
        union.add(first, &mut tensors, output);
        for numbers in union.inputs.others() {
            let look = |number: usize, input: &Input| Ok(InputNames::new(number, input, output));
            let looked = union.inputs.look(numbers, &union.options.workers, look)?;
            let seen: Vec<InputNames> = union.inputs.keep(looked).collect();
            seen.into_iter().for_each(|seen| union.add(seen, &mut tensors, output));
        }
        union.inputs.all_seen()?;
        union.tensors = Arc::new(tensors);
        let mut chosen = union.chosen()?;
        union.leave_out_unreadable(&mut chosen)?;
        union.name(&chosen)?;
        union.taken = union.winners(&chosen)?;
        let casts = std::mem::take(&mut union.options.casts);
        union.options.casts = casts.of_several(union.taken.len() > 1);
        union.check(output)?;
        union.contradiction.take().map_or(Ok(union), Err)
    }

    fn add(&mut self, seen: InputNames, tensors: &mut Tensors, output: &Output) {
        let number = self.firsts.len() - 1;
        tensors.extend(seen.tensors.iter());
        for (path, annotated) in seen.tensors.groups() {
            if !tensors.groups().contains_key(path) {
                tensors.annotate_group(path.clone(), annotated.clone());
            }
        }
        self.firsts.push(tensors.len());
        self.unreadable.extend(seen.unreadable);
        let location = &self.inputs.locations[number];
        let found = self.metadata.add(location, &seen.metadata, self.options.wins, output);
        self.contradiction = self.contradiction.take().or(found);
    }

    /// The numbers of the tensors that are meant, ascending.
    fn chosen(&self) -> Result<Vec<usize>, Error> {
        let MergeOptions { patterns, exclude, .. } = &self.options;
        let names = self.tensors.names().map(Option::unwrap_or_default);
        let names = names.chain(self.unreadable.iter().map(|hidden| hidden.name.as_str()));
        let all = self.tensors.len() + self.unreadable.len();
        let mut chosen: Vec<usize> =
            if patterns.is_empty() { (0..all).collect() } else { find(names.clone(), patterns)? };
        if chosen.is_empty() {
            return Err(Error::file(&self.inputs.locations[0], SelectFault::NoTensors));
        }
        if !exclude.is_empty() {
            let excluded = find(names, exclude).map_err(SelectFault::of_excluded)?;
            chosen.retain(|number| excluded.binary_search(number).is_err());
        }
        if chosen.is_empty() {
            return Err(SelectFault::NothingLeft.into());
        }
        Ok(chosen)
    }

    /// Leave out what is meant and cannot be read, whose numbers follow those of the tensors; refuse it
    /// where it is named itself, or is all that is meant.
    fn leave_out_unreadable(&mut self, chosen: &mut Vec<usize>) -> Result<(), Error> {
        let count = self.tensors.len();
        let hidden = chosen.split_off(chosen.partition_point(|&number| number < count));
        for hidden in hidden {
            let Some(one) = self.unreadable.get(hidden - count) else { continue };
            let UnreadableName { name, is_missing, error } = one;
            if *is_missing || chosen.is_empty() || self.options.patterns.contains(name) {
                return Err(self.unreadable.swap_remove(hidden - count).error);
            }
            self.options.open.notes.add(format_args!("{error}; left out"));
        }
        Ok(())
    }

    fn name(&mut self, chosen: &[usize]) -> Result<(), SelectFault> {
        let renames = &self.options.renames;
        if renames.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = chosen.iter().map(|&number| self.tensors.name(number)).collect();
        let first = |input: usize| {
            let first = self.firsts.get(input).copied().unwrap_or(self.tensors.len());
            chosen.partition_point(|&number| number < first)
        };
        let of_input = |input: usize| first(input)..first(input.saturating_add(1));
        let of_some = renames.iter().map(|NumberedRename { input, name }| {
            let range = input.map_or(0..chosen.len(), of_input);
            Rename { range, name }
        });
        let renamed = rename_some(&names, &Vec::from_iter(of_some))?;
        self.renamed = renamed.into_iter().map(|(at, name)| (chosen[at], name)).collect();
        Ok(())
    }

    fn name_of(&self, number: usize) -> &str {
        match self.renamed.get(&number) {
            Some(name) => name,
            None => self.tensors.name(number).unwrap_or_default(),
        }
    }

    /// Of several tensors of one name, that of the input which is believed, at the place of the first.
    fn winners(&self, chosen: &[usize]) -> Result<Vec<u32>, Error> {
        let number = |at: &u32| chosen[*at as usize];
        let name = |at: &u32| self.name_of(number(at));
        let mut by_name: Vec<u32> = (0..).take(chosen.len()).collect();
        by_name.sort_unstable_by(|one, other| name(one).cmp(name(other)).then(one.cmp(other)));
        let mut taken: Vec<Option<u32>> =
            chosen.iter().map(|&number| Some(number as u32)).collect();
        let mut twice: Option<[u32; 2]> = None;
        for same in by_name.chunk_by(|one, other| name(one) == name(other)) {
            let [first, others @ ..] = same else { continue };
            let Some(last) = others.last() else { continue };
            let of_one = same
                .windows(2)
                .find(|two| self.input_of(number(&two[0])) == self.input_of(number(&two[1])));
            if let Some(two) = of_one {
                let fault = SelectFault::SameName(name(&two[0]).to_owned());
                return Err(self.failed(number(&two[0]), fault));
            }
            let is_earlier = twice.is_none_or(|[_, second]| others[0] < second);
            match self.options.wins {
                None if is_earlier => twice = Some([*first, others[0]]),
                None | Some(Precedence::First) => {}
                Some(Precedence::Last) => taken[*first as usize] = Some(number(last) as u32),
            }
            others.iter().for_each(|&other| taken[other as usize] = None);
        }
        match twice {
            None => Ok(taken.into_iter().flatten().collect()),
            Some([first, second]) => {
                let file = |at: &u32| &self.inputs.locations[self.input_of(number(at))];
                let name = name(&first).to_owned();
                let first = FileName::from(file(&first));
                Err(Error::file(file(&second), MergeFault::Twice { name, first }))
            }
        }
    }

    /// Make sure that the output can hold what it is to have.
    fn check(&self, output: &Output) -> Result<(), Error> {
        let MergeOptions { renames, casts, .. } = &self.options;
        if self.taken.len() > 1 && output.options.name.is_some() {
            return Err(SelectFault::OneName.into());
        }
        check_holds(output, self.taken.len(), false, !renames.is_empty())?;
        let mut dtypes = Vec::new();
        for &number in &self.taken {
            let dtype = self.tensor(number as usize)?.dtype;
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        }
        Ok(casts.refuse_unused(dtypes.into_iter())?)
    }

    /// How many tensors a cast leaves as they are.
    pub(super) fn left_uncast(&self) -> usize {
        let taken = self.taken.iter().filter_map(|&number| self.tensor(number as usize).ok());
        self.options.casts.count_left(taken.map(|tensor| tensor.dtype))
    }

    pub(super) fn input_of(&self, number: usize) -> usize {
        // inputs without tensors begin where the next one does
        self.firsts.partition_point(|&first| first <= number) - 1
    }

    /// How many bytes of elements the inputs have, each by its number.
    pub(super) fn bytes_of(&self, input: usize) -> u64 {
        let numbers = self.firsts[input]..self.firsts[input + 1];
        numbers.map(|number| self.tensors.at(number).bytes()).fold(0, u64::saturating_add)
    }

    /// A tensor, or its fields, as its input said at first.
    fn tensor(&self, number: usize) -> Result<TensorInfo, Error> {
        self.fields_of(self.tensors.at(number)).map_err(|cause| self.failed(number, cause))
    }

    /// The fields of a tensor that are taken in place of its items.
    fn fields_of(&self, tensor: TensorInfo) -> Result<TensorInfo, Cause> {
        match &self.options.fields {
            Some(fields) => Ok(take_fields(&tensor, fields)?),
            None => Ok(tensor),
        }
    }

    /// The same in its input, which may have been opened again.
    pub(super) fn tensor_in(&self, input: &Input, number: usize) -> Result<TensorInfo, Error> {
        let known = self.tensors.at(number);
        let there = input.contents.tensors.get(number - self.firsts[self.input_of(number)]);
        let is_it = |there: &TensorInfo| {
            (&there.dtype, &there.shape, there.data()) == (&known.dtype, &known.shape, known.data())
                && (there.name.is_none() || there.name == known.name)
        };
        match there.filter(is_it) {
            Some(there) => self.fields_of(there).map_err(|cause| self.failed(number, cause)),
            None => Err(Error::file(&input.location, JoinFault::Changed)),
        }
    }

    pub(super) fn failed(&self, number: usize, cause: impl Into<Cause>) -> Error {
        let location = &self.inputs.locations[self.input_of(number)];
        Error::file(location, cause).of_tensor(self.tensors.name(number), true)
    }

    /// The tensor of the output at that place: its number among those of all inputs.
    pub(super) fn taken(&self, at: usize) -> u32 {
        self.taken[at]
    }

    pub(super) fn prepare(&self, output: &Output) -> Result<Prepared, Error> {
        let mut preparation = output.begin_preparing(Arc::clone(&self.tensors), None)?;
        for number in self.taken.iter().map(|&number| number as usize) {
            let tensor = self.tensor(number)?;
            let cast = self.options.casts.of(&tensor.dtype);
            let cast = cast.map_err(|cause| self.failed(number, cause))?;
            let name = output.options.name.as_deref().filter(|_| self.renamed.is_empty());
            let name = name.unwrap_or_else(|| self.name_of(number)).to_owned();
            let becomes = Becomes { cast, ..Becomes::kept(tensor.shape.clone()) };
            let pushed = preparation.push(name, &tensor, number, becomes);
            pushed.map_err(|error| self.failed(number, error.cause))?;
        }
        preparation.finish(&self.metadata.texts())
    }
}
