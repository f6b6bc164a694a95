//! The laws of gathering, as properties on random tensors and indices.
//!
//! The oracle is a loop over the elements of the output, straight from the definitions of
//! gather_nd and of gather along an axis: it knows no rows, slabs or pieces.

use proptest::prelude::*;
use proptest::sample::Index;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{
    self, BadPosition, Conversion, ExecuteError, FillError, Progress, Transfer, Workers,
};
use tslice::gather::{Gather, Indexed, Indices, Options, OutOfRange};
use tslice::shape::{Order, Permutation, contiguous_strides};
use tslice::sink::WriteOrder;
use tslice::view::Layout;

use super::cases;
use crate::memory::{Bytes, Memory};

/// A tensor of integers from -2^63 to 2^64 and how a file holds it, or of items that are only
/// bytes.
#[derive(Clone, Debug)]
struct TensorInfo {
    shape: Vec<u64>,
    order: Order,
    before: u64,
}

impl TensorInfo {
    fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The place of an element in the file, in elements.
    fn place(&self, at: &[u64]) -> u64 {
        let strides = contiguous_strides(&self.shape, 1, self.order).unwrap();
        at.iter().zip(strides).map(|(at, stride)| at * stride as u64).sum()
    }
}

#[derive(Clone, Debug)]
struct Case {
    params: TensorInfo,
    itemsize: u64,
    indices: TensorInfo,
    scalar: Scalar,
    endian: Endian,
    /// In C order.
    numbers: Vec<i128>,
    axis: Option<usize>,
    options: Options,
    /// Which order of the result's axes; 0 for their own.
    shuffle: u64,
}

/// Positions of a shape in C order, or Fortran's.
fn positions(shape: &[u64], order: Order) -> Vec<Vec<u64>> {
    let count: u64 = shape.iter().product();
    let axes: Vec<usize> = match order {
        Order::C => (0..shape.len()).rev().collect(),
        Order::F => (0..shape.len()).collect(),
    };
    let position = |number| {
        let (mut at, mut rest) = (vec![0; shape.len()], number);
        for &axis in &axes {
            at[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        at
    };
    (0..count).map(position).collect()
}

impl Case {
    fn index_file(&self) -> Vec<u8> {
        let width = (self.scalar.bits() / 8) as usize;
        let mut file = vec![0xA5; self.indices.before as usize + self.numbers.len() * width];
        for (at, number) in positions(&self.indices.shape, Order::C).iter().zip(&self.numbers) {
            let mut bytes = number.to_le_bytes()[..width].to_vec();
            if self.endian == Endian::Big {
                bytes.reverse();
            }
            let place = self.indices.before as usize + self.indices.place(at) as usize * width;
            file[place..][..width].copy_from_slice(&bytes);
        }
        file
    }

    fn params_file(&self) -> Vec<u8> {
        let count = self.params.before + self.params.count() * self.itemsize;
        (0..count).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    }

    fn number(&self, at: &[u64]) -> i128 {
        let strides = contiguous_strides(&self.indices.shape, 1, Order::C).unwrap();
        let place: u64 = at.iter().zip(strides).map(|(at, stride)| at * stride as u64).sum();
        self.numbers[place as usize]
    }

    fn settled(&self, number: i128, len: u64) -> Option<u64> {
        let len = i128::from(len);
        let position = match self.options.out_of_range {
            OutOfRange::Clip => number.max(0).min(len - 1),
            OutOfRange::Wrap => ((number % len) + len) % len,
            _ => number,
        };
        (0..len).contains(&position).then_some(position as u64)
    }

    /// The order of the axes of the result.
    fn permutation(&self) -> Permutation {
        let (mut rest, mut axes) = (self.shuffle, vec![]);
        for axis in 0..self.shape().len() as u64 {
            axes.insert(axes.len() - (rest % (axis + 1)) as usize, axis as i64);
            rest /= axis + 1;
        }
        Permutation::new(&axes, axes.len()).unwrap()
    }

    /// The shape of the output, before it is transposed.
    fn shape(&self) -> Vec<u64> {
        let (params, indices) = (&self.params.shape, &self.indices.shape);
        let batch = self.options.batch_dims;
        match self.axis {
            Some(axis) => [&params[..axis], &indices[batch..], &params[axis + 1..]].concat(),
            None => {
                let (count, tuples) = indices.split_last().unwrap();
                [tuples, &params[batch + *count as usize..]].concat()
            }
        }
    }

    /// The place in the params of an element of the output; `None` for a number out of range.
    fn source(&self, at: &[u64]) -> Option<Vec<u64>> {
        let batch = self.options.batch_dims;
        match self.axis {
            Some(axis) => {
                let ndim = self.indices.shape.len() - batch;
                let number = [&at[..batch], &at[axis..axis + ndim]].concat();
                let position = self.settled(self.number(&number), self.params.shape[axis])?;
                Some([&at[..axis], &[position], &at[axis + ndim..]].concat())
            }
            None => {
                let (&count, tuples) = self.indices.shape.split_last().unwrap();
                let mut place = at[..batch].to_vec();
                for column in 0..count {
                    let number = self.number(&[&at[..tuples.len()], &[column]].concat());
                    place.push(self.settled(number, self.params.shape[place.len()])?);
                }
                place.extend(&at[tuples.len()..]);
                Some(place)
            }
        }
    }

    fn naive(&self) -> Vec<u8> {
        let file = self.params_file();
        let mut out = Vec::new();
        let axes = self.permutation();
        for transposed in positions(&axes.permute(&self.shape()), self.options.order) {
            let mut at = transposed.clone();
            for (index, &axis) in transposed.iter().zip(axes.axes()) {
                at[axis] = *index;
            }
            match self.source(&at) {
                None => out.extend(vec![0; self.itemsize as usize]),
                Some(place) => {
                    let at = self.params.before + self.params.place(&place) * self.itemsize;
                    out.extend_from_slice(&file[at as usize..][..self.itemsize as usize]);
                }
            }
        }
        out
    }

    fn gather(&self) -> Gather {
        let TensorInfo { shape, order, before } = &self.params;
        let layout = Layout::new(shape, self.itemsize * 8, *order, *before);
        let dtype = DType::Scalar(self.scalar, self.endian);
        let TensorInfo { shape, order, before } = &self.indices;
        let indices = Layout::new(shape, dtype.item_bits(), *order, *before);
        let indices = Indices { dtype: &dtype, layout: indices };
        let transpose = Some(self.permutation());
        let options = Options { transpose, ..self.options.clone() };
        let indexed = match self.axis {
            None => Indexed::nd(&layout, &indices, &options).unwrap(),
            Some(axis) => Indexed::along(&layout, &indices, axis as i64, &options).unwrap(),
        };
        Gather::new(&layout, indexed, &options).unwrap()
    }

    fn run(&self, way: &Way) -> Result<Vec<u8>, FillError> {
        let source = Bytes::new(self.params_file(), way.window);
        let indices = Bytes::new(self.index_file(), way.index_window);
        let gather = self.gather();
        assert_eq!(gather.shape(), self.permutation().permute(&self.shape()));
        let sink = Memory::new(gather.bytes(), way.write);
        let gathering = gather.with(&[&indices], 1, &Workers::new(1))?;
        let gathering = match way.divided {
            Some((first_bytes, piece_bytes)) => gathering.divided(first_bytes, piece_bytes),
            None => gathering,
        };
        let copies =
            [Transfer { source: &source, pieces: &gathering, conversion: Conversion::None, at: 0 }];
        let outcome =
            execute::run(&copies, &sink, &Workers::new(way.threads), &Progress::default());
        outcome.map(|()| sink.into_bytes()).map_err(fill)
    }
}

fn fill(error: ExecuteError) -> FillError {
    match error {
        ExecuteError::Fill { error, .. } => error,
        other => unreachable!("{other}"),
    }
}

/// How to run the engine.
#[derive(Clone, Debug)]
struct Way {
    threads: usize,
    window: Option<u64>,
    index_window: Option<u64>,
    divided: Option<(u64, u64)>,
    write: WriteOrder,
}

fn way() -> impl Strategy<Value = Way> {
    let window = || prop::option::of(1u64..3000);
    let write = prop_oneof![Just(WriteOrder::Any), Just(WriteOrder::Ascending)];
    let divided = prop::option::of((1u64..100, 1u64..100));
    (1usize..4, window(), window(), divided, write).prop_map(
        |(threads, window, index_window, divided, write)| Way {
            threads,
            window,
            index_window,
            divided,
            write,
        },
    )
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

fn options() -> impl Strategy<Value = Options> {
    let out_of_range =
        prop_oneof![Just(OutOfRange::Drop), Just(OutOfRange::Clip), Just(OutOfRange::Wrap)];
    let hold = prop_oneof![Just(0u64), Just(1 << 16)];
    let piece_bytes = prop_oneof![1u64..100, 100u64..5000, Just(1 << 18)];
    (out_of_range, order(), hold, piece_bytes).prop_map(
        |(out_of_range, order, hold, piece_bytes)| Options {
            out_of_range,
            order,
            hold,
            piece_bytes,
            ..Options::default()
        },
    )
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop::sample::select(vec![
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
    ])
}

/// A random gather; with `wild`, some numbers lie out of range.
fn case(wild: bool) -> impl Strategy<Value = Case> {
    let len = || prop_oneof![9 => 1u64..6, 1 => Just(0), 1 => 6u64..30];
    let params = prop::collection::vec(len(), 0..5);
    let own = prop::collection::vec(len(), 0..3);
    let itemsize = prop::sample::select(vec![1u64, 2, 3, 4, 8, 12, 16]);
    let endian = prop_oneof![Just(Endian::Little), Just(Endian::Big)];
    let shapes = (params, own, any::<Index>(), any::<Index>(), any::<bool>());
    let files = (order(), order(), 0u64..9, 0u64..9, itemsize, scalar(), endian);
    (shapes, files, options(), any::<u64>())
        .prop_map(move |((params, own, batch, which, along), files, mut options, seed)| {
            let (order, index_order, before, index_before, itemsize, scalar, endian) = files;
            let axis = (along && !params.is_empty()).then(|| which.index(params.len()));
            let most = axis.unwrap_or(params.len().saturating_sub(1));
            let batch = batch.index(most + 1);
            options.batch_dims = batch;
            let mut shape = [&params[..batch], &own].concat();
            let columns = match axis {
                Some(axis) => vec![params[axis]],
                None => {
                    let count = which.index(params.len() - batch + 1);
                    shape.push(count as u64);
                    params[batch..batch + count].to_vec()
                }
            };
            let mut state = seed;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 20
            };
            let count: u64 = shape.iter().product();
            let bits = scalar.bits() as u32;
            let signed = matches!(scalar, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
            let numbers = (0..count).map(|at| {
                let len = columns[at as usize % columns.len()].max(1);
                let number = i128::from(random() % len);
                if !wild || random() % 4 > 0 {
                    return number;
                }
                // near the axis, or anything the type holds
                let (low, high) = if signed {
                    (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
                } else {
                    (0, (1i128 << bits) - 1)
                };
                match random() % 4 {
                    0 => low,
                    1 => high,
                    2 => (number - i128::from(len)).max(low),
                    _ => (number + i128::from(len)).min(high),
                }
            });
            let numbers = numbers.collect();
            let params = TensorInfo { shape: params, order, before };
            let indices = TensorInfo { shape, order: index_order, before: index_before };
            let shuffle = if seed % 3 == 0 { 0 } else { seed >> 8 };
            Case { params, itemsize, indices, scalar, endian, numbers, axis, options, shuffle }
        })
        .prop_filter("small", |case| {
            case.shape().iter().product::<u64>() < 20_000
                && case.params.count() < 20_000
                && case.shape().len() <= 64
        })
}

/// The lengths of the axes that the numbers of a case index.
fn columns(case: &Case) -> &[u64] {
    match case.axis {
        Some(axis) => &case.params.shape[axis..=axis],
        None => {
            let count = *case.indices.shape.last().unwrap() as usize;
            &case.params.shape[case.options.batch_dims..][..count]
        }
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_gather_is_a_loop_over_elements(case in case(true), way in way()) {
        let mut case = case;
        if columns(&case).contains(&0) && !case.numbers.is_empty() {
            case.options.out_of_range = OutOfRange::Drop;
        }
        prop_assert_eq!(case.run(&way).unwrap(), case.naive());
    }

    #[test]
    fn the_first_bad_position_is_reported(case in case(true), way in way()) {
        let mut case = case;
        case.options.out_of_range = OutOfRange::Error;
        let lens = columns(&case);
        let outside = |(at, &number): (usize, &i128)| {
            !(0..i128::from(lens[at % lens.len()])).contains(&number)
        };
        let first = case.numbers.iter().enumerate().position(outside);
        let indices = Bytes::new(case.index_file(), way.index_window);
        let gather = case.gather();
        // slabs of no elements: only the check looks at the positions
        let checks_itself = gather.checks_itself();
        let checked = gather.check(&[&indices], &Workers::new(way.threads)).map_err(fill);
        let Some(first) = first else {
            prop_assert!(checked.is_ok());
            prop_assert_eq!(case.run(&way).unwrap(), case.naive());
            return Ok(());
        };
        let mut place = positions(&case.indices.shape, Order::C)[first].clone();
        if case.axis.is_none() {
            place.pop();
        }
        let mut outcomes = vec![checked.map(|()| vec![])];
        if checks_itself {
            outcomes.push(case.run(&way));
        }
        for outcome in outcomes {
            let Err(FillError::Position(bad)) = outcome else {
                return Err(TestCaseError::fail("no bad position was found"));
            };
            let (BadPosition::Tuple { at, .. }
            | BadPosition::Number { at, .. }
            | BadPosition::Listed { at, .. }) = bad;
            prop_assert_eq!(&at, &place);
        }
    }
}
