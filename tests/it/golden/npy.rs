//! Headers against those that np.save wrote: `fixtures/npy_headers.tsv`.

use tslice::dtype::{self, DType};
use tslice::formats::{npy, read_contents};
use tslice::shape::{AsTuple, Order};

struct Row<'a> {
    dtype: &'a str,
    descr: &'a str,
    itemsize: u64,
    shape: Vec<u64>,
    order: Order,
    header: Vec<u8>,
}

fn rows() -> Vec<Row<'static>> {
    include_str!("../../../fixtures/npy_headers.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let [dtype, descr, itemsize, shape, order, header] = fields[..] else {
                panic!("a row of {} fields", fields.len())
            };
            Row {
                dtype,
                descr,
                itemsize: itemsize.parse().unwrap(),
                shape: numbers(shape),
                order: if order == "F" { Order::F } else { Order::C },
                header: header
                    .as_bytes()
                    .chunks(2)
                    .map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap())
                    .collect(),
            }
        })
        .collect()
}

fn numbers(tuple: &str) -> Vec<u64> {
    tuple
        .trim_matches(['(', ')'])
        .split(',')
        .map(str::trim)
        .filter(|length| !length.is_empty())
        .map(|length| length.parse().unwrap())
        .collect()
}

#[test]
fn headers_of_np_save_are_read() {
    for Row { dtype, descr, itemsize, shape, order, header } in rows() {
        let contents = read_contents(&mut header.as_slice(), None).unwrap();
        assert_eq!(contents.tensors.len(), 1);
        let tensor = contents.tensors.at(0);
        let context = format!("{descr} {}", AsTuple(&shape));
        assert_eq!(tensor.dtype.to_string(), dtype, "{context}");
        assert_eq!(tensor.dtype.item_bits(), itemsize * 8, "{context}");
        assert_eq!(tensor.shape, shape, "{context}");
        assert_eq!(tensor.data().start, header.len() as u64, "{context}");
        assert_eq!(tensor.bytes(), shape.iter().product::<u64>() * itemsize, "{context}");
        if tensor.order() != order {
            // What is in both orders is saved as C.
            assert_eq!((tensor.order(), order), (Order::C, Order::F), "{context}");
        }
        if let DType::Npy(_) = &tensor.dtype {
            assert_eq!(dtype::literal(&tensor.dtype).unwrap(), descr);
        }
    }
}

#[test]
fn headers_are_written_as_np_save_writes_them() {
    let rows = rows();
    assert!(rows.len() >= 200);
    for Row { descr, shape, order, header, .. } in rows {
        let read = read_contents(&mut header.as_slice(), None).unwrap();
        let written = npy::header(&read.tensors.at(0).dtype, &shape, order).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&written),
            String::from_utf8_lossy(&header),
            "{descr} {} {order}",
            AsTuple(&shape)
        );
        assert_eq!(written, header);
    }
}
