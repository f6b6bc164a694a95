//! From the index arguments to a selection, with carets under what does not fit.

use std::path::Path;

use tslice::container::{Cause, ContainerError};
use tslice::index::numpy;
use tslice::index::resolve::{ResolveError, Selection, resolve};
use tslice::index::strided_slice::{self, StridedSlice};
use tslice::index::{Item, SpannedExpr};

use super::input;
use crate::cli::args::{IndexArgs, StridedArgs};
use crate::cli::report::Failure;

/// An index as it was given: NumPy's text, or StridedSlice's numbers as NumPy text.
pub(crate) struct Index {
    pub(crate) spanned: SpannedExpr,
    pub(crate) keepdims: bool,
}

impl Index {
    /// Understand the arguments; `text` is INDEX.
    pub(crate) fn parse(text: Option<&str>, args: &IndexArgs) -> Result<Index, Failure> {
        let spanned = match (text, &args.strided.begin) {
            (Some(text), _) => parsed(text).map_err(|failure| match Path::new(text).exists() {
                true => failure.hint("that is a file, where an index is expected"),
                false => failure,
            })?,
            (None, Some(begin)) => {
                numpy::format(&strided(begin, &args.strided)?.to_expr().map_err(Failure::usage)?)
            }
            (None, None) => numpy::format(&Default::default()),
        };
        Ok(Index { spanned, keepdims: args.keepdims })
    }

    /// Understand the value of a flag; everything without one.
    pub(crate) fn of_text(text: Option<&str>, keepdims: bool) -> Result<Index, Failure> {
        let spanned = text.map_or_else(|| Ok(numpy::format(&Default::default())), parsed)?;
        Ok(Index { spanned, keepdims })
    }

    /// Refuse a list of positions, for jobs that take ranges only.
    pub(crate) fn refuse_list(&self) -> Result<(), Failure> {
        let list = |item: &Item| matches!(item, Item::List(_));
        match self.spanned.expr.items.iter().position(list) {
            Some(item) => Err(Failure::usage("a list of integers cannot be assigned to")
                .at(&self.spanned.text, self.spanned.spans[item].clone())
                .hint("`tslice scatter` writes at listed positions")),
            None => Ok(()),
        }
    }

    /// Apply it to a shape.
    pub(crate) fn resolve(&self, shape: &[u64]) -> Result<Selection, Failure> {
        resolve(&self.spanned.expr, shape, self.keepdims).map_err(|error| self.misfit(&error))
    }

    /// An error of a job, with a caret where this index does not fit an input.
    pub(crate) fn failure(&self, error: ContainerError) -> Failure {
        let span = match error.cause.as_ref() {
            Cause::Index(misfit) => self.spanned.spans.get(misfit.item).cloned(),
            _ => None,
        };
        let failure = input::advised(error);
        match span {
            Some(span) => failure.at(&self.spanned.text, span),
            None => failure,
        }
    }

    fn misfit(&self, error: &ResolveError) -> Failure {
        let failure = Failure::new(error);
        match self.spanned.spans.get(error.item) {
            Some(span) => failure.at(&self.spanned.text, span.clone()),
            None => failure,
        }
    }
}

fn parsed(text: &str) -> Result<SpannedExpr, Failure> {
    numpy::parse(text).map_err(|error| Failure::usage(&error).at(text, error.span.clone()))
}

fn strided(begin: &str, args: &StridedArgs) -> Result<StridedSlice, Failure> {
    let list = |flag: &str, text: &str| {
        strided_slice::parse_list(text)
            .map_err(|error| Failure::usage(format_args!("--{flag}: {error}")).at(text, error.span))
    };
    let mask = |flag: &str, text: &Option<String>| match text {
        None => Ok(0),
        Some(text) => strided_slice::parse_mask(text).map_err(|error| {
            Failure::usage(format_args!("--{flag}: {error}")).at(text, error.span)
        }),
    };
    let begin = list("begin", begin)?;
    let end = list("end", args.end.as_deref().unwrap_or_default())?;
    let strides = match &args.strides {
        Some(strides) => list("strides", strides)?,
        None => vec![1; begin.len()],
    };
    Ok(StridedSlice {
        begin,
        end,
        strides,
        begin_mask: mask("begin-mask", &args.begin_mask)?,
        end_mask: mask("end-mask", &args.end_mask)?,
        ellipsis_mask: mask("ellipsis-mask", &args.ellipsis_mask)?,
        new_axis_mask: mask("new-axis-mask", &args.new_axis_mask)?,
        shrink_axis_mask: mask("shrink-axis-mask", &args.shrink_axis_mask)?,
    })
}
