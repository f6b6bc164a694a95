//! The axis of a join or a split.

/// An axis, and the name or glob of the tensors that it is meant for.
#[derive(Clone, Debug)]
pub(crate) struct AxisArg {
    pub(crate) pattern: Option<String>,
    pub(crate) axis: i64,
}

/// `AXIS` or `NAME=AXIS`; a name may hold a `=` itself.
pub(super) fn axis(text: &str) -> Result<AxisArg, &'static str> {
    let (pattern, axis) = match text.rsplit_once('=') {
        Some((pattern, axis)) => (Some(pattern.to_owned()), axis),
        None => (None, text),
    };
    let axis = axis.parse().map_err(|_| "an integer is needed, or NAME=INTEGER")?;
    Ok(AxisArg { pattern, axis })
}
