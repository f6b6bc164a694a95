//! Files for the program to read.

use std::fs;
use std::path::Path;

use tslice::dtype::{DType, Endian, Scalar};
use tslice::formats::npy;
use tslice::shape::Order;

pub(crate) const F32: DType = DType::Scalar(Scalar::F32, Endian::Little);
pub(crate) const I32: DType = DType::Scalar(Scalar::I32, Endian::Little);
pub(crate) const I64: DType = DType::Scalar(Scalar::I64, Endian::Little);
pub(crate) const U8: DType = DType::Scalar(Scalar::U8, Endian::Little);

/// The header of a `.npy` in C order.
pub(crate) fn npy_header(dtype: &DType, shape: &[u64]) -> Vec<u8> {
    npy::header(dtype, shape, Order::C).unwrap()
}

/// A `.npy` in C order.
pub(crate) fn write_npy(path: &Path, dtype: &DType, shape: &[u64], data: &[u8]) {
    fs::write(path, [&npy_header(dtype, shape), data].concat()).unwrap();
}

/// A `.safetensors` of the given header in JSON.
pub(crate) fn write_safetensors(path: &Path, header: &str, data: &[u8]) {
    let len = (header.len() as u64).to_le_bytes();
    fs::write(path, [&len, header.as_bytes(), data].concat()).unwrap();
}

/// The bytes of elements of dtype float32.
pub(crate) fn floats(values: impl IntoIterator<Item = u16>) -> Vec<u8> {
    values.into_iter().flat_map(|value| f32::from(value).to_le_bytes()).collect()
}

/// The bytes of elements of dtype int64.
pub(crate) fn integers(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A zip archive of stored members.
pub(crate) fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut locals, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let at = locals.len() as u32;
        let sums = [crc32fast::hash(data), data.len() as u32, data.len() as u32];
        let sums = sums.map(u32::to_le_bytes).concat();
        let len = (name.len() as u16).to_le_bytes();
        let shared = [&[20, 0], &[0; 8][..], &sums, &len, &[0; 2]].concat();
        locals.extend([b"PK\x03\x04", &shared[..], name.as_bytes(), data].concat());
        directory.extend([b"PK\x01\x02\x14\0", &shared[..], &[0; 10]].concat());
        directory.extend([&at.to_le_bytes(), name.as_bytes()].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let lens = [directory.len() as u32, locals.len() as u32].map(u32::to_le_bytes).concat();
    let end = [b"PK\x05\x06", &[0; 4][..], &count, &count, &lens, &[0; 2]].concat();
    [locals, directory, end].concat()
}
