//! What tensors and groups say of themselves besides their elements: attributes, names of axes, fill values.
//!
//! A format gives its tensors an [`Annotated`] where it knows more of them than dtype and shape
//! ([`TensorInfo::annotated`](super::TensorInfo::annotated)), and the groups that they lie in another one
//! ([`Tensors::annotate_group`](super::Tensors::annotate_group)). Both are sparse: tensors without one take no
//! memory. Where reading attributes takes long, [`Annotated::by`] reads them when they are asked for.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// The attribute in which netCDF has the value of missing elements.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) const FILL_VALUE: &str = "_FillValue";

/// What a tensor or a group says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The attributes by their names.
    pub attributes: Map<String, Value>,
    /// The name of each axis that has one; empty, or as many as the tensor has axes.
    pub dimension_names: Vec<Option<String>>,
    /// The bytes of one element, in the tensor's own dtype, which stands for elements that are not stored.
    pub fill_value: Option<Vec<u8>>,
    /// The names of attributes that are left out, since JSON cannot say them.
    pub unsaid: Vec<String>,
    /// The names of attributes in which a number that JSON has not stands as a [word](number).
    pub reworded: Vec<String>,
    /// Whether the attributes are those of HDF5, where `_FillValue` is netCDF's: a number, or a list of one.
    pub is_hdf5: bool,
    /// What its reader made of it that is not plain from dtype and shape, a line each.
    pub notes: Vec<String>,
}

impl Annotations {
    pub fn is_empty(&self) -> bool {
        *self == Annotations::default()
    }

    /// What is left to say of a tensor whose axes were these ones of the tensor's before, or are new. Fill values
    /// are about elements, and stay.
    #[must_use]
    pub fn of_axes(mut self, axes: &[Option<usize>]) -> Annotations {
        let old = std::mem::take(&mut self.dimension_names);
        let name = |axis: &Option<usize>| axis.and_then(|axis| old.get(axis).cloned().flatten());
        let names: Vec<Option<String>> = axes.iter().map(name).collect();
        if names.iter().any(Option::is_some) {
            self.dimension_names = names;
        }
        self
    }
}

/// [`Annotations`], made when they are asked for.
#[derive(Clone)]
pub struct Annotated(Arc<dyn Fn() -> Annotations + Send + Sync>);

impl Annotated {
    pub fn of(annotations: Annotations) -> Annotated {
        Annotated::by(move || annotations.clone())
    }

    /// Those that a function makes, each time anew.
    pub fn by(read: impl Fn() -> Annotations + Send + Sync + 'static) -> Annotated {
        Annotated(Arc::new(read))
    }

    /// The same without a fill value: for tensors with other elements.
    #[must_use]
    pub fn without_fill(&self) -> Annotated {
        let all = self.clone();
        Annotated::by(move || Annotations { fill_value: None, ..all.get() })
    }

    pub fn get(&self) -> Annotations {
        (self.0)()
    }
}

impl fmt::Debug for Annotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Annotated")
    }
}

/// A tensor is the same whatever is said of it.
impl PartialEq for Annotated {
    fn eq(&self, _: &Annotated) -> bool {
        true
    }
}

impl Eq for Annotated {}

/// A number as JSON; a word where JSON has no such number: `"NaN"`, `"Infinity"`, `"-Infinity"`.
pub fn number(value: f64) -> Value {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_axes() {
        let names = |names: &[&str]| -> Vec<Option<String>> {
            names.iter().map(|name| Some(name.to_string()).filter(|name| name != "-")).collect()
        };
        let of = |said: &[&str], axes: &[Option<usize>]| {
            let all = Annotations { dimension_names: names(said), ..Annotations::default() };
            all.of_axes(axes).dimension_names
        };
        assert_eq!(of(&["x", "y", "-"], &[Some(1), None, Some(0)]), names(&["y", "-", "x"]));
        // of fewer names than axes, as of a field that has axes of its own
        assert_eq!(of(&["x"], &[Some(0), Some(1)]), names(&["x", "-"]));
        assert_eq!(of(&["x", "-"], &[Some(1), None]), []);
        assert_eq!(of(&[], &[Some(0)]), []);
    }
}
