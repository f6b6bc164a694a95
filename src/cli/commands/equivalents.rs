//! Equivalents of an index in other libraries: calls of TensorFlow and MindSpore.

use serde_json::{Value, json};
use tslice::index::strided_slice::StridedSlice;
use tslice::index::{IndexExpr, Item, SliceItem};

/// The equivalents of an index of a tensor `x`; `None` if a library cannot express it.
pub(super) struct Equivalents {
    tensorflow: Option<String>,
    mindspore: Option<String>,
}

impl Equivalents {
    pub(super) fn new(expr: &IndexExpr, keepdims: bool) -> Equivalents {
        let strided = strided(expr, keepdims);
        Equivalents {
            tensorflow: strided.as_ref().map(tensorflow),
            mindspore: strided.as_ref().map(mindspore),
        }
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let calls = [("tensorflow", &self.tensorflow), ("mindspore", &self.mindspore)];
        let calls = calls.into_iter().filter_map(|(name, call)| Some((name, call.clone()?)));
        calls.map(|(name, call)| [name.to_owned(), call]).collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({ "tensorflow": self.tensorflow, "mindspore": self.mindspore })
    }
}

/// The arguments of StridedSlice; with `keepdims` integers become slices of length 1. An index of
/// everything becomes an ellipsis, since the libraries cannot tell the dtype of empty lists.
fn strided(expr: &IndexExpr, keepdims: bool) -> Option<StridedSlice> {
    let mut expr = expr.clone();
    if expr.items.is_empty() {
        expr.items.push(Item::Ellipsis);
    }
    for item in &mut expr.items {
        if let (Item::Integer(at), true) = (&*item, keepdims) {
            let stop = at.checked_add(1).filter(|stop| *stop != 0);
            *item = Item::Slice(SliceItem { start: Some(*at), stop, step: None });
        }
    }
    StridedSlice::from_expr(&expr).ok()
}

fn tensorflow(strided: &StridedSlice) -> String {
    let lists = [&strided.begin, &strided.end, &strided.strides].map(|numbers| list(numbers));
    let arguments: Vec<_> = lists.into_iter().chain(mask_arguments(strided)).collect();
    format!("tf.strided_slice(x, {})", arguments.join(", "))
}

fn mindspore(strided: &StridedSlice) -> String {
    let masks = mask_arguments(strided).join(", ");
    let lists = [&strided.begin, &strided.end, &strided.strides].map(|numbers| tuple(numbers));
    format!("mindspore.ops.StridedSlice({masks})(x, {})", lists.join(", "))
}

pub(super) fn masks(strided: &StridedSlice) -> [(&'static str, u64); 5] {
    [
        ("begin_mask", strided.begin_mask),
        ("end_mask", strided.end_mask),
        ("ellipsis_mask", strided.ellipsis_mask),
        ("new_axis_mask", strided.new_axis_mask),
        ("shrink_axis_mask", strided.shrink_axis_mask),
    ]
}

/// Masks of 0 are left out, as that is the default.
fn mask_arguments(strided: &StridedSlice) -> Vec<String> {
    let set = masks(strided).into_iter().filter(|(_, mask)| *mask != 0);
    set.map(|(name, mask)| format!("{name}={mask}")).collect()
}

fn list<T: ToString>(values: &[T]) -> String {
    format!("[{}]", values.iter().map(T::to_string).collect::<Vec<_>>().join(", "))
}

fn tuple<T: ToString>(values: &[T]) -> String {
    let comma = if values.len() == 1 { "," } else { "" };
    format!("({}{comma})", values.iter().map(T::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use tslice::index::numpy;

    use super::*;

    fn rows(text: &str, keepdims: bool) -> Vec<String> {
        let expr = numpy::parse(text).unwrap().expr;
        let rows = Equivalents::new(&expr, keepdims).rows();
        rows.into_iter().map(|[_, call]| call).collect()
    }

    #[test]
    fn every_kind_of_item() {
        let expected = [
            "tf.strided_slice(x, [1, 2, 0, 0, 0, 0], [2, 4, 0, 0, -3, 0], [1, 1, 1, 1, -1, 1], \
             begin_mask=48, end_mask=32, ellipsis_mask=8, new_axis_mask=4, shrink_axis_mask=1)",
            "mindspore.ops.StridedSlice(begin_mask=48, end_mask=32, ellipsis_mask=8, \
             new_axis_mask=4, shrink_axis_mask=1)(x, (1, 2, 0, 0, 0, 0), (2, 4, 0, 0, -3, 0), \
             (1, 1, 1, 1, -1, 1))",
        ];
        assert_eq!(rows("[1, 2:4, None, ..., :-3:-1, :]", false), expected);
    }

    #[test]
    fn keepdims_does_not_shrink() {
        let rows = rows("[-1]", true);
        assert_eq!(rows[0], "tf.strided_slice(x, [-1], [0], [1], end_mask=1)");
        assert_eq!(rows[1], "mindspore.ops.StridedSlice(end_mask=1)(x, (-1,), (0,), (1,))");
    }

    #[test]
    fn everything_and_lists() {
        let whole = rows("[]", false);
        assert_eq!(whole[0], "tf.strided_slice(x, [0], [0], [1], ellipsis_mask=1)");
        assert_eq!(rows("[0, [3, 0]]", false), [""; 0]);
    }
}
