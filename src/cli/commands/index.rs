//! From the index arguments to a selection, with carets under items that do not fit.

use std::path::Path;

use tslice::cast::{Cast, CastError};
use tslice::dtype::DType;
use tslice::error::{Error, FileName};
use tslice::execute::{BadPosition, ExecuteError, FillError, Workers};
use tslice::formats::{NameError, dtype_names, parse_dtype};
use tslice::index::numpy::ParseError;
use tslice::index::resolve::{ResolveError, ResolveErrorKind, Rules, Selection};
use tslice::index::strided_slice::StridedSlice;
use tslice::index::{IndexExpr, Item, List, SpannedExpr, numpy, strided_slice};
use tslice::input::{OpenOptions, Transform};
use tslice::job::Casts;
use tslice::region::{ListError, ListFault, Lists, OpenIndex};
use tslice::shape::{AskedAxis, NewShape, Pattern, Transposition};
use tslice::tensor::{Scaling, TensorInfo};

use super::super::args::{CastArgs, FieldArgs, ReshapeArgs, ScalingArgs, TransposeArgs};
use super::super::report::did_you_mean;
use super::{input, tensors};
use crate::cli::args::{IndexArgs, InputArgs, StridedArgs};
use crate::cli::report::{Failure, misplaced, of_flag, watch};

/// An index: NumPy's text as it was typed, or the text for StridedSlice's numbers.
pub(crate) struct Index {
    pub(crate) spanned: SpannedExpr,
    pub(crate) rules: Rules,
    /// Whether it was given as text, not as numbers.
    is_typed: bool,
    /// The files of its lists, after [`open_lists`](Index::open_lists).
    pub(crate) lists: Lists,
}

impl Index {
    pub(crate) fn parse(args: &IndexArgs) -> Result<Index, Failure> {
        let spanned = match (&args.text, &args.strided.begin) {
            (Some(text), _) => parsed(text).map_err(|failure| misplaced(failure, text))?,
            (None, Some(begin)) => {
                numpy::format(&strided(begin, &args.strided)?.to_expr().map_err(Failure::usage)?)
            }
            (None, None) => numpy::format(&Default::default()),
        };
        let rules = Rules { keepdims: args.keepdims, outer: args.outer, ..Rules::default() };
        Index::of_spanned(spanned, rules, args.text.is_some())
    }

    /// Parse the value of a flag; without one, the index is everything.
    pub(crate) fn of_text(text: Option<&str>, rules: Rules) -> Result<Index, Failure> {
        let spanned = text.map_or_else(|| Ok(numpy::format(&Default::default())), parsed)?;
        Index::of_spanned(spanned, rules, text.is_some())
    }

    fn of_spanned(spanned: SpannedExpr, rules: Rules, is_typed: bool) -> Result<Index, Failure> {
        let index = Index { spanned, rules, is_typed, lists: Lists::default() };
        if rules.outer && !index.has_lists() {
            let message = "--outer has no effect: the index has no lists";
            return Err(Failure::usage(message));
        }
        Ok(index)
    }

    /// Open the files of its lists. `input` is the file that it applies to; messages call it
    /// `what`.
    pub(crate) fn open(
        self,
        from: &InputArgs,
        workers: &Workers,
        quiet: bool,
        what: &str,
        input: &Path,
    ) -> Result<Index, Failure> {
        self.refuse_stdin(what, input)?;
        self.open_lists(from, workers, quiet)
    }

    /// Open the files of its lists; progress is shown while long masks are counted, unless `quiet`.
    pub(crate) fn open_lists(
        self,
        from: &InputArgs,
        workers: &Workers,
        quiet: bool,
    ) -> Result<Index, Failure> {
        let (io, unpack) = (from.io, from.unpack);
        let (workers, notes) = (workers.clone(), input::notes());
        let options = OpenOptions { io, unpack, workers, notes, ..OpenOptions::default() };
        let lists = watch(0, quiet || !self.has_lists(), |progress| {
            Lists::open_watched(&self.spanned.expr, &options, progress)
        });
        let lists = lists.map_err(|fault| self.failed_list(fault))?;
        tensors::note_packed(lists.tensors().cloned());
        Ok(Index { lists, ..self })
    }

    pub(crate) fn refuse_stdin(&self, what: &str, input: &Path) -> Result<(), Failure> {
        let is_stdin =
            |item: &Item| matches!(item, Item::List(List::File(file)) if file.is_stdin());
        match self.spanned.expr.items.iter().position(is_stdin) {
            Some(item) if input == Path::new("-") => {
                let message = format!("standard input cannot be both {what} and @-");
                Err(self.point(Failure::usage(message), item, None))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn failed_list(&self, fault: ListError) -> Failure {
        let failure = match fault.error.cause.downcast_ref() {
            Some(ListFault::SecondStdin) => Failure::usage(&fault.error),
            _ => of_flag("@FILE#")(fault.error),
        };
        self.point(failure, fault.item, None)
    }

    pub(crate) fn has_lists(&self) -> bool {
        self.spanned.expr.items.iter().any(|item| matches!(item, Item::List(_)))
    }

    pub(crate) fn of_job(&self) -> OpenIndex<'_> {
        OpenIndex { expr: &self.spanned.expr, rules: self.rules, lists: &self.lists }
    }

    pub(crate) fn resolve(&self, tensor: &TensorInfo) -> Result<Selection, Failure> {
        let selection = self.of_job().resolve(tensor);
        selection.map_err(|error| self.failure(error.into()))
    }

    /// Apply it to the elements of a tensor, even if these are stored in blocks.
    pub(crate) fn resolve_elements(&self, tensor: &TensorInfo) -> Result<Selection, Failure> {
        let selection = self.lists.resolve_elements(&self.spanned.expr, tensor, self.rules);
        selection.map_err(|error| self.failure(error.into()))
    }

    fn with_ellipsis(&self, shape: &[u64]) -> Option<String> {
        let SpannedExpr { expr, text, spans } = &self.spanned;
        if !self.is_typed || !expr.names.is_empty() || expr.items.contains(&Item::Ellipsis) {
            return None;
        }
        let items = [&[Item::Ellipsis], &expr.items[..]].concat();
        self.lists.resolve(&IndexExpr::new(items), shape, self.rules).ok()?;
        let (before, items) = text.split_at_checked(spans.first()?.start)?;
        Some(format!("{before}..., {items}"))
    }

    /// Word an error of a job, with a caret if this index or a position of its lists does not fit.
    pub(crate) fn failure(&self, mut error: Error) -> Failure {
        error.cause = match error.cause.downcast() {
            Ok(list) => return self.failed_list(list),
            Err(cause) => cause,
        };
        let misfit = error.cause.downcast_ref::<ResolveError>();
        if let Some(misfit) = misfit
            && let Err(bad) = self.lists.check_before(misfit)
        {
            return self.failure(bad);
        }
        let listed = || match error.cause.downcast_ref()? {
            ExecuteError::Fill {
                error: FillError::Position(BadPosition::Listed { item, .. }),
                ..
            } => Some((*item, None)),
            _ => None,
        };
        let place = misfit.map(|misfit| (misfit.item, misfit.value)).or_else(listed);
        // an index of parts of blocks fits the shape already
        let fits =
            |misfit: &&ResolveError| matches!(misfit.kind, ResolveErrorKind::PartOfBlock { .. });
        let spelled = misfit.filter(|misfit| !fits(misfit));
        let spelled = spelled.and_then(|it| self.with_ellipsis(&it.before.source_shape));
        let file = misfit.and_then(|misfit| self.file_of(misfit));
        error.file = error.file.or(file);
        let mut failure = Failure::from(error);
        if let Some((item, value)) = place {
            failure = self.point(failure, item, value);
        }
        failure.hint_if(spelled.map(|text| format!("did you mean '{text}'?")))
    }

    /// The file of a single integer that is out of bounds.
    fn file_of(&self, misfit: &ResolveError) -> Option<FileName> {
        match (&misfit.kind, self.spanned.expr.items.get(misfit.item)) {
            (ResolveErrorKind::OutOfBounds { .. }, Some(Item::List(List::File(file)))) => {
                Some(FileName::from(Path::new(&file.path)))
            }
            _ => None,
        }
    }

    fn point(&self, failure: Failure, item: usize, value: Option<usize>) -> Failure {
        let span = match value {
            Some(value) => numpy::value_span(&self.spanned, item, value),
            None => self.spanned.spans.get(item).cloned(),
        };
        match span {
            Some(span) => failure.at(&self.spanned.text, span),
            None => failure,
        }
    }
}

fn parsed(text: &str) -> Result<SpannedExpr, Failure> {
    numpy::parse(text).map_err(|error| {
        let failure = Failure::usage(&error).at(text, error.span.clone());
        let quoted = with_quotes(text, error.span.start);
        failure.hint_if(quoted.map(|text| format!("a name with blanks is quoted: '{text}'")))
    })
}

/// The index with quotation marks around the name of a file before `end`, if the name has blanks in
/// it.
fn with_quotes(text: &str, end: usize) -> Option<String> {
    let start = text.get(..end)?.rfind('@')? + 1;
    let (before, rest) = text.split_at(start);
    let names = rest.match_indices([',', ']', '#']).map(|(at, _)| at).chain([rest.len()]);
    let name = names.map(|at| rest[..at].trim_end());
    let name = name.into_iter().find(|name| name.contains(' ') && Path::new(name).exists())?;
    Some(format!("{before}\"{name}\"{}", &rest[name.len()..]))
}

pub(super) fn misread(flag: &str, text: &str) -> impl Fn(ParseError) -> Failure {
    move |error| Failure::usage(format_args!("{flag}: {error}")).at(text, error.span)
}

pub(super) fn list(flag: &str, text: &str) -> Result<Vec<i64>, Failure> {
    strided_slice::parse_list(text).map_err(misread(flag, text))
}

fn strided(begin: &str, args: &StridedArgs) -> Result<StridedSlice, Failure> {
    let mask = |flag: &str, text: &Option<String>| match text {
        None => Ok(0),
        Some(text) => strided_slice::parse_mask(text).map_err(misread(flag, text)),
    };
    let begin = list("--begin", begin)?;
    let end = list("--end", args.end.as_deref().unwrap_or_default())?;
    let strides = match &args.strides {
        Some(strides) => list("--strides", strides)?,
        None => vec![1; begin.len()],
    };
    Ok(StridedSlice {
        begin,
        end,
        strides,
        begin_mask: mask("--begin-mask", &args.begin_mask)?,
        end_mask: mask("--end-mask", &args.end_mask)?,
        ellipsis_mask: mask("--ellipsis-mask", &args.ellipsis_mask)?,
        new_axis_mask: mask("--new-axis-mask", &args.new_axis_mask)?,
        shrink_axis_mask: mask("--shrink-axis-mask", &args.shrink_axis_mask)?,
    })
}

pub(super) fn dtype(flag: &str, text: &str) -> Result<DType, Failure> {
    parse_dtype(text).map_err(|error| {
        let failure = Failure::usage(format_args!("{flag}: {error}"));
        failure.hint_if(match error {
            NameError::TwoMeanings { bits, bytes, name } => {
                let count = &name[1..];
                let count_bytes = format!("{bytes} or '<{name}' ({count} bytes, as in NumPy)");
                Some(format!("{bits} ({count} bits), or {count_bytes}"))
            }
            NameError::Unknown(_) => {
                let names = dtype_names();
                did_you_mean(text.trim(), names.iter().map(String::as_str))
            }
            NameError::Descr(_) => None,
        })
    })
}

pub(super) fn casts(args: &CastArgs) -> Result<Casts, Failure> {
    let mut rules: Vec<(Option<DType>, DType)> = Vec::with_capacity(args.cast.len());
    let mut to_all = false;
    for text in &args.cast {
        let (from, to) = match text.split_once(':') {
            Some(("all", to)) => {
                to_all = true;
                (None, castable(text, to)?)
            }
            Some((from, to)) => (Some(castable(text, from)?), castable(text, to)?),
            None => (None, castable(text, text)?),
        };
        let is_same = |other: &Option<DType>| match (other, &from) {
            (Some(other), Some(from)) => other.is_type_of(from),
            (other, from) => other.is_none() && from.is_none(),
        };
        if rules.iter().any(|(other, _)| is_same(other)) {
            let twice = match from {
                Some(from) => format!("--cast {text}: {} has a --cast already", from.type_name()),
                None => format!("--cast {text}: there is one for all dtypes already"),
            };
            return Err(Failure::usage(twice));
        }
        rules.push((from, to));
    }
    let mut casts = Casts::new(rules, args.casting.unwrap_or_default());
    casts.to_all = to_all;
    Ok(casts)
}

fn castable(whole: &str, name: &str) -> Result<DType, Failure> {
    let flag = format!("--cast {whole}");
    let dtype = dtype(&flag, name)?;
    if Cast::knows(&dtype) {
        Ok(dtype)
    } else {
        Err(Failure::usage(format_args!("{flag}: {}", CastError::NotNumbers(dtype))))
    }
}

/// The scaling of elements that the arguments ask for.
pub(super) fn scaling(args: &CastArgs) -> Option<Scaling> {
    let ScalingArgs { multiply, add, nan } = args.scaling;
    let is_any = multiply.or(add).or(nan).is_some();
    is_any.then_some(Scaling { multiply, add, nan, ..Scaling::default() })
}

/// Changes to the tensors of an input that the arguments ask for.
pub(super) fn transform(
    field: Option<&FieldArgs>,
    reshape: &ReshapeArgs,
    cast: Option<&CastArgs>,
) -> Result<Transform, Failure> {
    let shape = reshape.reshape.as_deref().map(|text| {
        let lens = list("--reshape", text)?;
        NewShape::new(&lens).map_err(|error| Failure::usage(format_args!("--reshape: {error}")))
    });
    let fields = field.and_then(|field| field.field.clone());
    Ok(Transform { fields, scaling: cast.and_then(scaling), shape: shape.transpose()? })
}

pub(super) fn transposition(args: &TransposeArgs) -> Result<Transposition, Failure> {
    if let Some(text) = &args.rearrange {
        let pattern = Pattern::parse(text).map_err(|error| {
            Failure::usage(format_args!("--rearrange: {error}")).at(text, error.span)
        });
        return pattern.map(Transposition::Pattern);
    }
    match args.transpose.as_deref().map(str::trim) {
        None if args.reverse_axes => Ok(Transposition::Reversed),
        None => Ok(Transposition::None),
        Some("") => Ok(Transposition::Reversed),
        Some(text) => axes("--transpose", text).map(Transposition::Axes),
    }
}

/// Axes by their numbers or by the names of dimensions.
pub(super) fn axes(flag: &str, text: &str) -> Result<Vec<AskedAxis>, Failure> {
    let named: Option<Vec<AskedAxis>> = text.split(',').map(AskedAxis::parse).collect();
    match named.filter(|axes| axes.iter().any(|axis| matches!(axis, AskedAxis::Name(_)))) {
        Some(axes) => Ok(axes),
        None => Ok(list(flag, text)?.into_iter().map(AskedAxis::from).collect()),
    }
}
