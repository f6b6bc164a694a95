//! The language of patterns of names: of `-t`, `--exclude`, new names, and groups of tensors.
//!
//! | text | stands for |
//! |---|---|
//! | `*` | any text, also the empty one |
//! | `?` | any character |
//! | `{a,b}` | one of these patterns |
//! | `{0..11}` | one of these numbers; `{00..11}` with as many digits |
//! | `[a-c]`, `[!a-c]` | one of these characters; any other character |
//! | `{l}` | any text of at least one character, and no `.` in it |
//! | `{p:q,k,v}` | one of these; the piece has the name `p` |
//! | `\*` | the character `*` itself |
//!
//! Brackets around digits alone, a `*` or braces are themselves, as in `opt[0].m` and `opt[*].m`.
//! A pattern becomes a regular expression. Matching takes time linear in the length of the name, and bounded memory.

use std::ops::Range;

use parse::Parser;
use regex_automata::meta::{Config, Regex};

use crate::tensor::shortened;

mod groups;
mod parse;

pub use groups::{GroupFault, PartNaming};
pub(crate) use groups::{Grouping, Groups};

/// The longest pattern, in bytes. Its expression takes a multiple of that memory.
const MAX_LENGTH: usize = 16 << 10;

/// The most pieces whose texts are carried over: each takes memory in every state of the
/// expression.
const MAX_CARRIED: usize = 64;

/// The largest expression of a pattern whose texts are carried over, in bytes.
const MAX_CARRYING: usize = 256 << 10;

pub struct Pattern<'p> {
    regex: Regex,
    /// The pieces that are not literal text, from left to right.
    pieces: Vec<Piece<'p>>,
    /// Whether a backslash escapes a character.
    escapes: bool,
}

/// A text that is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PatternError {
    reason: String,
    pub hint: Option<String>,
}

/// A piece of a pattern that stands for several texts.
#[derive(Clone, Debug)]
struct Piece<'p> {
    /// The piece as it is written.
    whole: &'p str,
    name: Option<&'p str>,
    /// The texts that it matches, if it is a list of texts and nothing else.
    texts: Vec<String>,
}

impl Piece<'_> {
    /// Whether it matches the numbers that occur: `{i:*}`.
    fn is_of_any_number(&self) -> bool {
        self.name.is_some_and(|name| self.whole == format!("{{{name}:*}}"))
    }

    /// Whether two pieces are the same: they have the same name or, without names, are written
    /// alike.
    fn is_same(&self, other: &Piece<'_>) -> bool {
        match (self.name, other.name) {
            (None, None) => self.whole == other.whole,
            (one, other) => one == other,
        }
    }

    /// Refuse a piece of the template whose list of texts differs from the pattern's.
    fn check_texts(&self, first: &Piece<'_>) -> Result<(), CarryError> {
        let is_name = |name| self.whole == format!("{{{name}}}");
        if self.whole == first.whole || self.name.is_some_and(is_name) {
            return Ok(());
        }
        Err(CarryError::OtherTexts([self.whole.to_owned(), first.whole.to_owned()]))
    }
}

impl<'p> Pattern<'p> {
    /// Parse a pattern that names are matched with.
    pub fn new(text: &'p str) -> Result<Pattern<'p>, PatternError> {
        Pattern::compile(text, false)
    }

    /// Parse a pattern whose pieces' texts are carried over by [`carry`](Pattern::carry).
    pub(crate) fn carrying(text: &'p str) -> Result<Pattern<'p>, PatternError> {
        Pattern::compile(text, true)
    }

    fn compile(text: &'p str, carries: bool) -> Result<Pattern<'p>, PatternError> {
        if text.len() > MAX_LENGTH {
            return Err(PatternError::new(format!("more than {MAX_LENGTH} bytes")));
        }
        let mut parser = Parser::new(text, carries);
        parser.sequence(0)?;
        let Parser { regex, pieces, escapes, .. } = parser;
        if carries && pieces.len() > MAX_CARRIED {
            return Err(PatternError::new(format!("more than {MAX_CARRIED} wildcards")));
        }
        let limit = if carries { MAX_CARRYING } else { 10 << 20 };
        let config = Config::new().nfa_size_limit(Some(limit));
        let built = Regex::builder().configure(config).build(&format!(r"(?s)\A(?:{regex})\z"));
        let regex = built.map_err(|_| PatternError::new("the pattern is too large"))?;
        Ok(Pattern { regex, pieces, escapes })
    }

    pub fn is_match(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// Whether it has pieces that are not literal text.
    pub(crate) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty() || self.escapes
    }

    /// The range that each piece matches in a name, if the pattern matches it.
    pub(crate) fn spans(&self, name: &str) -> Option<Vec<Range<usize>>> {
        let mut captures = self.regex.create_captures();
        self.regex.captures(name, &mut captures);
        // the first group is the whole name
        let groups = (1..=self.pieces.len()).map(|at| captures.get_group(at).map(Range::from));
        if captures.is_match() { groups.collect() } else { None }
    }

    /// Parse a template: pieces of the pattern stand for the texts that they match in a name, all else is literal text.
    /// With `adds`, a piece may add a number to the number that it matches, as `{l+4}` does.
    pub(crate) fn template(&self, text: &str, adds: bool) -> Result<NameTemplate, CarryError> {
        self.read_template(text, adds, |piece| match piece.name {
            Some(name) if !self.pieces.is_empty() => Err(CarryError::Unknown(name.to_owned())),
            _ => Ok(false),
        })
    }

    /// Parse a template for the names of parts, with one piece that the pattern does not have; return
    /// it with the texts of that piece, if it lists some.
    pub(crate) fn template_of_parts(
        &self,
        text: &str,
    ) -> Result<(NameTemplate, Vec<String>), CarryError> {
        let mut own: Option<(String, Vec<String>)> = None;
        let template = self.read_template(text, false, |piece| {
            let Some(name) = piece.name else { return Ok(false) };
            if let Some((first, _)) = &own {
                let both = [first.clone(), name.to_owned()];
                return if first == name { Ok(true) } else { Err(CarryError::SeveralOwn(both)) };
            }
            let parsed = Pattern::carrying(piece.whole).map_err(CarryError::Pattern)?;
            let texts = parsed.pieces.into_iter().next().map(|piece| piece.texts);
            let texts = texts.unwrap_or_default();
            if texts.is_empty() && piece.whole != format!("{{{name}}}") {
                return Err(CarryError::NoTexts(piece.whole.to_owned()));
            }
            own = Some((name.to_owned(), texts));
            Ok(true)
        })?;
        let (_, texts) = own.ok_or(CarryError::NoOwn)?;
        Ok((template, texts))
    }

    /// Parse a template; `is_own` decides whether a piece that the pattern does not have is the template's own piece, and
    /// not literal text.
    fn read_template(
        &self,
        text: &str,
        adds: bool,
        mut is_own: impl FnMut(&Piece<'_>) -> Result<bool, CarryError>,
    ) -> Result<NameTemplate, CarryError> {
        let mut carried = vec![false; self.pieces.len()];
        let mut parts = vec![TemplatePiece::Text(String::new())];
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (piece, len) = piece_at(rest);
            if let Some((name, added)) =
                piece.as_ref().and_then(|it| sum(it.whole)).filter(|_| adds)
            {
                let at = self.pieces.iter().position(|piece| piece.name == Some(name));
                let at = at.ok_or_else(|| CarryError::Unknown(name.to_owned()))?;
                carried[at] = true;
                parts.push(TemplatePiece::Sum(at, added));
                rest = &rest[len..];
                continue;
            }
            if let Some(piece) = piece {
                let free = |at: &usize| self.pieces[*at].name.is_some() || !carried[*at];
                let mut all = (0..self.pieces.len()).filter(free);
                if let Some(at) = all.find(|&at| self.pieces[at].is_same(&piece)) {
                    piece.check_texts(&self.pieces[at])?;
                    carried[at] = true;
                    parts.push(TemplatePiece::Piece(at));
                    rest = &rest[len..];
                    continue;
                }
                if piece.whole == "*" {
                    return Err(CarryError::Stars);
                }
                if is_own(&piece)? {
                    parts.push(TemplatePiece::Own);
                    rest = &rest[len..];
                    continue;
                }
            }
            let (skipped, char) = match (first, rest.chars().nth(1)) {
                ('\\', Some(next)) if is_special(next) => (1, next),
                _ => (0, first),
            };
            match parts.last_mut() {
                Some(TemplatePiece::Text(text)) => text.push(char),
                _ => parts.push(TemplatePiece::Text(char.to_string())),
            }
            rest = &rest[skipped + char.len_utf8()..];
        }
        let stars = |at: usize| self.pieces[at].whole == "*";
        if (0..self.pieces.len()).all(|at| carried[at] || !stars(at)) {
            Ok(NameTemplate { parts })
        } else {
            Err(CarryError::Stars)
        }
    }

    /// The name that a template makes of a name that the pattern matches; `None` if a piece adds to a text that is not a
    /// number.
    pub(crate) fn carry(&self, template: &NameTemplate, name: &str) -> Option<String> {
        self.carry_part(template, name, "")
    }

    /// The name that a template makes, with the text `own` for the piece that only the template has.
    fn carry_part(&self, template: &NameTemplate, name: &str, own: &str) -> Option<String> {
        let spans = self.spans(name)?;
        let text = |part: &TemplatePiece| match part {
            TemplatePiece::Text(text) => Some(text.clone()),
            TemplatePiece::Piece(at) => Some(name.get(spans[*at].clone())?.to_owned()),
            TemplatePiece::Sum(at, added) => {
                let text = name.get(spans[*at].clone())?;
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let sum =
                    text.parse::<u64>().ok().filter(|_| is_number)?.checked_add_signed(*added)?;
                let digits = if text.starts_with('0') { text.len() } else { 1 };
                Some(format!("{sum:0digits$}"))
            }
            TemplatePiece::Own => Some(own.to_owned()),
        };
        template.parts.iter().map(text).collect()
    }
}

pub(crate) struct NameTemplate {
    parts: Vec<TemplatePiece>,
}

impl NameTemplate {
    /// Whether the template uses the pattern's piece with this number.
    fn carries(&self, piece: usize) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePiece::Piece(at) if *at == piece))
    }
}

enum TemplatePiece {
    Text(String),
    /// The text that the pattern's piece with this number matches.
    Piece(usize),
    /// The number that the pattern's piece with this number matches, and the number that is added to it.
    Sum(usize, i64),
    /// The piece that only the template has.
    Own,
}

/// Why a template does not fit a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CarryError {
    /// The pattern is not valid.
    Pattern(PatternError),
    /// The pattern and the template have different numbers of `*`.
    Stars,
    /// The pattern has no piece of that name.
    Unknown(String),
    /// A piece has different lists of texts in the template and in the pattern.
    OtherTexts([String; 2]),
    /// A name without a number to add to.
    NoSum(String),
    /// No piece names the parts.
    NoOwn,
    /// Two pieces name the parts.
    SeveralOwn([String; 2]),
    /// The piece that names the parts is neither numbers nor a list of texts.
    NoTexts(String),
}

impl CarryError {
    /// The message; it calls the pattern `old` and the template `new`.
    pub(crate) fn worded(&self, old: &str, new: &str) -> String {
        match self {
            CarryError::Pattern(error) => error.to_string(),
            CarryError::Stars => format!("{old} and {new} must have the same number of '*'"),
            CarryError::Unknown(piece) => format!("{old} has no {{{piece}}}"),
            CarryError::OtherTexts([one, other]) => {
                format!("{one} in {new} differs from {other} in {old}")
            }
            CarryError::NoSum(name) => {
                format!("{:?} has no number there that {new} can add to", shortened(name))
            }
            CarryError::NoOwn => {
                format!("{new} needs a piece that is not in {old}: it names the parts")
            }
            CarryError::SeveralOwn([one, other]) => {
                format!(
                    "only one of {{{one}}} and {{{other}}} can name the parts: {old} must have the other"
                )
            }
            CarryError::NoTexts(piece) => format!("{piece} is not a list of texts"),
        }
    }

    /// A hint, if the error has one.
    pub(crate) fn hint(self) -> Option<String> {
        match self {
            CarryError::Pattern(error) => error.hint,
            _ => None,
        }
    }
}

impl PatternError {
    fn new(reason: impl Into<String>) -> PatternError {
        PatternError { reason: reason.into(), hint: None }
    }
}

fn is_special(char: char) -> bool {
    matches!(char, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\')
}

/// The piece at the beginning of a text, and its length in bytes.
fn piece_at(text: &str) -> (Option<Piece<'_>>, usize) {
    let len = match text.as_bytes().first() {
        Some(b'*' | b'?') => Some(1),
        Some(b'{') => closing_brace(text).map(|at| at + 1),
        Some(b'[') => text.find(']').map(|at| at + 1),
        _ => None,
    };
    let Some(len) = len else { return (None, 0) };
    let whole = &text[..len];
    let name = whole.strip_prefix('{').and_then(name_of);
    (Some(Piece { whole, name, texts: Vec::new() }), len)
}

/// The name and the number in `{l+4}` and `{l-4}`.
fn sum(whole: &str) -> Option<(&str, i64)> {
    let inside = whole.strip_prefix('{')?.strip_suffix('}')?;
    let (name, number) = inside.split_at(inside.find(['+', '-'])?);
    let is_number = number.len() > 1 && number[1..].bytes().all(|byte| byte.is_ascii_digit());
    let is_name = name_of(&format!("{name}}}")).is_some();
    Some((name, number.parse().ok().filter(|_| is_number && is_name)?))
}

/// The position of the brace that closes the one at the beginning of a text.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The name at the beginning of the text inside braces: `l}`, `p:q,k,v}`.
fn name_of(inside: &str) -> Option<&str> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let name = &inside[..inside.find(|char| !is_part(char))?];
    let is_named = inside[name.len()..].starts_with(['}', ':']);
    let begins = name.starts_with(|first: char| !first.is_ascii_digit());
    (is_named && begins).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let found = Pattern::new(pattern).unwrap().is_match(name);
        assert_eq!(Pattern::carrying(pattern).unwrap().is_match(name), found, "{pattern}: {name}");
        found
    }

    fn refused(pattern: &str) -> (String, Option<String>) {
        let error = Pattern::new(pattern).err().unwrap();
        (error.to_string(), error.hint)
    }

    #[test]
    fn each_piece_means_what_it_says() {
        for (pattern, names, others) in [
            ("a*", &["a", "ab/c.d\n"][..], &["ba"][..]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("{q,k}_proj", &["q_proj", "k_proj"], &["v_proj", "_proj"]),
            ("w{,_norm}", &["w", "w_norm"], &["w_"]),
            ("l.{0..11}.w", &["l.0.w", "l.9.w", "l.10.w", "l.11.w"], &["l.12.w", "l.00.w", "l..w"]),
            ("{11..8}", &["8", "11"], &["7", "12"]),
            ("{08..11}", &["08", "11"], &["8", "12"]),
            ("{0..3,8,x*}", &["0", "3", "8", "xy"], &["4", "9"]),
            ("{98..1203}", &["98", "100", "999", "1203"], &["97", "1204", "0100"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "-x"]),
            ("[!a-c]x", &["dx", "\nx"], &["ax"]),
            ("[0-7]", &["0", "7"], &["8", "[0-7]"]),
            ("[]]", &["]"], &["[]]"]),
            ("opt[0].*", &["opt[0].m"], &["opt0.m", "opt[1].m"]),
            ("opt[*].m", &["opt[0].m", "opt[].m"], &["opt*.m"]),
            ("opt[{0..3}].m", &["opt[2].m"], &["opt[4].m"]),
            ("[-1].w", &["[-1].w"], &["-.w"]),
            ("h.{l}.w", &["h.0.w", "h.ab.w"], &["h..w", "h.0.1.w"]),
            ("h.{p:q,k}", &["h.q", "h.k"], &["h.p"]),
            (r"\*\[a\]", &["*[a]"], &["x[a]"]),
            ("a.b+(c|d)^$#", &["a.b+(c|d)^$#"], &["axb+(c|d)^$#"]),
        ] {
            names.iter().for_each(|name| assert!(matches(pattern, name), "{pattern}: {name}"));
            others.iter().for_each(|name| assert!(!matches(pattern, name), "{pattern}: {name}"));
        }
    }

    #[test]
    fn ranges_of_numbers_hold_just_these() {
        for (low, high) in [(0, 0), (0, 9), (3, 17), (9, 10), (95, 1004), (199, 201), (110, 119)] {
            let pattern = format!("{{{low}..{high}}}");
            for number in 0..1100 {
                let is_in = (low..=high).contains(&number);
                assert_eq!(matches(&pattern, &number.to_string()), is_in, "{pattern}: {number}");
            }
        }
        let all = format!("{{0..{}}}", u64::MAX);
        assert!(matches(&all, "18446744073709551615") && matches(&all, "0"));
        assert!(!matches(&all, "18446744073709551616") && !matches(&all, "01"));
    }

    #[test]
    fn classes_that_were_meant_as_numbers_are_refused() {
        let (reason, hint) = refused("layers.[0-11].*");
        assert_eq!(reason, "[0-11] is a class of characters, not of numbers");
        assert_eq!(hint.unwrap(), "{0..11} matches numbers: 'layers.{0..11}.*'");
        for (class, range) in [
            ("[8-15]", "{8..15}"),
            ("[10-19]", "{10..19}"),
            ("[0,1]", "{0,1}"),
            ("[0-3,12]", "{0..3,12}"),
        ] {
            let hint = refused(class).1.unwrap();
            assert_eq!(hint, format!("{range} matches numbers: '{range}'"));
        }
        assert_eq!(refused("[!0-11]").1, None);
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (pattern, why) in [
            ("a[", "a '[' without a ']'"),
            ("a{b", "a '{' without a '}'"),
            ("a}", "a '}' without a '{'"),
            ("a\\", "a '\\' at the end"),
            ("[c-a]", "c-a is not a range of characters"),
            ("{0..}", "0..: a range is of numbers, written {0..11}"),
            ("{1..9..2}", "1..9..2: a range is of numbers, written {0..11}"),
            (
                "{0..99999999999999999999}",
                "0..99999999999999999999: a range is of numbers, written {0..11}",
            ),
            ("{l}.{l}", "{l} occurs twice"),
            ("{p:q,k,q}", "\"q\" occurs twice in {p:q,k,q}"),
        ] {
            assert_eq!(refused(pattern).0, why);
        }
        assert_eq!(refused("{a..c}").1.unwrap(), "[a-c] matches letters");
    }

    #[test]
    fn pieces_carry_over() {
        let carried = |old: &str, new: &str, name: &str| {
            let pattern = Pattern::carrying(old).unwrap();
            let template = pattern.template(new, true);
            template.map(|template| pattern.carry(&template, name).unwrap_or_default())
        };
        for (old, new, name, expected) in [
            ("a.*.b.*", "*/*", "a.1.b.2.3", "1/2.3"),
            ("opt[*].m", "m.*", "opt[12].m", "m.12"),
            ("h.{l}.{p:q,k}.w", "{p}.{l}.{l}", "h.3.q.w", "q.3.3"),
            ("{q,k}.{0..3}", "x.{0..3}.{q,k}", "k.2", "x.2.k"),
            ("{0..3}.w", "w", "2.w", "w"),
            ("h.{l}.w", "{l+4}.{l-1}.{l}", "h.08.w", "12.07.08"),
            ("h.{l}.w", "{l+x}{l+}", "h.8.w", "{l+x}{l+}"),
            ("x?", "y?[0]{z", "xé", "yé[0]{z"),
            ("*", r"\**", "a", "*a"),
        ] {
            assert_eq!(carried(old, new, name).unwrap(), expected, "{old} {new}");
        }
        assert_eq!(carried("a*", "b", "ab"), Err(CarryError::Stars));
        assert_eq!(carried("a?", "b*", "ab"), Err(CarryError::Stars));
        assert_eq!(carried("{l}", "{m}", "ab"), Err(CarryError::Unknown("m".to_owned())));
        assert_eq!(carried("{p:q,k}", "{p:q,k}{p}", "q").unwrap(), "qq");
        let others = CarryError::OtherTexts(["{p:a,b}", "{p:q,k}"].map(str::to_owned));
        assert_eq!(carried("{p:q,k}", "{p:a,b}", "q"), Err(others));
    }
}
