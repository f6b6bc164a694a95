//! Groups of tensors by name, as `layers.{l}.experts.{e}.up` are for the whole tensor
//! `layers.{l}.experts.up`.
//!
//! The names of a group agree in the pieces that the name of the whole has. The other pieces are
//! the key of a member in its group: numbers, or texts in the order in which they are listed. All
//! groups have the same keys: one member for each combination.

use std::collections::HashMap;

use super::{CarryError, NameTemplate, Pattern, is_special};
use crate::error::Fault;
use crate::tensor::shortened;

/// The most texts that a hint lists.
const MOST_TEXTS: usize = 20;

/// The pattern of members' names, and the pattern of the names of wholes.
pub(crate) struct Grouping<'p> {
    text: &'p str,
    members: Pattern<'p>,
    whole: NameTemplate,
    /// The numbers of the pieces that only members' names have.
    key_pieces: Vec<usize>,
}

/// The pattern of wholes' names, and the names of the parts that each whole is cut into.
pub struct PartNaming<'p> {
    pub(crate) text: &'p str,
    wholes: Pattern<'p>,
    parts: NameTemplate,
    /// The texts that name the parts; if empty, numbers do.
    texts: Vec<String>,
}

/// Groups of names, all of the same size, as numbers among the names searched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// The members of each group, in order; the groups are in the order of their first names.
    pub(crate) members: Vec<u32>,
    pub(crate) size: usize,
}

/// Why names make no groups.
#[derive(Debug, thiserror::Error)]
pub enum GroupFault {
    /// The pattern of members and the name of wholes do not fit each other.
    #[error("{reason}")]
    Names { pattern: String, into: String, reason: String, hint: Option<String> },
    /// A text that is not a number, in a piece that has no list of texts.
    #[error(
        "{text:?} in {:?} is not a number, and the order of texts is known only from a list",
        shortened(name)
    )]
    NoNumber {
        name: String,
        text: String,
        /// The pattern with the found texts listed in the piece, if the piece has a name.
        listed: Option<String>,
    },
    /// A missing name.
    #[error("{:?} is missing: {}", shortened(name), match like {
        Some(like) => format!("there is a {:?}", shortened(like)),
        None => "a group has all numbers from 0 on, and all listed texts".to_owned(),
    })]
    Missing {
        name: String,
        /// The name with the same key in the first group, if it has one.
        like: Option<String>,
    },
    /// A name whose key does not occur in the first group.
    #[error("{:?} is extra: there is no {:?}", shortened(name), shortened(like))]
    Extra { name: String, like: String },
    /// Two names with the same key in a group.
    #[error(
        "{:?} and {:?} have the same position in their group",
        shortened(name),
        shortened(other)
    )]
    Twice { name: String, other: String },
}

impl Fault for GroupFault {}

/// A name that belongs to a group.
struct GroupedName {
    group: u32,
    /// The number among all names, and among the names that belong to groups.
    number: u32,
    at: u32,
}

/// The values that a piece has in a group.
enum PieceValues {
    /// All numbers below this one.
    Count(u64),
    /// A list of numbers, ascending.
    Numbers(Vec<u64>),
}

impl PieceValues {
    fn at(&self, rank: usize) -> Option<u64> {
        match self {
            PieceValues::Count(count) => Some(rank as u64).filter(|number| number < count),
            PieceValues::Numbers(numbers) => numbers.get(rank).copied(),
        }
    }

    fn has(&self, number: u64) -> bool {
        match self {
            PieceValues::Count(count) => number < *count,
            PieceValues::Numbers(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

/// A found name with its key.
struct Member<'n> {
    group: u32,
    name: &'n str,
    key: &'n [u64],
}

impl<'p> Grouping<'p> {
    /// Parse the pattern of members' names and the name of the whole that each group makes.
    pub(crate) fn new(text: &'p str, into: &str) -> Result<Grouping<'p>, GroupFault> {
        let unfit = |error| GroupFault::unfit(text, into, error);
        let members = Pattern::carrying(text).map_err(CarryError::Pattern).map_err(unfit)?;
        let whole = members.template(into, false).map_err(unfit)?;
        let all = 0..members.pieces.len();
        let key_pieces: Vec<usize> = all.filter(|&piece| !whole.carries(piece)).collect();
        if key_pieces.is_empty() {
            let reason =
                "PATTERN needs a piece that is not in NAME: tensors are joined along that piece";
            return Err(GroupFault::names(text, into, reason.to_owned(), None));
        }
        Ok(Grouping { text, members, whole, key_pieces })
    }

    pub(crate) fn is_match(&self, name: &str) -> bool {
        self.members.is_match(name)
    }

    /// The name of the whole that a member belongs to.
    pub(crate) fn whole(&self, name: &str) -> Option<String> {
        self.members.carry(&self.whole, name)
    }

    /// The groups of the names that match the pattern, in the order of their first members.
    pub(crate) fn find(&self, names: &[&str]) -> Result<Groups, GroupFault> {
        let mut groups: HashMap<Vec<&str>, u32> = HashMap::new();
        let mut found = Vec::new();
        // the keys of the found names, one after the other
        let mut keys: Vec<u64> = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let Some(spans) = self.members.spans(name) else { continue };
            let text = |piece: usize| name.get(spans[piece].clone()).unwrap_or_default();
            let carried = (0..spans.len()).filter(|piece| !self.key_pieces.contains(piece));
            let next = groups.len() as u32;
            let group = *groups.entry(carried.map(text).collect()).or_insert(next);
            for &piece in &self.key_pieces {
                let value = self.key_value(piece, text(piece));
                keys.push(value.ok_or_else(|| self.no_number(piece, name, text(piece), names))?);
            }
            found.push(GroupedName { group, number: number as u32, at: found.len() as u32 });
        }
        drop(groups);
        let key = |found: &GroupedName| self.key_of(&keys, found);
        found.sort_unstable_by(|one, other| {
            one.group.cmp(&other.group).then_with(|| key(one).cmp(key(other)))
        });
        let size = self.check(names, &found, &keys)?;
        Ok(Groups { members: found.iter().map(|found| found.number).collect(), size })
    }

    /// The key of a found name, in the list of all keys.
    fn key_of<'s>(&self, keys: &'s [u64], found: &GroupedName) -> &'s [u64] {
        let width = self.key_pieces.len();
        &keys[found.at as usize * width..][..width]
    }

    /// The value of a text in a key, for a piece.
    fn key_value(&self, piece: usize, text: &str) -> Option<u64> {
        let texts = &self.members.pieces[piece].texts;
        if !texts.is_empty() {
            return texts.iter().position(|listed| listed == text).map(|at| at as u64);
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // a number that is too large is far from all others
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    }

    fn no_number(&self, piece: usize, name: &str, text: &str, names: &[&str]) -> GroupFault {
        let mut texts: Vec<&str> = Vec::new();
        for name in names {
            let span = self.members.spans(name).map(|spans| spans[piece].clone());
            let text = span.and_then(|span| name.get(span));
            texts.extend(text.filter(|text| !texts.contains(text)));
            if texts.len() > MOST_TEXTS {
                break;
            }
        }
        let plain = |text: &&str| !text.contains(is_special);
        let piece = &self.members.pieces[piece];
        let key = piece.name.filter(|_| texts.len() <= MOST_TEXTS && texts.iter().all(plain));
        let listed = key.map(|key| {
            let listed = format!("{{{key}:{}}}", texts.join(","));
            self.text.replacen(piece.whole, &listed, 1)
        });
        GroupFault::NoNumber { name: name.to_owned(), text: text.to_owned(), listed }
    }

    /// Check that each group has exactly the same members, and return their number.
    fn check(
        &self,
        names: &[&str],
        found: &[GroupedName],
        keys: &[u64],
    ) -> Result<usize, GroupFault> {
        let found = found.iter().map(|it| (it.group, names[it.number as usize], it));
        let found =
            found.map(|(group, name, it)| Member { group, name, key: self.key_of(keys, it) });
        let found: Vec<Member<'_>> = found.collect();
        let mut groups = found.chunk_by(|one, other| one.group == other.group);
        let Some(first) = groups.next() else { return Ok(0) };
        let all = self.key_pieces.iter().enumerate().map(|(at, &piece)| {
            let own = first.iter().map(|member| member.key[at]);
            let piece = &self.members.pieces[piece];
            match piece.texts.len() {
                0 if piece.is_of_any_number() => {
                    let mut numbers: Vec<u64> = own.collect();
                    numbers.sort_unstable();
                    numbers.dedup();
                    PieceValues::Numbers(numbers)
                }
                0 => PieceValues::Count(own.max().unwrap_or(0).saturating_add(1)),
                listed => PieceValues::Count(listed as u64),
            }
        });
        let all: Vec<PieceValues> = all.collect();
        self.check_group(first, None, &all)?;
        groups.try_for_each(|group| self.check_group(group, Some(first), &all))?;
        Ok(first.len())
    }

    /// Check that a group has a member for each combination of the pieces' values, as the `first`
    /// one has.
    fn check_group(
        &self,
        group: &[Member<'_>],
        first: Option<&[Member<'_>]>,
        all: &[PieceValues],
    ) -> Result<(), GroupFault> {
        let mut ranks = vec![0; all.len()];
        let mut expected = key_at(&ranks, all);
        for (at, Member { name, key, .. }) in group.iter().enumerate() {
            let name = (*name).to_owned();
            let before = at.checked_sub(1).map(|before| &group[before]);
            if let Some(other) = before.filter(|before| before.key == *key) {
                return Err(GroupFault::Twice { name, other: other.name.to_owned() });
            }
            let is_extra = key.iter().zip(all).any(|(value, all)| !all.has(*value));
            if let Some(first) = first.filter(|_| is_extra) {
                return Err(GroupFault::Extra { name, like: self.sibling(first[0].name, key) });
            }
            if expected.as_deref() != Some(*key) {
                break;
            }
            expected = next(&mut ranks, all);
        }
        let Some(expected) = expected else { return Ok(()) };
        let like = first.and_then(|first| first.iter().find(|it| it.key == expected));
        let like = like.map(|member| member.name.to_owned());
        Err(GroupFault::Missing { name: self.sibling(group[0].name, &expected), like })
    }

    /// The name of the member of the same group with this key.
    fn sibling(&self, name: &str, key: &[u64]) -> String {
        let spans = self.members.spans(name).unwrap_or_default();
        let mut sibling = name.to_owned();
        for (&piece, &value) in self.key_pieces.iter().zip(key).rev() {
            let Some(span) = spans.get(piece).cloned() else { continue };
            let digits = if name[span.clone()].starts_with('0') { span.len() } else { 1 };
            let text = self.members.pieces[piece].texts.get(value as usize);
            let text = text.cloned().unwrap_or_else(|| format!("{value:0digits$}"));
            sibling.replace_range(span, &text);
        }
        sibling
    }
}

impl<'p> PartNaming<'p> {
    /// Parse the pattern of wholes' names and the names of their parts.
    pub fn new(text: &'p str, into: &str) -> Result<PartNaming<'p>, GroupFault> {
        let unfit = |error| GroupFault::unfit(text, into, error);
        let wholes = Pattern::carrying(text).map_err(CarryError::Pattern).map_err(unfit)?;
        let (parts, texts) = wholes.template_of_parts(into).map_err(unfit)?;
        Ok(PartNaming { text, wholes, parts, texts })
    }

    pub(crate) fn is_match(&self, name: &str) -> bool {
        self.wholes.is_match(name)
    }

    /// The number of parts that it has names for; `None` for any number.
    pub fn count(&self) -> Option<u64> {
        (!self.texts.is_empty()).then_some(self.texts.len() as u64)
    }

    /// The name of part `number` of the tensor `whole`.
    pub(crate) fn part(&self, whole: &str, number: u64) -> Option<String> {
        let text = self.texts.get(number as usize);
        let text = text.cloned().unwrap_or_else(|| number.to_string());
        self.wholes.carry_part(&self.parts, whole, &text)
    }
}

impl GroupFault {
    fn names(pattern: &str, into: &str, reason: String, hint: Option<String>) -> GroupFault {
        let pattern = pattern.to_owned();
        GroupFault::Names { pattern, into: into.to_owned(), reason, hint }
    }

    fn unfit(pattern: &str, into: &str, error: CarryError) -> GroupFault {
        GroupFault::names(pattern, into, error.worded("PATTERN", "NAME"), error.hint())
    }
}

/// The key at these ranks among the values of each piece.
fn key_at(ranks: &[usize], all: &[PieceValues]) -> Option<Vec<u64>> {
    ranks.iter().zip(all).map(|(&rank, all)| all.at(rank)).collect()
}

/// Step to the next key after these ranks, and return it.
fn next(ranks: &mut [usize], all: &[PieceValues]) -> Option<Vec<u64>> {
    for (at, values) in all.iter().enumerate().rev() {
        ranks[at] += 1;
        if values.at(ranks[at]).is_some() {
            return key_at(ranks, all);
        }
        ranks[at] = 0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(pattern: &str, into: &str, names: &[&str]) -> Result<(Groups, Vec<String>), String> {
        let grouping = Grouping::new(pattern, into).map_err(|fault| fault.to_string())?;
        let groups = grouping.find(names).map_err(|fault| fault.to_string())?;
        let firsts = groups.members.chunks(groups.size.max(1)).map(|members| members[0]);
        let wholes = firsts.map(|first| grouping.whole(names[first as usize]).unwrap());
        let wholes = wholes.collect();
        Ok((groups, wholes))
    }

    fn refused(pattern: &str, into: &str, names: &[&str]) -> String {
        groups(pattern, into, names).unwrap_err()
    }

    #[test]
    fn members_come_in_their_order_and_groups_in_that_of_the_file() {
        let names = ["h.1.v", "h.1.k", "x", "h.0.q", "h.0.v", "h.1.q", "h.0.k"];
        let (found, wholes) = groups("h.{l}.{p:q,k,v}", "h.{l}.qkv", &names).unwrap();
        assert_eq!((found.members, found.size), (vec![5, 1, 0, 3, 6, 4], 3));
        assert_eq!(wholes, ["h.1.qkv", "h.0.qkv"]);
        let mut names = Vec::from_iter((0..12).map(|number| format!("e.{number}.up")));
        names.sort();
        let names = Vec::from_iter(names.iter().map(String::as_str));
        let (found, wholes) = groups("e.{e}.{p}", "e.{p}", &names).unwrap();
        let members = found.members.iter().map(|&at| names[at as usize]);
        assert!(members.eq((0..12).map(|number| format!("e.{number}.up"))));
        assert_eq!(wholes, ["e.up"]);
        // by the first piece, then by the second
        let names = ["0.b", "0.a", "1.b", "1.a"];
        let (found, _) = groups("{n}.{p:a,b}", "all", &names).unwrap();
        assert_eq!((found.members, found.size), (vec![1, 0, 3, 2], 4));
        let (found, _) =
            groups("{p:a,b}.{n}", "all", &["a.007", "a.0", "b.7", "c.1"][3..]).unwrap();
        assert_eq!((found.members, found.size), (vec![], 0));
    }

    #[test]
    fn numbers_that_there_are_may_have_gaps() {
        let names = ["d.10.a", "d.2.a", "d.07.a", "d.2.b", "d.10.b", "d.7.b"];
        let (found, wholes) = groups("d.{i:*}.{k}", "{k}", &names).unwrap();
        assert_eq!((found.members, found.size), (vec![1, 2, 0, 3, 5, 4], 3));
        assert_eq!(wholes, ["a", "b"]);
        let any = |names: &[&str]| refused("{k}.{i:*}", "{k}", names);
        assert_eq!(any(&["a.1", "a.3", "b.1"]), "\"b.3\" is missing: there is a \"a.3\"");
        assert_eq!(any(&["a.1", "b.1", "b.3"]), "\"b.3\" is extra: there is no \"a.3\"");
        assert_eq!(
            any(&["a.1", "a.01"]),
            "\"a.01\" and \"a.1\" have the same position in their group"
        );
        let (found, _) = groups("{i:*}.{p:q,k}", "all", &["5.k", "3.q", "3.k", "5.q"]).unwrap();
        assert_eq!(found.members, [1, 2, 3, 0]);
        // names with other texts are in no group
        let (found, _) = groups("{k}.{i:*}", "{k}", &["a.1", "a.q", "a.1.2", "a.3"]).unwrap();
        assert_eq!(found.members, [0, 3]);
    }

    #[test]
    fn each_group_has_all_members_and_no_other() {
        let experts = |names: &[&str]| refused("{l}.e{e}", "{l}", names);
        let all = "a group has all numbers from 0 on, and all listed texts";
        assert_eq!(experts(&["a.e0", "a.e2"]), format!("\"a.e1\" is missing: {all}"));
        assert_eq!(experts(&["a.e1"]), format!("\"a.e0\" is missing: {all}"));
        assert_eq!(experts(&["a.e00", "a.e02"]), format!("\"a.e01\" is missing: {all}"));
        let large = "99999999999999999999999";
        assert_eq!(
            experts(&["a.e0", &format!("a.e{large}")]),
            format!("\"a.e1\" is missing: {all}")
        );
        assert_eq!(experts(&["a.e0", "a.e1", "b.e0"]), "\"b.e1\" is missing: there is a \"a.e1\"");
        assert_eq!(experts(&["a.e0", "b.e0", "b.e1"]), "\"b.e1\" is extra: there is no \"a.e1\"");
        assert_eq!(
            experts(&["a.e0", "a.e1", "a.e01"]),
            "\"a.e01\" and \"a.e1\" have the same position in their group"
        );
        let both = |names: &[&str]| refused("{l}.{p:q,k}.{e}", "{l}", names);
        assert_eq!(both(&["a.q.0"]), format!("\"a.k.0\" is missing: {all}"));
        assert_eq!(both(&["a.q.0", "a.k.0", "a.k.1"]), format!("\"a.q.1\" is missing: {all}"));
    }

    #[test]
    fn texts_without_an_order_ask_for_a_list() {
        let grouping = Grouping::new("h.{l}.{p}", "h.{l}").unwrap();
        let fault = grouping.find(&["h.0.1", "h.0.q", "h.1.k"]).unwrap_err();
        let says =
            "\"q\" in \"h.0.q\" is not a number, and the order of texts is known only from a list";
        assert_eq!(fault.to_string(), says);
        let GroupFault::NoNumber { listed: Some(listed), .. } = fault else { panic!("{fault}") };
        assert_eq!(listed, "h.{l}.{p:1,q,k}");
    }

    #[test]
    fn names_that_do_not_go_together_are_told() {
        let says = |pattern: &str, into: &str| refused(pattern, into, &[]);
        assert_eq!(says("h.{l}.{p}", "h.{m}"), "PATTERN has no {m}");
        assert_eq!(says("*.{p}", "h"), "PATTERN and NAME must have the same number of '*'");
        assert_eq!(says("{", "h"), "a '{' without a '}'");
        let none = "PATTERN needs a piece that is not in NAME: tensors are joined along that piece";
        assert_eq!(says("h.{l}", "{l}"), none);
        assert_eq!(says("h", "h"), none);
    }

    #[test]
    fn parts_are_numbered_or_take_the_texts() {
        let name = |pattern: &str, into: &str, whole: &str, number| {
            let naming = PartNaming::new(pattern, into).map_err(|fault| fault.to_string())?;
            Ok::<_, String>((naming.count(), naming.part(whole, number)))
        };
        let named = |count, name: &str| Ok((count, Some(name.to_owned())));
        assert_eq!(name("h.{l}.qkv", "h.{l}.{p:q,k,v}", "h.1.qkv", 2), named(Some(3), "h.1.v"));
        assert_eq!(name("h.{l}.up", "h.{l}.{e}.up.{e}", "h.1.up", 12), named(None, "h.1.12.up.12"));
        assert_eq!(name("qkv", "{p:a\\,b,c}", "qkv", 0), named(Some(2), "a,b"));
        assert_eq!(name("qkv", "{p}", "q", 0), Ok((None, None)));
        let says = |pattern: &str, into: &str| name(pattern, into, "", 0).unwrap_err();
        let none = "NAME needs a piece that is not in PATTERN: it names the parts";
        assert_eq!(says("h.{l}", "x.{l}"), none);
        assert_eq!(says("h.{l}", "x"), none);
        let two = "only one of {a} and {b} can name the parts: PATTERN must have the other";
        assert_eq!(says("h.{l}", "{l}.{a}.{b}"), two);
        assert_eq!(says("h", "{p:0..3}"), "{p:0..3} is not a list of texts");
    }
}
