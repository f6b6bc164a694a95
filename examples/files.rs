//! Make the files that the commands in README.md and docs use.
//!
//! `cargo run --example files -- FOLDER`

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize_to_file};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    match args.as_slice() {
        [_, folder] => write_files(folder.as_ref()),
        _ => Err("usage: files FOLDER".into()),
    }
}

/// Write all of them into a folder that exists.
pub(crate) fn write_files(folder: &Path) -> Result<(), Box<dyn Error>> {
    // images: numbers that count from 0 to 250, over and over
    let pixels = (0..48 * 48 * 64 * 4).map(|number| (number % 251) as u8);
    write_npy(&folder.join("photos.npy"), "'|u1'", false, "48, 48, 64, 4", pixels)?;
    let keep = (0..48).map(|number| u8::from(number % 3 != 0));
    write_npy(&folder.join("keep.npy"), "'|b1'", false, "48,", keep)?;
    let labels = (0..48).map(|number| (number % 4) as u8);
    write_npy(&folder.join("labels.npy"), "'|u1'", false, "48,", labels)?;
    let volume = (0..20 * 28 * 30).flat_map(|number| (f64::from(number) / 8.0).to_le_bytes());
    write_npy(&folder.join("volume.npy"), "'<f8'", true, "20, 28, 30", volume)?;
    let point = "[('id', '<i4'), ('pos', [('x', '<f8'), ('y', '<f8')])]";
    write_npy(&folder.join("points.npy"), point, false, "100,", (0..100).flat_map(bytes_of_point))?;
    write_npy(&folder.join("ball.npy"), "'<f4'", false, "32, 64, 64", ball())?;
    write_gguf(&folder.join("tiny.gguf"))?;
    // the layouts of torch.save and of netCDF's library
    fs::write(folder.join("tides.nc"), include_bytes!("files/tides.nc"))?;
    fs::write(folder.join("training.pt"), include_bytes!("files/training.pt"))?;
    // NumPy arrays by Python's pickle
    fs::write(folder.join("scaler.pkl"), include_bytes!("files/scaler.pkl"))?;
    fs::write(folder.join("weather.nc"), include_bytes!("files/weather.nc"))?;
    write_model(&folder.join("model.safetensors"))
}

/// A structure of `id`, and `pos` with `x` and `y`.
fn bytes_of_point(id: i32) -> Vec<u8> {
    let (x, y) = (f64::from(id) / 2.0, f64::from(-id));
    [&id.to_le_bytes()[..], &x.to_le_bytes(), &y.to_le_bytes()].concat()
}

/// A ball in a volume of shape (32, 64, 64): float32, from 0 at its surface to almost 1 in the middle.
fn ball() -> impl Iterator<Item = u8> {
    let from_middle = |at: i32, len: i32| (2 * at - (len - 1)).pow(2);
    (0..32 * 64 * 64).flat_map(move |number| {
        let (z, y, x) = (number / 4096, number / 64 % 64, number % 64);
        let distance = 4 * from_middle(z, 32) + from_middle(y, 64) + from_middle(x, 64);
        ((4096 - distance).max(0) as f32 / 4096.0).to_le_bytes()
    })
}

/// A quantised model: a tensor of blocks, and one of numbers.
fn write_gguf(path: &Path) -> io::Result<()> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let tensor = |name: &str, lens: &[u64], kind: u32, at: u64| {
        let lens: Vec<u8> = lens.iter().flat_map(|len| len.to_le_bytes()).collect();
        let ndim = (lens.len() as u32 / 8).to_le_bytes();
        [text(name), ndim.to_vec(), lens, kind.to_le_bytes().to_vec(), at.to_le_bytes().to_vec()]
            .concat()
    };
    let mut file = b"GGUF".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend([2u64, 1].map(u64::to_le_bytes).concat());
    let value = [8u32.to_le_bytes().to_vec(), text("llama")].concat();
    file.extend([text("general.architecture"), value].concat());
    // Q4_0: 32 elements in 18 bytes
    file.extend(tensor("embed.weight", &[64, 4], 2, 0));
    file.extend(tensor("norm.weight", &[64], 0, 160));
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend((0..4 * 2 * 18).map(|number| number as u8));
    file.extend([0; 16]);
    file.extend((0..64).flat_map(|number| (number as f32).to_le_bytes()));
    fs::write(path, file)
}

/// A `.npy`; `descr` and `shape` are written as Python has them.
fn write_npy(
    path: &Path,
    descr: &str,
    fortran: bool,
    shape: &str,
    elements: impl Iterator<Item = u8>,
) -> io::Result<()> {
    let fortran = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': ({shape}), }}");
    // 10 bytes before it, and all of it a multiple of 64
    let header = format!("{header:<width$}\n", width = 128 - 10 - 1);
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(elements);
    fs::write(path, file)
}

fn write_model(path: &Path) -> Result<(), Box<dyn Error>> {
    // ones of bfloat16
    let embed = [0x80, 0x3f].repeat(1000 * 64);
    let head: Vec<u8> =
        (1..=64 * 100).flat_map(|number| (number as f32 / 64.0).to_le_bytes()).collect();
    let steps = 7i64.to_le_bytes();
    let tensors = [
        ("steps", TensorView::new(Dtype::I64, vec![], &steps)?),
        ("head.weight", TensorView::new(Dtype::F32, vec![64, 100], &head)?),
        ("embed.weight", TensorView::new(Dtype::BF16, vec![1000, 64], &embed)?),
    ];
    let metadata = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    Ok(serialize_to_file(tensors, Some(metadata), path)?)
}
