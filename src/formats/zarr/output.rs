//! Zarr, version 3, as an output: a folder of arrays, each in chunks.

#[cfg(feature = "zarr")]
use with::lay_out;

#[cfg(not(feature = "zarr"))]
use crate::error::Cause;
use crate::formats::headed::PLAIN;
#[cfg(feature = "zarr")]
use crate::formats::zarr::array::stored_dtype;
#[cfg(not(feature = "zarr"))]
use crate::output::LayoutFault;
use crate::output::layout::OutputFormat;
#[cfg(not(feature = "zarr"))]
use crate::output::layout::{OutputLayout, Request};

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "zarr",
    about: "A folder of Zarr, version 3 (builds with the feature zarr)",
    extensions: &["zarr"],
    holds_several: true,
    has_chunks: true,
    is_folder: true,
    #[cfg(feature = "zarr")]
    stored_dtype,
    lay_out,
    ..PLAIN
};

#[cfg(not(feature = "zarr"))]
fn lay_out(_: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    Err(LayoutFault::NotBuilt { format: "Zarr", feature: "zarr" }.into())
}

#[cfg(feature = "zarr")]
mod with {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::Range;
    use std::sync::Arc;

    use super::OUTPUT;
    use crate::chunked::{ChunkSink, ChunkedTensor};
    use crate::error::Cause;
    use crate::formats::zarr::array::{NewArray, group_json};
    use crate::output::layout::{Entries, OutputLayout, OutputTensor, Request};
    use crate::output::{ChunkShapes, Chunking, LayoutFault};
    use crate::sink::{
        Destination, Draft, FileTree, FixedLayout, FolderTree, SinkError, SinkOptions, Targets,
    };
    use crate::tensor::{Annotations, ChunkCodec, EncodeChunks};

    /// Names of files that mark a folder of Zarr: only such a folder is replaced.
    const MARKS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

    /// Arrays, one after the other in the positions of the output.
    struct ZarrFolder {
        tensors: Arc<Entries>,
        chunking: Chunking,
        /// The annotations of arrays, by their numbers.
        annotations: BTreeMap<usize, Annotations>,
        /// The paths of the groups around the arrays, and their annotations.
        groups: BTreeMap<String, Annotations>,
    }

    /// Metadata files: the name and the bytes of each.
    type Files = Vec<(String, Vec<u8>)>;

    pub(crate) fn lay_out(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
        let tensors = Arc::clone(request.tensors);
        let names: BTreeSet<&str> = tensors.names().collect();
        let mut groups = BTreeMap::new();
        let group = |path: &str| {
            let said = request.groups.get(path).cloned();
            (path.to_owned(), said.unwrap_or_default())
        };
        for name in tensors.names().filter(|name| !name.is_empty()) {
            check_name(name, &names)?;
            let ends = name.match_indices('/').map(|(end, _)| end);
            for path in [0].into_iter().chain(ends).map(|end| &name[..end]) {
                if !groups.contains_key(path) {
                    groups.extend([group(path)]);
                }
            }
        }
        if tensors.is_empty() {
            groups.extend([group("")]);
        }
        drop(names);
        let folder = ZarrFolder {
            tensors,
            chunking: request.chunking.clone(),
            annotations: request.annotations.clone(),
            groups,
        };
        // an array that cannot be encoded is found before anything is made
        for (number, tensor) in folder.tensors.iter().enumerate() {
            folder.array(number, &tensor)?;
        }
        Ok(Box::new(folder))
    }

    /// Refuse a name that is not a path of nodes, or lies inside another array.
    fn check_name(name: &str, names: &BTreeSet<&str>) -> Result<(), LayoutFault> {
        let part = |part: &str| match part {
            "" => Some("a component of its path is empty"),
            _ if part.bytes().all(|byte| byte == b'.') => {
                Some("a component of its path is all dots")
            }
            _ if part.starts_with("__") => Some("a component of its path begins with __"),
            _ if MARKS.contains(&part) => Some("metadata have this name"),
            _ if part.len() > 255 || part.contains('\0') => Some("no file can have it"),
            _ => None,
        };
        let in_array = || {
            let mut above = name.match_indices('/').map(|(end, _)| &name[..end]);
            above
                .any(|above| names.contains(above))
                .then_some("an array has the name of its folder")
        };
        match name.split('/').find_map(part).or_else(in_array) {
            Some(reason) => {
                let name = name.to_owned();
                Err(LayoutFault::TensorName { format: OUTPUT.name, name, reason })
            }
            None => Ok(()),
        }
    }

    impl ZarrFolder {
        /// The metadata files of groups and arrays.
        fn files(&self) -> Result<Files, Cause> {
            let groups = self.groups.iter();
            let groups = groups.map(|(path, said)| Ok((metadata_of(path), group_json(said))));
            let arrays = self.tensors.iter().enumerate().map(|(number, tensor)| {
                let (json, _) = self.array(number, &tensor)?;
                Ok((metadata_of(&tensor.name), json))
            });
            groups.chain(arrays).collect()
        }

        /// A sink for the chunks in a range of positions, or for all.
        fn sink(
            &self,
            folder: Box<dyn FileTree>,
            range: Option<Range<u64>>,
        ) -> Result<Box<dyn Draft>, SinkError> {
            let mut tensors = Vec::with_capacity(self.tensors.len());
            let mut start = 0;
            for (number, tensor) in self.tensors.iter().enumerate() {
                let (_, encoder) = self.array(number, &tensor).map_err(failed)?;
                let item = tensor.dtype.item_bits() / 8;
                let chunked = ChunkedTensor::new(encoder, &tensor.shape, item, start);
                tensors.push(chunked.ok_or_else(|| failed(LayoutFault::TooLarge.into()))?);
                start += tensor.bytes;
            }
            Ok(Box::new(ChunkSink::new(folder, tensors, range.unwrap_or(0..start))?))
        }

        /// The metadata of an array, and the encoder of its chunks.
        fn array(
            &self,
            number: usize,
            tensor: &OutputTensor,
        ) -> Result<(Vec<u8>, Box<dyn EncodeChunks>), Cause> {
            let OutputTensor { name, dtype, shape, .. } = tensor;
            let item = dtype.item_bits() / 8;
            let ChunkShapes { chunk, shard } = self.chunking.shapes(shape, item)?;
            let codec: ChunkCodec = self.chunking.codec.unwrap_or_default();
            let shard = shard.as_deref();
            let said = self.annotations.get(&number);
            let array = NewArray { path: name, dtype, shape, chunk: &chunk, shard, codec, said };
            Ok(array.encoder()?)
        }
    }

    impl OutputLayout for ZarrFolder {
        fn size(&self) -> Option<u64> {
            None
        }

        fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
            Box::new(std::iter::empty())
        }

        fn check(
            &self,
            target: &Destination,
            options: SinkOptions,
            targets: &mut Targets,
        ) -> Result<(), SinkError> {
            match target {
                Destination::Path(path) => FolderTree::check(path, &MARKS, options, targets),
                Destination::Stdout => Err(SinkError::IsADirectory),
            }
        }

        fn create(
            &self,
            target: &Destination,
            options: SinkOptions,
        ) -> Result<Box<dyn Draft>, SinkError> {
            let Destination::Path(path) = target else { return Err(SinkError::IsADirectory) };
            let files = self.files().map_err(failed)?;
            let folder = FolderTree::create(path, &MARKS, options)?;
            files.iter().try_for_each(|(name, bytes)| folder.write(name, bytes))?;
            self.sink(Box::new(folder), None)
        }

        fn fixed(&self) -> Option<FixedLayout> {
            Some(FixedLayout::Folder(self.files().ok()?.into()))
        }

        /// The start of the next slab of whole chunks, which is a range of positions.
        fn cut(&self, at: u64) -> u64 {
            let mut start = 0;
            for tensor in self.tensors.iter() {
                if at < start + tensor.bytes {
                    let item = tensor.dtype.item_bits() / 8;
                    let shapes = self.chunking.shapes(&tensor.shape, item);
                    let file = shapes.map(|it| it.shard.unwrap_or(it.chunk)).unwrap_or_default();
                    return start + slab_from(&tensor.shape, &file, item, at - start);
                }
                start += tensor.bytes;
            }
            start
        }

        fn within(
            &self,
            folder: Box<dyn FileTree>,
            range: Range<u64>,
        ) -> Result<Box<dyn Draft>, SinkError> {
            self.sink(folder, Some(range))
        }
    }

    /// The first byte, at or after `at`, of a tensor's elements in C order where a slab of whole
    /// chunks ends.
    fn slab_from(shape: &[u64], chunk: &[u64], item: u64, at: u64) -> u64 {
        // the first axis along which chunks are longer than 1
        let Some(axis) = (0..chunk.len()).find(|&axis| chunk[axis] > 1 || axis + 1 == chunk.len())
        else {
            return if at == 0 { 0 } else { item };
        };
        let step = shape[axis + 1..].iter().product::<u64>() * item;
        let row = shape[axis] * step;
        at - at % row + (at % row).next_multiple_of(chunk[axis] * step).min(row)
    }

    fn failed(cause: Cause) -> SinkError {
        SinkError::Io(std::io::Error::other(cause.to_string()))
    }

    fn metadata_of(path: &str) -> String {
        if path.is_empty() { "zarr.json".to_owned() } else { format!("{path}/zarr.json") }
    }

    #[cfg(test)]
    mod tests {
        use super::slab_from;

        #[test]
        fn parts_begin_where_slabs_of_chunks_do() {
            let slabs = |shape: &[u64], chunk: &[u64]| {
                let all = shape.iter().product::<u64>() * 2;
                let mut starts: Vec<u64> =
                    (0..all).map(|at| slab_from(shape, chunk, 2, at)).collect();
                assert!(starts.is_sorted() && starts.iter().zip(0..).all(|(it, at)| *it >= at));
                starts.dedup();
                starts
            };
            assert_eq!(slabs(&[10, 3], &[4, 2]), [0, 24, 48, 60]);
            // slabs within each index of the first axis
            assert_eq!(slabs(&[2, 5], &[1, 3]), [0, 6, 10, 16, 20]);
            assert_eq!(slabs(&[3], &[1]), [0, 2, 4, 6]);
            assert_eq!(slabs(&[4, 3], &[9, 1]), [0, 24]);
            assert_eq!(slabs(&[], &[]), [0, 2]);
        }
    }
}
