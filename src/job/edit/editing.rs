//! An assignment to a file as a job: what is written, and where.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::format::TensorInfo;
use crate::input::{self, Location, OpenOptions, ShardsFault};
use crate::job::casts::Casts;
use crate::job::contract::{Job, Planned};
use crate::job::edit::edited_file::EditedFile;
use crate::job::edit::fault::EditFault;
use crate::job::edit::original::Original;
use crate::job::edit::tensor_edit::{EditedSlice, ScatterOptions, TensorEdit};
use crate::job::operand::Operand;
use crate::output::WriteOptions;
use crate::region::OpenIndex;
use crate::sink::Destination;
use crate::source::OpenError;

/// Values on their way into tensors of files: of one file, or of shards of a checkpoint.
pub struct Editing {
    files: Vec<EditedFile>,
    targets: Vec<Target>,
}

/// A tensor that is changed, and the number of its file.
struct Target {
    file: usize,
    tensor: TensorInfo,
}

impl Editing {
    /// Open the tensors that patterns mean, names or globs, in a file or in the shards of a checkpoint:
    /// these are changed in place, or one file in a `copy`.
    ///
    /// # Errors
    /// Those of [`Original::open`], [`SelectFault`](crate::input::SelectFault).
    pub fn open(
        path: &Path,
        open: &OpenOptions,
        copy: Option<Destination>,
        options: WriteOptions,
    ) -> Result<Editing, Error> {
        let chooses = !open.tensors.is_empty() || !open.exclude.is_empty();
        let may_be = chooses && path.is_dir();
        let single = if may_be { input::single_file(path) } else { None };
        let path = single.as_deref().unwrap_or(path);
        let of_shards = copy.is_none() && chooses;
        if of_shards && path.is_dir() {
            return Editing::of_shards(path, open, &options);
        }
        match Original::open(path, open, copy, options.clone()) {
            Ok(original) => {
                let numbers = original.input().find(&open.tensors);
                let numbers = numbers.map_err(|error| error.of_several(true))?;
                let several = numbers.len() > 1;
                let target = |number| {
                    let tensor = original.input().contents.tensors.at(number);
                    original.check_target(&tensor, several)?;
                    Ok(Target { file: 0, tensor })
                };
                let targets = numbers.into_iter().map(target).collect::<Result<_, Error>>()?;
                Ok(Editing { files: vec![original.into()], targets })
            }
            Err(error) => match error.cause.downcast_ref() {
                Some(EditFault::Sharded) if of_shards => Editing::of_shards(path, open, &options),
                _ => Err(error),
            },
        }
    }

    /// Open those shards of a checkpoint that hold the tensors that patterns mean.
    fn of_shards(
        path: &Path,
        open: &OpenOptions,
        options: &WriteOptions,
    ) -> Result<Editing, Error> {
        let patterns = open.tensors.clone();
        let checkpoint = input::open(&Location::Path(path.to_owned()), open);
        let checkpoint = checkpoint.map_err(|error| match error.cause.downcast_ref() {
            Some(ShardsFault::NoIndex) => Error::file(path, OpenError::IsADirectory),
            _ => error,
        })?;
        let open = OpenOptions { tensors: Vec::new(), exclude: Vec::new(), ..open.clone() };
        let mut editing = Editing { files: Vec::new(), targets: Vec::new() };
        let mut opened: HashMap<usize, usize> = HashMap::new();
        for number in checkpoint.find(&patterns)? {
            let tensor = checkpoint.contents.tensors.at(number);
            let file = match opened.get(&tensor.part()) {
                Some(&file) => file,
                None => {
                    let FileName::Path(shard) = checkpoint.file_name(&tensor) else {
                        return Err(Error::file(path, EditFault::Remote));
                    };
                    let original = Original::open(&shard, &open, None, options.clone())?;
                    editing.files.push(original.into());
                    opened.insert(tensor.part(), editing.files.len() - 1);
                    editing.files.len() - 1
                }
            };
            let name: Vec<String> = tensor.name.into_iter().collect();
            let tensor = editing.files[file].original().input().tensor(&name)?;
            editing.targets.push(Target { file, tensor });
        }
        Ok(editing)
    }

    /// Change one tensor of a file.
    ///
    /// # Errors
    /// [`EditFault::Deflated`].
    pub fn of(original: Original, tensor: TensorInfo) -> Result<Editing, Error> {
        original.check_target(&tensor, false)?;
        Ok(Editing { files: vec![original.into()], targets: vec![Target { file: 0, tensor }] })
    }

    /// The tensors that are changed.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.targets.iter().map(|target| &target.tensor)
    }

    /// What an index selects of the tensor of this number.
    ///
    /// # Errors
    /// [`ResolveError`](crate::index::resolve::ResolveError) for an index that does not fit.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn slice<'a>(&self, number: usize, index: OpenIndex<'a>) -> Result<EditedSlice<'a>, Error> {
        let tensor = self.targets[number].tensor.clone();
        let slice = EditedSlice::new(number, tensor, index);
        slice.map_err(|error| self.of_target(number, error))
    }

    /// NumPy's `tensor[index] = value`; of values for one position the last one stands. The value has
    /// the shape of the slice, unless it is `broadcast` as NumPy does.
    ///
    /// # Errors
    /// [`EditFault`], [`CastError`](crate::cast::CastError); [`ListError`] for a list of the index that
    /// lies in what is changed.
    pub fn assign(
        &mut self,
        slice: EditedSlice<'_>,
        value: Operand,
        casts: &Casts,
        broadcast: bool,
    ) -> Result<(), Error> {
        let target = slice.target();
        let original = self.files[self.targets[target].file].original();
        let edit = slice.assign(original, value, casts, broadcast);
        self.add(target, edit)
    }

    /// TensorFlow's TensorScatterUpdate on the tensor of this number: slabs of `value` at the tuples on
    /// the last axis of `indices`; or np.put_along_axis. Of values for one position the last one stands.
    ///
    /// # Errors
    /// [`ScatterError`], [`EditFault`], [`CastError`](crate::cast::CastError).
    ///
    /// # Panics
    /// If there are not that many.
    pub fn scatter(
        &mut self,
        number: usize,
        indices: Operand,
        value: Operand,
        options: &ScatterOptions,
    ) -> Result<(), Error> {
        let tensor = self.targets[number].tensor.clone();
        self.add(number, TensorEdit::scatter(tensor, indices, value, options))
    }

    fn add(&mut self, target: usize, edit: Result<TensorEdit, Error>) -> Result<(), Error> {
        let edit = edit.map_err(|error| self.of_target(target, error))?;
        self.files[self.targets[target].file].push(edit);
        Ok(())
    }

    /// An error of one of the tensors, which is named where there are several.
    fn of_target(&self, target: usize, error: Error) -> Error {
        let name = self.targets[target].tensor.name.as_deref();
        error.of_tensor(name, self.targets.len() > 1)
    }
}

impl Job for Editing {
    fn bytes(&self) -> u64 {
        self.files.iter().map(EditedFile::bytes).sum()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        let several = self.targets.len() > 1;
        self.files.iter_mut().try_for_each(|file| file.look(several, progress))
    }

    fn check(&mut self) -> Result<(), Error> {
        self.files.iter().try_for_each(|file| file.original().check())
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        Ok(self.files.iter().map(EditedFile::planned).collect())
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        if !self.files.iter().all(EditedFile::is_looked_at) {
            self.look(progress)?;
        }
        let several = self.targets.len() > 1;
        self.files.iter_mut().try_for_each(|file| file.write(several, progress))
    }
}
