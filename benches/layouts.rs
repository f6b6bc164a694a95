//! Axes in another order, from memory to memory: this library beside the package `strided-perm`.
//!
//! The shapes are those of `compare_numpy.py --layouts`, which writes files beside NumPy. Each line has the seconds of
//! both and of a plain copy, the best of three rounds in turn, and results are compared.
//!
//! ```text
//! cargo bench --bench layouts -- 16384        shapes with this in their name
//! ```

#![allow(clippy::print_stdout, reason = "a table is what it makes")]

use std::error::Error;
use std::time::Instant;

use strided_perm::copy_into_par;
use strided_view::{StridedView, StridedViewMut};

const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{:28} {:>8} {:>8} {:>8}", "shape, axes", "tslice", "strided", "copy");
    for side in [16_384, 16_385] {
        layout::<f32>(&only, &[16_384, side], &[1, 0])?;
    }
    for side in [32_768, 32_769] {
        layout::<u8>(&only, &[32_768, side], &[1, 0])?;
        layout::<u16>(&only, &[32_768, side], &[1, 0])?;
    }
    for axes in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        layout::<f64>(&only, &[256; 3], &axes)?;
    }
    layout::<f32>(&only, &[2; 26], &SHUFFLED)
}

/// 26 axes in a random order, as in `compare_numpy.py`.
const SHUFFLED: [usize; 26] =
    [2, 10, 4, 12, 9, 13, 25, 22, 18, 24, 6, 3, 17, 15, 21, 5, 1, 7, 14, 0, 16, 20, 11, 23, 8, 19];

fn layout<T: Item>(only: &str, shape: &[usize], axes: &[usize]) -> Result<(), Box<dyn Error>> {
    let mut name = format!("{} {shape:?} {axes:?}", std::any::type_name::<T>());
    if shape.len() > 3 {
        name = format!("{} 2^{}, shuffled", std::any::type_name::<T>(), shape.len());
    }
    if !name.contains(only) {
        return Ok(());
    }
    let count = shape.iter().product();
    let elements: Vec<T> = (0..count).map(T::number).collect();
    let strides: Vec<isize> =
        (1..=shape.len()).map(|axis| shape[axis..].iter().product::<usize>() as isize).collect();
    let dims: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
    let from: Vec<isize> = axes.iter().map(|axis| strides[*axis]).collect();
    let to: Vec<isize> =
        (1..=dims.len()).map(|axis| dims[axis..].iter().product::<usize>() as isize).collect();
    let mut rival = vec![T::number(0); count];
    let mut ours = rival.clone();
    let long: Vec<u64> = shape.iter().map(|len| *len as u64).collect();
    let tensor = tslice::tensor("a", &long, elements.clone())?;
    let signed: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
    let slice = tensor.all().transpose(&signed)?;
    let mut best = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        slice.read_into(&mut ours)?;
        best[0] = best[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let input = StridedView::new(&elements, &dims, &from, 0)?;
        copy_into_par(&mut StridedViewMut::new(&mut rival, &dims, &to, 0)?, &input)?;
        best[1] = best[1].min(start.elapsed().as_secs_f64());
        if ours != rival {
            return Err(format!("{name}: the results differ").into());
        }
        let start = Instant::now();
        tensor.all().read_into(&mut ours)?;
        best[2] = best[2].min(start.elapsed().as_secs_f64());
    }
    println!("{name:28} {:8.3} {:8.3} {:8.3}", best[0], best[1], best[2]);
    Ok(())
}

trait Item: tslice::Element + PartialEq + Send + Sync + 'static {
    fn number(at: usize) -> Self;
}

macro_rules! item {
    ($($name:ty),*) => { $(impl Item for $name {
        fn number(at: usize) -> Self {
            (at % 65_521) as $name
        }
    })* };
}

item!(f32, f64, u8, u16);
