//! Indices as this library, NumPy and TensorFlow read them, case by case.
//!
//! The tables are made by the scripts beside them, `fixtures/index.py` and
//! `fixtures/strided_slice.py`; their first lines name the versions. The source of each case holds
//! 0, 1, 2, ... in C order, so that its elements are also their own places.

use serde_json::Value;
use tslice::index::resolve::{AxisSelection, ListPositions, Selection, resolve};
use tslice::index::{numpy, strided_slice::StridedSlice};

/// What became of a case: the result's shape and elements, or a message.
type Outcome = Result<(Vec<u64>, Vec<i64>), String>;

/// Compares each case of a table with `ours`, which says `None` where it agrees and otherwise what
/// it has instead.
fn compare(table: &str, ours: impl Fn(&Value) -> Option<String>) {
    let mut lines = table.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let made_by = lines.next().unwrap();
    let cases: Vec<_> = lines.collect();
    assert_eq!(made_by["cases"], cases.len());
    let differences: Vec<_> = cases
        .iter()
        .filter_map(|case| ours(case).map(|other| format!("{case}\n  ours: {other}")))
        .collect();
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
}

fn shape(case: &Value) -> Vec<u64> {
    integers(&case["shape"]).iter().map(|&len| len as u64).collect()
}

fn is_result(ours: &(Vec<u64>, Vec<i64>), theirs: &Value) -> bool {
    theirs[0] == serde_json::json!(ours.0) && integers(&theirs[1]) == ours.1
}

fn outcome(selection: Result<Selection, impl ToString>) -> Outcome {
    match selection {
        Ok(selection) => Ok((selection.shape(), elements(&selection))),
        Err(error) => Err(error.to_string()),
    }
}

/// The places of the selected elements in the order of the result.
fn elements(selection: &Selection) -> Vec<i64> {
    let lengths = &selection.source_shape;
    let stride = |axis: usize| lengths[axis + 1..].iter().product::<u64>() as i64;
    let mut first = 0;
    let mut list = Vec::new();
    // The offsets along each axis of the result.
    let mut axes = Vec::new();
    for selected in &selection.axes {
        match selected {
            AxisSelection::Index { axis, at } => first += *at as i64 * stride(*axis),
            AxisSelection::Range { axis, start, step, len } => {
                let offset = |i| (*start as i64 + i * step) * stride(*axis);
                axes.push((0..*len as i64).map(offset).collect());
            }
            AxisSelection::NewAxis => axes.push(vec![0]),
            AxisSelection::List { axis, list: 0 } => {
                let ListPositions::Known(positions) = &selection.lists[0].positions else {
                    panic!("lists are typed here");
                };
                list = positions.iter().map(|&at| at as i64 * stride(*axis)).collect();
            }
            AxisSelection::List { .. } => panic!("there is one list at most here"),
        }
    }
    if let Some(block) = selection.blocks.first() {
        axes.insert(block.at, list);
    }
    axes.iter().fold(vec![first], |places, offsets| {
        places.iter().flat_map(|place| offsets.iter().map(move |offset| place + offset)).collect()
    })
}

#[test]
fn texts_are_read_as_numpy_reads_them() {
    compare(include_str!("../../../fixtures/index.jsonl"), |case| {
        let spelled = match numpy::parse(case["text"].as_str().unwrap()) {
            Ok(spelled) => spelled,
            Err(_) if case["verdict"] == "syntax" => return None,
            Err(error) => return Some(format!("{error:?}")),
        };
        let ours = outcome(resolve(&spelled.expr, &shape(case), false));
        let agree = match &ours {
            Ok(result) => case["verdict"] == "ok" && is_result(result, &case["result"]),
            Err(message) => {
                let theirs = &case["message"];
                case["verdict"] == "fit" && (theirs.is_null() || theirs == message)
            }
        };
        (!agree).then(|| format!("{ours:?}"))
    });
}

#[test]
fn strided_slices_are_tensorflows() {
    compare(include_str!("../../../fixtures/strided_slice.jsonl"), |case| {
        let mask = |name: &str| case[name].as_u64().unwrap();
        let flags = StridedSlice {
            begin: integers(&case["begin"]),
            end: integers(&case["end"]),
            strides: integers(&case["strides"]),
            begin_mask: mask("begin_mask"),
            end_mask: mask("end_mask"),
            ellipsis_mask: mask("ellipsis_mask"),
            new_axis_mask: mask("new_axis_mask"),
            shrink_axis_mask: mask("shrink_axis_mask"),
        };
        let ours = match flags.to_expr() {
            Ok(expr) => outcome(resolve(&expr, &shape(case), false)),
            Err(error) => Err(error.to_string()),
        };
        let agree = match &ours {
            Ok(result) => is_result(result, &case["result"]),
            Err(_) => case["result"].is_null(),
        };
        (!agree).then(|| format!("{ours:?}"))
    });
}
