//! New names of tensors: `OLD=NEW`. OLD is a pattern, and NEW may use its pieces.
//!
//! ```text
//! model.layers.{l}.mlp.{p}=blk.{l}.ffn_{p}    model.layers.7.mlp.up  ─►  blk.7.ffn_up
//! ```
//!
//! Several renames are applied one after the other, each to the names that earlier renames made. Renames that make a
//! circle (`a=b` and `b=a`), and all renames of a table, are one step: none of them changes a name that another rename of
//! the step made.
//!
//! A name may itself have a `=` or a `*`. So an OLD that is the exact name of a tensor means that tensor, and a rename is
//! divided at the first `=` whose OLD names a tensor. Exact names are found by hashing, since a file of renames may have
//! a line for each tensor.

use std::collections::HashMap;
use std::ops::Range;

use crate::input::{CarryError, Notes, Pattern, SelectFault};

/// A new name for tensors, `OLD=NEW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewName {
    pub text: String,
    /// The length of OLD in bytes; `None` if any `=` may be the one after OLD.
    pub old: Option<usize>,
    /// Whether the rename is from a table, whose names need not occur. The renames of a table come
    /// first.
    pub in_table: bool,
}

impl NewName {
    pub fn of_pair(old: &str, new: &str) -> NewName {
        NewName { text: format!("{old}={new}"), old: Some(old.len()), in_table: false }
    }

    /// OLD and NEW for each `=` that may separate them.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let equals = self.text.match_indices('=').map(|(at, _)| at);
        let meant = equals.filter(|at| self.old.is_none_or(|old| old == *at));
        meant.map(|at| (&self.text[..at], &self.text[at + 1..]))
    }

    /// OLD and NEW at the first `=`.
    fn first_pair(&self) -> Option<(&str, &str)> {
        self.pairs().next()
    }
}

impl From<String> for NewName {
    fn from(text: String) -> NewName {
        NewName { text, old: None, in_table: false }
    }
}

/// A new name for tensors with these numbers.
pub(super) struct Rename<'r> {
    pub(super) range: Range<usize>,
    pub(super) name: &'r NewName,
}

/// The new names of tensors, by the numbers of the tensors that change. `names` are the old names; with several files a
/// name may repeat.
pub(super) fn rename(
    names: &[Option<&str>],
    renames: &[NewName],
    notes: &Notes,
) -> Result<HashMap<usize, String>, SelectFault> {
    let of_all = |name| Rename { range: 0..names.len(), name };
    rename_some(names, &Vec::from_iter(renames.iter().map(of_all)), notes)
}

/// The new names of tensors, where each rename applies to some of the tensors.
pub(super) fn rename_some(
    names: &[Option<&str>],
    renames: &[Rename<'_>],
    notes: &Notes,
) -> Result<HashMap<usize, String>, SelectFault> {
    let mut unused = 0u64;
    let circles = circles(renames);
    let mut names = Names::new(names, renames);
    for (by, Rename { range, name }) in renames.iter().enumerate() {
        let is_open = |number: &usize| match names.made.get(number) {
            Some(made) => circles[by].is_none() || circles[made.by] != circles[by],
            None => true,
        };
        let made = match names.apply(range, name, is_open) {
            Err(SelectFault::RenameNotFound { .. }) if name.in_table => {
                unused += 1;
                continue;
            }
            made => made?,
        };
        for (number, name) in made {
            names.give(number, name, by);
        }
    }
    if unused > 0 {
        let lines = if unused == 1 {
            "line of the table of new names matches"
        } else {
            "lines of the table of new names match"
        };
        notes.add(format_args!("{unused} {lines} no tensor"));
    }
    Ok(names.made.into_iter().map(|(number, made)| (number, made.name)).collect())
}

/// The names of tensors, of which some are new.
struct Names<'n> {
    old: &'n [Option<&'n str>],
    made: HashMap<usize, MadeName>,
    /// The tensors that have or had a name that a rename may apply to.
    asked: HashMap<&'n str, Vec<usize>>,
}

/// A new name, and the rename that made it.
struct MadeName {
    name: String,
    by: usize,
}

impl<'n> Names<'n> {
    fn new(old: &'n [Option<&'n str>], renames: &[Rename<'n>]) -> Names<'n> {
        let olds = renames.iter().flat_map(|it| it.name.pairs());
        let mut asked: HashMap<_, Vec<usize>> = olds.map(|(old, _)| (old, Vec::new())).collect();
        for (number, name) in old.iter().enumerate() {
            if let Some(numbers) = name.and_then(|name| asked.get_mut(name)) {
                numbers.push(number);
            }
        }
        Names { old, made: HashMap::new(), asked }
    }

    fn get(&self, number: usize) -> Option<&str> {
        match self.made.get(&number) {
            Some(made) => Some(&made.name),
            None => *self.old.get(number)?,
        }
    }

    fn give(&mut self, number: usize, name: String, by: usize) {
        if let Some(numbers) = self.asked.get_mut(name.as_str()) {
            numbers.push(number);
        }
        self.made.insert(number, MadeName { name, by });
    }

    /// The tensors within a range that a rename applies to, by their numbers, with their new names.
    fn apply(
        &self,
        range: &Range<usize>,
        new_name: &NewName,
        is_open: impl Fn(&usize) -> bool,
    ) -> Result<Vec<(usize, String)>, SelectFault> {
        let Some((first, _)) = new_name.first_pair() else {
            return Err(SelectFault::NoRename(new_name.text.clone()));
        };
        for (old, new) in new_name.pairs() {
            let there = self.asked.get(old).into_iter().flatten().copied();
            let is_it = |number: &usize| range.contains(number) && self.get(*number) == Some(old);
            let same = there.filter(|number| is_it(number) && is_open(number));
            let same: Vec<_> = same.map(|number| (number, new.to_owned())).collect();
            if !same.is_empty() {
                return Ok(same);
            }
        }
        let mut fault = None;
        for (old, new) in new_name.pairs() {
            let carried = self.carried(range, old, new, &is_open);
            match carried {
                Ok(carried) if carried.is_empty() => {}
                Ok(carried) => return Ok(carried),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        let rename = new_name.text.clone();
        Err(match fault {
            Some(fault) => {
                let reason = fault.worded("OLD", "NEW");
                SelectFault::BadRename { rename, reason, hint: fault.hint() }
            }
            None => {
                let nameless = *self.old == [None];
                SelectFault::RenameNotFound { rename, old: first.to_owned(), nameless }
            }
        })
    }

    /// The new names that a pattern gives to the names that it matches.
    fn carried(
        &self,
        range: &Range<usize>,
        old: &str,
        new: &str,
        is_open: impl Fn(&usize) -> bool,
    ) -> Result<Vec<(usize, String)>, CarryError> {
        let pattern = Pattern::carrying(old).map_err(CarryError::Pattern)?;
        if !pattern.has_pieces() {
            return Ok(Vec::new());
        }
        let template = pattern.template(new, true)?;
        let carried = range.clone().filter(is_open).filter_map(|number| {
            let name = self.get(number)?;
            match pattern.carry(&template, name) {
                Some(made) => Some(Ok((number, made))),
                None if pattern.is_match(name) => Some(Err(CarryError::NoSum(name.to_owned()))),
                None => None,
            }
        });
        carried.collect()
    }
}

/// The number of the circle that each rename is in, if any. In a circle, the NEW of each rename is the OLD of the next.
/// All renames of a table count as one circle.
fn circles(renames: &[Rename<'_>]) -> Vec<Option<usize>> {
    let pairs = renames.iter().map(|it| it.name.first_pair().unwrap_or((&it.name.text, "")));
    let pairs = Vec::from_iter(pairs);
    let scope = |at: usize| (renames[at].range.start, renames[at].range.end);
    let table = renames.iter().take_while(|it| it.name.in_table).count();
    let olds = (table..pairs.len()).rev().map(|at| ((scope(at), pairs[at].0), at));
    let olds: HashMap<_, usize> = olds.collect();
    let next = |at: usize| olds.get(&(scope(at), pairs[at].1)).copied();
    let mut circles = vec![None; pairs.len()];
    circles[..table].fill(Some(0));
    let mut seen_from = vec![None; pairs.len()];
    for start in table..pairs.len() {
        let mut at = Some(start);
        while let Some(one) = at.filter(|&at| seen_from[at].is_none()) {
            seen_from[one] = Some(start);
            at = next(one);
        }
        // the walk has returned to one of its own renames: all renames from there on are a circle
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
        let renames = Vec::from_iter(renames.iter().map(|it| NewName::from((*it).to_owned())));
        let mut all: Vec<_> = rename(&NAMES, &renames, &Notes::default())?.into_iter().collect();
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
        // exact names first, then the `=` after a name that exists
        expect(&["x=a*=b"], &[(2, "b")]);
        expect(&["head=tail"], &[(3, "tail")]);
        expect(&["*=all"], &[(4, "all")]);
        expect(&["he**=**x"], &[(3, "adx")]);
    }

    #[test]
    fn each_applies_to_what_those_before_it_made() {
        let names = ["a", "b", "c", "x.q", "x.k"].map(Some);
        let all = |renames: &[&str]| -> String {
            let renames = Vec::from_iter(renames.iter().map(|it| NewName::from((*it).to_owned())));
            let new = rename(&names, &renames, &Notes::default()).unwrap();
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
    fn a_table_is_applied_at_once() {
        let names = ["a", "b", "l.0", "l.2"].map(Some);
        let table = |pairs: &[(&str, &str)], typed: &[&str]| -> Vec<String> {
            let pairs = pairs.iter().map(|(old, new)| NewName::of_pair(old, new));
            let mut renames = Vec::from_iter(pairs.map(|it| NewName { in_table: true, ..it }));
            renames.extend(typed.iter().map(|it| NewName::from((*it).to_owned())));
            let new = rename(&names, &renames, &Notes::default()).unwrap();
            let name =
                |at: usize| new.get(&at).map_or(names[at].unwrap(), String::as_str).to_owned();
            (0..names.len()).map(name).collect()
        };
        assert_eq!(table(&[("a", "b"), ("b", "c"), ("x", "y")], &[]), ["b", "c", "l.0", "l.2"]);
        assert_eq!(table(&[("l.0", "l.2"), ("l.2", "l.4")], &[]), ["a", "b", "l.2", "l.4"]);
        assert_eq!(table(&[("l.{n}", "l.{n+2}"), ("*", "x.*")], &[])[1..], ["x.b", "l.2", "l.4"]);
        assert_eq!(table(&[("a", "z"), ("*", "x.*")], &["z=y"])[..2], ["y", "x.b"]);
    }

    #[test]
    fn the_names_of_pairs_hold_what_they_like() {
        let names = ["x", "x=a", "c"].map(Some);
        let pairs = [("x=a", "b"), ("c", "x"), ("x", "c=")];
        let renames = pairs.map(|(old, new)| NewName::of_pair(old, new));
        let new = rename(&names, &renames, &Notes::default()).unwrap();
        assert_eq!([&new[&0], &new[&1], &new[&2]], ["c=", "b", "c="]);
        assert_eq!(
            rename(&names, &["x=a=b".to_owned().into()], &Notes::default()).unwrap(),
            [(0, "a=b".to_owned())].into()
        );
    }

    #[test]
    fn many_renames_of_many_tensors_take_one_look_at_each() {
        let names = Vec::from_iter((0..50_000).map(|number| format!("old.{number}")));
        let pair = |name: &String| NewName::of_pair(name, &name.replace("old", "new"));
        let renames = Vec::from_iter(names.iter().map(pair));
        let names = Vec::from_iter(names.iter().map(|name| Some(name.as_str())));
        let new = rename(&names, &renames, &Notes::default()).unwrap();
        assert_eq!(new[&49_999], "new.49999");
    }

    #[test]
    fn wrong_renames_are_told() {
        let says = |renames: &[&str]| renamed(renames).unwrap_err().to_string();
        assert_eq!(says(&["head"]), "head: OLD=NEW is needed");
        assert_eq!(
            says(&["x.*=y.*"]),
            "x.*=y.* has no effect: no chosen tensor is named \"x.*\", or another rename applies to it"
        );
        let uneven = "model.*=b: OLD and NEW must have the same number of '*'";
        assert_eq!(says(&["model.*=b"]), uneven);
        assert_eq!(says(&["{l}=a.{m}"]), "{l}=a.{m}: OLD has no {m}");
        let sum = "hea{l}={l+1}: \"head\" has no number there that NEW can add to";
        assert_eq!(says(&["hea{l}={l+1}"]), sum);
        let class = "m.[0-11]=a: [0-11] is a class of characters, not of numbers";
        assert_eq!(says(&["m.[0-11]=a"]), class);
    }
}
