//! What the fuzzers run: one function a target, from any bytes to laws that must hold.
//!
//! Shared by the targets of cargo-fuzz and by `tests/it/fuzz_corpus.rs`, which runs them over the
//! seeds and findings that are kept in `fuzz/corpus`. A law that is broken is a panic.

use std::io::Read;
use std::path::{Component, Path};
use std::sync::Arc;

use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{self, Conversion, Progress, Transfer, Workers};
use tslice::formats::gguf::{GgufHeader, MetadataValue};
use tslice::formats::npz::{self, Member};
use tslice::formats::pickle::{Pickle, PickleContents, StorageRange, StoredBytes};
use tslice::formats::shards::index_json;
use tslice::formats::torch;
use tslice::formats::{npy, read_contents, safetensors};
use tslice::index::resolve::{AxisSelection, ListPositions, Selection, resolve};
use tslice::index::strided_slice::{StridedSlice, parse_list, parse_mask};
use tslice::index::{Array, IndexExpr, Item, SliceItem, list, numpy};
use tslice::input::{Contents, LengthFault, ShardIndex};
use tslice::plan::Plan;
use tslice::shape::{Order, Permutation, contiguous_strides};
use tslice::sink::WriteOrder;
use tslice::source::{DeflatedRange, InflatedSource, Reader, Source, SourceError};
use tslice::tensor::{StorageKind, TensorInfo};
use tslice::view::{Layout, View};
use tslice::{Cause, element};

use crate::memory::{Bytes, Memory};

/// A target's body.
pub(crate) type Body = fn(&[u8]);

/// All targets by name; `fuzz/corpus` has a folder for each.
pub(crate) const TARGETS: [(&str, Body); 10] = [
    ("index_text", index_text),
    ("strided_slice", strided_slice),
    ("typed_numbers", typed_numbers),
    ("npy_header", npy_header),
    ("safetensors_header", safetensors_header),
    ("npz_directory", npz_directory),
    ("torch_pickle", torch_pickle),
    ("gguf_header", gguf_header),
    ("shard_index", shard_index),
    ("engine", engine),
];

/// Shapes that an expression is tried on: none, small, empty, huge, of many axes.
const SHAPES: [&[u64]; 7] =
    [&[], &[5], &[3, 0, 4], &[2, 3, 4, 5], &[i64::MAX as u64], &[1 << 31, 1 << 31], &[1; 64]];

/// NumPy's text: what parses is printed and parsed again to the same, selects inside the shape,
/// and selects the same in StridedSlice's words; what does not parse has its fault in the text.
pub(crate) fn index_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let spelled = match numpy::parse(text) {
        Ok(spelled) => spelled,
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{:?} in {text:?}", error.span);
            return assert_one_short_line(&error.to_string());
        }
    };
    assert_eq!(spelled.spans.len(), spelled.expr.items.len());
    for span in &spelled.spans {
        assert!(text.get(span.clone()).is_some_and(|item| !item.is_empty()), "{span:?}");
    }
    let printed = numpy::format(&spelled.expr).text;
    assert_eq!(numpy::parse(&printed).expect("printed text parses").expr, spelled.expr);
    assert_selects(&spelled.expr);
    // `None` where the words are lacking: a list, too many items
    if let Ok(numbers) = StridedSlice::from_expr(&spelled.expr) {
        assert_same_selections(&spelled.expr, &numbers.to_expr().expect("its own numbers"));
    }
}

/// Eight lines: begin, end, strides and the five masks, as on the command line.
pub(crate) fn strided_slice(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let mut list = || {
        let line = lines.next().unwrap_or_default();
        parse_list(line).map_err(|error| {
            assert!(line.get(error.span.clone()).is_some(), "{:?} in {line:?}", error.span);
            assert_one_short_line(&error.to_string());
        })
    };
    let (Ok(begin), Ok(end), Ok(strides)) = (list(), list(), list()) else { return };
    let mut mask = || {
        let line = lines.next().unwrap_or("0");
        parse_mask(line).map_err(|error| {
            assert!(line.get(error.span.clone()).is_some(), "{:?} in {line:?}", error.span);
            assert_one_short_line(&error.to_string());
        })
    };
    let (Ok(begin_mask), Ok(end_mask), Ok(ellipsis_mask), Ok(new_axis_mask), Ok(shrink_axis_mask)) =
        (mask(), mask(), mask(), mask(), mask())
    else {
        return;
    };
    let numbers = StridedSlice {
        begin,
        end,
        strides,
        begin_mask,
        end_mask,
        ellipsis_mask,
        new_axis_mask,
        shrink_axis_mask,
    };
    let expr = match numbers.to_expr() {
        Ok(expr) => expr,
        Err(error) => return assert_one_short_line(&error.to_string()),
    };
    assert_eq!(expr.items.len(), numbers.begin.len());
    assert_selects(&expr);
    let text = numpy::format(&expr).text;
    assert_same_selections(&expr, &numpy::parse(&text).expect("printed text parses").expr);
}

/// Nested lists of integers have as many as their shape says; one number becomes one element of
/// any dtype, the second byte order the first one backwards.
pub(crate) fn typed_numbers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match list::parse(text) {
        Ok(Array { shape, values }) => {
            assert_eq!(shape.iter().product::<u64>(), values.len() as u64);
            assert!(!shape.is_empty() && shape.len() <= 64);
        }
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{:?} in {text:?}", error.span);
            assert_one_short_line(&error.to_string());
        }
    }
    for scalar in Scalar::ALL {
        let little = element::parse(text, &DType::Scalar(scalar, Endian::Little));
        let big = element::parse(text, &DType::Scalar(scalar, Endian::Big));
        assert_eq!(little.is_ok(), big.is_ok());
        if let (Ok(mut little), Ok(big)) = (little, big) {
            assert_eq!(little.len() as u64 * 8, scalar.bits());
            let width = DType::Scalar(scalar, Endian::Big).swap_width();
            little.chunks_exact_mut(width.max(1)).for_each(<[u8]>::reverse);
            assert_eq!(little, big, "{scalar:?}");
        }
    }
    // what Rust's own parser reads too is the same to the bit
    if let Ok(value) = text.parse::<f64>()
        && let Ok(bytes) = element::parse(text, &DType::Scalar(Scalar::F64, Endian::Little))
    {
        let ours = f64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        assert!(
            ours.to_bits() == value.to_bits() || ours.is_nan() && value.is_nan(),
            "{ours} {value}"
        );
    }
}

/// A header of any bytes: see [`header`]. What is read of a `.npy` is written and read again.
pub(crate) fn npy_header(data: &[u8]) {
    let Some(contents) = header(data) else { return };
    if contents.format != &npy::FORMAT {
        return;
    }
    let tensor = only(&contents);
    let written = match npy::header(&tensor.dtype, &tensor.shape, tensor.order()) {
        Ok(written) => written,
        Err(error) => return assert_one_short_line(&error.to_string()),
    };
    assert_eq!(written.len() % 64, 0);
    let again = read_contents(&mut written.as_slice(), None).expect("a header of our own");
    let copy = only(&again);
    assert_eq!((&copy.dtype, &copy.shape), (&tensor.dtype, &tensor.shape));
    assert_eq!((copy.bytes(), again.header_len), (tensor.bytes(), written.len() as u64));
}

/// The one tensor of a `.npy`.
fn only(contents: &Contents) -> TensorInfo {
    assert_eq!(contents.tensors.len(), 1, "a .npy holds one tensor");
    contents.tensors.at(0)
}

/// A header of any bytes: see [`header`]. What is read of a `.safetensors` is written and read
/// again, and the reference implementation agrees with what is accepted.
pub(crate) fn safetensors_header(data: &[u8]) {
    let Some(contents) = header(data) else { return };
    if contents.format != &safetensors::FORMAT {
        return;
    }
    let tensors: Vec<TensorInfo> = contents.tensors.iter().collect();
    let tensors: Vec<(&str, &DType, &[u64], u64)> = tensors
        .iter()
        .map(|t| (t.name.as_deref().expect("a name"), &t.dtype, t.shape.as_slice(), t.bytes()))
        .collect();
    let written = safetensors::header(&tensors, &contents.metadata.texts).expect("what was read");
    assert_eq!(written.len() % 8, 0);
    let again = read_contents(&mut written.as_slice(), None).expect("a header of our own");
    assert_eq!(again.metadata, contents.metadata);
    let all = |contents: &Contents| -> Vec<_> {
        let tensors = contents.tensors.iter();
        tensors.map(|t| (t.name.clone(), t.dtype.clone(), t.shape.clone(), t.bytes())).collect()
    };
    assert_eq!(all(&again), all(&contents));
    if contents.expected_len() == data.len() as u64 {
        ::safetensors::SafeTensors::read_metadata(data).expect("the reference accepts it");
    }
}

/// Read a header as a pipe and as a file: no more is read than there is, the two agree, tensors
/// lie inside the file. `None` where the pipe's header was refused.
fn header(data: &[u8]) -> Option<Contents> {
    let mut rest = data;
    let piped = read_contents(&mut rest, None);
    let mapped = read_contents(&mut &*data, Some(data.len() as u64));
    let contents = match piped {
        Ok(contents) => contents,
        Err(error) => {
            assert_one_short_line(&error.to_string());
            assert!(mapped.is_err(), "a file is read that a pipe is not");
            return None;
        }
    };
    assert_eq!((data.len() - rest.len()) as u64, contents.header_len);
    for pair in contents.tensors.iter().zip(contents.tensors.iter().skip(1)) {
        assert!(pair.0.data().end <= pair.1.data().start, "{pair:?} overlap");
    }
    for tensor in contents.tensors.iter() {
        assert!(tensor.data().start >= contents.header_len);
        assert!(tensor.data().end <= contents.expected_len());
        assert!(tensor.shape.len() <= 64);
    }
    match mapped {
        Ok(mapped) => {
            assert_eq!(mapped, contents);
            assert!(contents.expected_len() <= data.len() as u64);
        }
        Err(cause) => match cause.downcast_ref() {
            Some(LengthFault::CutShort { .. } | LengthFault::TrailingBytes { .. }) => {}
            None => panic!("a pipe is read that a file is not: {cause}"),
        },
    }
    Some(contents)
}

/// An archive of any bytes: members that are not refused have names of their own that lead nowhere, lie in order
/// inside the archive and share nothing; each is read as an error or as the bytes that were announced.
pub(crate) fn npz_directory(data: &[u8]) {
    let archive: Arc<dyn Source> = Arc::new(Bytes::new(data.to_vec(), None));
    let members = npz::members(archive.as_ref());
    let windows = npz::members(&Bytes::new(data.to_vec(), Some(64)));
    let members = match (members, windows) {
        (Ok(members), Ok(windows)) => {
            assert_eq!(members, windows);
            members
        }
        (Err(error), Err(windows)) => {
            assert_eq!(error.to_string(), windows.to_string());
            return assert_one_short_line(&error.to_string());
        }
        (one, other) => panic!("mapped {one:?}, read {other:?}"),
    };
    members.iter().filter_map(|member| member.refusal()).for_each(|error| {
        assert_one_short_line(&error.to_string());
    });
    let readable = || members.iter().filter(|member| member.refused.is_none());
    for pair in readable().zip(readable().skip(1)) {
        assert!(pair.0.data.end <= pair.1.data.start, "{pair:?} overlap");
    }
    for (number, member) in readable().enumerate() {
        assert!(npz::check_name(member.name).is_ok());
        assert!(readable().take(number).all(|other| other.name != member.name));
        assert!(member.data.start <= member.data.end && member.data.end <= archive.len());
        if member.deflated {
            assert_inflates(&archive, data, &member);
        } else {
            assert_eq!(member.data.end - member.data.start, member.len);
        }
        if member.name.ends_with(".npy") && !member.deflated {
            assert_array(&member, &mut Reader::at(&*archive, member.data.start).take(member.len));
        }
    }
}

/// A pickle of any bytes, beside storages of 64 bytes: all that it makes lies inside of one of these,
/// and what it makes or says is bounded.
pub(crate) fn torch_pickle(data: &[u8]) {
    const STORAGE: u64 = 64;
    let source = Bytes::new(data.to_vec(), None);
    let len = data.len() as u64;
    let mut place = |stored: StoredBytes<'_>| match stored {
        StoredBytes::Storage(key) => {
            let start = key.len() as u64 * STORAGE;
            Ok((key.len() < 3).then(|| StorageRange { shard: 0, bytes: start..start + STORAGE }))
        }
        StoredBytes::Pickle => Ok(Some(place_of_arrays(len))),
        StoredBytes::Decoded(bytes) => Ok(Some(place_of_arrays(bytes.len() as u64))),
    };
    assert_tensors(Pickle::new(&source, 0..len).read(&mut place), 3 * STORAGE, STORAGE);
    // and as what follows the first pickles of an old file
    let old = [OLD_TORCH, data].concat();
    let len = old.len() as u64;
    let mut decode = |bytes: Vec<u8>| Ok(place_of_arrays(bytes.len() as u64));
    assert_tensors(torch::read_old(&Bytes::new(old, None), &mut decode), len, len);
}

/// Where elements of arrays lie that are no storages: behind all of these.
const ARRAYS: u64 = 1 << 40;

fn place_of_arrays(len: u64) -> StorageRange {
    StorageRange { shard: 1, bytes: ARRAYS..ARRAYS + len }
}

/// The magic number, the version and the system of an old file of torch.save.
const OLD_TORCH: &[u8] =
    b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.";

/// The tensors of a file lie before `end`, each within one storage of so many bytes.
fn assert_tensors(found: Result<PickleContents, Cause>, end: u64, each: u64) {
    let found = match found {
        Ok(found) => found,
        Err(error) => return assert_one_short_line(&error.to_string()),
    };
    for (name, error) in &found.unreadable {
        assert_one_short_line(&error.to_string());
        assert!(found.tensors.names().all(|other| other != Some(name)));
    }
    for tensor in found.tensors.iter() {
        let TensorInfo { dtype, shape, storage, .. } = &tensor;
        assert!(shape.len() <= 64 && dtype.item_bits() % 8 == 0);
        if storage.data.is_empty() {
            assert!(shape.contains(&0) || dtype.item_bits() == 0, "{tensor:?}");
            continue;
        }
        if storage.shard == 1 {
            // none has more bytes than the fuzzer makes
            assert!(ARRAYS <= storage.data.start && storage.data.end <= ARRAYS + (1 << 26));
            continue;
        }
        assert!(storage.data.end <= end, "{tensor:?}");
        assert_eq!(storage.data.start / each, storage.data.end.div_ceil(each) - 1);
        if let StorageKind::Strided { strides, .. } = &storage.kind {
            let axes = shape.iter().zip(strides);
            let far: u64 = axes.map(|(&len, &stride)| (len - 1) * stride as u64).sum();
            assert_eq!(storage.data.end - storage.data.start, far + dtype.item_bits() / 8);
        }
    }
}

/// Any bytes as a `.gguf`: its tensors lie in the file, one block or number behind the other, and its
/// metadata are JSON, of which people see a bounded part.
pub(crate) fn gguf_header(data: &[u8]) {
    const SHOWN: u64 = 2;
    // of a file without the magic nothing is looked at
    let data = [b"GGUF", data].concat();
    let len = data.len() as u64;
    let source = Bytes::new(data, None);
    let header = match GgufHeader::read(&source) {
        Ok(header) => header,
        Err(error) => return assert_one_short_line(&error.to_string()),
    };
    for tensor in header.tensors.iter() {
        let (data, bytes) = (tensor.data(), tensor.bytes());
        assert!(data.end <= len && data.end - data.start == bytes, "{tensor:?}");
        let elements: u128 = tensor.element_shape().iter().map(|&len| u128::from(len)).product();
        let block = tensor.dtype.blocks().map_or(1, |block| block.elements);
        assert_eq!(elements * u128::from(tensor.dtype.item_bits()), u128::from(bytes * 8 * block));
    }
    let mut json = String::from("{");
    let (mut shown, mut keys) = (Vec::new(), 0u64);
    let mut show = |key: &str, value: MetadataValue<'_, '_>| {
        let mut text = Vec::new();
        value.write_json(&mut text, None)?;
        let key = serde_json::Value::from(key);
        json +=
            &format!("{}{key}:{}", if keys > 0 { "," } else { "" }, String::from_utf8_lossy(&text));
        keys += 1;
        Ok(())
    };
    header.metadata.visit(&source, &mut show).unwrap();
    let value: serde_json::Value = serde_json::from_str(&(json + "}")).unwrap();
    assert_eq!(value.as_object().map(|all| all.len() as u64), Some(keys));
    let mut few = |_: &str, value: MetadataValue<'_, '_>| value.write_json(&mut shown, Some(SHOWN));
    header.metadata.visit(&source, &mut few).unwrap();
    assert!(std::str::from_utf8(&shown).is_ok());
}

/// The array in a member is as long as the member, or is refused.
fn assert_array(member: &Member<'_>, bytes: &mut dyn Read) {
    let checked = npy::read(bytes).and_then(|contents| {
        member.check_array(contents.expected_len())?;
        Ok(contents)
    });
    match checked.as_ref().map(only) {
        Ok(tensor) => assert_eq!(tensor.data().end, member.len),
        Err(error) => assert_one_short_line(&error.to_string()),
    }
}

/// A deflated member as a stream, as a source, and as `flate2` alone has it: all or none of them
/// give the announced bytes.
fn assert_inflates(archive: &Arc<dyn Source>, data: &[u8], member: &Member<'_>) {
    const MOST: u64 = 1 << 20;
    let Member { data: range, len, crc, .. } = member.clone();
    let compressed = &data[range.start as usize..range.end as usize];
    let unpacked =
        InflatedSource::from(DeflatedRange { archive: Arc::clone(archive), range, len, crc });
    assert_array(member, &mut unpacked.stream());

    let (mut stream, mut bytes) = (unpacked.stream(), Vec::new());
    let mut read = stream.by_ref().take(MOST).read_to_end(&mut bytes).map_err(SourceError::from);
    assert!(bytes.len() as u64 <= len.min(MOST));
    if len > MOST {
        return;
    }
    read = read.and_then(|count| stream.finish().map(|()| count));
    let mut reference = Vec::new();
    let whole = flate2::read::DeflateDecoder::new(compressed)
        .take(len + 1)
        .read_to_end(&mut reference)
        .is_ok_and(|count| count as u64 == len && crc32fast::hash(&reference) == crc);
    assert_eq!(read.is_ok(), whole, "{read:?}");

    let (unpacked, mut scratch) = (Arc::new(unpacked), Vec::new());
    match unpacked.window(len / 3..len, &mut scratch) {
        Ok(window) => {
            assert!(whole && bytes == reference);
            assert_eq!(window, &reference[(len / 3) as usize..]);
        }
        Err(error) => {
            assert!(!whole, "{error}");
            assert_one_short_line(&error.to_string());
        }
    }
    assert!(unpacked.window(0..len + 1, &mut Vec::new()).is_err(), "more than there is");
}

/// An index of any bytes: files are plain names and each is used; what is read is what the JSON
/// says, is written and read again, and each tensor is found by its name.
pub(crate) fn shard_index(data: &[u8]) {
    let index = match ShardIndex::parse(data) {
        Ok(index) => index,
        Err(error) => {
            let again = ShardIndex::parse(data).expect_err("refused before").to_string();
            assert_eq!(error.to_string(), again);
            return assert_one_short_line(&again);
        }
    };
    let again = ShardIndex::parse(data).expect("accepted before");
    assert_eq!(again.files, index.files);
    assert!(again.tensors().eq(index.tensors()));
    assert!(index.files.is_sorted_by(|one, next| one < next));
    for (number, file) in index.files.iter().enumerate() {
        let mut parts = Path::new(file).components();
        let part = parts.next();
        assert!(matches!(part, Some(Component::Normal(name)) if *name == **file), "{file:?}");
        assert!(parts.next().is_none() && !file.contains(['/', '\\', '\0']), "{file:?}");
        assert!(index.tensors().any(|(_, at)| at == number), "{file:?} is not used");
    }

    for (number, (name, at)) in index.tensors().enumerate().step_by(7) {
        assert_eq!((index.number_of(name), index.file_of(name)), (Some(number), Some(at)));
    }
    let mut pairs: Vec<(&str, &str)> =
        index.tensors().map(|(name, at)| (name, index.files[at].as_str())).collect();
    if let Ok(serde_json::Value::Object(json)) = serde_json::from_slice(data) {
        let map = json["weight_map"].as_object().expect("an object");
        assert_eq!(map.len(), pairs.len());
        assert!(pairs.iter().all(|(name, file)| map[*name] == *file));
    }
    let written = index_json(&pairs, index.metadata.clone(), 48, 12).expect("what was read");
    let again = ShardIndex::parse(&written).expect("an index of our own");
    pairs.sort_unstable();
    assert!(again.tensors().map(|(name, at)| (name, &*again.files[at])).eq(pairs));
    let mut metadata = index.metadata;
    metadata.insert("total_size".to_owned(), 48.into());
    if let Some(parameters) = metadata.get_mut("total_parameters") {
        *parameters = 12.into();
    }
    assert_eq!(again.metadata, metadata);
}

/// A message as people can read it, whatever is in the file.
fn assert_one_short_line(message: &str) {
    assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
    assert!(message.len() < 2000, "{} bytes of message", message.len());
}

/// What an expression takes of any shape lies inside it.
fn assert_selects(expr: &IndexExpr) {
    for (shape, keepdims) in SHAPES.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
        let selection = match resolve(expr, shape, keepdims) {
            Ok(selection) => selection,
            Err(error) => {
                assert!(error.item < expr.items.len().max(1));
                assert_one_short_line(&error.to_string());
                continue;
            }
        };
        for selected in &selection.axes {
            match selected {
                AxisSelection::Index { axis, at } => assert!(at < &shape[*axis]),
                AxisSelection::Range { axis, start, step, len } => {
                    assert!(*step != 0 && *len <= shape[*axis]);
                    let last =
                        i128::from(*start) + i128::from(*step) * i128::from(len.saturating_sub(1));
                    let inside = 0..i128::from(shape[*axis]);
                    assert!(*len == 0 || inside.contains(&i128::from(*start)), "{selected:?}");
                    assert!(*len == 0 || inside.contains(&last), "{selected:?}");
                }
                AxisSelection::List { axis, list } => {
                    let list = &selection.lists[*list];
                    let ListPositions::Known(positions) = &list.positions else { continue };
                    let place = axis - list.axes.start;
                    let tuples = positions.chunks_exact(list.axes.len());
                    assert!(tuples.map(|tuple| tuple[place]).all(|at| at < shape[*axis]));
                }
                AxisSelection::NewAxis => {}
            }
        }
        let layout = Layout::new(shape, 8, Order::C, 80);
        let Ok(view) = View::new(&layout, &selection) else { continue };
        let _ = (Plan::new(view.runs(), 1, 1000).pieces(), Plan::forward(&view, 1, 1000));
    }
}

fn assert_same_selections(one: &IndexExpr, other: &IndexExpr) {
    for shape in SHAPES {
        let (one, other) = (resolve(one, shape, false), resolve(other, shape, false));
        assert_eq!(one.is_ok(), other.is_ok(), "{one:?}, {other:?}");
        assert_eq!(one.ok(), other.ok());
    }
}

/// The whole engine against a loop over elements: a tensor, an expression and a way to run it are
/// made out of the bytes.
pub(crate) fn engine(data: &[u8]) {
    let mut dice = Dice(data);
    let ndim = dice.below(6);
    let shape: Vec<u64> = (0..ndim).map(|_| dice.below(9)).collect();
    if shape.iter().product::<u64>() > 2000 {
        return;
    }
    let order = dice.order();
    let itemsize = [1, 2, 3, 4, 8, 12, 16, 31][dice.below(8) as usize];
    let offset = dice.below(17);
    let expr = dice.expression();
    let Ok(selection) = resolve(&expr, &shape, dice.below(2) == 1) else { return };
    if selection.axes.iter().any(|selected| matches!(selected, AxisSelection::List { .. })) {
        return;
    }
    let out_order = dice.order();
    let piece_bytes = [1, 7, 64, 1000, 1 << 18][dice.below(5) as usize];
    let limit = [None, Some(1), Some(40), Some(1000)][dice.below(4) as usize];
    let write = [WriteOrder::Any, WriteOrder::Ascending][dice.below(2) as usize];

    let layout = Layout::new(&shape, itemsize * 8, order, offset);
    let len = shape.iter().product::<u64>() * itemsize + offset;
    let data = (0..len).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    let source = Bytes::new(data, limit);
    let axes = Permutation::identity(selection.shape().len()).in_memory(out_order);
    let view = View::permuted(&layout, &selection, &axes).expect("a small tensor");
    let plan = Plan::new(view.runs(), 1, piece_bytes);
    let sink = Memory::new(view.bytes(), write);
    let copies = [Transfer { source: &source, pieces: &plan, conversion: Conversion::None, at: 0 }];
    execute::run(&copies, &sink, &Workers::new(2), &Progress::default())
        .expect("memory does not fail");
    assert_eq!(sink.into_bytes(), naive((&layout, order), &source.data, &selection, out_order));
}

/// The selected bytes, one element after the other.
fn naive(
    (layout, laid): (&Layout<'_>, Order),
    data: &[u8],
    selection: &Selection,
    order: Order,
) -> Vec<u8> {
    let itemsize = layout.item_bits / 8;
    let strides = contiguous_strides(layout.shape, itemsize, laid).expect("small");
    let (mut first, mut axes) = (layout.offset() as i64, Vec::new());
    for selected in &selection.axes {
        match *selected {
            AxisSelection::Index { axis, at } => first += at as i64 * strides[axis],
            AxisSelection::Range { axis, start, step, len } => {
                first += start as i64 * strides[axis];
                axes.push((len, step * strides[axis]));
            }
            AxisSelection::NewAxis | AxisSelection::List { .. } => axes.push((1, 0)),
        }
    }
    if order == Order::F {
        axes.reverse();
    }
    let mut out = Vec::new();
    for number in 0..axes.iter().map(|axis| axis.0).product() {
        let (mut at, mut rest): (i64, u64) = (first, number);
        for &(len, stride) in axes.iter().rev() {
            at += (rest % len) as i64 * stride;
            rest /= len;
        }
        out.extend_from_slice(&data[at as usize..][..itemsize as usize]);
    }
    out
}

/// Choices out of the fuzzer's bytes; zeroes when they are spent.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: u64) -> u64 {
        u64::from(self.byte()) % end
    }

    fn order(&mut self) -> Order {
        if self.below(2) == 1 { Order::F } else { Order::C }
    }

    /// Any integer, mostly a small one.
    fn integer(&mut self) -> i64 {
        match self.byte() {
            0x7f => i64::MAX,
            0x80 => i64::MIN,
            byte => i64::from(byte as i8) % 12,
        }
    }

    fn bound(&mut self) -> Option<i64> {
        (self.below(3) > 0).then(|| self.integer())
    }

    fn expression(&mut self) -> IndexExpr {
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..self.below(8) {
            items.push(match self.below(8) {
                0 => Item::Integer(self.integer()),
                1 => Item::NewAxis,
                2 if !items.contains(&Item::Ellipsis) => Item::Ellipsis,
                _ => {
                    let (start, stop, step) = (self.bound(), self.bound(), self.bound());
                    let step = step.filter(|&step| step != 0).map(|step| step.max(-i64::MAX));
                    Item::Slice(SliceItem { start, stop, step })
                }
            });
        }
        IndexExpr::new(items)
    }
}
