//! New names of tensors: `OLD=NEW`, where OLD is a pattern whose pieces NEW carries over.
//!
//! ```text
//! model.layers.*.mlp.*=blk.*.ffn_*    model.layers.7.mlp.up  ─►  blk.7.ffn_up
//! ```
//!
//! Several are applied one after the other, each to what those before it made. Those that make a circle,
//! as `a=b` and `b=a` do, are one step: none of them changes a name that another one made.
//!
//! A name may hold a `=` or a `*` itself: an OLD that is the very name of a tensor means that
//! tensor, and the first `=` that leads to a tensor is the one meant.

use std::collections::HashMap;
use std::ops::Range;

use crate::input::{CarryError, Pattern, SelectFault};

/// A new name for tensors with these numbers.
pub(crate) struct Rename<'r> {
    /// The numbers.
    pub(crate) range: Range<usize>,
    /// `OLD=NEW`.
    pub(crate) text: &'r str,
}

/// A name that was made, and by which rename.
struct Renamed {
    name: String,
    by: usize,
}

/// The new name of each tensor that gets one, by its number; `names` are the old ones, of several files
/// maybe more than one the same.
///
/// # Errors
/// [`SelectFault`]: not `OLD=NEW`, an OLD that is no tensor's name.
pub(crate) fn rename(
    names: &[Option<&str>],
    renames: &[String],
) -> Result<HashMap<usize, String>, SelectFault> {
    let of_all = |text| Rename { range: 0..names.len(), text };
    rename_some(names, &Vec::from_iter(renames.iter().map(String::as_str).map(of_all)))
}

/// The same where each is for some of the tensors.
///
/// # Errors
/// As [`rename`].
pub(crate) fn rename_some(
    names: &[Option<&str>],
    renames: &[Rename<'_>],
) -> Result<HashMap<usize, String>, SelectFault> {
    let circles = circles(renames);
    let mut renamed: HashMap<usize, Renamed> = HashMap::new();
    for (by, Rename { range, text }) in renames.iter().enumerate() {
        let current = range.clone().filter_map(|number| match renamed.get(&number) {
            Some(made) if circles[by].is_some() && circles[made.by] == circles[by] => None,
            Some(made) => Some((number, made.name.as_str())),
            None => Some((number, (*names.get(number)?)?)),
        });
        let nameless = *names == [None];
        let found = apply(current, text, nameless)?;
        renamed.extend(found.into_iter().map(|(number, name)| (number, Renamed { name, by })));
    }
    Ok(renamed.into_iter().map(|(number, made)| (number, made.name)).collect())
}

/// The circle that each rename is in, if it is in one: there the NEW of each is the OLD of the next one.
fn circles(renames: &[Rename<'_>]) -> Vec<Option<usize>> {
    let pairs = renames.iter().map(|it| it.text.split_once('=').unwrap_or((it.text, "")));
    let pairs = Vec::from_iter(pairs);
    let scope = |at: usize| (renames[at].range.start, renames[at].range.end);
    let olds = (0..pairs.len()).rev().map(|at| ((scope(at), pairs[at].0), at));
    let olds: HashMap<_, usize> = olds.collect();
    let next = |at: usize| olds.get(&(scope(at), pairs[at].1)).copied();
    let mut circles = vec![None; pairs.len()];
    let mut seen_from = vec![None; pairs.len()];
    for start in 0..pairs.len() {
        let mut at = Some(start);
        while let Some(one) = at.filter(|&at| seen_from[at].is_none()) {
            seen_from[one] = Some(start);
            at = next(one);
        }
        // back on the way of this very start: all from there on is a circle
        let Some(first) = at.filter(|&at| seen_from[at] == Some(start)) else { continue };
        let mut one = first;
        while circles[one].is_none() {
            circles[one] = Some(first);
            match next(one) {
                Some(following) => one = following,
                None => break,
            }
        }
    }
    circles
}

/// The tensors that one rename means, by their numbers, with their new names.
fn apply<'n>(
    names: impl Iterator<Item = (usize, &'n str)> + Clone,
    rename: &str,
    nameless: bool,
) -> Result<Vec<(usize, String)>, SelectFault> {
    let splits = rename.match_indices('=').map(|(at, _)| (&rename[..at], &rename[at + 1..]));
    let Some((first, _)) = splits.clone().next() else {
        return Err(SelectFault::NoRename(rename.to_owned()));
    };
    for (old, new) in splits.clone() {
        let same = names.clone().filter(|(_, name)| *name == old);
        let same: Vec<_> = same.map(|(number, _)| (number, new.to_owned())).collect();
        if !same.is_empty() {
            return Ok(same);
        }
    }
    let mut fault = None;
    for (old, new) in splits {
        let rename = rename.to_owned();
        let pattern = match Pattern::carrying(old) {
            Ok(pattern) if pattern.has_pieces() => pattern,
            Ok(_) => continue,
            Err(error) => {
                fault.get_or_insert(SelectFault::RenameGlob { rename, error });
                continue;
            }
        };
        let target = match pattern.target(new) {
            Ok(target) => target,
            Err(CarryError::Stars) => {
                fault.get_or_insert(SelectFault::UnevenRename(rename));
                continue;
            }
            Err(CarryError::Unknown(piece)) => {
                fault.get_or_insert(SelectFault::RenamePiece { rename, piece });
                continue;
            }
        };
        let carried = names.clone();
        let carried = carried.filter_map(|(at, name)| Some((at, pattern.carry(&target, name)?)));
        let carried: Vec<_> = carried.collect();
        if !carried.is_empty() {
            return Ok(carried);
        }
    }
    let (rename, old) = (rename.to_owned(), first.to_owned());
    Err(fault.unwrap_or(SelectFault::RenameNotFound { rename, old, nameless }))
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
    fn each_applies_to_what_those_before_it_made() {
        let names = ["a", "b", "c", "x.q", "x.k"].map(Some);
        let all = |renames: &[&str]| -> String {
            let renames: Vec<String> = renames.iter().map(|rename| (*rename).to_owned()).collect();
            let new = rename(&names, &renames).unwrap();
            let name = |(at, old): (usize, &Option<&str>)| {
                new.get(&at).cloned().unwrap_or(old.unwrap_or_default().to_owned())
            };
            Vec::from_iter(names.iter().enumerate().map(name)).join(" ")
        };
        assert_eq!(all(&["a=d", "d=e"]), "e b c x.q x.k");
        assert_eq!(all(&["*.q=*.v", "x.*=y.*"]), "a b c y.v y.k");
        assert_eq!(all(&["a=b", "b=a"]), "b a c x.q x.k");
        assert_eq!(all(&["*.q=*.k", "*.k=*.q"]), "a b c x.k x.q");
        assert_eq!(all(&["a=b", "b=c", "c=a"]), "b c a x.q x.k");
        assert_eq!(all(&["c=z", "a=b", "b=a", "a=y"]), "b y z x.q x.k");
        assert_eq!(all(&["{p:a,b}=w.{p}", "w.a=a"]), "a w.b c x.q x.k");
        assert_eq!(all(&["a=a"]), "a b c x.q x.k");
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
        assert_eq!(says(&["{l}=a.{m}"]), "{l}=a.{m}: OLD has no {m}");
        let class = "m.[0-11]=a: [0-11] is a class of characters, not of numbers";
        assert_eq!(says(&["m.[0-11]=a"]), class);
    }
}
