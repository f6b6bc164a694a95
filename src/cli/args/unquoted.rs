//! Words that the shell took apart: an index that was not quoted, `data.npy [0, 1]`, and a list with
//! blanks, `--axis 0 1`, whose rest must not be taken for an index.

use std::ffi::OsString;
use std::path::Path;

/// The index that words make together which the shell parted at its spaces: from one whose brackets
/// are open, or that ends with a comma, to where it is complete.
pub(crate) fn unquoted<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let mut words = words.into_iter();
    let mut index = words.find(|word| is_begun(word))?.to_owned();
    for word in words {
        index.push(' ');
        index.push_str(word);
        if !is_begun(&index) {
            return Some(index);
        }
    }
    None
}

/// Whether more must follow.
fn is_begun(index: &str) -> bool {
    let count = |brackets: [char; 2]| index.chars().filter(|c| brackets.contains(c)).count();
    let is_open = count(['[', '(']) > count([']', ')']);
    is_open || index.ends_with(',') && index != ","
}

/// A list that was written with blanks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartedList {
    /// The flag and its value, as they were typed.
    pub(crate) flag: String,
    /// What follows.
    pub(crate) word: String,
    /// The flag with all of the list, where it takes more than one number.
    pub(crate) whole: Option<String>,
    /// Whether the word would be an index.
    pub(crate) is_index: bool,
}

/// The list with blanks among the words behind the name of a command: integers that stand directly behind
/// the value of a flag that takes a list, or behind `-T`. In the place of an input they may be the name of a
/// file that is there.
pub(super) fn parted_list(command: &clap::Command, words: &[OsString]) -> Option<PartedList> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let words = &words[..end];
    let of_long = |name| command.get_arguments().find(|arg| arg.get_long() == Some(name));
    let of_short = |name| command.get_arguments().find(|arg| arg.get_short() == Some(name));
    let index_at = command.get_positionals().position(|arg| arg.get_id() == "text");
    let takes_value = |arg: &clap::Arg| arg.get_action().takes_values();
    let (mut positionals, mut at) = (0, 0);
    while let Some(&word) = words.get(at) {
        at += 1;
        // the flag and its value, where it takes a list
        let mut list: Option<(&clap::Arg, &str)> = None;
        let mut flag = word.to_owned();
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let Some(arg) = of_long(name).filter(|arg| takes_value(arg)) else { continue };
            let value = match value {
                Some(value) => value,
                None => {
                    let value = words.get(at).copied().unwrap_or_default();
                    if value.starts_with("--") {
                        continue;
                    }
                    flag = format!("{word} {value}");
                    at += 1;
                    value
                }
            };
            list = Some((arg, value)).filter(|(arg, _)| list_kind(arg).is_some());
        } else if word.len() > 1 && word.starts_with('-') && !is_numbers(word) {
            let mut shorts = word[1..].char_indices().map(|(at, char)| (at + 1, of_short(char)));
            let last = shorts.clone().find(|(_, arg)| arg.is_some_and(takes_value));
            match last.or_else(|| shorts.next_back()) {
                Some((place, Some(arg))) if takes_value(arg) => {
                    at += usize::from(place + 1 == word.len());
                }
                Some((_, Some(arg))) if arg.get_id() == "reverse_axes" => list = Some((arg, "")),
                _ => {}
            }
        } else {
            positionals += 1;
        }
        let (Some((arg, value)), Some(&next)) = (list, words.get(at)) else { continue };
        let is_flag = next.len() == 2 && next.chars().nth(1).and_then(of_short).is_some();
        if !is_numbers(next) || next.starts_with('-') && is_flag {
            continue;
        }
        let is_index = index_at == Some(positionals);
        if !is_index && Path::new(next).exists() {
            continue;
        }
        let rest = words[at..].iter().take_while(|word| is_numbers(word));
        let numbers = std::iter::once(value).chain(rest.copied());
        let numbers = numbers.map(|word| word.trim_matches(['[', ']', '(', ')', ',', ' ']));
        let numbers: Vec<&str> = numbers.filter(|word| !word.is_empty()).collect();
        let is_list = list_kind(arg) == Some(ListKind::Several);
        let whole = is_list && numbers.iter().all(|numbers| is_numbers(numbers));
        let name = arg.get_long().unwrap_or("transpose");
        let whole = whole.then(|| format!("--{name} {}", numbers.join(",")));
        return Some(PartedList { flag, word: next.to_owned(), whole, is_index });
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListKind {
    /// It takes a number, as the same flag of other commands takes several.
    One,
    Several,
}

/// Whether a flag takes a list of numbers, by the name of its value.
fn list_kind(arg: &clap::Arg) -> Option<ListKind> {
    let names = arg.get_value_names().unwrap_or_default();
    match names.first()?.as_str() {
        "LIST" | "AXES" | "SHAPE" | "A[,B...]" | "N,N,..." | "LO,HI" => Some(ListKind::Several),
        "AXIS" | "[NAME=]AXIS" => Some(ListKind::One),
        _ => None,
    }
    .or_else(|| (arg.get_id() == "reverse_axes").then_some(ListKind::Several))
}

/// Whether a word is an integer, or several with commas between them.
fn is_numbers(word: &str) -> bool {
    let word = word.strip_suffix(',').unwrap_or(word);
    word.split(',').map(str::trim).all(|number| {
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{parted_list, unquoted};
    use crate::cli::args::command;

    #[test]
    fn lists_with_blanks_are_found() {
        let parted = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let definition = command();
            let command = definition.find_subcommand(words[0]).unwrap();
            let words: Vec<_> = words[1..].iter().map(Into::into).collect();
            parted_list(command, &words).map(|it| it.whole.unwrap_or(it.word))
        };
        for (line, whole) in [
            ("view a.npy --reduce mean --axis 0 1 -o m.npy", "--axis 0,1"),
            ("view --axis=0 1 a.npy", "--axis 0,1"),
            ("split a.npy --at 10 20 30", "--at 10,20,30"),
            ("split a.npy --sizes [10,20] -30", "--sizes 10,20,-30"),
            ("split a.npy --axis 0 1 --parts 2", "1"),
            ("slice a.bin --shape 3 4", "--shape 3,4"),
            ("slice a.npy -T 0,3,1,2", "--transpose 0,3,1,2"),
            ("slice a.npy -fT 1", "--transpose 1"),
            ("slice a.npy --transpose 1 0", "--transpose 1,0"),
            ("slice a.npy --begin 0 1 --end 1,2", "--begin 0,1"),
            ("assign a.npy --fill 0 --strides 1 2", "--strides 1,2"),
            ("diff a.bin b.bin --shape 3 4", "--shape 3,4"),
            ("explain --shape 3 4", "--shape 3,4"),
            ("concat a.bin b.bin --shape 3 4", "--shape 3,4"),
            ("slice a.npy --chunks 4 4 -o a.zarr", "--chunks 4,4"),
        ] {
            assert_eq!(parted(line).as_deref(), Some(whole), "{line}");
        }
        for line in [
            "view a.npy --axis 0 [1]",
            "view a.npy --axis 0 1:",
            "view a.npy 1 --axis 0",
            "view a.npy --axis 0 --edge 3 1",
            "view a.npy --precision 3 1",
            "slice a.npy -T -j 2 1",
            "slice a.npy -oT 1",
            "slice a.npy -T -- 1",
            "concat --axis 0 -0 --files-from a",
            "split a.npy --parts 3 1",
        ] {
            assert_eq!(parted(line), None, "{line}");
        }
    }

    #[test]
    fn parted_indices_are_joined() {
        let joined = |words: &str| unquoted(words.split(' '));
        assert_eq!(joined("a.npy [0, 1:] -o b.npy").as_deref(), Some("[0, 1:]"));
        assert_eq!(joined("a.npy 0, [1, 2], 3").as_deref(), Some("0, [1, 2], 3"));
        assert_eq!(joined("a.npy ( 1, 2 )").as_deref(), Some("( 1, 2 )"));
        assert_eq!(joined("a.npy [0] b.npy"), None);
        assert_eq!(joined("a.npy [0, 1"), None);
    }
}
