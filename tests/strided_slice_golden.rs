//! Our reading of StridedSlice's arguments against TensorFlow's, case by case.
//!
//! The table is made by `fixtures/strided_slice.py`; its first line names the versions.

use serde_json::Value;
use tslice::index::resolve::{Pick, Selection, resolve};
use tslice::index::strided_slice::StridedSlice;

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
}

/// The flat positions in a C-ordered source that a selection without a list takes, in order.
fn elements(selection: &Selection) -> Vec<i64> {
    let mut flat = vec![0i64];
    for pick in &selection.picks {
        let (axis, positions) = match *pick {
            Pick::Index { axis, at } => (axis, vec![at as i64]),
            Pick::Range { axis, start, step, len } => {
                (axis, (0..len as i64).map(|i| start as i64 + i * step).collect())
            }
            Pick::NewAxis => continue,
            Pick::List { .. } => panic!("StridedSlice has no lists"),
        };
        let size = selection.source_shape[axis] as i64;
        let next = |base: &i64| {
            let base = base * size;
            positions.iter().map(move |position| base + position).collect::<Vec<_>>()
        };
        flat = flat.iter().flat_map(next).collect();
    }
    flat
}

#[test]
fn every_case_is_as_tensorflow_has_it() {
    let table = include_str!("../fixtures/strided_slice.jsonl");
    let mut lines = table.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let made_by = lines.next().unwrap();
    let mut differences = Vec::new();
    let mut cases = 0;
    for case in lines {
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
        let shape: Vec<u64> = integers(&case["shape"]).iter().map(|&len| len as u64).collect();
        let ours = flags
            .to_expr()
            .map_err(|error| error.to_string())
            .and_then(|expr| resolve(&expr, &shape, false).map_err(|error| error.to_string()))
            .map(|selection| (selection.shape(), elements(&selection)));
        let agree = match (&ours, case["result"].as_array().map(Vec::as_slice)) {
            (Ok((shape, elements)), Some([their_shape, their_elements])) => {
                serde_json::json!(shape) == *their_shape && *elements == integers(their_elements)
            }
            (Err(_), None) => true,
            _ => false,
        };
        if !agree {
            differences.push(format!("{case}\n  ours: {ours:?}"));
        }
        cases += 1;
    }
    assert_eq!(Some(cases), made_by["cases"].as_u64());
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
}
