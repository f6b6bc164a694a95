//! Gathers by this library, TensorFlow and NumPy, case by case.
//!
//! The table is made by the script beside it, `fixtures/gather.py`; its first line names the
//! versions. The params of each case hold 0, 1, 2, ... in C order. All cases go through the
//! library, some through the binary too.

use std::path::Path;

use serde_json::Value;
use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{self, Conversion, ExecuteError, Progress, Transfer, Workers};
use tslice::gather::{Gather, Indexed, Indices, Options, OutOfRange};
use tslice::shape::{Order, element_count};
use tslice::sink::WriteOrder;
use tslice::view::Layout;

use crate::inputs::{I32, npy_header, write_npy};
use crate::memory::{Bytes, Memory};
use crate::program::tslice;

/// What became of a case: the result's shape and bytes, or a message.
type Outcome = Result<(Vec<u64>, Vec<u8>), String>;

struct Case {
    params: Vec<u64>,
    shape: Vec<u64>,
    indices: Vec<u8>,
    dtype: DType,
    axis: Option<i64>,
    options: Options,
}

fn lens(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|len| len.as_u64().unwrap()).collect()
}

impl Case {
    fn read(case: &Value) -> Case {
        let scalar = match case["dtype"].as_str().unwrap() {
            "i1" => Scalar::I8,
            "i2" => Scalar::I16,
            "i4" => Scalar::I32,
            "i8" => Scalar::I64,
            "u1" => Scalar::U8,
            "u2" => Scalar::U16,
            "u4" => Scalar::U32,
            _ => Scalar::U64,
        };
        let raw = |number: &Value| {
            let number = number.as_i64().unwrap_or_else(|| number.as_u64().unwrap() as i64);
            number.to_le_bytes()[..scalar.bits() as usize / 8].to_vec()
        };
        Case {
            params: lens(&case["params"]),
            shape: lens(&case["indices"][0]),
            indices: case["indices"][1].as_array().unwrap().iter().flat_map(raw).collect(),
            dtype: DType::Scalar(scalar, Endian::Little),
            axis: case["axis"].as_i64(),
            options: Options {
                batch_dims: case["batch_dims"].as_u64().unwrap() as usize,
                out_of_range: match case["mode"].as_str().unwrap() {
                    "clip" => OutOfRange::Clip,
                    "wrap" => OutOfRange::Wrap,
                    "zero" => OutOfRange::Drop,
                    _ => OutOfRange::Error,
                },
                ..Options::default()
            },
        }
    }

    fn data(&self) -> Vec<u8> {
        let count = element_count(&self.params).unwrap() as i32;
        (0..count).flat_map(i32::to_le_bytes).collect()
    }

    fn gathered(&self) -> Outcome {
        let text = |error: &dyn ToString| error.to_string();
        let params = Layout::new(&self.params, 32, Order::C, 0);
        let Case { dtype, shape, axis, options, .. } = self;
        let layout = Layout::new(shape, dtype.item_bits(), Order::C, 0);
        let indices = Indices { dtype, layout };
        let indexed = match axis {
            None => Indexed::nd(&params, &indices, options),
            Some(axis) => Indexed::along(&params, &indices, *axis, options),
        };
        let gather = indexed.and_then(|indexed| Gather::new(&params, indexed, options));
        let gather = gather.map_err(|error| text(&error))?;
        let shape = gather.shape().to_vec();
        let sink = Memory::new(gather.bytes(), WriteOrder::Ascending);
        let indices = Bytes::new(self.indices.clone(), None);
        gather.check(&[&indices], &Workers::new(1)).map_err(|error| text(&error))?;
        let gathering =
            gather.with(&[&indices], 1, &Workers::new(1)).map_err(|error| text(&error))?;
        let source = Bytes::new(self.data(), None);
        let copies =
            [Transfer { source: &source, pieces: &gathering, conversion: Conversion::None, at: 0 }];
        let run = execute::run(&copies, &sink, &Workers::new(1), &Progress::default());
        run.map_err(|error: ExecuteError| text(&error))?;
        Ok((shape, sink.into_bytes()))
    }

    /// The same through files and the command line.
    fn by_binary(&self, case: &Value, dir: &Path) -> Outcome {
        for (name, dtype, shape, data) in [
            ("params.npy", &I32, &self.params, &self.data()),
            ("indices.npy", &self.dtype, &self.shape, &self.indices),
        ] {
            write_npy(&dir.join(name), dtype, shape, data);
        }
        let mut command = tslice(dir, &["gather", "params.npy", "--indices", "indices.npy"]);
        command.arg(format!("--batch-dims={}", case["batch_dims"]));
        command.arg(format!("--out-of-range={}", case["mode"].as_str().unwrap()));
        if let Some(axis) = self.axis {
            command.args(["--axis".to_owned(), axis.to_string()]);
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            let text = String::from_utf8(output.stderr).unwrap();
            return Err(text.trim_end().strip_prefix("tslice: ").unwrap().to_owned());
        }
        let shape = lens(&case["result"][0]);
        let header = npy_header(&I32, &shape);
        Ok((shape, output.stdout.strip_prefix(header.as_slice()).unwrap().to_vec()))
    }
}

#[test]
fn gathers_are_tensorflows_and_numpys() {
    let mut lines = include_str!("../../../fixtures/gather.jsonl").lines();
    let made_by: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let cases: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(made_by["cases"], cases.len());
    let dir = tempfile::tempdir().unwrap();
    for (number, line) in cases.iter().enumerate() {
        let case = Case::read(line);
        let mut outcomes = vec![case.gathered()];
        if number % 9 == 0 {
            outcomes.push(case.by_binary(line, dir.path()));
        }
        for ours in outcomes {
            let agree = match &ours {
                Ok((shape, bytes)) => {
                    let elements = line["result"][1].as_array();
                    let raw = |value: &Value| (value.as_i64().unwrap() as i32).to_le_bytes();
                    let raw = elements.map(|e| e.iter().flat_map(raw).collect::<Vec<u8>>());
                    line["result"][0] == serde_json::json!(shape) && raw.as_ref() == Some(bytes)
                }
                Err(message) => {
                    let theirs = &line["message"];
                    line["result"].is_null() && (theirs.is_null() || theirs == message)
                }
            };
            assert!(agree, "{line}\n  ours: {ours:?}");
        }
    }
}
