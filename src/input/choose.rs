//! Choosing tensors of an input by name, and notes about those that cannot be read.
//!
//! A pattern that is the exact name of a tensor chooses that tensor, whatever else it would match.
//! A leading slash, as the tools of HDF5 print paths, is ignored if no name has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::glob::{Pattern, PatternError};
use super::opened::{BadMember, Input, MissingTensor, Unreadable};
use super::transform::Transform;
use crate::error::{Cause, Error, ErrorKind, Fault};
use crate::tensor::{TensorInfo, shortened};

impl Input {
    /// Choose one tensor by patterns (names or globs); without patterns, the only tensor.
    pub fn tensor(&self, patterns: &[String]) -> Result<TensorInfo, Error> {
        Ok(self.contents.tensors.at(self.find_one(patterns)?))
    }

    /// Choose one tensor by patterns, read as `transform` says.
    pub fn transformed_tensor(
        &mut self,
        patterns: &[String],
        transform: &Transform,
    ) -> Result<TensorInfo, Error> {
        let number = self.find_one(patterns)?;
        self.transform(transform, &[number])?;
        Ok(self.contents.tensors.at(number))
    }

    pub(crate) fn find_one(&self, patterns: &[String]) -> Result<usize, Error> {
        match self.find(patterns)?.as_slice() {
            &[only] => Ok(only),
            several => {
                let tensors = &self.contents.tensors;
                let name = |number: &usize| tensors.name(*number).unwrap_or_default().to_owned();
                let names = several.iter().map(name).collect();
                let excludes = !self.exclude.is_empty();
                let chooses = !patterns.is_empty();
                Err(self.failed(SelectFault::Several { names, chooses, excludes }))
            }
        }
    }

    /// The numbers of the tensors that the patterns choose, ascending; without patterns, the only
    /// tensor's. If several are chosen, those that cannot be read are left out with a note.
    pub fn find(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let mut found = self.find_named(patterns)?;
        self.leave_out_unreadable(&mut found, patterns)?;
        Ok(found)
    }

    /// Leave out what cannot be read of the tensors that these patterns choose (ascending numbers).
    pub(crate) fn leave_out_unreadable(
        &self,
        found: &mut Vec<usize>,
        patterns: &[String],
    ) -> Result<(), Error> {
        let count = self.contents.tensors.len();
        let hidden = found.split_off(found.partition_point(|&number| number < count));
        let unreadable = &self.container.unreadable;
        let is_named = |number: &&usize| {
            unreadable.get(**number - count).is_some_and(|it| patterns.contains(&it.name))
        };
        let only = hidden.first().filter(|_| found.is_empty());
        match hidden.iter().find(is_named).or(only) {
            Some(&number) => self.refuse_unreadable(number),
            None => self.note_unreadable(hidden),
        }
    }

    /// Note what is left out because it cannot be read: the first few with the reason. It is an
    /// error if the input is to be read as a whole.
    pub(crate) fn note_unreadable(
        &self,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<(), Error> {
        let there = self.contents.tensors.len() + self.container.unreadable.len();
        let mut errors = Vec::new();
        for number in numbers {
            match self.refuse_unreadable(number) {
                Err(error) if number >= there || self.is_strict => return Err(error),
                Err(error) => errors.push(error),
                Ok(()) => {}
            }
        }
        self.notes.add_left_out(errors.iter());
        Ok(())
    }

    /// The numbers of the tensors with these names, and after them of entries that cannot be read.
    /// Without names, the numbers of all but the excluded ones, or the only one's.
    pub fn find_named(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        if self.exclude.is_empty() {
            return self.find_all_named(patterns);
        }
        let excluded = self.excluded()?;
        let mut found = if patterns.is_empty() && !self.keeps_rest {
            (0..self.named_count()).collect()
        } else {
            self.find_all_named(patterns)?
        };
        found.retain(|number| excluded.binary_search(number).is_err());
        if found.is_empty() {
            return Err(self.failed(SelectFault::NothingLeft));
        }
        Ok(found)
    }

    /// The numbers of the excluded tensors, ascending.
    pub(crate) fn excluded(&self) -> Result<Vec<usize>, Error> {
        let is_here = |pattern: &&String| !self.may_lack_excluded || !self.lacks(pattern);
        let patterns: Vec<String> = self.exclude.iter().filter(is_here).cloned().collect();
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        self.find_all_named(&patterns).map_err(|error| {
            let cause = match error.cause.downcast::<SelectFault>() {
                Ok(fault) => fault.of_excluded().into(),
                Err(cause) => cause,
            };
            Error { cause, ..error }
        })
    }

    /// Whether a name or glob matches no tensor.
    pub(crate) fn lacks(&self, pattern: &str) -> bool {
        use SelectFault::{Nameless, NoTensors, NotFound};
        let found = self.find_all_named(&[pattern.to_owned()]);
        let fault = found.as_ref().err().and_then(|error| error.cause.downcast_ref());
        matches!(fault, Some(NotFound { .. } | NoTensors | Nameless { .. }))
    }

    /// Whether the input is one tensor without a name.
    pub(crate) fn is_nameless(&self) -> bool {
        self.named_count() == 1 && self.contents.tensors.names().any(|name| name.is_none())
    }

    /// All names: of tensors, then of entries that cannot be read.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let names = self.contents.tensors.names().map(|name| name.unwrap_or("-"));
        let names =
            names.chain(self.container.unreadable.iter().map(|member| member.name.as_str()));
        let missing = (0..self.missing_count()).filter_map(|at| self.missing_named(at));
        names.chain(missing.map(|it| it.name()))
    }

    fn find_all_named(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let names = self.names();
        match (patterns, self.named_count()) {
            ([], 1) => Ok(vec![0]),
            ([], 0) => Err(self.failed(SelectFault::NoTensors)),
            ([], _) => {
                let names = names.map(str::to_owned).collect();
                let excludes = !self.exclude.is_empty();
                Err(self.failed(SelectFault::NotNamed { names, holds_several: false, excludes }))
            }
            ([first, ..], _) if self.is_nameless() => {
                Err(self.failed(SelectFault::Nameless { pattern: first.clone() }))
            }
            (patterns, _) => positions(names, patterns).map_err(|fault| match fault {
                SelectFault::NotFound { pattern, names, .. } => {
                    let links = self.contents.format.has_links;
                    self.failed(SelectFault::NotFound { pattern, names, links })
                }
                fault => self.failed(fault),
            }),
        }
    }

    /// The error of one of its tensors, whose name is given if there are several.
    pub(crate) fn failed_tensor(
        &self,
        tensor: &TensorInfo,
        several: bool,
        cause: impl Into<Cause>,
    ) -> Error {
        Error::file(&self.location, cause).of_tensor(tensor.name.as_deref(), several)
    }

    /// The number of names, including unreadable entries.
    pub(crate) fn named_count(&self) -> usize {
        self.contents.tensors.len() + self.container.unreadable.len() + self.missing_count()
    }

    /// The error of a number beyond the tensors: first those of entries that cannot be read, then
    /// of missing tensors.
    pub(crate) fn refuse_unreadable(&self, number: usize) -> Result<(), Error> {
        let beyond = number.checked_sub(self.contents.tensors.len());
        let missing = beyond.and_then(|at| at.checked_sub(self.container.unreadable.len()));
        if let Some(missing) = missing.and_then(|at| self.missing_named(at)) {
            let tensor = missing.tensor.map(str::to_owned);
            let reason = missing.reason.unwrap_or("it does not hold it").to_owned();
            let fault = MissingTensor { tensor, file: missing.file.to_owned(), reason };
            return Err(Error::file(&self.location, fault));
        }
        match beyond.and_then(|number| self.container.unreadable.get(number)) {
            Some(Unreadable { name, error }) => {
                let fault = BadMember { name: name.clone(), error: Arc::clone(error) };
                Err(Error::file(&self.location, fault))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn failed(&self, fault: SelectFault) -> Error {
        Error::file(&self.location, fault)
    }
}

/// The positions of the names that the patterns match, ascending. Several files may have the same
/// name.
pub(crate) fn positions<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    patterns: &[String],
) -> Result<Vec<usize>, SelectFault> {
    // the names are searched once for all patterns that are plain names
    let typed = patterns.iter().flat_map(|it| [it, it.strip_prefix('/').unwrap_or(it)]);
    let mut exact: BTreeMap<&str, Vec<usize>> = typed.map(|it| (it, Vec::new())).collect();
    for (at, name) in names.clone().enumerate() {
        if let Some(numbers) = exact.get_mut(name) {
            numbers.push(at);
        }
    }
    let as_typed = |pattern: &str| match exact.get(pattern) {
        Some(numbers) if !numbers.is_empty() => Ok(numbers.clone()),
        _ => matches(names.clone(), pattern),
    };
    let mut found = Vec::new();
    for pattern in patterns {
        let mut numbers = as_typed(pattern)?;
        if let (true, Some(path)) = (numbers.is_empty(), pattern.strip_prefix('/')) {
            numbers = as_typed(path)?;
        }
        if numbers.is_empty() {
            let names = names.map(str::to_owned).collect();
            return Err(SelectFault::NotFound { pattern: pattern.clone(), names, links: false });
        }
        found.extend(numbers);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The positions of the names that a glob matches.
fn matches<'n>(
    names: impl Iterator<Item = &'n str>,
    pattern: &str,
) -> Result<Vec<usize>, SelectFault> {
    let glob = Pattern::new(pattern)
        .map_err(|error| SelectFault::Glob { pattern: pattern.to_owned(), error })?;
    Ok(names.enumerate().filter(|(_, name)| glob.is_match(name)).map(|(at, _)| at).collect())
}

/// Why tensors cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum SelectFault {
    /// The file holds no tensors.
    #[error("the file holds no tensors")]
    NoTensors,
    /// One tensor is needed, and none was named.
    #[error("the file holds {} tensors, and one must be named", names.len())]
    NotNamed {
        names: Vec<String>,
        holds_several: bool,
        /// Whether some are excluded, and all others would be chosen if they were not kept anyway.
        excludes: bool,
    },
    /// One tensor is needed, and several match.
    #[error("{} tensors match, and one is needed", names.len())]
    Several {
        names: Vec<String>,
        /// Whether there are patterns that choose, and not only patterns that exclude.
        chooses: bool,
        excludes: bool,
    },
    /// A name was given for a file whose tensor has none.
    #[error("the tensor has no name")]
    Nameless { pattern: String },
    /// No tensor has that name or matches that glob.
    #[error("no tensor is named {pattern:?}")]
    NotFound {
        pattern: String,
        names: Vec<String>,
        /// Whether the name could be a link of HDF5 that is not followed.
        links: bool,
    },
    /// A text that is not a valid pattern, nor a name.
    #[error("{pattern}: {error}")]
    #[doc(hidden)]
    Glob { pattern: String, error: PatternError },
    /// Several tensors would be written under one name.
    #[error("one name is given, and several tensors are chosen")]
    OneName,
    /// More tensors than the output can hold.
    #[error("{count} tensors are chosen, and an output of format {format} holds one")]
    HoldsOne { count: usize, keep_rest: bool, format: &'static str },
    /// The tensors to be excluded cannot be found.
    #[error("cannot exclude tensors: {0}")]
    Excluded(Box<SelectFault>),
    /// All chosen tensors are excluded.
    #[error("all chosen tensors are excluded")]
    NothingLeft,
    /// A rename that is not written `OLD=NEW`.
    #[error("{0}: OLD=NEW is needed")]
    NoRename(String),
    /// An OLD that is not a pattern, or a NEW that does not fit it.
    #[error("{rename}: {reason}")]
    BadRename { rename: String, reason: String, hint: Option<String> },
    /// A rename of a tensor that does not exist.
    #[error(
        "{rename} has no effect: no chosen tensor is named {old:?}, or another rename applies to it"
    )]
    RenameNotFound { rename: String, old: String, nameless: bool },
    /// Two tensors would have the same name.
    #[error("two tensors of the output would be named {:?}", shortened(.0))]
    SameName(String),
    /// Two tensors of an input would have the same name.
    #[error("two tensors would be named {:?}", shortened(.0))]
    SameNewName(String),
}

impl Fault for SelectFault {
    fn kind(&self) -> ErrorKind {
        match self {
            SelectFault::NotFound { .. }
            | SelectFault::Nameless { .. }
            | SelectFault::NoTensors => ErrorKind::NoSuchTensor,
            _ => ErrorKind::Invalid,
        }
    }
}

impl SelectFault {
    /// Turn the error into one about tensors that are excluded.
    pub(crate) fn of_excluded(self) -> SelectFault {
        SelectFault::Excluded(Box::new(self))
    }
}

impl Error {
    /// Say whether several tensors may be chosen, where one must be named.
    #[must_use]
    pub fn of_several(mut self, holds_several: bool) -> Error {
        if let Some(SelectFault::NotNamed { holds_several: known, .. }) = self.cause.downcast_mut()
        {
            *known = holds_several;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(names: &[&str], pattern: &str) -> Result<Vec<usize>, SelectFault> {
        positions(names.iter().copied(), &[pattern.to_owned()])
    }

    #[test]
    fn names_come_before_globs() {
        let names = ["a[0]", "a0", "b.w", "b.v"];
        assert_eq!(found(&names, "a[0]").unwrap(), [0]);
        assert_eq!(found(&names, "a[0-9]").unwrap(), [1]);
        assert_eq!(found(&names, "b.{w,v}").unwrap(), [2, 3]);
        assert!(matches!(found(&names, "c*"), Err(SelectFault::NotFound { .. })));
        assert!(matches!(found(&names, "["), Err(SelectFault::Glob { .. })));
    }

    #[test]
    fn a_slash_before_a_path_is_passed_over() {
        let names = ["g/x", "/g/y", "g/y"];
        assert_eq!(found(&names, "/g/x").unwrap(), [0]);
        assert_eq!(found(&names, "/g/y").unwrap(), [1]);
        assert_eq!(found(&names[..1], "/g/*").unwrap(), [0]);
    }

    /// A command line may hold an argument of 128 KiB.
    #[test]
    fn no_glob_panics() {
        let mut texts = vec!["{".repeat(65_000), "[".repeat(131_000), "\\{".repeat(250)];
        for depth in [30, 31, 250, 60_000] {
            texts.push("{".repeat(depth) + "a" + &"}".repeat(depth));
            texts.push("{a,".repeat(depth) + "a" + &"}".repeat(depth));
        }
        for part in ["?", "*", "**/", "[!a]", "[a-z]", "é", "{a,b}", "{*,?}", "*a?"] {
            texts.push(part.repeat(131_000 / part.len()));
        }
        for text in &texts {
            let _ = found(&["name"], text);
        }
        let nested = |depth| "{".repeat(depth) + "x,n*" + &"}".repeat(depth);
        assert_eq!(found(&["name"], &nested(30)).unwrap(), [0]);
        let error = found(&["name"], &nested(250)).unwrap_err();
        assert!(error.to_string().ends_with("braces nested deeper than 30 levels"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"[*?\[\]{}!^,\\a-c0-2:/.é-]{0,60}"#) {
            let _ = found(&["abc", "a.b", ""], &text);
            if let Ok(pattern) = Pattern::carrying(&text)
                && let Ok(target) = pattern.template(&text, true)
            {
                let _ = pattern.carry(&target, "a.b");
            }
            let _ = Pattern::new("*").map(|it| it.template(&text, true).is_ok());
        }
    }
}
