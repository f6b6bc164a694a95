//! The same piece in other libraries: calls of TensorFlow and MindSpore, and ONNX operators.

use serde_json::{Value, json};
use tslice::index::resolve::{AxisSelection, Selection};
use tslice::index::strided_slice::StridedSlice;
use tslice::index::{IndexExpr, Item, SliceItem};
use tslice::shape::{Arrangement, Order};

/// What other libraries call an index of a tensor `x`; `None` if they cannot express it.
pub(super) struct Equivalents {
    tensorflow: Option<String>,
    mindspore: Option<String>,
    onnx: Option<Onnx>,
    gather: Option<usize>,
}

impl Equivalents {
    /// Translate `expr`, which became `selection`, whose axes are arranged.
    pub(super) fn new(
        expr: &IndexExpr,
        keepdims: bool,
        selection: &Selection,
        arranged: &Arrangement,
    ) -> Equivalents {
        let strided = strided(expr, keepdims);
        let then = Then::all(&selection.shape(), arranged);
        Equivalents {
            tensorflow: strided.as_ref().map(|strided| tensorflow(strided, &then)),
            mindspore: strided.as_ref().map(|strided| mindspore(strided, &then)),
            gather: gather_axis(selection),
            onnx: Onnx::new(selection, then),
        }
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let onnx = match (&self.onnx, self.gather) {
            (Some(onnx), _) => onnx.text(),
            (None, Some(axis)) => format!("Slice cannot express a list; Gather(axis={axis}) can"),
            (None, None) => "Slice cannot express lists".to_owned(),
        };
        let calls = [("tensorflow", &self.tensorflow), ("mindspore", &self.mindspore)];
        let calls = calls.into_iter().filter_map(|(name, call)| Some((name, call.clone()?)));
        calls.chain([("onnx", onnx)]).map(|(name, call)| [name.to_owned(), call]).collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "tensorflow": self.tensorflow,
            "mindspore": self.mindspore,
            "onnx": self.onnx.as_ref().map(Onnx::json),
        })
    }
}

/// What is done with the axes of a result.
enum Then {
    Reshape(Vec<u64>),
    Transpose(Vec<usize>),
}

impl Then {
    /// Axes are split, put in another order, and merged, as far as the arrangement does any of that.
    fn all(shape: &[u64], arranged: &Arrangement) -> Vec<Then> {
        let mut all = Vec::new();
        let axes = arranged.in_memory(Order::C);
        let split = axes.splits().map_or_else(|| shape.to_vec(), <[Vec<u64>]>::concat);
        let ordered = axes.order().permute(&split);
        if split != shape {
            all.push(Then::Reshape(split));
        }
        if !axes.order().is_identity() {
            all.push(Then::Transpose(axes.order().axes().to_vec()));
        }
        if ordered != arranged.shape() {
            all.push(Then::Reshape(arranged.shape().to_vec()));
        }
        all
    }

    fn name(&self) -> &'static str {
        match self {
            Then::Reshape(_) => "reshape",
            Then::Transpose(_) => "transpose",
        }
    }

    /// Its argument, as `list` or [`tuple`] says it.
    fn in_brackets(&self, list: impl Fn(&[u64]) -> String) -> String {
        match self {
            Then::Reshape(shape) => list(shape),
            Then::Transpose(axes) => list(&Vec::from_iter(axes.iter().map(|&axis| axis as u64))),
        }
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

fn tensorflow(strided: &StridedSlice, then: &[Then]) -> String {
    let lists = [&strided.begin, &strided.end, &strided.strides].map(|numbers| list(numbers));
    let masks = mask_arguments(strided).into_iter();
    let arguments: Vec<_> = lists.into_iter().chain(masks).collect();
    let call = format!("tf.strided_slice(x, {})", arguments.join(", "));
    then.iter()
        .fold(call, |call, then| format!("tf.{}({call}, {})", then.name(), then.in_brackets(list)))
}

fn mindspore(strided: &StridedSlice, then: &[Then]) -> String {
    let masks = mask_arguments(strided).join(", ");
    let lists = [&strided.begin, &strided.end, &strided.strides].map(|numbers| tuple(numbers));
    let call = format!("mindspore.ops.StridedSlice({masks})(x, {})", lists.join(", "));
    then.iter().fold(call, |call, then| {
        format!("mindspore.ops.{}({call}, {})", then.name(), then.in_brackets(tuple))
    })
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

/// The axis of the one list, if the axes of the result stay in its place.
fn gather_axis(selection: &Selection) -> Option<usize> {
    let goes = |axis: &AxisSelection| matches!(axis, AxisSelection::Index { .. });
    match &selection.lists[..] {
        [list] if list.axes.len() == 1 && !selection.axes.iter().any(goes) => Some(list.axes.start),
        _ => None,
    }
}

/// ONNX operators in the order in which they apply, with positions on the given shape.
#[derive(Default)]
struct Onnx {
    starts: Vec<i64>,
    /// `i64::MIN` is before the first position.
    ends: Vec<i64>,
    axes: Vec<usize>,
    steps: Vec<i64>,
    squeeze: Vec<usize>,
    /// Axes of the result before it is arranged.
    unsqueeze: Vec<usize>,
    then: Vec<Then>,
}

impl Onnx {
    fn new(selection: &Selection, then: Vec<Then>) -> Option<Onnx> {
        let mut onnx = Onnx { then, ..Onnx::default() };
        let mut ndim = 0;
        for pick in &selection.axes {
            match *pick {
                AxisSelection::Index { axis, at } => {
                    onnx.slice(axis, at, 1, 1)?;
                    onnx.squeeze.push(axis);
                    continue;
                }
                AxisSelection::Range { axis, step: 1, len, .. }
                    if len == selection.source_shape[axis] => {}
                AxisSelection::Range { axis, start, step, len } => {
                    onnx.slice(axis, start, step, len)?;
                }
                AxisSelection::NewAxis => onnx.unsqueeze.push(ndim),
                AxisSelection::List { .. } => return None,
            }
            ndim += 1;
        }
        Some(onnx)
    }

    fn slice(&mut self, axis: usize, start: u64, step: i64, len: u64) -> Option<()> {
        let (start, step) = match len {
            0 => (0, 1),
            1 => (i64::try_from(start).ok()?, 1),
            _ => (i64::try_from(start).ok()?, step),
        };
        let end = match i64::try_from(len).ok()? {
            0 => start,
            len => step.checked_mul(len - 1)?.checked_add(start)?.checked_add(step.signum())?,
        };
        self.starts.push(start);
        self.ends.push(if end < 0 { i64::MIN } else { end });
        self.axes.push(axis);
        self.steps.push(step);
        Some(())
    }

    fn text(&self) -> String {
        let mut operators = vec![];
        if !self.axes.is_empty() {
            let [starts, ends, steps] = [&self.starts, &self.ends, &self.steps].map(|n| list(n));
            let axes = list(&self.axes);
            operators
                .push(format!("Slice(starts={starts}, ends={ends}, axes={axes}, steps={steps})"));
        }
        for (name, axes) in [("Squeeze", &self.squeeze), ("Unsqueeze", &self.unsqueeze)] {
            if !axes.is_empty() {
                operators.push(format!("{name}(axes={})", list(axes)));
            }
        }
        operators.extend(self.then.iter().map(|then| match then {
            Then::Reshape(shape) => format!("Reshape(shape={})", list(shape)),
            Then::Transpose(axes) => format!("Transpose(perm={})", list(axes)),
        }));
        if operators.is_empty() { "Identity()".to_owned() } else { operators.join(", then ") }
    }

    fn json(&self) -> Value {
        json!({
            "starts": self.starts,
            "ends": self.ends,
            "axes": self.axes,
            "steps": self.steps,
            "squeeze": self.squeeze,
            "unsqueeze": self.unsqueeze,
            "transpose": self.then.iter().find_map(|then| match then {
                Then::Transpose(axes) => Some(axes),
                Then::Reshape(_) => None,
            }),
            "reshape": self.then.iter().filter_map(|then| match then {
                Then::Reshape(shape) => Some(shape),
                Then::Transpose(_) => None,
            }).collect::<Vec<_>>(),
        })
    }
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
    use tslice::index::resolve::resolve;
    use tslice::shape::Transposition;

    use super::*;

    fn equivalents(text: &str, shape: &[u64], keepdims: bool) -> Equivalents {
        let expr = numpy::parse(text).unwrap().expr;
        let selection = resolve(&expr, shape, keepdims).unwrap();
        let arranged = Transposition::None.of(&selection.shape()).unwrap();
        Equivalents::new(&expr, keepdims, &selection, &arranged)
    }

    fn rows(text: &str, shape: &[u64], keepdims: bool) -> Vec<String> {
        let rows = equivalents(text, shape, keepdims).rows();
        rows.into_iter().map(|[_, call]| call).collect()
    }

    #[test]
    fn every_kind_of_item() {
        let rows = rows("[1, 2:4, None, ..., :-3:-1, :]", &[3, 5, 2, 4, 3], false);
        let expected = [
            "tf.strided_slice(x, [1, 2, 0, 0, 0, 0], [2, 4, 0, 0, -3, 0], [1, 1, 1, 1, -1, 1], \
             begin_mask=48, end_mask=32, ellipsis_mask=8, new_axis_mask=4, shrink_axis_mask=1)",
            "mindspore.ops.StridedSlice(begin_mask=48, end_mask=32, ellipsis_mask=8, \
             new_axis_mask=4, shrink_axis_mask=1)(x, (1, 2, 0, 0, 0, 0), (2, 4, 0, 0, -3, 0), \
             (1, 1, 1, 1, -1, 1))",
            "Slice(starts=[1, 2, 3], ends=[2, 4, 1], axes=[0, 1, 3], steps=[1, 1, -1]), \
             then Squeeze(axes=[0]), then Unsqueeze(axes=[1])",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn keepdims_does_not_shrink() {
        let rows = rows("[-1]", &[5], true);
        assert_eq!(rows[0], "tf.strided_slice(x, [-1], [0], [1], end_mask=1)");
        assert_eq!(rows[1], "mindspore.ops.StridedSlice(end_mask=1)(x, (-1,), (0,), (1,))");
        assert_eq!(rows[2], "Slice(starts=[4], ends=[5], axes=[0], steps=[1])");
    }

    #[test]
    fn everything_and_lists() {
        let whole = rows("[]", &[5], false);
        assert_eq!(whole[0], "tf.strided_slice(x, [0], [0], [1], ellipsis_mask=1)");
        assert_eq!(whole[2], "Identity()");
        let one = rows("[:, [3, 0]]", &[5, 6], false);
        assert_eq!(one, ["Slice cannot express a list; Gather(axis=1) can"]);
        assert_eq!(rows("[0, [3, 0]]", &[5, 6], false), ["Slice cannot express lists"]);
        let told = equivalents("[[3, 0]]", &[5], false).json();
        assert_eq!(told, json!({ "tensorflow": null, "mindspore": null, "onnx": null }));
    }

    #[test]
    fn a_transposed_result() {
        let expr = numpy::parse("[..., 0]").unwrap().expr;
        let selection = resolve(&expr, &[8, 9, 3], false).unwrap();
        let reversed = Transposition::Reversed.of(&selection.shape()).unwrap();
        let told = Equivalents::new(&expr, false, &selection, &reversed).rows();
        assert_eq!(
            told.into_iter().map(|[_, call]| call).collect::<Vec<_>>(),
            [
                "tf.transpose(tf.strided_slice(x, [0, 0], [0, 1], [1, 1], ellipsis_mask=1, \
                 shrink_axis_mask=2), [1, 0])",
                "mindspore.ops.transpose(mindspore.ops.StridedSlice(ellipsis_mask=1, \
                 shrink_axis_mask=2)(x, (0, 0), (0, 1), (1, 1)), (1, 0))",
                "Slice(starts=[0], ends=[1], axes=[2], steps=[1]), then Squeeze(axes=[2]), \
                 then Transpose(perm=[1, 0])",
            ]
        );
    }

    /// Positions as the text of ONNX's Slice-13 defines them: negative numbers count from the end,
    /// then they are clamped to [0, n] or, with a negative step, to [0, n - 1] and [-1, n - 1].
    fn onnx_positions(n: i64, start: i64, end: i64, step: i64) -> Vec<i64> {
        let counted = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
        let (mut at, end) = if step > 0 {
            (counted(start).clamp(0, n), counted(end).clamp(0, n))
        } else {
            (counted(start).clamp(0, n - 1), counted(end).clamp(-1, n - 1))
        };
        let mut positions = vec![];
        while (step > 0 && at < end) || (step < 0 && at > end) {
            positions.push(at);
            at += step;
        }
        positions
    }

    #[test]
    fn onnx_slices_select_the_positions_of_the_index() {
        let n = 5_i64;
        let bounds = [None].into_iter().chain((-7..8).map(Some));
        for (start, stop) in
            bounds.clone().flat_map(|start| bounds.clone().map(move |b| (start, b)))
        {
            for step in [-6, -2, -1, 1, 2, 3, 6] {
                let items = vec![Item::Slice(SliceItem { start, stop, step: Some(step) })];
                let selection = resolve(&IndexExpr { items }, &[5], false).unwrap();
                let onnx = Onnx::new(&selection, Vec::new()).unwrap();
                let found = match onnx.axes[..] {
                    [] => (0..n).collect(),
                    _ => onnx_positions(n, onnx.starts[0], onnx.ends[0], onnx.steps[0]),
                };
                let AxisSelection::Range { start: first, step, len, .. } = selection.axes[0] else {
                    panic!("a slice is a range");
                };
                let expected: Vec<_> = (0..len as i64).map(|i| first as i64 + i * step).collect();
                assert_eq!(found, expected, "{start:?}:{stop:?}:{step}");
            }
        }
    }
}
