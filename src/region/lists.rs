//! The lists of an index that lie in files, opened.
//!
//! An index expression only names them. Here they are opened, and masks are counted, so that the
//! expression can be applied to a shape; what it selects of a tensor is a gather with the lists as
//! its positions. Their elements are read in pieces while the result is written.

use std::path::Path;
use std::sync::Arc;

use super::Region;
use super::chunks::{decoded_bytes, decoded_info};
use super::indices::{Gathered, GatheredList};
use super::strided::layout;
use crate::dtype::{DType, Endian, Scalar};
use crate::error::{Cause, Error, Fault, FileName};
use crate::execute::{Progress, Workers};
use crate::format::TensorInfo;
use crate::gather;
use crate::gather::{Gather, Indexed, Indices, ListTensor, Mask};
use crate::index::resolve::{
    ListPositions, ListShape, ResolveError, Rules, SelectedList, Selection, resolve_with,
};
use crate::index::{FileRef, IndexExpr, Item, List};
use crate::input::{Input, Location, OpenOptions, open_watched};
use crate::permutation::Permutation;
use crate::shape::Order;
use crate::source::{IoMode, MemorySource};
use crate::view::{Layout, View};

/// The lists of one expression that lie in files, in its order.
#[derive(Clone, Default)]
pub struct Lists {
    files: Vec<ListFile>,
    shapes: Vec<ListShape>,
    workers: Workers,
}

/// A list in a file.
#[derive(Clone)]
struct ListFile {
    /// Its item in the expression.
    item: usize,
    tensor: TensorInfo,
    mask: Option<Mask>,
    list: GatheredList,
    input: Arc<Input>,
}

/// An index whose files are open, as it is applied to every tensor of a job.
#[derive(Clone, Copy)]
pub struct OpenIndex<'a> {
    /// The expression.
    pub expr: &'a IndexExpr,
    /// How it is applied, besides its text.
    pub rules: Rules,
    /// The lists of the expression that lie in files.
    pub lists: &'a Lists,
}

impl OpenIndex<'_> {
    /// Apply it to a tensor.
    pub fn resolve(&self, tensor: &TensorInfo) -> Result<Selection, Cause> {
        Ok(self.lists.resolve_of(self.expr, tensor, self.rules)?)
    }

    /// The shape in elements of what it selects of a tensor, also where that is stored in blocks.
    pub fn element_shape(&self, tensor: &TensorInfo) -> Result<Vec<u64>, Cause> {
        Ok(self.lists.resolve(self.expr, &tensor.element_shape(), self.rules)?.shape())
    }

    /// The bytes of what it selects of a tensor, in the memory order of the output.
    pub(crate) fn region(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        let axes = Permutation::identity(selection.shape().len());
        self.lists.region(tensor, selection, &axes, order)
    }
}

/// A list of an index that cannot be used, and its item.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ListError {
    /// The item of the expression.
    pub item: usize,
    /// What is wrong with it.
    pub error: Error,
}

impl Fault for ListError {}

impl Lists {
    /// Open the files that an expression names, and count their masks. Files may hold integers as text.
    pub fn open(expr: &IndexExpr) -> Result<Lists, Error> {
        let (io, workers) = (IoMode::Auto, Workers::default());
        let lists = Lists::open_watched(expr, io, &workers, &Progress::default());
        lists.map_err(|fault| fault.error)
    }

    /// Open the lists with these workers, which also check positions later, where another thread watches
    /// how far counting is, or reading a pipe: [`Progress::keeping`].
    pub fn open_watched(
        expr: &IndexExpr,
        io: IoMode,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Lists, ListError> {
        let mut lists = Lists { workers: workers.clone(), ..Lists::default() };
        let files = expr.items.iter().enumerate().filter_map(|(item, wanted)| match wanted {
            Item::List(List::File(file)) => Some((item, file)),
            _ => None,
        });
        let failed = |item| move |error| ListError { item, error };
        if let Some((item, _)) = files.clone().filter(|(_, file)| file.is_stdin()).nth(1) {
            return Err(failed(item)(ListFault::SecondStdin.into()));
        }
        for (item, file) in files {
            let (file, shape) =
                open_list(item, file, io, workers, progress).map_err(failed(item))?;
            lists.files.push(file);
            lists.shapes.push(shape);
        }
        Ok(lists)
    }

    /// Whether no list of the expression lies in a file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Apply the expression that they are of to a shape.
    pub fn resolve(
        &self,
        expr: &IndexExpr,
        shape: &[u64],
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        resolve_with(expr, shape, rules, &self.shapes).map_err(|mut error| {
            error.before.source_shape = shape.to_vec();
            error
        })
    }

    /// Apply it to a tensor: the index counts elements, also where these are stored in blocks.
    pub fn resolve_of(
        &self,
        expr: &IndexExpr,
        tensor: &TensorInfo,
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        let block = tensor.dtype.blocks().map(|block| block.elements);
        self.resolve(expr, &tensor.element_shape(), Rules { block, ..rules })
    }

    /// Look at all positions that lists in files hold.
    pub fn check(&self, selection: &Selection) -> Result<(), Error> {
        if self.files.is_empty() {
            return Ok(());
        }
        // it does not matter what the positions are of
        let shape = &selection.source_shape;
        let layout = Layout::new(shape, 8, Order::C, 0);
        let bound = self.bind(selection)?;
        let tensors = bound.iter().map(BoundList::tensor).collect::<Result<Vec<_>, _>>()?;
        let options = gather::Options::default();
        let indexed = Indexed::select(&layout, selection, &tensors).map_err(Cause::from)?;
        let gather = Gather::new(&layout, indexed, &options).map_err(Cause::from)?;
        let lists: Vec<GatheredList> = bound.into_iter().map(|bound| bound.list).collect();
        let checked = gather.check(&GatheredList::sources(&lists), &self.workers);
        checked.map_err(|error| match error.into_fill() {
            Ok(error) => GatheredList::failed(&lists, error),
            Err(error) => error.into(),
        })
    }

    /// Look at the lists in files that stand before a wrong value of a typed list: NumPy looks at one
    /// list after the other, and reports the first bad position.
    pub fn check_before(&self, error: &ResolveError) -> Result<(), Error> {
        match error.before.lists.is_empty() {
            true => Ok(()),
            false => self.check(&error.before),
        }
    }

    /// The bytes of a selection of a tensor, its axes in the order `axes`, in the memory order of the
    /// output.
    pub fn region(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
        axes: &Permutation,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        let transpose = Some(axes.clone());
        let options = gather::Options { order, transpose, ..gather::Options::default() };
        let in_memory = axes.in_memory(order);
        let bound = self.bind(selection)?;
        let tensors = bound.iter().map(BoundList::tensor).collect::<Result<Vec<_>, _>>()?;
        <dyn Region>::of_fields(tensor, &options, |layout, options| {
            if selection.lists.is_empty() {
                return Ok(Arc::new(View::permuted(layout, selection, &in_memory)?));
            }
            let indexed = Indexed::select(layout, selection, &tensors)?;
            let gather = Gather::new(layout, indexed, options)?;
            let lists = bound.iter().map(|bound| bound.list.clone()).collect();
            Ok(Arc::new(Gathered { gather, lists }))
        })
    }

    /// What a selection with lists names of a tensor, to be written to, and the bytes of its lists.
    pub fn indexed(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
    ) -> Result<(Indexed, Vec<GatheredList>), Cause> {
        let lists = self.bind(selection)?;
        let tensors = lists.iter().map(BoundList::tensor).collect::<Result<Vec<_>, _>>()?;
        let indexed = Indexed::select(&layout(tensor)?, selection, &tensors)?;
        Ok((indexed, lists.into_iter().map(|bound| bound.list).collect()))
    }

    /// The bytes of all of them.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &GatheredList> {
        self.files.iter().map(|file| &file.list)
    }

    /// The files of all of them, each with its item in the expression.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Input, &TensorInfo)> {
        self.files.iter().map(|file| (file.item, file.input.as_ref(), &file.tensor))
    }

    /// The lists of a selection, typed ones too.
    fn bind(&self, selection: &Selection) -> Result<Vec<BoundList>, Cause> {
        let bind = |list: &SelectedList| match &list.positions {
            ListPositions::Known(positions) => Ok(BoundList::typed(list, positions)),
            ListPositions::Integers | ListPositions::Mask => {
                let mut files = self.files.iter();
                let file = files.find(|file| file.item == list.item);
                let file = file.ok_or(ListFault::NotOpened)?;
                let ListFile { tensor, mask, list, .. } = file.clone();
                Ok(BoundList { tensor, mask, list, has_tuples: false })
            }
        };
        selection.lists.iter().map(bind).collect()
    }
}

impl dyn Region {
    /// The bytes of a selection whose lists were typed, its axes in the order `axes`, in the memory
    /// order of the output.
    pub fn of(
        tensor: &TensorInfo,
        selection: &Selection,
        axes: &Permutation,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        Lists::default().region(tensor, selection, axes, order)
    }

    /// The same with the axes as they are.
    pub(crate) fn of_selection(
        tensor: &TensorInfo,
        selection: &Selection,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        let axes = Permutation::identity(selection.shape().len());
        <dyn Region>::of(tensor, selection, &axes, order)
    }
}

/// A list of a selection with its bytes.
pub(crate) struct BoundList {
    tensor: TensorInfo,
    mask: Option<Mask>,
    has_tuples: bool,
    pub(crate) list: GatheredList,
}

impl BoundList {
    /// A list whose positions are known.
    fn typed(list: &SelectedList, positions: &[u64]) -> BoundList {
        let bytes: Vec<u8> = positions.iter().flat_map(|at| at.to_le_bytes()).collect();
        let dtype = DType::Scalar(Scalar::U64, Endian::Little);
        let shape = [&list.shape[..], &[list.axes.len() as u64]].concat();
        let tensor = TensorInfo::new(dtype, shape, Order::C, 0);
        let list = GatheredList { source: Arc::new(MemorySource(bytes)), file: None };
        BoundList { tensor, mask: None, has_tuples: true, list }
    }

    /// What gather needs to know of it.
    pub(crate) fn tensor(&self) -> Result<ListTensor<'_>, Cause> {
        Ok(match &self.mask {
            Some(mask) => ListTensor::Mask(mask.clone()),
            None if self.has_tuples => ListTensor::Tuples(indices_of(&self.tensor)?),
            None => ListTensor::Integers(indices_of(&self.tensor)?),
        })
    }
}

/// Open one list.
fn open_list(
    item: usize,
    file: &FileRef,
    io: IoMode,
    workers: &Workers,
    progress: &Progress,
) -> Result<(ListFile, ListShape), Error> {
    let location = match file.is_stdin() {
        true => Location::Stdin,
        false => Location::of(Path::new(&file.path)),
    };
    let name: Vec<String> = file.name.iter().cloned().collect();
    let tensors = name.clone();
    let options =
        OpenOptions { io, integers: true, tensors, two_sums: true, ..OpenOptions::default() };
    let mut input = open_watched(&location, &options, progress)?;
    let tensor = input.tensor(&name)?;
    let name = FileName::from(&location);
    let source = input.nearby(&tensor, workers, progress)?;
    let source = decoded_bytes(&tensor, source, &name, workers, progress)?;
    let tensor = decoded_info(&tensor);
    let (shape, mask) = match &tensor.dtype {
        DType::Scalar(Scalar::Bool, _) => {
            let layout = layout(&tensor).map_err(|error| Error::file(name.clone(), error))?;
            let mask = Mask::count(&layout, source.as_ref(), workers, progress);
            source.verify().map_err(|error| Error::file(name.clone(), error))?;
            let mask = mask.map_err(|error| Error::file(name.clone(), error))?;
            let mask = if file.opposite { mask.opposite() } else { mask };
            let (shape, count) = (tensor.shape.clone(), mask.true_count());
            (ListShape::Mask { shape, count }, Some(mask))
        }
        dtype if file.opposite => {
            return Err(Error::file(name, ListFault::NotAMask(dtype.clone())));
        }
        dtype if is_integer(dtype) => {
            let indices = indices_of(&tensor);
            let indices = indices.map_err(|error| Error::file(name.clone(), error))?;
            let only = indices.only(source.as_ref());
            let only = only.map_err(|error| Error::file(name.clone(), error))?;
            let integer = only.map(|only| {
                i64::try_from(only).map_err(|_| Error::file(name.clone(), ListFault::Integer(only)))
            });
            let integer = integer.transpose()?.map(ListShape::Integer);
            (integer.unwrap_or_else(|| ListShape::Integers(tensor.shape.clone())), None)
        }
        dtype => return Err(Error::file(name, ListFault::DType(dtype.clone()))),
    };
    let list = GatheredList { source, file: Some(name) };
    Ok((ListFile { item, tensor, mask, list, input: Arc::new(input) }, shape))
}

/// A tensor as positions.
fn indices_of(tensor: &TensorInfo) -> Result<Indices<'_>, Cause> {
    Ok(Indices { dtype: &tensor.dtype, layout: layout(tensor)? })
}

fn is_integer(dtype: &DType) -> bool {
    use Scalar::{I8, I16, I32, I64, U8, U16, U32, U64};
    let DType::Scalar(scalar, _) = dtype else { return false };
    matches!(scalar, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

/// Why a list of an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    /// Neither integers nor booleans.
    #[error("arrays used as indices must be of integer (or boolean) type, not {0}")]
    DType(DType),
    /// The opposite of what is no mask.
    #[error("'~' is for masks, which are of dtype bool, not {0}")]
    NotAMask(DType),
    /// An integer past NumPy's.
    #[error("integer index {0} does not fit into 64 bits")]
    Integer(i128),
    /// Two lists are to be read from standard input.
    #[error("standard input can be one list only")]
    SecondStdin,
    /// The file of the list was never opened.
    #[error("the file of a list in the index has not been opened")]
    NotOpened,
}

impl Fault for ListFault {}
