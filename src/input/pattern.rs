//! What patterns find among the names of tensors.
//!
//! A pattern that is the very name of a tensor means that tensor, whatever else it would match. A
//! slash before it, as the tools of HDF5 print paths, is passed over where no name has it.

use crate::error::{Error, Fault};
use crate::format::shortened;
use crate::input::glob::{Pattern, PatternError};

/// The positions of the names that the patterns mean, ascending. Those of several files may hold a name
/// more than once.
///
/// # Errors
/// [`SelectFault::NotFound`] for a pattern that matches nothing, [`SelectFault::Glob`] for a text
/// that is no name and no glob.
pub(crate) fn find<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    patterns: &[String],
) -> Result<Vec<usize>, SelectFault> {
    let mut found = Vec::new();
    for pattern in patterns {
        let positions = find_one(names.clone(), pattern)?;
        if positions.is_empty() {
            let names = names.map(str::to_owned).collect();
            return Err(SelectFault::NotFound { pattern: pattern.clone(), names, links: false });
        }
        found.extend(positions);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn find_one<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    pattern: &str,
) -> Result<Vec<usize>, SelectFault> {
    let found = find_as_typed(names.clone(), pattern)?;
    match pattern.strip_prefix('/') {
        Some(path) if found.is_empty() => find_as_typed(names, path),
        _ => Ok(found),
    }
}

fn find_as_typed<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    pattern: &str,
) -> Result<Vec<usize>, SelectFault> {
    let exact = names.clone().enumerate().filter(|(_, name)| *name == pattern);
    let exact: Vec<usize> = exact.map(|(at, _)| at).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
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
    #[error("the file holds {} tensors, and one has to be named", names.len())]
    NotNamed {
        /// The names that there are.
        names: Vec<String>,
        /// Whether the output could hold all of them.
        holds_several: bool,
        /// Whether some are left out, and all others would be meant if they were not to be kept besides.
        excludes: bool,
    },
    /// One tensor is needed, and several match.
    #[error("{} tensors match, and one is needed", names.len())]
    Several {
        /// Their names.
        names: Vec<String>,
        /// Whether patterns say which are meant, and not only which are left out.
        chooses: bool,
        /// Whether some are left out.
        excludes: bool,
    },
    /// A name was asked for in a file that has none.
    #[error("the tensor has no name")]
    Nameless {
        /// The name or glob.
        pattern: String,
    },
    /// No tensor has that name or matches that glob.
    #[error("no tensor is named {pattern:?}")]
    NotFound {
        /// The name or glob.
        pattern: String,
        /// The names that there are.
        names: Vec<String>,
        /// Whether a link could have that name: those of HDF5 are not followed.
        links: bool,
    },
    /// A text that is no name and no glob either.
    #[error("{pattern}: {error}")]
    Glob {
        /// The text.
        pattern: String,
        /// What is wrong with it.
        error: PatternError,
    },
    /// Several tensors are to be written under one name.
    #[error("one name is given, and several tensors are chosen")]
    OneName,
    /// More tensors than the output can hold.
    #[error("{count} tensors are chosen, and an output of format {format} holds one")]
    HoldsOne {
        /// How many.
        count: usize,
        /// Whether the others were to be kept.
        keep_rest: bool,
        /// The format of the output.
        format: &'static str,
    },
    /// What is to be left out cannot be chosen.
    #[error("to be left out: {0}")]
    Excluded(Box<SelectFault>),
    /// All that is chosen is left out.
    #[error("every tensor that is chosen is left out")]
    NothingLeft,
    /// A new name that is not written `OLD=NEW`.
    #[error("{0}: OLD=NEW is needed")]
    NoRename(String),
    /// An old and a new name with different numbers of stars.
    #[error("{0}: OLD and NEW must have the same number of '*'")]
    UnevenRename(String),
    /// A new name for a tensor that is not there.
    #[error("{rename}: no tensor of the output is named {old:?} in the input")]
    RenameNotFound {
        /// The new name as it was given, `OLD=NEW`.
        rename: String,
        /// The old name.
        old: String,
        /// Whether the only tensor has no name at all.
        nameless: bool,
    },
    /// An old name that is no name and no glob.
    #[error("{rename}: {error}")]
    RenameGlob {
        /// The new name as it was given, `OLD=NEW`.
        rename: String,
        /// What is wrong with it.
        error: PatternError,
    },
    /// A new name with a piece that the old one lacks.
    #[error("{rename}: OLD has no {{{piece}}}")]
    RenamePiece {
        /// The new name as it was given, `OLD=NEW`.
        rename: String,
        /// The name of the piece.
        piece: String,
    },
    /// Two tensors would have one name.
    #[error("two tensors of the output would be named {:?}", shortened(.0))]
    SameName(String),
    /// Two tensors of an input would have one name.
    #[error("two tensors would be named {:?}", shortened(.0))]
    SameNewName(String),
}

impl Fault for SelectFault {}

impl SelectFault {
    /// The same where tensors are chosen to be left out.
    pub(crate) fn of_excluded(self) -> SelectFault {
        SelectFault::Excluded(Box::new(self))
    }
}

impl Error {
    /// Say whether several tensors may be chosen, where one has to be named.
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
        find(names.iter().copied(), &[pattern.to_owned()])
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
                && let Ok(target) = pattern.target(&text)
            {
                let _ = pattern.carry(&target, "a.b");
            }
            let _ = Pattern::new("*").map(|it| it.target(&text).is_ok());
        }
    }
}
