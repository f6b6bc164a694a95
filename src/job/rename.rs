//! New names of tensors: `OLD=NEW`, where each `*` in OLD stands for any text, which the `*` at
//! the same place in NEW carries over.
//!
//! ```text
//! model.layers.*.mlp.*=blk.*.ffn_*    model.layers.7.mlp.up  ─►  blk.7.ffn_up
//! ```
//!
//! A name may hold a `=` or a `*` itself: an OLD that is the very name of a tensor means that
//! tensor, and the first `=` that leads to a tensor is the one meant.

use std::collections::HashMap;

use crate::input::SelectFault;

/// The new name of each tensor that gets one, by its number; `names` are the old ones, of several files
/// maybe more than one the same.
///
/// # Errors
/// [`SelectFault`]: not `OLD=NEW`, an OLD that is no tensor's name, two new names for one tensor.
pub(crate) fn rename(
    names: &[Option<&str>],
    renames: &[String],
) -> Result<HashMap<usize, String>, SelectFault> {
    let mut renamed: HashMap<usize, String> = HashMap::new();
    let mut by_glob = Vec::new();
    for rename in renames {
        let (found, is_glob) = apply(names, rename)?;
        for (number, name) in found {
            if renamed.insert(number, name).is_some() {
                let by_glob = is_glob || by_glob.contains(&number);
                return Err(SelectFault::RenamedTwice { rename: rename.clone(), by_glob });
            }
            if is_glob {
                by_glob.push(number);
            }
        }
    }
    Ok(renamed)
}

/// The tensors that one rename means, with their new names, and whether it means them as a glob.
fn apply(
    names: &[Option<&str>],
    rename: &str,
) -> Result<(Vec<(usize, String)>, bool), SelectFault> {
    let splits = rename.match_indices('=').map(|(at, _)| (&rename[..at], &rename[at + 1..]));
    let Some((first, _)) = splits.clone().next() else {
        return Err(SelectFault::NoRename(rename.to_owned()));
    };
    for (old, new) in splits.clone() {
        let same = names.iter().enumerate().filter(|(_, name)| **name == Some(old));
        let same: Vec<_> = same.map(|(number, _)| (number, new.to_owned())).collect();
        if !same.is_empty() {
            return Ok((same, false));
        }
    }
    let stars = |text: &str| text.matches('*').count();
    let mut globs = splits.filter(|(old, _)| stars(old) > 0).peekable();
    let is_glob = globs.peek().is_some();
    let mut uneven = is_glob;
    for (old, new) in globs.filter(|(old, new)| stars(old) == stars(new)) {
        uneven = false;
        let matched = names
            .iter()
            .enumerate()
            .filter_map(|(number, name)| Some((number, fill(new, &captures(old, (*name)?)?))));
        let matched: Vec<_> = matched.collect();
        if !matched.is_empty() {
            return Ok((matched, true));
        }
    }
    match uneven {
        true => Err(SelectFault::UnevenRename(rename.to_owned())),
        false => {
            let (rename, old) = (rename.to_owned(), first.to_owned());
            Err(SelectFault::RenameNotFound { rename, old, nameless: *names == [None] })
        }
    }
}

/// What each `*` of a pattern stands for in a name: the shortest text from left to right, and for
/// the last one all that is left.
fn captures<'n>(pattern: &str, name: &'n str) -> Option<Vec<&'n str>> {
    let mut parts = pattern.split('*');
    let mut rest = name.strip_prefix(parts.next()?)?;
    let Some(last) = parts.next_back() else { return rest.is_empty().then(Vec::new) };
    let mut found = Vec::new();
    for part in parts {
        let at = rest.find(part)?;
        found.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    found.push(rest.strip_suffix(last)?);
    Some(found)
}

/// A pattern with each `*` replaced.
fn fill(pattern: &str, found: &[&str]) -> String {
    let mut found = found.iter();
    let mut parts = pattern.split('*');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(found.next().copied().unwrap_or_default());
        filled.push_str(part);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [Option<&str>; 6] = [
        Some("model.layers.0.mlp.up"),
        Some("model.layers.10.mlp.down"),
        Some("x=a*"),
        Some("head"),
        Some("*"),
        None,
    ];

    fn renamed(renames: &[&str]) -> Result<Vec<(usize, String)>, SelectFault> {
        let renames: Vec<String> = renames.iter().map(|rename| (*rename).to_owned()).collect();
        let mut all: Vec<_> = rename(&NAMES, &renames)?.into_iter().collect();
        all.sort();
        Ok(all)
    }

    #[test]
    fn stars_carry_over() {
        let expect = |renames: &[&str], expected: &[(usize, &str)]| {
            let found = renamed(renames).unwrap();
            let found: Vec<_> = found.iter().map(|(at, name)| (*at, name.as_str())).collect();
            assert_eq!(found, expected, "{renames:?}");
        };
        let blocks = [(0, "blk.0.mlp.up"), (1, "blk.10.mlp.down")];
        expect(&["model.layers.*=blk.*"], &blocks);
        expect(&["model.*.*.mlp.*=*/*/*"], &[(0, "layers/0/up"), (1, "layers/10/down")]);
        expect(&["mod*.up=*"], &[(0, "el.layers.0.mlp")]);
        // exact names first, and the `=` that leads to one
        expect(&["x=a*=b"], &[(2, "b")]);
        expect(&["head=tail"], &[(3, "tail")]);
        expect(&["*=all"], &[(4, "all")]);
        expect(&["he**=**x"], &[(3, "adx")]);
    }

    #[test]
    fn wrong_renames_are_told() {
        let says = |renames: &[&str]| renamed(renames).unwrap_err().to_string();
        assert_eq!(says(&["head"]), "head: OLD=NEW is needed");
        assert_eq!(
            says(&["x.*=y.*"]),
            "x.*=y.*: no tensor of the output is named \"x.*\" in the input"
        );
        let uneven = "model.*=b: OLD and NEW must have the same number of '*'";
        assert_eq!(says(&["model.*=b"]), uneven);
        assert_eq!(says(&["model.*=a.*", "*.up=*.b"]), "*.up=*.b: that tensor is renamed twice");
    }
}
