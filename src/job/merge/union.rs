//! The tensors of all inputs, and which of them the output has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use super::super::rename::{NewName, Rename, rename_some};
use super::super::select::Casts;
use super::MergeFault;
use super::groups::GroupOptions;
use crate::error::{Cause, Error, FileName};
use crate::execute::Workers;
use crate::input::{
    Grouping, Input, Location, Metadata, OpenOptions, SelectFault, Transform, TypedMetadata,
    UseOfIndex, find,
};
use crate::job::assembly::members::Members;
use crate::job::assembly::{Assembly, Member, MemberRegion, Recipe};
use crate::job::inputs::Inputs;
use crate::job::join::JoinFault;
use crate::job::select::check_holds;
use crate::output::{Output, Prepared, TensorChange};
use crate::region::{GatheredList, IndexedShape};
use crate::shape::{AskedAxis, Order};
use crate::sink::Fingerprint;
use crate::tensor::{TensorInfo, Tensors};

#[derive(Default)]
pub struct MergeOptions<'a> {
    /// How the inputs are opened, which tensors are taken or joined (by names or globs; all if there are none), and which
    /// are left out.
    pub open: OpenOptions,
    /// New names, applied one after the other.
    pub renames: Vec<NumberedRename>,
    /// The choice among several tensors of one name; `None` if a name may occur only once.
    pub wins: Option<Precedence>,
    /// The dtypes, shapes or fields that tensors are read as. If some tensors are joined, it applies only to them.
    pub transform: Transform,
    pub casts: Casts,
    /// The tensors that are joined; `None` if all are taken unchanged.
    pub group: Option<GroupOptions<'a>>,
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
    locations: &'a [Location],
    inputs: Inputs<'a>,
    pub(super) options: MergeOptions<'a>,
    /// The tensors of all inputs, as they are stored; the `shard` of each is the number of its input. An array without a
    /// name is named after its file.
    tensors: Arc<Tensors>,
    /// The tensors of the output.
    pub(super) members: Members,
    /// The axis along which each joined tensor is joined.
    pub(super) axes: Vec<AskedAxis>,
    /// The shapes that an index with lists in files is applied to.
    pub(super) indexed_shapes: BTreeSet<IndexedShape>,
    /// New names, by the numbers of tensors; the first member of a group has the name of the joined
    /// tensor.
    pub(super) renamed: HashMap<usize, String>,
    metadata: MetadataUnion<'a>,
    /// The first text that contradicts one of an earlier input.
    contradiction: Option<Error>,
    /// Entries of inputs that have a name and cannot be read.
    unreadable: Vec<UnreadableName>,
}

/// The merged metadata of several inputs: texts, and the input of each.
#[derive(Default)]
pub(super) struct MetadataUnion<'a> {
    texts: BTreeMap<String, (String, &'a Location)>,
    /// The typed metadata of the first input that has some.
    typed: Option<TypedMetadata>,
}

impl<'a> MetadataUnion<'a> {
    /// Add the metadata of the next input. Returns the error of the first text for the output that
    /// contradicts a text of an earlier input, where no input `wins`.
    pub(super) fn add(
        &mut self,
        location: &'a Location,
        metadata: &Metadata,
        wins: Option<Precedence>,
        output: &Output,
    ) -> Option<Error> {
        let mut contradiction = None;
        self.typed = self.typed.take().or_else(|| metadata.typed.clone());
        for (key, value) in &metadata.texts {
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

    pub(super) fn all(&self) -> Metadata {
        let texts = self.texts.iter().map(|(key, (value, _))| (key.clone(), value.clone()));
        Metadata { texts: texts.collect(), typed: self.typed.clone() }
    }
}

/// The most inputs that are searched for typed metadata: an input that has some stays open.
const MOST_TYPED: usize = 32;

/// An entry of an input that has a name and cannot be read.
struct UnreadableName {
    name: String,
    is_missing: bool,
    error: Error,
}

struct InputNames {
    tensors: Tensors,
    unreadable: Vec<UnreadableName>,
    metadata: Metadata,
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
        let mut metadata = input.contents.metadata.clone();
        metadata.typed.take_if(|_| number >= MOST_TYPED);
        InputNames { tensors, unreadable, metadata }
    }
}

impl<'a> Union<'a> {
    /// Read the headers of all inputs, and find the tensors of the output.
    pub(super) fn open(
        locations: &'a [Location],
        options: MergeOptions<'a>,
        output: &Output,
    ) -> Result<Union<'a>, Error> {
        let grouping = options.group.as_ref().map(|group| Grouping::new(group.pattern, group.into));
        let grouping = grouping.transpose()?;
        // a pattern must match in one of the inputs, not in each
        let open = options.open.clone();
        let open = OpenOptions { tensors: Vec::new(), exclude: Vec::new(), ..open };
        let inputs = Inputs::open(locations, &open, Transform::default())?;
        let first = InputNames::new(0, inputs.first(), output);
        let mut tensors = Tensors::default();
        let mut union = Union {
            locations,
            inputs,
            options: MergeOptions { transform: options.transform.of_several(true), ..options },
            tensors: Arc::default(),
            members: Members::default(),
            axes: Vec::new(),
            indexed_shapes: BTreeSet::new(),
            renamed: HashMap::new(),
            metadata: MetadataUnion::default(),
            contradiction: None,
            unreadable: Vec::new(),
        };
        union.add(0, first, &mut tensors, output)?;
        for numbers in union.inputs.others() {
            let start = numbers.start;
            let look = |number: usize, input: &Input| Ok(InputNames::new(number, input, output));
            let looked = union.inputs.look(numbers, &union.options.workers, look)?;
            let transform: Vec<InputNames> = union.inputs.keep(looked).collect();
            for (number, transform) in (start..).zip(transform) {
                union.add(number, transform, &mut tensors, output)?;
            }
        }
        union.inputs.all_seen()?;
        union.tensors = Arc::new(tensors);
        let mut chosen = union.chosen(&union.options.open.tensors)?;
        if let Some(grouping) = grouping {
            union.group(&grouping, chosen, output)?;
        } else {
            union.leave_out_unreadable(&mut chosen, &[])?;
            let needed = chosen.clone();
            union.leave_out_lacking(&mut chosen, &needed, output);
            union.name(&chosen)?;
            union.winners(&chosen)?.into_iter().for_each(|number| union.members.push(number));
        }
        let several = union.cast_entries().nth(1).is_some();
        union.options.casts = std::mem::take(&mut union.options.casts).of_several(several);
        union.check(output)?;
        union.contradiction.take().map_or(Ok(union), Err)
    }

    fn add(
        &mut self,
        number: usize,
        transform: InputNames,
        tensors: &mut Tensors,
        output: &Output,
    ) -> Result<(), Error> {
        self.members.add_input(transform.tensors.len())?;
        tensors.extend(transform.tensors.iter());
        for (path, annotated) in transform.tensors.groups() {
            if !tensors.groups().contains_key(path) {
                tensors.annotate_group(path.clone(), annotated.clone());
            }
        }
        self.unreadable.extend(transform.unreadable);
        let location = &self.locations[number];
        let found = self.metadata.add(location, &transform.metadata, self.options.wins, output);
        self.contradiction = self.contradiction.take().or(found);
        Ok(())
    }

    /// The names of all tensors, then of unreadable entries.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let names = self.tensors.names().map(Option::unwrap_or_default);
        names.chain(self.unreadable.iter().map(|hidden| hidden.name.as_str()))
    }

    /// The name of a tensor or unreadable entry by its number.
    pub(super) fn old_name(&self, number: usize) -> &str {
        match number.checked_sub(self.tensors.len()) {
            None => self.tensors.name(number).unwrap_or_default(),
            Some(hidden) => &self.unreadable[hidden].name,
        }
    }

    /// The numbers of the tensors that the patterns choose, ascending.
    pub(super) fn chosen(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let exclude = &self.options.open.exclude;
        let names = self.names();
        let all = self.tensors.len() + self.unreadable.len();
        let mut chosen: Vec<usize> =
            if patterns.is_empty() { (0..all).collect() } else { find(names.clone(), patterns)? };
        if chosen.is_empty() {
            return Err(Error::file(&self.locations[0], SelectFault::NoTensors));
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

    /// Leave out chosen entries that cannot be read; their numbers follow the numbers of the tensors. It
    /// is an error if such an entry is named itself, is `needed`, or is all that is chosen.
    pub(super) fn leave_out_unreadable(
        &mut self,
        chosen: &mut Vec<usize>,
        needed: &[usize],
    ) -> Result<(), Error> {
        let count = self.tensors.len();
        let hidden = chosen.split_off(chosen.partition_point(|&number| number < count));
        for hidden in hidden {
            let Some(one) = self.unreadable.get(hidden - count) else { continue };
            let UnreadableName { name, is_missing, error } = one;
            let is_needed = *is_missing || needed.binary_search(&hidden).is_ok();
            let open = &self.options.open;
            let is_strict = open.index == UseOfIndex::Strict;
            if is_needed || is_strict || chosen.is_empty() || open.tensors.contains(name) {
                return Err(self.unreadable.swap_remove(hidden - count).error);
            }
            self.options.open.notes.add(format_args!("{error}; left out"));
        }
        Ok(())
    }

    /// Leave out, with notes, chosen tensors whose dtype the output cannot hold, unless they are
    /// named themselves or all that is `needed` (ascending numbers).
    pub(super) fn leave_out_lacking(
        &self,
        chosen: &mut Vec<usize>,
        needed: &[usize],
        output: &Output,
    ) {
        let OpenOptions { tensors: patterns, notes, .. } = &self.options.open;
        let lacking = chosen.iter().filter_map(|&number| {
            let tensor = self.tensors.at(number);
            let name = tensor.name.as_deref().unwrap_or_default();
            // a file of one tensor names it
            let input = tensor.shard();
            let is_only = self.members.of_input(input).len() == 1;
            let is_named = is_only || patterns.iter().any(|pattern| pattern == name);
            let fault = output.lacks(&tensor.dtype).filter(|_| !is_named)?;
            let location = &self.locations[input];
            Some((number, Error::file(location, fault).of_tensor(Some(name), true)))
        });
        let lacking: Vec<(usize, Error)> = lacking.collect();
        let is_lacking = |number: &usize| lacking.binary_search_by_key(number, |it| it.0).is_ok();
        if !needed.iter().all(is_lacking) {
            notes.add_left_out(lacking.iter().map(|(_, error)| error));
            chosen.retain(|number| !is_lacking(number));
        }
    }

    fn name(&mut self, chosen: &[usize]) -> Result<(), SelectFault> {
        let renames = &self.options.renames;
        if renames.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = chosen.iter().map(|&number| self.tensors.name(number)).collect();
        let first = |input: usize| {
            let is_there = input < self.locations.len();
            let first = if is_there { self.members.of_input(input).start } else { u32::MAX };
            chosen.partition_point(|&number| number < first as usize)
        };
        let of_input = |input: usize| first(input)..first(input.saturating_add(1));
        let of_some = renames.iter().map(|NumberedRename { input, name }| {
            let range = input.map_or(0..chosen.len(), of_input);
            Rename { range, name }
        });
        let renamed = rename_some(&names, &Vec::from_iter(of_some), &self.options.open.notes)?;
        self.renamed = renamed.into_iter().map(|(at, name)| (chosen[at], name)).collect();
        Ok(())
    }

    pub(super) fn name_of(&self, number: usize) -> &str {
        match self.renamed.get(&number) {
            Some(name) => name,
            None => self.tensors.name(number).unwrap_or_default(),
        }
    }

    /// The tensors of the output. Of several tensors of one name, the one in the input with precedence counts; it stands at
    /// the position of the first.
    pub(super) fn winners(&self, chosen: &[usize]) -> Result<Vec<u32>, Error> {
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
                let file = |at: &u32| &self.locations[self.input_of(number(at))];
                let name = name(&first).to_owned();
                let first = FileName::from(file(&first));
                Err(Error::file(file(&second), MergeFault::Twice { name, first }))
            }
        }
    }

    /// Check that the output can hold its tensors.
    fn check(&self, output: &Output) -> Result<(), Error> {
        let MergeOptions { renames, casts, group, .. } = &self.options;
        let count = self.members.len();
        if count > 1 && output.options.name.is_some() {
            return Err(SelectFault::OneName.into());
        }
        let keeps_rest = group.as_ref().is_some_and(|group| group.keep_rest);
        check_holds(output, count, keeps_rest, !renames.is_empty())?;
        let mut dtypes = Vec::new();
        for &number in self.cast_entries().flat_map(|entry| self.members.of(entry).0) {
            let dtype = self.tensor(number as usize)?.dtype;
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        }
        Ok(casts.refuse_unused(dtypes.into_iter())?)
    }

    /// The number of tensors that a cast leaves unchanged.
    pub(super) fn left_uncast(&self) -> usize {
        let firsts = self.cast_entries().filter_map(|entry| self.members.of(entry).0.first());
        let firsts = firsts.filter_map(|&number| self.tensor(number as usize).ok());
        self.options.casts.count_left(firsts.map(|tensor| tensor.dtype))
    }

    pub(super) fn input_of(&self, number: usize) -> usize {
        self.members.locate(number as u32).0
    }

    /// The number of bytes of elements of an input.
    pub(super) fn bytes_of(&self, input: usize) -> u64 {
        let bytes = |number: u32| self.tensors.at(number as usize).bytes();
        self.members.of_input(input).map(bytes).fold(0, u64::saturating_add)
    }

    /// A tensor as it is read, according to the header that was read first.
    pub(super) fn tensor(&self, number: usize) -> Result<TensorInfo, Error> {
        self.transform(number, &self.tensors.at(number))
    }

    fn transform(&self, number: usize, tensor: &TensorInfo) -> Result<TensorInfo, Error> {
        self.options.transform.of(tensor).map_err(|cause| self.failed(number, cause))
    }

    pub(super) fn location_of(&self, number: usize) -> &Location {
        &self.locations[self.input_of(number)]
    }

    pub(super) fn failed(&self, number: usize, cause: impl Into<Cause>) -> Error {
        let location = self.location_of(number);
        Error::file(location, cause).of_tensor(self.tensors.name(number), true)
    }

    pub(super) fn prepare(&mut self, output: &Output) -> Result<Prepared, Error> {
        let mut preparation = output.begin_preparing(Arc::clone(&self.tensors), None)?;
        let mut axes = std::mem::take(&mut self.axes).into_iter();
        let group = self.options.group.clone();
        let mut shapes = BTreeSet::new();
        for entry in 0..self.members.len() {
            let is_joined = self.members.is_joined(entry);
            let members = self.members.of(entry).0;
            let number = members[0] as usize;
            let mut tensor = self.tensors.at(number);
            if group.is_none() || is_joined {
                tensor = self.transform(number, &tensor)?;
            }
            let name = output.options.name.as_deref().filter(|_| self.renamed.is_empty());
            let name = name.unwrap_or_else(|| self.name_of(number)).to_owned();
            let mut join = None;
            if let (true, Some(group)) = (is_joined, &group)
                && let Some(axis) = axes.next()
            {
                join = self.join(members, &axis, group)?;
                let of_lists = members.iter().filter(|_| !group.index.lists.is_empty());
                for &number in of_lists {
                    let tensor = self.tensor(number as usize)?;
                    shapes.insert(group.index.indexed_shape(&tensor));
                }
            }
            let change = match &join {
                Some(join) => self.becomes_joined(members, join, output)?,
                None if group.is_some() => TensorChange::unchanged(tensor.shape.clone()),
                None => {
                    let cast = self.options.casts.of(&tensor.dtype);
                    let cast = cast.map_err(|cause| self.failed(number, cause))?;
                    TensorChange { cast, ..TensorChange::unchanged(tensor.shape.clone()) }
                }
            };
            let pushed = preparation.push(name, &tensor, number, change);
            pushed.map_err(|error| self.failed(number, error.cause))?;
            if let Some(join) = join {
                self.members.set_join(entry, join);
            }
        }
        self.indexed_shapes = shapes;
        preparation.finish(&self.metadata.all())
    }

    pub(super) fn assemble(self) -> Assembly<'a> {
        let Union { inputs, members, options, tensors, indexed_shapes, .. } = self;
        let recipe = Box::new(MergeRecipe { options, tensors, indexed_shapes });
        Assembly { inputs, members, recipe, looks: true, rest: None }
    }
}

/// The recipe of a merge.
struct MergeRecipe<'a> {
    options: MergeOptions<'a>,
    /// The tensors of all inputs, as they were at first.
    tensors: Arc<Tensors>,
    indexed_shapes: BTreeSet<IndexedShape>,
}

impl Recipe for MergeRecipe<'_> {
    fn taken(
        &self,
        input: &Input,
        member: &Member<'_>,
        order: Order,
    ) -> Result<MemberRegion, Error> {
        let known = self.tensors.at(member.number as usize);
        let name = known.name.as_deref();
        let failed = |cause: Cause| Error::file(&input.location, cause).of_tensor(name, true);
        let is_it = |there: &TensorInfo| {
            (&there.dtype, &there.shape, there.data()) == (&known.dtype, &known.shape, known.data())
                && (there.name.is_none() || there.name == known.name)
        };
        let changed = || Error::file(&input.location, JoinFault::Changed);
        let there = input.contents.tensors.get(member.in_input).filter(is_it);
        let mut tensor = there.ok_or_else(changed)?;
        let MergeOptions { group, transform, casts, .. } = &self.options;
        if group.is_none() || member.join.is_some() {
            tensor = transform.of(&tensor).map_err(failed)?;
        }
        let Some(group) = group.as_ref().filter(|_| member.join.is_some()) else {
            return MemberRegion::whole(&tensor, order).map_err(failed);
        };
        let selection = group.index.resolve(&tensor).map_err(failed)?;
        let region = group.index.region(&tensor, &selection, order).map_err(failed)?;
        let first = transform.of(&self.tensors.at(member.first as usize)).map_err(failed)?;
        let step = casts.step(1, &tensor.dtype, &first.dtype).map_err(failed)?;
        Ok(MemberRegion { shard: tensor.shard(), region, step })
    }

    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        // writing never fails
        let _ = write!(work, "{:?}", self.options.transform);
        self.options
            .group
            .as_ref()
            .map_or(Ok(()), |group| group.index.identify(&mut |bytes| work.add(bytes)))
    }

    fn lists(&self) -> Vec<&GatheredList> {
        self.options.group.iter().flat_map(|group| group.index.lists.lists()).collect()
    }

    fn check_lists(&self) -> Result<(), Error> {
        let group = self.options.group.as_ref();
        group.map_or(Ok(()), |group| group.index.check_lists(&self.indexed_shapes))
    }
}
