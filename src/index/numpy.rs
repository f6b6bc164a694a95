//! Parses and prints NumPy's notation for an index: `1, 2:4, None, ..., :-3:-1, [0, 2]`.
//!
//! Knows the grammar and the rules that do not depend on a shape; [`resolve`](super::resolve)
//! checks the others. Parsing is one pass without recursion, so an expression may have 100,000
//! items. Every item and every error has its byte range in the text, for carets in messages.
//!
//! ```
//! use tslice::index::numpy::{format, parse};
//! let spanned = parse("-1, 2:4:, None, Ellipsis").unwrap();
//! assert_eq!(spanned.spans[1], 4..8);
//! assert_eq!(format(&spanned.expr).text, "[-1, 2:4, None, ...]");
//! assert_eq!(parse("5, ::0").unwrap_err().to_string(), "slice step cannot be zero");
//! ```
//!
//! **Why no package.** The grammar is small, and every error must point at its item.

use std::fmt;
use std::ops::Range;

use super::lexer::{Cursor, Literal, closing, enclosed, trim};
pub use super::lexer::{ParseError, ParseErrorKind};
use super::list::ends_word;
use super::{FileRef, IndexExpr, Item, List, Malformed, Shuffle, SliceItem, SpannedExpr, list};

/// Parse an index expression; an empty one selects everything.
///
/// The expression may be enclosed in `[...]`, `(...)` or `[(...)]`. Brackets at the start enclose
/// the expression only if they close at its end: `[0, 2]` holds two integers, `[[0, 2]]` and `[0,
/// 2],` hold a list. Bounds of slices past 64 bits become the nearest 64-bit value.
///
/// # Errors
/// [`ParseError`]: the text is not a valid index for any shape, or has an integer (alone or in a
/// list) past 64 bits.
pub fn parse(text: &str) -> Result<SpannedExpr, ParseError> {
    let mut cursor = Cursor::new(text, unwrapped(text));
    let mut items = Vec::new();
    let mut names = Vec::new();
    let mut spans = Vec::new();
    let mut has_ellipsis = false;
    cursor.skip_space();
    while cursor.peek().is_some() {
        let start = cursor.at;
        let name = cursor.dimension().map(str::to_owned);
        let item = cursor.item()?;
        let span = trim(text, start..cursor.at);
        if name.is_some() == names.is_empty() && !items.is_empty() {
            return Err(ParseErrorKind::SomeNamed.at(span));
        }
        if let Some(name) = name {
            if matches!(item, Item::NewAxis | Item::Ellipsis) {
                return Err(ParseErrorKind::NamedItem.at(span));
            }
            if names.contains(&name) {
                return Err(ParseErrorKind::NamedTwice(name).at(span));
            }
            names.push(name);
        }
        if item == Item::Ellipsis && std::mem::replace(&mut has_ellipsis, true) {
            return Err(ParseErrorKind::Malformed(Malformed::SecondEllipsis).at(span));
        }
        items.push(item);
        spans.push(span);
        cursor.comma()?;
    }
    Ok(SpannedExpr { expr: IndexExpr { items, names }, text: text.to_owned(), spans })
}

/// The byte range of value `number`, in C order, of the typed list `item`; else that of the item.
pub fn value_span(spanned: &SpannedExpr, item: usize, number: usize) -> Option<Range<usize>> {
    let span = spanned.spans.get(item)?.clone();
    match spanned.expr.items.get(item) {
        Some(Item::List(List::Integers(_) | List::Mask(_) | List::Others(_))) => {
            let start = match spanned.expr.names.get(item) {
                Some(_) => span.start + spanned.text.get(span.clone())?.find('=')? + 1,
                None => span.start,
            };
            list::value_span(&spanned.text, start..span.end, number).or(Some(span))
        }
        _ => Some(span),
    }
}

/// Print an index expression in brackets, as [`parse`] reads it: `[1, 2:4, None, ..., :-3:-1]`.
pub fn format(expr: &IndexExpr) -> SpannedExpr {
    let mut text = String::from("[");
    let mut spans = Vec::with_capacity(expr.items.len());
    for (number, item) in expr.items.iter().enumerate() {
        if !spans.is_empty() {
            text += ", ";
        }
        let start = text.len();
        if let Some(name) = expr.names.get(number) {
            text += name;
            text += "=";
        }
        text += &item.to_string();
        spans.push(start..text.len());
    }
    text += "]";
    SpannedExpr { expr: expr.clone(), text, spans }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Integer(index) => write!(f, "{index}"),
            Item::Slice(slice) => write!(f, "{slice}"),
            Item::Ellipsis => f.write_str("..."),
            Item::NewAxis => f.write_str("None"),
            Item::List(list) => write!(f, "{list}"),
        }
    }
}

impl fmt::Display for SliceItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |bound: Option<i64>| bound.map_or_else(String::new, |bound| bound.to_string());
        write!(f, "{}:{}", part(self.start), part(self.stop))?;
        self.step.map_or(Ok(()), |step| write!(f, ":{step}"))
    }
}

fn unwrapped(text: &str) -> Range<usize> {
    let whole = 0..text.len();
    match enclosed(text, whole.clone(), *b"[]") {
        Some(inside) => enclosed(text, inside.clone(), *b"()").unwrap_or(inside),
        None => enclosed(text, whole.clone(), *b"()").unwrap_or(whole),
    }
}

enum Term {
    Integer(Literal),
    None,
    Ellipsis,
}

impl<'a> Cursor<'a> {
    /// Step over the name of a dimension and a `=` that begin an item.
    fn dimension(&mut self) -> Option<&'a str> {
        let rest = std::str::from_utf8(self.rest()).ok()?;
        let is_part = |char: char| char.is_alphanumeric() || "_-.".contains(char);
        let name = &rest[..rest.find(|char| !is_part(char)).unwrap_or(rest.len())];
        let behind = rest[name.len()..].trim_ascii_start();
        let begins = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if !begins || !behind.starts_with('=') || behind.starts_with("==") {
            return None;
        }
        self.at += rest.len() - behind.len() + 1;
        self.skip_space();
        Some(name)
    }
}

impl Cursor<'_> {
    /// Parse one item; may also consume the white space after it.
    fn item(&mut self) -> Result<Item, ParseError> {
        let start = self.at;
        match self.peek() {
            Some(b'[') if closing(self.rest()).is_none() => {
                return Err(ParseErrorKind::NeverClosed('[').at(start..start + 1));
            }
            Some(b'[') => return list::list_at(self).map(Item::List),
            Some(b'@' | b'~') => return self.file().map(Item::List),
            Some(b's') => return self.shuffle().map(|it| Item::List(List::Shuffle(it))),
            _ => {}
        }
        let first = self.term()?;
        let span = start..self.at;
        self.skip_space();
        if self.peek() == Some(b':') {
            return self.slice(first, span).map(Item::Slice);
        }
        match first {
            Some(Term::Integer(literal)) => index(literal, span).map(Item::Integer),
            Some(Term::None) => Ok(Item::NewAxis),
            Some(Term::Ellipsis) => Ok(Item::Ellipsis),
            None => Err(self.unexpected("an index")),
        }
    }

    /// Parse the rest of a slice from its first colon on; `first` is its start.
    fn slice(&mut self, first: Option<Term>, span: Range<usize>) -> Result<SliceItem, ParseError> {
        let start = bound(first, span)?;
        let (stop, _) = self.colon_and_bound()?;
        let (step, span) = self.colon_and_bound()?;
        match step {
            Some(0) => Err(ParseErrorKind::Malformed(Malformed::ZeroStep).at(span)),
            _ => Ok(SliceItem { start, stop, step: step.map(|step| step.max(-i64::MAX)) }),
        }
    }

    fn colon_and_bound(&mut self) -> Result<(Option<i64>, Range<usize>), ParseError> {
        if self.eat(":") {
            self.skip_space();
        } else if self.peek().is_some_and(|next| next != b',') {
            return Err(self.unexpected("',' or ':'"));
        } else {
            return Ok((None, self.at..self.at));
        }
        let start = self.at;
        let term = self.term()?;
        let span = start..self.at;
        self.skip_space();
        Ok((bound(term, span.clone())?, span))
    }

    fn term(&mut self) -> Result<Option<Term>, ParseError> {
        let start = self.at;
        match self.peek() {
            Some(b'+' | b'-' | b'0'..=b'9') => {
                let literal = self.integer()?;
                if self.eat(".") {
                    return Err(ParseErrorKind::NotAnIndex.at(start..self.at));
                }
                Ok(Some(Term::Integer(literal)))
            }
            Some(b'.') if self.eat("...") => Ok(Some(Term::Ellipsis)),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.name().map(Some),
            Some(b'(') if closing(self.rest()).is_none() => {
                Err(ParseErrorKind::NeverClosed('(').at(start..start + 1))
            }
            Some(b'(' | b'.' | b'\'' | b'"' | b'~') => {
                Err(ParseErrorKind::NotAnIndex.at(start..start + 1))
            }
            _ => Ok(None),
        }
    }

    /// Parse `None`, `newaxis`, `np.newaxis`, `tf.newaxis` or `Ellipsis`.
    fn name(&mut self) -> Result<Term, ParseError> {
        let start = self.at;
        let term = match self.word() {
            b"None" | b"newaxis" => Some(Term::None),
            b"Ellipsis" => Some(Term::Ellipsis),
            b"True" | b"False" => return Err(ParseErrorKind::BareBool.at(start..self.at)),
            b"np" | b"tf" => {
                self.skip_space();
                let dotted = self.eat(".");
                self.skip_space();
                (dotted && self.word() == b"newaxis").then_some(Term::None)
            }
            _ => None,
        };
        term.ok_or_else(|| ParseErrorKind::NotAnIndex.at(start..self.at))
    }

    /// Parse `shuffle(SEED)` or `shuffle(SEED)[SLICE]`.
    fn shuffle(&mut self) -> Result<Shuffle, ParseError> {
        let start = self.at;
        if self.word() != b"shuffle" {
            return Err(ParseErrorKind::NotAnIndex.at(start..self.at));
        }
        self.skip_space();
        if self.peek() != Some(b'(') {
            return Err(ParseErrorKind::Seed.at(start..self.at));
        }
        let seed = self.brackets(*b"()")?.seed();
        let seed = seed.ok_or_else(|| ParseErrorKind::Seed.at(start..self.at))?;
        self.skip_space();
        if self.peek() != Some(b'[') {
            return Ok(Shuffle { seed, slice: SliceItem::default() });
        }
        let start = self.at;
        let mut inside = self.brackets(*b"[]")?;
        let misplaced = || ParseErrorKind::ShuffleSlice.at(start..self.at);
        let first = inside.at;
        let bound = inside.term()?;
        let span = first..inside.at;
        inside.skip_space();
        if inside.peek() != Some(b':') {
            return Err(misplaced());
        }
        let slice = inside.slice(bound, span)?;
        if inside.peek().is_some() { Err(misplaced()) } else { Ok(Shuffle { seed, slice }) }
    }

    /// The seed, if it is the whole text.
    fn seed(mut self) -> Option<u64> {
        let literal = self.integer().ok()?;
        let is_seed = !literal.negative && self.peek().is_none();
        u64::try_from(literal.magnitude).ok().filter(|_| is_seed)
    }

    /// Parse `@FILE` or `@FILE#NAME`, with an optional `~` before it and a comparison after it, or
    /// a list after a `~`.
    fn file(&mut self) -> Result<List, ParseError> {
        let start = self.at;
        let opposite = self.eat("~");
        self.skip_space();
        if opposite && self.peek() == Some(b'[') {
            if closing(self.rest()).is_none() {
                return Err(ParseErrorKind::NeverClosed('[').at(self.at..self.at + 1));
            }
            return list::opposite_at(self);
        }
        if !self.eat("@") {
            return Err(ParseErrorKind::NotAnIndex.at(start..start + 1));
        }
        let path = self.text(ends_word)?;
        let name = if self.eat("#") { Some(self.text(ends_word)?) } else { None };
        self.skip_space();
        let comparison = self.comparison()?;
        Ok(List::File(FileRef { path, name, opposite, comparison }))
    }
}

fn index(literal: Literal, span: Range<usize>) -> Result<i64, ParseError> {
    literal.exact().ok_or_else(|| ParseErrorKind::TooLarge("integer index").at(span))
}

/// Convert a term to the bound of a slice; integers saturate at 64 bits.
fn bound(term: Option<Term>, span: Range<usize>) -> Result<Option<i64>, ParseError> {
    match term {
        Some(Term::Integer(literal)) => Ok(Some(literal.saturated())),
        Some(Term::None) | None => Ok(None),
        Some(Term::Ellipsis) => Err(ParseErrorKind::NotABound.at(span)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Array;
    use super::*;

    fn items(text: &str) -> Vec<Item> {
        parse(text).unwrap().expr.items
    }

    fn kind(text: &str) -> ParseErrorKind {
        parse(text).unwrap_err().kind
    }

    fn integers(shape: &[u64], values: &[i64]) -> Item {
        Item::List(List::Integers(Array { shape: shape.to_vec(), values: values.to_vec() }))
    }

    fn mask(shape: &[u64], values: &[bool]) -> Item {
        Item::List(List::Mask(Array { shape: shape.to_vec(), values: values.to_vec() }))
    }

    fn file(path: &str, name: Option<&str>) -> Item {
        let path = path.to_owned();
        let name = name.map(str::to_owned);
        Item::List(List::File(FileRef { path, name, opposite: false, comparison: None }))
    }

    fn slice(start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Item {
        Item::Slice(SliceItem { start, stop, step })
    }

    #[test]
    fn every_kind_of_item() {
        let spanned = parse("[1, 2:4, None, ..., :-3:-1, :, [0, -1,]]").unwrap();
        let expected = [
            Item::Integer(1),
            slice(Some(2), Some(4), None),
            Item::NewAxis,
            Item::Ellipsis,
            slice(None, Some(-3), Some(-1)),
            slice(None, None, None),
            integers(&[2], &[0, -1]),
        ];
        assert_eq!(spanned.expr.items, expected);
        let words: Vec<_> = spanned.spans.iter().map(|span| &spanned.text[span.clone()]).collect();
        assert_eq!(words, ["1", "2:4", "None", "...", ":-3:-1", ":", "[0, -1,]"]);
    }

    #[test]
    fn words_for_none_and_ellipsis() {
        for text in ["None", "newaxis", "np.newaxis", "tf.newaxis", "np . newaxis,"] {
            assert_eq!(items(text), [Item::NewAxis], "{text}");
        }
        assert_eq!(items("Ellipsis"), items("..."));
        assert_eq!(items("None:2:None"), [slice(None, Some(2), None)]);
        for text in [". . .", "..", "none", "numpy.newaxis", "np.", "np..newaxis", "np"] {
            assert_eq!(kind(text), ParseErrorKind::NotAnIndex, "{text}");
        }
    }

    #[test]
    fn items_may_have_the_names_of_dimensions() {
        let spanned = parse("[time=0, lat = 10:20:2, lon.x=[0, -1], é-2=~@a.npy==3]").unwrap();
        assert_eq!(spanned.expr.names, ["time", "lat", "lon.x", "é-2"]);
        assert_eq!(spanned.expr.items[1], slice(Some(10), Some(20), Some(2)));
        assert_eq!(&spanned.text[spanned.spans[1].clone()], "lat = 10:20:2");
        assert_eq!(value_span(&spanned, 2, 1).map(|span| &spanned.text[span]), Some("-1"));
        let formatted = format(&spanned.expr);
        assert_eq!(formatted.text, "[time=0, lat=10:20:2, lon.x=[0, -1], é-2=~@a.npy==3]");
        assert_eq!(parse(&formatted.text), Ok(formatted));
        for text in ["time=0, 1", "0, time=1", "..., time=0"] {
            assert_eq!(kind(text), ParseErrorKind::SomeNamed, "{text}");
        }
        for text in ["time=None", "time=..."] {
            assert_eq!(kind(text), ParseErrorKind::NamedItem, "{text}");
        }
        assert_eq!(kind("a=0, a=1"), ParseErrorKind::NamedTwice("a".to_owned()));
        for text in ["time=", "=0", "1x=0", "a==0", "a b=0", "a=b=0"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn outer_brackets_are_optional() {
        for text in ["", " ", "[]", "()", "[()]", " [ ( ) ] ", "\n"] {
            assert_eq!(items(text), [], "{text}");
        }
        let both = [Item::Integer(0), Item::Integer(2)];
        for text in ["0,2", "[0, 2]", "(0, 2,)", "[(0, 2)]", " [0,2] ", "0\t,\r\n2 ,"] {
            assert_eq!(items(text), both, "{text}");
        }
        for text in ["[[0, 2]]", "[0, 2],", "([0, 2])", "[[0, 2],]", "[([0, 2])]"] {
            assert_eq!(items(text), [integers(&[2], &[0, 2])], "{text}");
        }
        assert_eq!(items("[[]]"), [integers(&[0], &[])]);
        assert_eq!(items("[0], 1"), [integers(&[1], &[0]), Item::Integer(1)]);
    }

    #[test]
    fn brackets_must_match() {
        assert_eq!(kind("[1, 2"), ParseErrorKind::NeverClosed('['));
        assert_eq!(kind("(1:2"), ParseErrorKind::NeverClosed('('));
        assert_eq!(kind("1, [2"), ParseErrorKind::NeverClosed('['));
        assert_eq!(kind("1]"), ParseErrorKind::Unmatched(']'));
        assert_eq!(kind("[1, 2)"), ParseErrorKind::Unmatched(')'));
        assert_eq!(kind("(1), 2"), ParseErrorKind::NotAnIndex);
        assert_eq!(kind("((1, 2))"), ParseErrorKind::NotAnIndex);
        for deep in ["[".repeat(100_000), "(".repeat(100_000), "[(".repeat(50_000)] {
            assert!(parse(&deep).is_err());
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(kind(&deep), ParseErrorKind::TooDeep);
    }

    #[test]
    fn only_one_ellipsis() {
        let error = parse("..., 1, Ellipsis").unwrap_err();
        assert_eq!(error.span, 8..16);
        assert_eq!(error.to_string(), "an index can only have a single ellipsis ('...')");
    }

    #[test]
    fn lists_have_the_shape_of_their_nesting() {
        assert_eq!(
            items("[0], [[1, 2], [3, 4]]"),
            [integers(&[1], &[0]), integers(&[2, 2], &[1, 2, 3, 4])]
        );
        assert_eq!(items("[[[0, 1]]]"), [integers(&[1, 2], &[0, 1])]);
        assert_eq!(items("[True, False], :")[0], mask(&[2], &[true, false]));
        assert_eq!(items("[[[True], [False]]]"), [mask(&[2, 1], &[true, false])]);
        for text in ["[True, 1],", "[0, False],", "[[True], [2]],"] {
            assert_eq!(kind(text), ParseErrorKind::MixedList, "{text}");
        }
        for text in ["True", "0, False", "[True]"] {
            assert_eq!(kind(text), ParseErrorKind::BareBool, "{text}");
        }
        assert_eq!(kind("[[0], 1],"), ParseErrorKind::Ragged);
        assert_eq!(kind("[0, true],"), ParseErrorKind::NotAnIndex);
    }

    #[test]
    fn files_are_quoted_where_that_is_needed() {
        assert_eq!(items("@train.npy, :, ::2")[0], file("train.npy", None));
        assert_eq!(items("[@./a-b.npy]"), [file("./a-b.npy", None)]);
        assert_eq!(items("..., @split.safetensors#val")[1], file("split.safetensors", Some("val")));
        let quoted = "my \"file\",[1].npz";
        let name = Some("a,b");
        let text = r##"[@"my \"file\",[1].npz"#"a,b"]"##;
        assert_eq!(items(text), [file(quoted, name)]);
        assert_eq!(items("[@'a\"]b'#x/y.0 , 1]")[0], file("a\"]b", Some("x/y.0")));
        assert_eq!(items("@-"), [file("-", None)]);
        assert_eq!(items("@https://host/a.npy?x=1:2"), [file("https://host/a.npy?x=1:2", None)]);
        for text in ["@", "@ a.npy", "@#a", "@a.npy#", "@a.npy b", "@\"\"x"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(kind("[@\"a.npy]"), ParseErrorKind::OpenQuote);
        assert_eq!(kind("@\"a.npy"), ParseErrorKind::OpenQuote);
    }

    #[test]
    fn a_shuffle_has_a_seed_and_perhaps_a_slice() {
        let shuffle = |seed, slice| Item::List(List::Shuffle(Shuffle { seed, slice }));
        let part = SliceItem { start: None, stop: Some(-8), step: Some(2) };
        assert_eq!(items("shuffle(42), 1")[0], shuffle(42, SliceItem::default()));
        assert_eq!(items("[ shuffle ( 0x_2a ) [ : - 8 : 2 ] ]"), [shuffle(42, part)]);
        assert_eq!(items("shuffle(+18446744073709551615)[:]").len(), 1);
        for text in ["shuffle", "shuffle()", "shuffle(-1)", "shuffle(1.5)", "shuffle(1, 2)"] {
            assert_eq!(kind(text), ParseErrorKind::Seed, "{text}");
        }
        assert_eq!(parse("0, shuffle(18446744073709551616)").unwrap_err().span, 3..32);
        for text in ["shuffle(1)[]", "shuffle(1)[0]", "shuffle(1)[:, 1]", "shuffle(1)[[0]]"] {
            assert_eq!(kind(text), ParseErrorKind::ShuffleSlice, "{text}");
        }
        assert_eq!(parse("shuffle(1)[::0]").unwrap_err().span, 13..14);
        assert_eq!(kind("shuffle(1)[:2"), ParseErrorKind::NeverClosed('['));
        assert_eq!(kind("shuffle(1"), ParseErrorKind::NeverClosed('('));
        assert_eq!(kind("shuffled(1)"), ParseErrorKind::NotAnIndex);
        assert!(parse(&"shuffle(1)[".repeat(10_000)).is_err());
    }

    #[test]
    fn values_of_lists_are_found_again() {
        let spanned = parse("[ 0, [[ 1, - 2 ], [0x3 , 4,]], [True,False] ]").unwrap();
        let found = |item, value| value_span(&spanned, item, value).map(|span| &spanned.text[span]);
        assert_eq!(
            (0..4).map(|at| found(1, at).unwrap()).collect::<Vec<_>>(),
            ["1", "- 2", "0x3", "4"]
        );
        assert_eq!(found(2, 1), Some("False"));
        assert_eq!(found(2, 2), Some("[True,False]"));
        assert_eq!(found(0, 0), Some("0"));
        assert_eq!(found(3, 0), None);
    }

    #[test]
    fn errors_have_their_place() {
        for (text, span, message) in [
            ("1,, 2", 2..3, "expected an index, found ','"),
            (",", 0..1, "expected an index, found ','"),
            ("1 2", 2..3, "expected ',', found '2'"),
            ("1:2:3:4", 5..6, "expected ',', found ':'"),
            ("1:2 3", 4..5, "expected ',' or ':', found '3'"),
            ("1, 2::0_0", 6..9, "slice step cannot be zero"),
            ("--1", 1..2, "expected an integer, found '-'"),
            ("1, -", 4..4, "expected an integer at the end"),
            ("1_", 0..2, "invalid decimal literal"),
            ("[1, 007]", 4..7, "leading zeros in decimal integer literals are not permitted"),
            ("9223372036854775808", 0..19, "integer index does not fit into 64 bits"),
            ("[[0, -9223372036854775809]]", 5..25, "integer index does not fit into 64 bits"),
            ("1:...", 2..5, "slice indices must be integers or None"),
            ("...:2", 0..3, "slice indices must be integers or None"),
            ("1, \u{ff11}", 3..6, "invalid character '\u{ff11}' (U+FF11)"),
            ("1\u{a0}", 1..3, "invalid character '\\u{a0}' (U+00A0)"),
            ("\0", 0..1, "invalid character '\\0' (U+0000)"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.span.clone(), error.to_string().as_str()), (span, message), "{text}");
        }
        for text in ["1.5", "1.", "'a'", "~1", "[1:2], 3", "[0][1]", "[[None]]", "[0,,1],", "[,],"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_saturate_at_any_size() {
        let nines = "9".repeat(50_000);
        assert_eq!(
            items(&format!("{nines}:-{nines}:-{nines}")),
            [slice(Some(i64::MAX), Some(i64::MIN), Some(-i64::MAX))]
        );
        assert_eq!(items("::-9223372036854775808"), [slice(None, None, Some(-i64::MAX))]);
    }

    #[test]
    fn long_expressions_take_linear_time() {
        let text = "1 : 2, ".repeat(100_000);
        assert_eq!(items(&text).len(), 100_000);
        assert_eq!(items(&format!("[[{}]]", "-1,".repeat(100_000))).len(), 1);
        assert_eq!(items(&" ".repeat(1_000_000)).len(), 0);
    }

    proptest! {
        #[test]
        fn format_and_parse_are_inverse(expr in crate::index::tests::expressions()) {
            let spanned = format(&expr);
            prop_assert_eq!(parse(&spanned.text), Ok(spanned));
        }

        #[test]
        fn any_text_gives_spans_inside_it(text in r"[\[\]():,.0-9a-zN_+ \-\u{ff11}]{0,24}") {
            match parse(&text) {
                Ok(spanned) => for span in spanned.spans {
                    prop_assert!(text.get(span).is_some_and(|item| !item.is_empty()));
                },
                Err(error) => prop_assert!(text.get(error.span).is_some()),
            }
        }
    }
}
