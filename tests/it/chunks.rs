//! A tensor in chunks, through the jobs of the library: what comes out is what comes out of the same
//! elements one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tslice::cast::Casting;
use tslice::compare::Rule;
use tslice::dtype::{DType, Endian, Field, NpyType, Scalar, Structure};
use tslice::error::Error;
use tslice::execute::{self, Conversion, Pieces, Progress, StridedSink, Transfer, Workers};
use tslice::formats::raw;
use tslice::index::numpy;
use tslice::index::resolve::{Rules, Selection, resolve};
use tslice::input::{Contents, Input, Location, Metadata, Transform};
use tslice::job::{
    self, Casts, Chosen, CompareOptions, Comparing, Copying, GatherOptions, Job, Operand, Reduced,
    Select, SliceOptions, SlicesOptions,
};
use tslice::join::{Join, JoinMember};
use tslice::output::{Output, WriteOptions};
use tslice::print;
use tslice::region::{IndexTensor, Lists, OpenIndex, ReadBy, ReadFor, Region, RegionPieces};
use tslice::runs::{Axis, Runs};
use tslice::shape::{AskedAxis, Order, Permutation, Transposition};
use tslice::sink::{Destination, WriteOrder};
use tslice::source::{MemorySource, Source, SourceError};
use tslice::statistics::Reduction;
use tslice::tensor::{Chunks, StorageKind, TensorInfo};

use crate::memory::Memory;

/// The elements of a tensor, of which chunks are given out; how often each was is counted.
#[derive(Debug)]
pub(crate) struct Grid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    item: u64,
    elements: Vec<u8>,
    pub(crate) decoded: Mutex<BTreeMap<Vec<u64>, u64>>,
}

impl Grid {
    pub(crate) fn new(shape: &[u64], chunk: &[u64], item: u64, elements: &[u8]) -> Arc<Grid> {
        let (shape, chunk, elements) = (shape.to_vec(), chunk.to_vec(), elements.to_vec());
        Arc::new(Grid { shape, chunk, item, elements, decoded: Mutex::default() })
    }

    /// A tensor that is stored this way, in an input of one byte that is no element.
    pub(crate) fn tensor(self: &Arc<Grid>, dtype: &DType) -> TensorInfo {
        let mut tensor = TensorInfo::new(dtype.clone(), self.shape.clone(), Order::C, 0);
        tensor.storage.data = 0..1;
        tensor.storage.kind = StorageKind::Chunks(Arc::clone(self) as Arc<dyn Chunks>);
        tensor
    }
}

impl Chunks for Grid {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        assert_eq!(source.window(0..1, &mut Vec::new())?, [7], "the bytes of the input");
        *self.decoded.lock().unwrap().entry(at.to_vec()).or_default() += 1;
        let first = |axis: usize| at[axis] * self.chunk[axis];
        let lens: Vec<u64> = (0..at.len())
            .map(|axis| self.chunk[axis].min(self.shape[axis] - first(axis)))
            .collect();
        let mut out = vec![0; (lens.iter().product::<u64>() * self.item) as usize];
        for (number, out) in out.chunks_exact_mut(self.item as usize).enumerate() {
            let (mut rest, mut from, mut stride) = (number as u64, 0, self.item);
            for axis in (0..at.len()).rev() {
                from += (first(axis) + rest % lens[axis]) * stride;
                rest /= lens[axis];
                stride *= self.shape[axis];
            }
            out.copy_from_slice(&self.elements[from as usize..][..self.item as usize]);
        }
        out.truncate(usize::try_from(needed).unwrap_or(usize::MAX));
        Ok(out)
    }
}

/// The bytes of an input whose tensors are all in chunks.
pub(crate) fn source() -> MemorySource {
    MemorySource(vec![7])
}

const SHAPE: [u64; 3] = [7, 40, 30];
const FLOAT: DType = DType::Scalar(Scalar::F32, Endian::Little);

fn elements() -> Vec<u8> {
    (0..7 * 40 * 30).flat_map(|at| ((at * 37 % 1009) as f32).to_le_bytes()).collect()
}

/// A tensor in chunks, and as it is without them.
fn tensors() -> [(TensorInfo, Arc<dyn Source>); 2] {
    let chunks = Grid::new(&SHAPE, &[2, 16, 7], 4, &elements()).tensor(&FLOAT);
    let plain = TensorInfo::new(FLOAT, SHAPE.to_vec(), Order::C, 0);
    [(chunks, Arc::new(source())), (plain, Arc::new(MemorySource(elements())))]
}

fn input(path: &Path, (tensor, source): (TensorInfo, Arc<dyn Source>)) -> Input {
    let named = TensorInfo { name: Some("a".to_owned()), ..tensor };
    let tensors = Arc::new([named].into_iter().collect());
    let contents =
        Contents { format: &raw::FORMAT, tensors, metadata: Metadata::default(), header_len: 0 };
    Input::of_source(&Location::Path(path.to_owned()), source, contents)
}

fn compare_options<'a>(index: OpenIndex<'a>, workers: &Workers) -> CompareOptions<'a> {
    CompareOptions {
        renames: vec![],
        dtypes: false,
        tensors: Vec::new(),
        transform: Transform::default(),
        index,
        rule: Rule::default(),
        workers: workers.clone(),
    }
}

/// What a job writes of both tensors, whole and in three parts: four times the same.
fn same<'a>(extension: &str, make: &dyn Fn(Input, Output) -> Copying<'a>) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("input"), [7]).unwrap();
    let mut written: Vec<Vec<u8>> = Vec::new();
    for (number, tensor) in tensors().into_iter().enumerate() {
        for parts in [1, 3] {
            let to = path(&format!("{number}-{parts}.{extension}"));
            let output = Output::new(Destination::Path(to.clone()), WriteOptions::default());
            let mut job = make(input(&path("input"), tensor.clone()), output.unwrap());
            let progress = Progress::default();
            if parts == 1 {
                job.check().unwrap();
                job.write(&progress).unwrap();
            } else {
                let mut divided = job.parts(parts).unwrap();
                (0..parts).for_each(|index| divided.write(index, &progress).unwrap());
            }
            written.push(fs::read(to).unwrap());
        }
    }
    assert!(written.windows(2).all(|two| two[0] == two[1]));
    written.remove(0)
}

#[test]
fn slices_and_gathers_are_those_of_the_elements() {
    for (index, transpose, cast) in [
        ("[2]", Transposition::None, None),
        ("[::-1, 3::5, None, -4:]", Transposition::Reversed, None),
        ("[..., [3, 3, 29, 0]]", Transposition::None, None),
        ("[[6, 0], :, [1, 2]]", Transposition::Reversed, None),
        ("[1:, :33]", Transposition::None, Some(DType::Scalar(Scalar::F64, Endian::Big))),
    ] {
        let expr = numpy::parse(index).unwrap().expr;
        let (rules, lists) = (Rules::default(), Lists::default());
        let casts = cast.map(|cast| Casts::new(vec![(None, cast)], Casting::default()));
        let options = SliceOptions {
            select: Select::default(),
            transform: Transform::default(),
            index: OpenIndex { expr: &expr, rules, lists: &lists },
            transpose,
            casts: casts.unwrap_or_default(),
        };
        let written =
            same("npy", &|input, output| Copying::slice(input, &options, output).unwrap());
        assert!(written.len() > 400, "{index}");
    }
    let indices = IndexTensor::from(&[39, 0, 17, 16, 15]);
    let options = GatherOptions {
        axis: Some(1),
        how: Default::default(),
        transpose: Transposition::None,
        casts: Casts::default(),
    };
    same("npy", &|input, output| {
        let tensor = input.tensor(&[]).unwrap();
        Copying::gather(input, &tensor, &indices, &options, output).unwrap()
    });
}

#[test]
fn what_is_looked_at_is_the_same() {
    let path = Path::new("chunks");
    let index = |text: &str| numpy::parse(text).unwrap().expr;
    let (rules, lists, workers) = (Rules::default(), Lists::default(), Workers::new(2));
    for text in ["[:]", "[::2, 39, 3:]", "[:, [1, 30, 2]]"] {
        let expr = &index(text);
        let index = OpenIndex { expr, rules, lists: &lists };
        let shown = tensors().map(|tensor| {
            let mut input = input(path, tensor);
            let transpose = Transposition::Reversed;
            let chosen = Chosen::all(&mut input, &[0], &Transform::default(), index, &transpose)
                .unwrap()
                .remove(0);
            let statistics = chosen.statistics(&mut input, &workers, &Progress::default()).unwrap();
            let mut text = format!("{statistics:?}\n");
            let mut elements = chosen.elements::<Error>(&mut input).unwrap();
            let options =
                print::PrintOptions { threshold: u64::MAX, ..print::PrintOptions::default() };
            print::print(&chosen.dtype, &chosen.shape, &options, &mut elements, &mut |part| {
                text.push_str(part);
                Ok(())
            })
            .unwrap();
            text
        });
        assert_eq!(shown[0], shown[1]);
        let options = compare_options(index, &workers);
        for swap in [false, true] {
            let mut both = tensors().map(|tensor| input(path, tensor));
            if swap {
                both.reverse();
            }
            let differences = Comparing::new(both, &options).unwrap();
            assert!(!differences.run(&Progress::default()).unwrap().any());
        }
    }
}

#[test]
fn a_tensor_in_chunks_is_joined_with_another() {
    let [(chunks, bytes), _] = tensors();
    let region = |tensor: &TensorInfo| {
        let everything = Selection::whole(&tensor.shape);
        let axes = Permutation::identity(tensor.shape.len());
        <dyn Region>::of(tensor, &everything, &axes, Order::C).unwrap()
    };
    let region = region(&chunks);
    // itself twice along the last axis: rows of 30 elements
    let row = 30 * 4;
    let expected: Vec<u8> = elements().chunks(row).flat_map(|row| [row, row].concat()).collect();
    let (workers, conversion) = (&Workers::new(2), Conversion::None);
    let prepared = |to| {
        let by = ReadBy {
            source: bytes.as_ref(),
            conversion,
            unit: 1,
            to,
            workers,
            progress: &Progress::default(),
        };
        region.pieces(&by).unwrap().pieces
    };
    let (source, progress) = (bytes.as_ref(), Progress::default());
    let parts = [0, 1].map(|_| JoinMember::of_pieces(prepared(ReadFor::Memory)));
    let join = Join::new(parts.into(), 7 * 40, 2 * row as u64, 1);
    let sink = Memory::new(join.bytes(), WriteOrder::Ascending);
    let transfer = Transfer { source, pieces: &join, conversion, at: 0 };
    execute::run(&[transfer], &sink, workers, &progress).unwrap();
    assert!(sink.into_bytes() == expected);

    let sink = Memory::new(expected.len() as u64, WriteOrder::Any);
    for at in [0, row as i64] {
        let axes = vec![Axis { len: 7 * 40, stride: 2 * row as i64 }];
        let rows = Runs { offset: at, axes, run: row as u64 };
        let pieces = prepared(ReadFor::Position(0));
        let transfer = Transfer { source, pieces: pieces.as_ref(), conversion, at: 0 };
        execute::run(&[transfer], &StridedSink::new(&sink, &rows), workers, &progress).unwrap();
    }
    assert!(sink.into_bytes() == expected);
}

#[test]
fn indices_in_chunks_are_decoded_once() {
    let (dtype, shape) = (DType::Scalar(Scalar::I16, Endian::Big), [2, 9]);
    let positions = [39, 0, 17, 16, 15, 0, 1, 2, 3, 38, 4, 4, 5, 6, 7, 8, 9, 10];
    let bytes: Vec<u8> = positions.iter().flat_map(|at: &i16| at.to_be_bytes()).collect();
    let grid = Grid::new(&shape, &[1, 4], 2, &bytes);
    let file = tempfile::NamedTempFile::new().unwrap();
    let input_of = |tensor| input(file.path(), (tensor, Arc::new(source())));
    let indices = Operand::of_input(input_of(grid.tensor(&dtype)), &[]).unwrap();
    let indices = indices.into_indices(&Workers::new(2), &Progress::default()).unwrap();
    assert_eq!((&*indices.info.shape, &indices.info.dtype), (&shape[..], &dtype));
    let options = GatherOptions {
        axis: Some(1),
        how: Default::default(),
        transpose: Transposition::None,
        casts: Casts::default(),
    };
    let gathered = |indices: &IndexTensor| {
        same("npy", &|input, output| {
            let tensor = input.tensor(&[]).unwrap();
            Copying::gather(input, &tensor, indices, &options, output).unwrap()
        })
    };
    let plain = IndexTensor::new(&positions.map(i64::from), shape.to_vec());
    assert!(gathered(&indices) == gathered(&plain));
    let decoded = grid.decoded.lock().unwrap();
    assert_eq!((decoded.len(), decoded.values().sum::<u64>()), (6, 6));
}

#[test]
fn fields_are_taken_of_structures_in_chunks() {
    let field = |name: &str, dtype: &DType, shape: &[u64], offset| Field {
        is_named: true,
        name: name.to_owned(),
        title: None,
        dtype: dtype.clone(),
        shape: shape.to_vec(),
        nesting: Vec::new(),
        offset,
    };
    let (byte, short) = (Scalar::U8, DType::Scalar(Scalar::I16, Endian::Little));
    let byte = DType::Scalar(byte, Endian::Little);
    let fields = vec![field("v", &short, &[3], 0), field("id", &byte, &[], 7)];
    let dtype = DType::Npy(NpyType::Structure(Arc::new(Structure { fields, itemsize: 9 })));
    let elements: Vec<u8> = (0..9 * 10 * 6u32).map(|at| ((at * 31) >> 3) as u8).collect();
    let (rules, lists) = (Rules::default(), Lists::default());
    let chunks = Grid::new(&[10, 6], &[4, 5], 9, &elements).tensor(&dtype);
    let plain = TensorInfo::new(dtype, vec![10, 6], Order::C, 0);
    for (fields, index) in [("v", "[::-3, 1:, 2]"), ("id", "[:, [5, 0]]"), ("id,v", "[1:]")] {
        let expr = &numpy::parse(index).unwrap().expr;
        let taken = [
            (chunks.clone(), Arc::new(source()) as Arc<dyn Source>),
            (plain.clone(), Arc::new(MemorySource(elements.clone()))),
        ]
        .map(|tensor| {
            let mut input = input(Path::new("chunks"), tensor);
            let index = OpenIndex { expr, rules, lists: &lists };
            let transform = Transform { fields: Some(fields.to_owned()), ..Transform::default() };
            let chosen = Chosen::all(&mut input, &[0], &transform, index, &Transposition::None);
            let chosen = chosen.unwrap().remove(0);
            let mut bytes = vec![0; chosen.bytes() as usize];
            let mut elements = chosen.elements::<Error>(&mut input).unwrap();
            elements(0, &mut bytes).unwrap();
            (chosen.shape.clone(), bytes)
        });
        assert_eq!(taken[0], taken[1], "{fields}");
    }
}

#[test]
fn what_needs_many_chunks_at_a_time_is_put_in_order_in_a_file() {
    // rows of 256 chunks of 128 KiB each: no cache holds those of two rows
    let (shape, item) = ([4, 4096], 4096);
    let elements: Vec<u8> = (0..4 * 4096 * 4096u64).map(|at| (at >> 11) as u8).collect();
    let dtype = DType::Npy(NpyType::Bytes(item));
    let grid = Grid::new(&shape, &[2, 16], item, &elements);
    let expr = numpy::parse("[::-1, ::9]").unwrap().expr;
    let selection = resolve(&expr, &shape, false).unwrap();
    let axes = Permutation::identity(2);
    let region = <dyn Region>::of(&grid.tensor(&dtype), &selection, &axes, Order::C).unwrap();
    let (workers, conversion) = (&Workers::new(2), Conversion::None);
    let by = ReadBy {
        source: &source(),
        conversion,
        unit: 1,
        to: ReadFor::Stream,
        workers,
        progress: &Progress::default(),
    };
    let RegionPieces { pieces, copied } = region.pieces(&by).unwrap();
    let source = copied.unwrap();
    let sink = Memory::new(region.bytes(), WriteOrder::Ascending);
    let pieces = pieces.as_ref();
    let transfer = Transfer { source: source.as_ref(), pieces, conversion, at: 0 };
    execute::run(&[transfer], &sink, workers, &Progress::default()).unwrap();
    let rows = elements.chunks(4096 * 4096).rev();
    let items = rows.flat_map(|row| row.chunks(4096).step_by(9));
    assert!(sink.into_bytes() == items.flatten().copied().collect::<Vec<u8>>());
    let decoded = grid.decoded.lock().unwrap();
    assert!(decoded.len() == 512 && decoded.values().all(|times| *times == 1));
}

/// Chunks of more bytes than are kept in memory, each filled with a number of its own.
#[derive(Debug)]
struct Filled {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    decoded: Mutex<BTreeMap<Vec<u64>, u64>>,
}

impl Filled {
    fn new(chunk: [u64; 3]) -> Arc<Filled> {
        let decoded = Mutex::default();
        Arc::new(Filled { shape: LARGE.to_vec(), chunk: chunk.to_vec(), decoded })
    }

    fn lens(&self, at: &[u64]) -> Vec<u64> {
        let axes = self.shape.iter().zip(&self.chunk).zip(at);
        axes.map(|((len, chunk), at)| (*chunk).min(len - at * chunk)).collect()
    }

    fn value(at: &[u64]) -> [u8; 8] {
        ((at[0] * 7919 + at[1] * 104_729 + at[2] * 31) as f64 % 1009.0 - 500.0).to_le_bytes()
    }

    fn elements(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.shape.iter().product::<u64>() as usize * 8);
        for (z, y) in (0..self.shape[0]).flat_map(|z| (0..self.shape[1]).map(move |y| (z, y))) {
            for x in (0..self.shape[2]).step_by(self.chunk[2] as usize) {
                let at = [z / self.chunk[0], y / self.chunk[1], x / self.chunk[2]];
                all.extend(Filled::value(&at).repeat(self.lens(&at)[2] as usize));
            }
        }
        all
    }

    fn input(self: &Arc<Filled>) -> Input {
        let mut tensor = TensorInfo::new(DOUBLE, self.shape.clone(), Order::C, 0);
        tensor.storage.data = 0..1;
        tensor.storage.kind = StorageKind::Chunks(Arc::clone(self) as Arc<dyn Chunks>);
        input(Path::new("chunks"), (tensor, Arc::new(source())))
    }

    /// Make sure that a job decoded as many chunks as there are, each once, and begin anew.
    fn check(&self, what: &str) {
        self.check_some(what, self.shape[2].div_ceil(self.chunk[2]));
    }

    /// Make sure that a job decoded the chunks at so many places along the last axis, each once, and begin anew.
    fn check_some(&self, what: &str, along_last: u64) {
        let decoded = std::mem::take(&mut *self.decoded.lock().unwrap());
        let outer = |axis: usize| self.shape[axis].div_ceil(self.chunk[axis]);
        let chunks = outer(0) * outer(1) * along_last;
        let times = decoded.values().sum::<u64>();
        assert_eq!((decoded.len() as u64, times), (chunks, chunks), "{what} {:?}", self.chunk);
    }
}

impl Chunks for Filled {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], needed: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
        *self.decoded.lock().unwrap().entry(at.to_vec()).or_default() += 1;
        let mut bytes = Filled::value(at).repeat(self.lens(at).iter().product::<u64>() as usize);
        bytes.truncate(usize::try_from(needed).unwrap_or(usize::MAX));
        Ok(bytes)
    }
}

/// A result for each row of the first axis has more elements than have summaries in memory at a time.
const LARGE: [u64; 3] = [25, 512, 500];
const DOUBLE: DType = DType::Scalar(Scalar::F64, Endian::Little);

#[test]
fn each_chunk_is_decoded_once_whatever_the_job() {
    let (rules, lists, workers) = (Rules::default(), Lists::default(), Workers::new(2));
    let progress = &Progress::default();
    let expr = &numpy::parse("...").unwrap().expr;
    let index = OpenIndex { expr, rules, lists: &lists };
    let lists_typed = ["[:, :, [0, 3, 4, 4, 200, 130, -499]]", "[:, :, [0, 1, 3, 4, 4, 130, 200]]"];
    let listed = lists_typed.map(|typed| numpy::parse(typed).unwrap().expr);
    let transform = &Transform::default();
    let slices = SlicesOptions {
        transform,
        index,
        transpose: &Transposition::None,
        axes: Some(&[AskedAxis::Number(0)]),
    };
    let bytes_of = |mut input: Input| {
        let chosen = Chosen::whole(&mut input).unwrap().remove(0);
        let mut bytes = vec![0; chosen.bytes() as usize];
        chosen.elements::<Error>(&mut input).unwrap()(0, &mut bytes).unwrap();
        bytes
    };
    let reduced = |input: Input| {
        let reduced = Reduced::new(input, &[0], &slices, Reduction::Mean, false).unwrap();
        bytes_of(reduced.into_input(&workers, progress).unwrap())
    };
    let statistics = |mut input: Input, index| {
        let chosen = Chosen::all(&mut input, &[0], transform, index, &Transposition::None);
        let chosen = chosen.unwrap().remove(0);
        let it = chosen.statistics(&mut input, &workers, progress).unwrap().summary;
        let range = it.range.map(|(min, max)| [(min.bits, min.position), (max.bits, max.position)]);
        ([it.count, it.nan, it.infinite, it.zero], range, it.mean(), it.deviation())
    };
    let digest = |mut input: Input| job::digests(&mut input, &[0], &workers, progress).unwrap()[0];
    let compare = |both: [Input; 2]| {
        let options = compare_options(index, &workers);
        Comparing::new(both, &options).unwrap().run(progress).unwrap().tensors.remove(0).findings
    };
    let plain = |filled: &Filled| {
        let plain = TensorInfo::new(DOUBLE, LARGE.to_vec(), Order::C, 0);
        input(Path::new("plain"), (plain, Arc::new(MemorySource(filled.elements()))))
    };
    // tall ones, slabs, and such as have long rows of few
    for chunk in [[25, 64, 20], [1, 512, 500], [5, 512, 8]] {
        let filled = Filled::new(chunk);
        let some = BTreeSet::from([0, 1, 3, 4, 130, 200].map(|at| at / chunk[2])).len() as u64;
        for expr in &listed {
            let index = OpenIndex { expr, rules, lists: &lists };
            assert_eq!(statistics(filled.input(), index), statistics(plain(&filled), index));
            filled.check_some("a list", some);
        }
        assert!(reduced(filled.input()) == reduced(plain(&filled)));
        filled.check("a reduction");
        digest(filled.input());
        filled.check("a digest");
        assert_eq!(compare([plain(&filled), filled.input()]).unwrap().differing, 0);
        filled.check("a comparison");
    }
    let filled = Filled::new([25, 64, 20]);
    assert_eq!(statistics(filled.input(), index), statistics(plain(&filled), index));
    filled.check("statistics");
    let other = Filled::new([25, 50, 50]);
    assert!(compare([filled.input(), other.input()]).unwrap().differing > 0);
    filled.check("a comparison of other chunks");
}
