//! The lists of an index that lie in files, opened.
//!
//! An index expression only names them. Here they are opened, and masks are counted, so that the
//! expression can be applied to a shape. Its selection of a tensor is a gather with the lists as
//! positions. Their elements are read in pieces while the result is written.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Region;
use super::indices::{Gathered, GatheredList};
use super::ordered::Ordered;
use super::strided::{decoded_bytes, decoded_info, layout};
use crate::dtype::{DType, Endian, Integers, Scalar};
use crate::error::{Cause, Error, ErrorKind, Fault, FileName, faults};
use crate::execute::{Progress, Workers, dense_window};
use crate::formats::open_watched;
use crate::gather::{self, Gather, Indexed, Indices, ListTensor, Mask, Truth, is_like_mask};
use crate::index::resolve::{
    ListPositions, ListShape, OtherPositions, ResolveError, Rules, SelectedList, Selection,
    Shuffled, resolve_named, resolve_with,
};
use crate::index::{Comparison, FileRef, IndexExpr, Item, List};
use crate::input::{CutBlocks, Input, Location, Notes, OpenOptions, PlainText};
use crate::runs::Runs;
use crate::shape::{Arrangement, AsTuple, MemoryAxes, Order, Permutation, Transposition};
use crate::source::{MemorySource, Source};
use crate::tensor::TensorInfo;
use crate::view::{Layout, View};

/// The end of a note about positions that look like a mask.
pub const MASK_MEANT: &str = "though it looks like a mask";

#[derive(Clone, Default)]
pub struct Lists {
    files: Vec<Arc<OpenList>>,
    shapes: Vec<ListShape>,
    workers: Workers,
    /// The receiver of notes about positions that may be meant as a mask.
    notes: Notes,
}

struct OpenList {
    item: usize,
    tensor: TensorInfo,
    kind: ListKind,
    list: GatheredList,
    /// The file that holds the list; `None` for a list in the index.
    input: Option<Input>,
}

/// The meaning of the bytes of a list.
enum ListKind {
    /// Known positions, in tuples on the last axis.
    Tuples,
    Integers {
        /// Whether all are bytes of 0 or 1.
        is_like_mask: bool,
    },
    Mask(Mask),
    /// A random order, which has no bytes.
    Shuffle(Shuffled),
    /// The positions that are not in the list, whose bytes are not needed any more.
    Others(OtherPositions),
}

/// An index whose files are open, to be applied to every tensor of a job.
#[derive(Clone, Copy)]
pub struct OpenIndex<'a> {
    pub expr: &'a IndexExpr,
    /// The rules by which the expression is applied.
    pub rules: Rules,
    /// The lists of the expression that lie in files.
    pub lists: &'a Lists,
}

/// A shape that an index is applied to, and the names of its axes where the index has names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexedShape {
    shape: Vec<u64>,
    names: Vec<Option<String>>,
}

impl OpenIndex<'_> {
    /// Add to a fingerprint all that decides the selection, except the bytes of files, which may
    /// have other paths elsewhere.
    pub(crate) fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(format!("{:?}", self.rules).as_bytes());
        add(format!("{:?}", self.expr.names).as_bytes());
        for item in &self.expr.items {
            let item = match item {
                Item::List(List::File(file)) => {
                    format!("{:?}", (&file.name, file.opposite, file.comparison))
                }
                item => format!("{item:?}"),
            };
            add(item.as_bytes());
        }
        self.lists.lists().try_for_each(|list| list.identify(add))
    }

    pub fn resolve(&self, tensor: &TensorInfo) -> Result<Selection, Cause> {
        Ok(self.lists.resolve_of(self.expr, tensor, self.rules)?)
    }

    /// The shape in elements of its selection of a tensor, even if that is stored in blocks.
    pub fn element_shape(&self, tensor: &TensorInfo) -> Result<Vec<u64>, Cause> {
        Ok(self.lists.resolve_elements(self.expr, tensor, self.rules)?.shape())
    }

    /// The arrangement of the axes of its selection of a tensor.
    pub fn arrange(
        tensor: &TensorInfo,
        selection: &Selection,
        how: &Transposition,
    ) -> Result<Arrangement, Cause> {
        arrange_axes(tensor, selection.shape(), &selection.source_axes(), how)
    }

    /// The properties of a tensor that its selection depends on.
    pub(crate) fn indexed_shape(&self, tensor: &TensorInfo) -> IndexedShape {
        let names = if self.expr.is_named() { tensor.axis_names() } else { Vec::new() };
        IndexedShape { shape: tensor.shape.clone(), names }
    }

    /// Check all positions in the files of lists, for tensors of these shapes.
    pub(crate) fn check_lists(&self, shapes: &BTreeSet<IndexedShape>) -> Result<(), Error> {
        if self.lists.is_empty() {
            return Ok(());
        }
        shapes.iter().try_for_each(|IndexedShape { shape, names }| {
            let names = || names.clone();
            let selection = self.lists.resolve_shape(self.expr, shape, names, self.rules)?;
            self.lists.check(&selection)
        })
    }

    /// The region of its selection of a tensor, in the memory order of the output.
    pub(crate) fn region(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        let axes = Permutation::identity(selection.shape().len());
        self.lists.region(tensor, selection, &axes.in_memory(order).into())
    }
}

/// The arrangement of axes of the lengths `shape`; `axes` are the tensor's axes that they come
/// from. Lengths of a pattern count elements, even if these are stored in blocks.
pub(crate) fn arrange_axes(
    tensor: &TensorInfo,
    mut shape: Vec<u64>,
    axes: &[Option<usize>],
    how: &Transposition,
) -> Result<Arrangement, Cause> {
    let names = if how.has_names() { tensor.dimension_names(axes) } else { Vec::new() };
    let last = tensor.shape.len().checked_sub(1);
    let place = axes.iter().position(|axis| axis.is_some() && *axis == last);
    let (Some(block), Some(place)) = (tensor.dtype.blocks(), place) else {
        return Ok(how.of(&shape, &names)?);
    };
    shape[place] = shape[place].saturating_mul(block.elements);
    let arranged = how.of(&shape, &names)?.in_blocks(place, block.elements);
    Ok(arranged.ok_or(CutBlocks(block.elements))?)
}

/// A list of an index that cannot be used, and the index's item.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ListError {
    pub item: usize,
    pub error: Error,
}

impl Fault for ListError {
    fn kind(&self) -> ErrorKind {
        self.error.kind()
    }
}

impl Lists {
    /// Open the files that an expression names, and count their masks. Files may hold integers as text.
    pub fn open(expr: &IndexExpr) -> Result<Lists, Error> {
        let lists = Lists::open_watched(expr, &OpenOptions::default(), &Progress::default());
        lists.map_err(|fault| fault.error)
    }

    /// Open the lists with the workers of `options`, which also check positions later. Another
    /// thread may watch the progress of counting, or of reading a pipe: [`Progress::keeping`]. Of
    /// the options, those count that say how files are read, not what is selected.
    pub fn open_watched(
        expr: &IndexExpr,
        options: &OpenOptions,
        progress: &Progress,
    ) -> Result<Lists, ListError> {
        let OpenOptions { workers, notes, .. } = options.clone();
        let mut lists = Lists { workers, notes, ..Lists::default() };
        let files = expr.items.iter().enumerate().filter_map(|(item, wanted)| match wanted {
            Item::List(List::File(file)) => Some((item, file)),
            _ => None,
        });
        let second_stdin = files.clone().filter(|(_, file)| file.is_stdin()).nth(1);
        if let Some((item, _)) = second_stdin {
            return Err(ListError { item, error: ListFault::SecondStdin.into() });
        }
        for (item, file) in files {
            let opened = open_list(item, file, options, progress);
            let (list, shape) = opened.map_err(|error| ListError { item, error })?;
            lists.files.push(Arc::new(list));
            lists.shapes.push(shape);
        }
        Ok(lists)
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Apply the expression of the lists to a shape.
    pub fn resolve(
        &self,
        expr: &IndexExpr,
        shape: &[u64],
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        self.resolve_shape(expr, shape, Vec::new, rules)
    }

    /// Apply the expression to the elements of a tensor, even if these are stored in blocks.
    pub fn resolve_elements(
        &self,
        expr: &IndexExpr,
        tensor: &TensorInfo,
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        self.resolve_shape(expr, &tensor.element_shape(), || tensor.axis_names(), rules)
    }

    /// Apply the expression to a shape, whose axes have `names`.
    fn resolve_shape(
        &self,
        expr: &IndexExpr,
        shape: &[u64],
        names: impl FnOnce() -> Vec<Option<String>>,
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        let resolved = if expr.is_named() {
            resolve_named(expr, shape, &names(), rules, &self.shapes)
        } else {
            resolve_with(expr, shape, rules, &self.shapes)
        };
        resolved.map_err(|mut error| {
            error.before.source_shape = shape.to_vec();
            error
        })
    }

    /// Apply the expression to a tensor: the index counts elements, even if these are stored in
    /// blocks.
    pub fn resolve_of(
        &self,
        expr: &IndexExpr,
        tensor: &TensorInfo,
        rules: Rules,
    ) -> Result<Selection, ResolveError> {
        let block = tensor.dtype.blocks().map(|block| block.elements);
        let selection = self.resolve_elements(expr, tensor, Rules { block, ..rules })?;
        self.note_masks(&selection);
        Ok(selection)
    }

    /// Note that positions may be meant as a mask: bytes of 0 and 1 whose shape is that of the axes
    /// that they index.
    fn note_masks(&self, selection: &Selection) {
        let files = selection.lists.iter().filter_map(|list| {
            let file = self.files.iter().find(|file| file.item == list.item)?;
            let is_like_mask = matches!(file.kind, ListKind::Integers { is_like_mask: true });
            let shape = &selection.source_shape[list.axes.start..];
            (is_like_mask && shape.starts_with(&file.tensor.shape)).then_some((list, file))
        });
        for (list, positions) in files {
            let tensor = &positions.tensor;
            let file =
                positions.list.file.iter().map(|file| format!("{file}: ")).collect::<String>();
            let shape = AsTuple(&tensor.shape);
            let dtype = &tensor.dtype;
            self.notes.add(format_args!(
                "{file}{dtype} of shape {shape} is taken as positions 0 and 1 on axis {}, {MASK_MEANT}",
                list.axes.start
            ));
        }
    }

    pub fn check(&self, selection: &Selection) -> Result<(), Error> {
        if self.files.is_empty() {
            return Ok(());
        }
        // the kind of elements does not matter here
        let layout = Layout::new(&selection.source_shape, 8, Order::C, 0);
        let (indexed, lists) = self.select(&layout, selection)?;
        let gather = Gather::new(&layout, indexed, &gather::Options::default())?;
        let checked = gather.check(&GatheredList::sources(&lists), &self.workers);
        checked.map_err(|error| GatheredList::failed(&lists, error))
    }

    /// Check the lists in files before the item of a typed list with a wrong value: NumPy checks
    /// one list after the other, and reports the first bad position.
    pub fn check_before(&self, error: &ResolveError) -> Result<(), Error> {
        if error.before.lists.is_empty() { Ok(()) } else { self.check(&error.before) }
    }

    /// The region of a selection of a tensor, with its axes as they are in the memory of the
    /// output.
    pub fn region(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
        axes: &MemoryAxes,
    ) -> Result<Arc<dyn Region>, Cause> {
        Ordered::unless_strided(tensor, &selection.shape(), axes, |axes| {
            self.direct(tensor, selection, axes)
        })
    }

    /// The region of a selection whose axes are not split, or have strides.
    fn direct(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
        axes: &MemoryAxes,
    ) -> Result<Arc<dyn Region>, Cause> {
        let options = gather::Options::default().arranged(axes);
        <dyn Region>::of_fields(tensor, &options, |layout, options| {
            if selection.lists.is_empty() {
                return Ok(Arc::new(View::arranged(layout, selection, axes)?));
            }
            let (indexed, lists) = self.select(layout, selection)?;
            let gather = Gather::new(layout, indexed, options)?;
            Ok(Arc::new(Gathered { gather, lists }))
        })
    }

    /// The elements that a selection with lists names, to be written, and the bytes of the lists.
    pub fn indexed(
        &self,
        tensor: &TensorInfo,
        selection: &Selection,
    ) -> Result<(Indexed, Vec<GatheredList>), Cause> {
        self.select(&layout(tensor)?, selection)
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = &GatheredList> {
        self.files.iter().map(|file| &file.list)
    }

    /// The files of all lists, each with its item in the expression.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Input, &TensorInfo)> {
        self.files.iter().filter_map(|list| Some((list.item, list.input.as_ref()?, &list.tensor)))
    }

    /// The tensors of the lists.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.files.iter().map(|list| &list.tensor)
    }

    /// The elements that a selection with lists names in this layout, and the bytes of the lists,
    /// typed ones too.
    fn select(
        &self,
        layout: &Layout<'_>,
        selection: &Selection,
    ) -> Result<(Indexed, Vec<GatheredList>), Cause> {
        let open = |list: &SelectedList| match &list.positions {
            ListPositions::Known(positions) => {
                let bytes = positions.iter().flat_map(|at| at.to_le_bytes()).collect();
                Ok(Arc::new(OpenList::in_memory(list, ListKind::Tuples, bytes)))
            }
            ListPositions::Shuffle(shuffled) => {
                let kind = ListKind::Shuffle(*shuffled);
                Ok(Arc::new(OpenList::in_memory(list, kind, Vec::new())))
            }
            ListPositions::Others(others) => {
                let kind = ListKind::Others(others.clone());
                Ok(Arc::new(OpenList::in_memory(list, kind, Vec::new())))
            }
            ListPositions::Integers | ListPositions::Mask => {
                let file = self.files.iter().find(|file| file.item == list.item);
                file.cloned().ok_or(ListFault::NotOpened)
            }
        };
        let lists = selection.lists.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let tensors = lists.iter().map(|list| list.tensor()).collect::<Result<Vec<_>, _>>()?;
        let indexed = Indexed::select(layout, selection, &tensors)?;
        Ok((indexed, lists.iter().map(|list| list.list.clone()).collect()))
    }
}

impl dyn Region {
    /// The region of a selection whose lists were typed, with its axes in the order `axes`, in the
    /// memory order of the output.
    pub fn of(
        tensor: &TensorInfo,
        selection: &Selection,
        axes: &Permutation,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        Lists::default().region(tensor, selection, &axes.in_memory(order).into())
    }

    /// The region of a selection with its axes in their order.
    pub(crate) fn whole(tensor: &TensorInfo, order: Order) -> Result<Arc<dyn Region>, Cause> {
        <dyn Region>::of_selection(tensor, &Selection::whole(&tensor.shape), order)
    }

    pub(crate) fn of_selection(
        tensor: &TensorInfo,
        selection: &Selection,
        order: Order,
    ) -> Result<Arc<dyn Region>, Cause> {
        let axes = Permutation::identity(selection.shape().len());
        <dyn Region>::of(tensor, selection, &axes, order)
    }
}

impl OpenList {
    fn in_memory(list: &SelectedList, kind: ListKind, bytes: Vec<u8>) -> OpenList {
        let dtype = DType::Scalar(Scalar::U64, Endian::Little);
        let shape = [&list.shape[..], &[list.axes.len() as u64]].concat();
        let tensor = TensorInfo::new(dtype, shape, Order::C, 0);
        let source = Arc::new(MemorySource(bytes));
        let item = list.item;
        let list = GatheredList { source, file: None };
        OpenList { item, tensor, kind, list, input: None }
    }

    fn tensor(&self) -> Result<ListTensor<'_>, Cause> {
        Ok(match &self.kind {
            ListKind::Tuples => ListTensor::Tuples(indices_of(&self.tensor)?),
            ListKind::Integers { .. } => ListTensor::Integers(indices_of(&self.tensor)?),
            ListKind::Mask(mask) => ListTensor::Mask(mask.clone()),
            ListKind::Shuffle(shuffled) => ListTensor::Shuffle(*shuffled),
            ListKind::Others(others) => ListTensor::Others(others.clone()),
        })
    }
}

fn open_list(
    item: usize,
    file: &FileRef,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<(OpenList, ListShape), Error> {
    let path = Path::new(&file.path);
    let location = if file.is_stdin() { Location::Stdin } else { Location::of(path) };
    let chosen: Vec<String> = file.name.iter().cloned().collect();
    let tensors = chosen.clone();
    let plain_text = match file.comparison {
        Some(_) => PlainText::Numbers,
        None => PlainText::Integers,
    };
    let OpenOptions { io, unpack, workers, notes, .. } = options.clone();
    let options =
        OpenOptions { io, unpack, plain_text, tensors, workers, notes, ..OpenOptions::default() };
    let workers = &options.workers;
    let mut input = open_watched(&location, &options, progress)?;
    let stored = input.tensor(&chosen)?;
    let name = FileName::from(&location);
    let source = input.nearby(&stored, workers, progress)?;
    let source = decoded_bytes(&stored, source, &name, workers, progress)?;
    let tensor = decoded_info(&stored);
    let look = look_at(&tensor, source.as_ref(), file, workers, progress);
    let (shape, kind) = look.map_err(|cause| Error::file(name.clone(), cause))?;
    let list = GatheredList { source, file: Some(name) };
    Ok((OpenList { item, tensor, kind, list, input: Some(input) }, shape))
}

/// The properties of a list that the index needs before it is applied; the true elements of a mask
/// are counted.
fn look_at(
    tensor: &TensorInfo,
    source: &dyn Source,
    &FileRef { opposite, comparison, .. }: &FileRef,
    workers: &Workers,
    progress: &Progress,
) -> Result<(ListShape, ListKind), Cause> {
    let dtype = &tensor.dtype;
    let shape = tensor.shape.clone();
    if let Some(truth) = truth_of(dtype, comparison)? {
        let counted = Mask::count(&layout(tensor)?, truth, source, workers, progress);
        source.verify()?;
        let mask = if opposite { counted?.opposite() } else { counted? };
        let shape = ListShape::Mask { shape, count: mask.true_count() };
        return Ok((shape, ListKind::Mask(mask)));
    }
    let Some(integers) = Integers::new(dtype) else {
        return Err(ListFault::DType(dtype.clone()).into());
    };
    let only = indices_of(tensor)?.only(source)?;
    let list_shape = match only {
        _ if opposite => ListShape::Others(integers_of(tensor, source, integers.wrapped())?.into()),
        None => ListShape::Integers(shape),
        Some(only) => {
            ListShape::Integer(i64::try_from(only).map_err(|_| ListFault::Integer(only))?)
        }
    };
    let is_bytes = dtype.item_bits() == 8 && only.is_none();
    // one or two may be an order of their axis
    let repeats = tensor.shape.iter().product::<u64>() > 2;
    let is_like_mask = is_bytes && repeats && is_like_mask(&layout(tensor)?, source)?;
    Ok((list_shape, ListKind::Integers { is_like_mask }))
}

/// The test of true elements, if the list is a mask or a comparison makes one of it.
fn truth_of(dtype: &DType, comparison: Option<Comparison>) -> Result<Option<Truth>, ListFault> {
    match (comparison, dtype) {
        (Some(comparison), _) => match Truth::new(dtype, comparison) {
            Some(truth) => Ok(Some(truth)),
            None => Err(ListFault::NotCompared(dtype.clone())),
        },
        (None, DType::Scalar(Scalar::Bool, _)) => Ok(Some(Truth::of_mask())),
        (None, _) => Ok(None),
    }
}

/// The most positions that are excluded: they are held in memory.
const MOST_LEFT_OUT: u64 = 1 << 21;

/// All integers of a list whose positions are excluded.
fn integers_of(
    tensor: &TensorInfo,
    source: &dyn Source,
    integers: Integers,
) -> Result<Vec<i64>, Cause> {
    let width = integers.width as u64;
    let count = tensor.bytes() / width;
    if count > MOST_LEFT_OUT {
        return Err(ListFault::MostLeftOut(count).into());
    }
    let layout = layout(tensor)?;
    let runs = Runs { offset: layout.offset() as i64, axes: layout.axes()?, run: width };
    let runs = runs.coalesced();
    let mut scratch = Vec::new();
    let mut buffer = Vec::new();
    let bytes = dense_window(&runs, 0..count * width, source, &mut scratch, &mut buffer)?;
    let value = |bytes: &[u8]| {
        let value = integers.value(bytes);
        i64::try_from(value).map_err(|_| ListFault::Integer(value))
    };
    let values = bytes.chunks_exact(integers.width).map(value).collect::<Result<_, _>>()?;
    source.verify()?;
    Ok(values)
}

fn indices_of(tensor: &TensorInfo) -> Result<Indices<'_>, Cause> {
    Ok(Indices { dtype: &tensor.dtype, layout: layout(tensor)? })
}

#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    #[error("arrays used as indices must be of integer (or boolean) type, not {0}")]
    DType(DType),
    #[error("only numbers and booleans can be compared with a number, not {0}")]
    NotCompared(DType),
    #[error(
        "'~' leaves out at most {MOST_LEFT_OUT} positions of a list, not {0}: a mask may have any number"
    )]
    MostLeftOut(u64),
    #[error("integer index {0} does not fit into 64 bits")]
    Integer(i128),
    #[error("standard input can be one list only")]
    SecondStdin,
    #[error("the file of a list in the index has not been opened")]
    NotOpened,
}

faults!(Index: ListFault);
