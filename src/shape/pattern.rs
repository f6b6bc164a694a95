//! The language of einops' rearrange: `(h two d) c -> (two h d) c`.
//!
//! ```
//! use tslice::shape::{Order, Pattern};
//! let pattern = Pattern::parse("(h=4 two d) ... -> (two h d) ...").unwrap_err();
//! assert_eq!(pattern.to_string(), "the lengths of 'two' and 'd' are both unknown");
//! let pattern = Pattern::parse("(h=4 two=2 d) ... -> two (h d) ...").unwrap();
//! assert_eq!(pattern.of(&[24, 5]).unwrap().shape(), [2, 12, 5]);
//! let error = pattern.of(&[20, 5]).unwrap_err();
//! assert_eq!((error.to_string().as_str(), error.span), ("axis 0 of length 20 is not a multiple of 8", 0..13));
//! ```

use std::ops::Range;

use super::{Arrangement, MAX_NDIM};

/// A parsed pattern: the names of the axes, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    left: Vec<Named>,
    /// The number of names, which are numbered in the order of the left side.
    names: usize,
    right: Vec<Merged>,
}

/// An axis, or the ellipsis, of the left side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    span: Range<usize>,
    /// The length of each name, where the pattern gives one. No entries for an axis of length 1.
    lens: Vec<Option<u64>>,
    is_ellipsis: bool,
}

/// The content of an axis of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Merged {
    Parts(Vec<Part>),
    /// An ellipsis outside parentheses: its axes are not merged.
    Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Name(usize),
    Ellipsis,
}

/// A fault of a pattern, for any shape or for the given one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct PatternError {
    pub text: String,
    /// The bytes of the pattern's text at fault; empty at the end of the text.
    pub span: Range<usize>,
    pub kind: PatternErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternErrorKind {
    #[error("expected {expected}, found '{found}'")]
    Unexpected { expected: &'static str, found: String },
    #[error("expected {0} at the end")]
    UnexpectedEnd(&'static str),
    #[error("'(' was never closed")]
    NeverClosed,
    #[error("a blank must separate '...' from a name")]
    TouchingEllipsis,
    #[error("unmatched ')'")]
    Unmatched,
    #[error("parentheses cannot be nested")]
    Nested,
    #[error("{0:?} is not a name: letters, digits and, between them, '_'")]
    BadName(String),
    #[error("only 1 can be an axis without a name; a length is written NAME={0}")]
    NotOne(String),
    #[error("a length is an integer below 2^63")]
    BadLength,
    #[error("lengths are written on the left")]
    LengthOnRight,
    #[error("'{0}' occurs twice on one side")]
    Twice(String),
    #[error("'{0}' occurs on one side only")]
    OneSide(String),
    #[error("a side can have one ellipsis")]
    TwoEllipses,
    #[error("an ellipsis on the left cannot be in parentheses")]
    SplitEllipsis,
    #[error("the lengths of '{first}' and '{second}' are both unknown")]
    TwoUnknown { first: String, second: String },
    #[error("the pattern is for {}{wanted} ax{}, and there are {ndim}", if *more { "at least " } else { "" }, if *wanted == 1 { "is" } else { "es" })]
    Count { wanted: usize, more: bool, ndim: usize },
    #[error("axis {axis} has length {len}, not {wanted}")]
    Length { axis: usize, len: u64, wanted: u64 },
    #[error("axis {axis} of length {len} is not a multiple of {of}")]
    NoMultiple { axis: usize, len: u64, of: u64 },
    #[error("number of dimensions must be within [0, {MAX_NDIM}], the pattern makes {0}")]
    TooManyAxes(usize),
    #[error("the axes merged are too long: their length does not fit in 63 bits")]
    TooLong,
}

impl Pattern {
    /// # Errors
    /// [`PatternError`]: the pattern is wrong for any shape.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let parsed = Parser { text, at: 0, names: Vec::new() }.pattern();
        parsed.map_err(|(kind, span)| PatternError { text: text.to_owned(), span, kind })
    }

    /// Apply the pattern to a shape.
    ///
    /// # Errors
    /// [`PatternError`]: the shape has another number of axes, or lengths that do not fit.
    pub fn of(&self, shape: &[u64]) -> Result<Arrangement, PatternError> {
        let whole = match (self.left.first(), self.left.last()) {
            (Some(first), Some(last)) => first.span.start..last.span.end,
            _ => 0..0,
        };
        let failed = |kind, span| PatternError { text: self.text.clone(), span, kind };
        let more = self.left.iter().any(|axis| axis.is_ellipsis);
        let wanted = self.left.len() - usize::from(more);
        let ndim = shape.len();
        if ndim < wanted || !more && ndim > wanted {
            return Err(failed(PatternErrorKind::Count { wanted, more, ndim }, whole));
        }
        let mut splits: Vec<Vec<u64>> = Vec::with_capacity(ndim);
        let mut names = Vec::with_capacity(self.names);
        let mut ellipsis = 0..0;
        let mut parts = 0;
        for axis in &self.left {
            if axis.is_ellipsis {
                let others = ndim - wanted;
                ellipsis = parts..parts + others;
                parts += others;
                splits.extend(shape[splits.len()..][..others].iter().map(|&len| vec![len]));
                continue;
            }
            let number = splits.len();
            let lens = axis.lens(number, shape[number]);
            let lens = lens.map_err(|kind| failed(kind, axis.span.clone()))?;
            names.extend(parts..parts + axis.lens.len());
            parts += lens.len();
            splits.push(lens);
        }
        let groups = self.groups(&names, &ellipsis);
        let most = parts.max(groups.len());
        if most > MAX_NDIM {
            return Err(failed(PatternErrorKind::TooManyAxes(most), whole));
        }
        let arranged = Arrangement::new(splits, groups);
        arranged.ok_or_else(|| failed(PatternErrorKind::TooLong, whole))
    }

    /// For each axis of the result, the parts of it; `names` gives the part of each name.
    fn groups(&self, names: &[usize], ellipsis: &Range<usize>) -> Vec<Vec<usize>> {
        let parts = |part: &Part| match part {
            Part::Name(number) => names[*number]..names[*number] + 1,
            Part::Ellipsis => ellipsis.clone(),
        };
        let mut groups = Vec::with_capacity(self.right.len());
        for axis in &self.right {
            match axis {
                Merged::Spread => groups.extend(ellipsis.clone().map(|part| vec![part])),
                Merged::Parts(merged) => groups.push(merged.iter().flat_map(parts).collect()),
            }
        }
        groups
    }
}

impl Named {
    /// The lengths of the parts of axis `axis`, which has length `len`.
    fn lens(&self, axis: usize, len: u64) -> Result<Vec<u64>, PatternErrorKind> {
        let known = self.lens.iter().flatten().try_fold(1u64, |all, &len| all.checked_mul(len));
        let of = known.unwrap_or(u64::MAX);
        if !self.lens.contains(&None) {
            let lens: Vec<u64> = self.lens.iter().flatten().copied().collect();
            return if len != of {
                Err(PatternErrorKind::Length { axis, len, wanted: of })
            } else if lens.is_empty() {
                Ok(vec![1])
            } else {
                Ok(lens)
            };
        }
        match len.checked_div(of) {
            Some(unknown) if unknown * of == len => {
                Ok(self.lens.iter().map(|len| len.unwrap_or(unknown)).collect())
            }
            _ => Err(PatternErrorKind::NoMultiple { axis, len, of }),
        }
    }
}

type Wrong = (PatternErrorKind, Range<usize>);

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// The names of the left side, and whether the right side has them too.
    names: Vec<(&'a str, Range<usize>, bool)>,
}

/// An axis of one side: words in parentheses, or a single word.
struct Axis<'a> {
    span: Range<usize>,
    words: Vec<(Word<'a>, Range<usize>)>,
    is_group: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word<'a> {
    Name(&'a str, Option<u64>),
    One,
    Ellipsis,
}

impl<'a> Parser<'a> {
    fn pattern(mut self) -> Result<Pattern, Wrong> {
        let left = self.side(true)?;
        if !self.eat("->") {
            return Err(self.unexpected("'->'"));
        }
        let right = self.side(false)?;
        if self.at < self.text.len() {
            return Err(self.unexpected("a name"));
        }
        let left = left.into_iter().map(|axis| self.named(axis));
        let left = left.collect::<Result<Vec<Named>, Wrong>>()?;
        let ellipsis = left.iter().find(|axis| axis.is_ellipsis).map(|axis| axis.span.clone());
        let mut merged = Vec::with_capacity(right.len());
        let mut seen = None;
        for axis in right {
            merged.push(self.merged(&axis, &mut seen)?);
        }
        let only = |span| (PatternErrorKind::OneSide("...".to_owned()), span);
        match (ellipsis, seen) {
            (Some(span), None) | (None, Some(span)) => return Err(only(span)),
            _ => {}
        }
        match self.names.iter().find(|(_, _, is_used)| !is_used) {
            Some((name, span, _)) => {
                Err((PatternErrorKind::OneSide((*name).to_owned()), span.clone()))
            }
            None => Ok(Pattern {
                text: self.text.to_owned(),
                left,
                names: self.names.len(),
                right: merged,
            }),
        }
    }

    /// Parse axes up to an arrow or the end.
    fn side(&mut self, is_left: bool) -> Result<Vec<Axis<'a>>, Wrong> {
        let mut axes: Vec<Axis<'a>> = Vec::new();
        let mut open: Option<Axis<'a>> = None;
        let mut has_ellipsis = false;
        loop {
            self.skip_space();
            let start = self.at;
            if self.eat("(") {
                if open.is_some() {
                    return Err((PatternErrorKind::Nested, start..self.at));
                }
                open = Some(Axis { span: start..self.at, words: Vec::new(), is_group: true });
            } else if self.eat(")") {
                let mut axis = open.take().ok_or((PatternErrorKind::Unmatched, start..self.at))?;
                axis.span.end = self.at;
                axes.push(axis);
            } else if self.rest().is_empty() || self.rest().starts_with("->") {
                return match open {
                    Some(axis) => Err((PatternErrorKind::NeverClosed, axis.span)),
                    None => Ok(axes),
                };
            } else {
                let word = self.word(is_left)?;
                let span = start..self.at;
                if word == Word::Ellipsis && std::mem::replace(&mut has_ellipsis, true) {
                    return Err((PatternErrorKind::TwoEllipses, span));
                }
                match &mut open {
                    Some(axis) => axis.words.push((word, span)),
                    None => {
                        let words = vec![(word, span.clone())];
                        axes.push(Axis { span, words, is_group: false });
                    }
                }
            }
        }
    }

    fn word(&mut self, is_left: bool) -> Result<Word<'a>, Wrong> {
        let start = self.at;
        if self.eat("...") {
            let touches = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.');
            let before = self.text[..start].ends_with(touches);
            if before || self.rest().starts_with(touches) {
                return Err((PatternErrorKind::TouchingEllipsis, start..self.at));
            }
            return Ok(Word::Ellipsis);
        }
        let word = self.letters();
        let span = start..self.at;
        if word.is_empty() {
            return Err(self.unexpected(if is_left { "a name or '->'" } else { "a name" }));
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            let one = || (PatternErrorKind::NotOne(word.to_owned()), span.clone());
            return if word == "1" { Ok(Word::One) } else { Err(one()) };
        }
        if word.starts_with(|first: char| first.is_numeric() || first == '_') || word.ends_with('_')
        {
            return Err((PatternErrorKind::BadName(word.to_owned()), span));
        }
        if !self.eat("=") {
            return Ok(Word::Name(word, None));
        }
        let at = self.at;
        let len = self.letters();
        let span = at..self.at;
        if !is_left {
            return Err((PatternErrorKind::LengthOnRight, start..self.at));
        }
        let len = len.parse().ok().filter(|&len: &u64| i64::try_from(len).is_ok());
        Ok(Word::Name(word, Some(len.ok_or((PatternErrorKind::BadLength, span))?)))
    }

    /// Number the names of an axis of the left side, which must be new.
    fn named(&mut self, axis: Axis<'a>) -> Result<Named, Wrong> {
        let mut lens = Vec::new();
        let mut unknown = None;
        let mut is_ellipsis = false;
        for (word, span) in axis.words {
            let (name, len) = match word {
                Word::One => continue,
                Word::Ellipsis if axis.is_group => {
                    return Err((PatternErrorKind::SplitEllipsis, span));
                }
                Word::Ellipsis => {
                    is_ellipsis = true;
                    continue;
                }
                Word::Name(name, len) => (name, len),
            };
            if self.names.iter().any(|(other, ..)| *other == name) {
                return Err((PatternErrorKind::Twice(name.to_owned()), span));
            }
            if len.is_none()
                && let Some(first) = unknown.replace(name)
            {
                let kind = PatternErrorKind::TwoUnknown {
                    first: first.to_owned(),
                    second: name.to_owned(),
                };
                return Err((kind, span));
            }
            self.names.push((name, span, false));
            lens.push(len);
        }
        Ok(Named { span: axis.span, lens, is_ellipsis })
    }

    /// Look up the names of an axis of the right side, which the left side must have.
    fn merged(
        &mut self,
        axis: &Axis<'a>,
        ellipsis: &mut Option<Range<usize>>,
    ) -> Result<Merged, Wrong> {
        let mut parts = Vec::new();
        for (word, span) in &axis.words {
            match word {
                Word::One => {}
                Word::Ellipsis => {
                    *ellipsis = Some(span.clone());
                    if !axis.is_group {
                        return Ok(Merged::Spread);
                    }
                    parts.push(Part::Ellipsis);
                }
                Word::Name(name, _) => {
                    let found = self.names.iter().position(|(other, ..)| other == name);
                    let one_side = || (PatternErrorKind::OneSide((*name).to_owned()), span.clone());
                    let number = found.ok_or_else(one_side)?;
                    if std::mem::replace(&mut self.names[number].2, true) {
                        return Err((PatternErrorKind::Twice((*name).to_owned()), span.clone()));
                    }
                    parts.push(Part::Name(number));
                }
            }
        }
        Ok(Merged::Parts(parts))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
    }

    /// Take the letters, digits and underscores that come next.
    fn letters(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn unexpected(&self, expected: &'static str) -> Wrong {
        let end = self.text.len();
        match self.rest().chars().next() {
            None => (PatternErrorKind::UnexpectedEnd(expected), end..end),
            Some(found) => {
                let span = self.at..self.at + found.len_utf8();
                let found = found.escape_debug().to_string();
                (PatternErrorKind::Unexpected { expected, found }, span)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::element_count;
    use super::*;

    proptest! {
        #[test]
        fn patterns_keep_the_number_of_elements(
            words in prop::collection::vec(
                prop::sample::select(&["a", "b", "c=2", "(", ")", "...", "1", "->", "->", "\u{e9}=", "_"][..]),
                0..9,
            ),
            shape in prop::collection::vec(0u64..5, 0..4),
        ) {
            match Pattern::parse(&words.join(" ")) {
                Err(error) => prop_assert!(error.text.get(error.span).is_some()),
                Ok(pattern) => {
                    if let Ok(arranged) = pattern.of(&shape) {
                        prop_assert_eq!(element_count(arranged.shape()), element_count(&shape));
                    }
                }
            }
        }
    }
}
