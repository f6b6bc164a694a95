//! Files that are changed, in place or in a copy: NumPy's `a[index] = value`, and slices at positions
//! that an index tensor names.
//!
//! 1. [`Original::open`] reads the header (`original`). Everything is checked while the file is only read.
//! 2. [`Editing::slice`] applies an index to a tensor of the file, [`Editing::assign`] fits a value to the slice, and
//!    [`Editing::scatter`] fits values to an index tensor (`tensor_edit`).
//! 3. The copy is made, or the file is opened for writing. Elements are written by a sink that patches the file. The
//!    CRC-32s in a copy of an archive are written last (`edited_file`).
//!
//! An assignment is the engine run towards the target: the pieces are ranges of the dense value, packed from the
//! value's strides (0 where it is broadcast), and the sink at the other end unpacks them into the target's runs.
//! Both sides are `Runs`, which find their own boxes for any range of the dense bytes. The target decides the order:
//! its axes go from the longest stride to the shortest, all forward. Pieces of a basic index share no byte of the
//! target. Slabs of a scatter may: its sink takes them in order, and the last slab stays. If the target does not fit in
//! memory, the values are first put in the order of the target's bands in a temporary file.
//!
//! An `InPlaceFile` writes exactly the given bytes, so processes may write disjoint slices of one file at the same time.
//! Long runs are written by position, short runs through a shared map (`sink/in_place.rs`): with a system call for each
//! short run, the kernel would slow the process down as soon as many pages are dirty.
//!
//! In place, all checks come first, and a killed run is completed by repeating it. So a value from a pipe is read to its
//! end before anything is written, and a value that lies in the bytes to be written is refused (`job/overwrite.rs`). With
//! `-o` the target's bytes are first copied into the unnamed output, as `cp` does; then the output is patched like any
//! file.

use std::collections::HashMap;
use std::path::Path;

use edited_file::EditedFile;
use tensor_edit::TensorEdit;

use super::inputs::Operand;
use super::select::Casts;
use super::{Job, Planned};
use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::formats;
use crate::formats::shards::ShardsFault;
use crate::input::{Location, OpenOptions, Transform};
use crate::output::{Output, WriteOptions};
use crate::region::OpenIndex;
use crate::sink::Destination;
use crate::source::OpenError;
use crate::tensor::TensorInfo;

mod copies;
mod edited_file;
mod fit;
pub(super) mod original;
mod tensor_edit;

pub use fit::EditFault;
pub(in crate::job) use fit::conversion;
pub use original::Original;
pub use tensor_edit::{EditedSlice, ScatterOptions};

/// Values to be written into tensors of files: of one file, or of shards of a checkpoint.
pub struct Editing {
    files: Vec<EditedFile>,
    targets: Vec<EditedTensor>,
}

/// A tensor that is changed, and the number of its file.
struct EditedTensor {
    file: usize,
    tensor: TensorInfo,
}

impl Editing {
    /// Open the tensors that patterns (names or globs) choose, in a file or in the shards of a
    /// checkpoint. The files are changed in place, or one file in a `copy`.
    pub fn open(
        path: &Path,
        open: &OpenOptions,
        copy: Option<Destination>,
        options: WriteOptions,
    ) -> Result<Editing, Error> {
        let chooses = !open.tensors.is_empty() || !open.exclude.is_empty();
        let may_be = chooses && path.is_dir();
        let single = if may_be { formats::shards::single_file(path) } else { None };
        let path = single.as_deref().unwrap_or(path);
        let of_shards = copy.is_none() && chooses;
        if of_shards && path.is_dir() {
            return Editing::of_shards(path, open, &options);
        }
        match Original::open(path, open, copy, options.clone()) {
            Ok(original) => Editing::of_one(original, &open.tensors),
            Err(error) => match error.cause.downcast_ref() {
                Some(EditFault::Sharded) if of_shards => Editing::of_shards(path, open, &options),
                _ => Err(error),
            },
        }
    }

    /// Open the tensors that patterns choose in a checkpoint, and write a changed copy of the
    /// checkpoint into a folder, if `output` is one.
    pub fn in_folder(
        location: &Location,
        open: &OpenOptions,
        output: &Output,
    ) -> Result<Editing, Error> {
        Editing::of_one(Original::open_folder(location, open, output)?, &open.tensors)
    }

    fn of_one(original: Original, patterns: &[String]) -> Result<Editing, Error> {
        let numbers = original.input().find(patterns);
        let numbers = numbers.map_err(|error| error.of_several(true))?;
        let several = numbers.len() > 1;
        let target = |number| {
            let tensor = original.input().contents.tensors.at(number);
            original.check_target(&tensor, several)?;
            Ok(EditedTensor { file: 0, tensor })
        };
        let targets = numbers.into_iter().map(target).collect::<Result<_, Error>>()?;
        Ok(Editing { files: vec![original.into()], targets })
    }

    /// Open the shards of a checkpoint that hold the tensors that patterns choose.
    fn of_shards(
        path: &Path,
        open: &OpenOptions,
        options: &WriteOptions,
    ) -> Result<Editing, Error> {
        let patterns = open.tensors.clone();
        let checkpoint = formats::open(&Location::Path(path.to_owned()), open);
        let checkpoint = checkpoint.map_err(|error| match error.cause.downcast_ref() {
            Some(ShardsFault::NoIndex) => Error::file(path, OpenError::IsADirectory),
            _ => error,
        })?;
        let open = OpenOptions { tensors: Vec::new(), exclude: Vec::new(), ..open.clone() };
        let mut editing = Editing { files: Vec::new(), targets: Vec::new() };
        let mut opened: HashMap<usize, usize> = HashMap::new();
        for number in checkpoint.find(&patterns)? {
            let tensor = checkpoint.contents.tensors.at(number);
            let file = match opened.get(&tensor.shard()) {
                Some(&file) => file,
                None => {
                    let FileName::Path(shard) = checkpoint.file_name(&tensor) else {
                        return Err(Error::file(path, EditFault::Remote));
                    };
                    let original = Original::open(&shard, &open, None, options.clone())?;
                    editing.files.push(original.into());
                    opened.insert(tensor.shard(), editing.files.len() - 1);
                    editing.files.len() - 1
                }
            };
            let name: Vec<String> = tensor.name.into_iter().collect();
            let tensor = editing.files[file].original.input().tensor(&name)?;
            editing.targets.push(EditedTensor { file, tensor });
        }
        Ok(editing)
    }

    /// Change one tensor of a file.
    pub fn of(original: Original, tensor: TensorInfo) -> Result<Editing, Error> {
        original.check_target(&tensor, false)?;
        Ok(Editing {
            files: vec![original.into()],
            targets: vec![EditedTensor { file: 0, tensor }],
        })
    }

    /// Read its tensors as `transform` says; the file keeps their shapes.
    pub fn transform(&mut self, transform: &Transform) -> Result<(), Error> {
        let several = self.targets.len() > 1;
        self.targets.iter_mut().try_for_each(|EditedTensor { file, tensor }| {
            let input = self.files[*file].original.input();
            *tensor = transform
                .of(tensor)
                .map_err(|cause| input.failed_tensor(tensor, several, cause))?;
            Ok(())
        })
    }

    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.targets.iter().map(|target| &target.tensor)
    }

    /// The slice of the tensor with this number that an index selects.
    ///
    /// # Panics
    /// If there are not that many tensors.
    pub fn slice<'a>(&self, number: usize, index: OpenIndex<'a>) -> Result<EditedSlice<'a>, Error> {
        let tensor = self.targets[number].tensor.clone();
        let slice = EditedSlice::new(number, tensor, index);
        slice.map_err(|error| self.of_target(number, error))
    }

    /// NumPy's `tensor[index] = value`. If positions occur more than once, the last value stays.
    /// The value has the shape of the slice, unless it is `broadcast` as NumPy does.
    pub fn assign(
        &mut self,
        slice: EditedSlice<'_>,
        value: Operand,
        casts: &Casts,
        broadcast: bool,
    ) -> Result<(), Error> {
        let target = slice.target;
        let original = &self.files[self.targets[target].file].original;
        let edit = slice.assign(original, value, casts, broadcast);
        self.add(target, edit)
    }

    /// TensorFlow's TensorScatterUpdate on the tensor of this number: slabs of `value` at the
    /// tuples on the last axis of `indices`; or np.put_along_axis. If positions occur more than
    /// once, the last value stays.
    ///
    /// # Panics
    /// If there are not that many tensors.
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
        self.files[self.targets[target].file].edits.push(edit);
        Ok(())
    }

    /// An error of one of the tensors, which is named if there are several.
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
        self.files.iter().try_for_each(EditedFile::check)
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
