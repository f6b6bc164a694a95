//! The words of a command line, normalised before clap parses them.
//!
//! The main job has no subcommand of its own (`tslice data.npy '[::2]'`), and an index may begin
//! with a minus sign. Both are settled here, so that clap itself is strict, and its suggestions
//! for mistyped flags stay right.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of the main job, under which [`normalize`] hands it to clap; nobody types it.
pub(crate) const SLICE: &str = "slice";

/// Put the name of the main job before the first argument, unless that is a subcommand.
pub(crate) fn insert_slice(command: &clap::Command, args: &mut Vec<OsString>) {
    let top_level = |first: &str| {
        matches!(first, "-h" | "--help" | "-V" | "--version")
            || command.get_subcommands().any(|sub| sub.get_name() == first && first != SLICE)
    };
    if args.get(1).is_some_and(|first| !first.to_str().is_some_and(top_level)) {
        args.insert(1, SLICE.into());
    }
}

/// Rewrite a command line so that clap can parse it. If the first argument is no subcommand, the
/// name of the main job is put before it. An argument that begins like a negative number is no
/// flag: it is the value of the flag before it (`--end -3` becomes `--end=-3`), or else an index,
/// which goes behind a `--` with all later arguments that are no flags.
pub(crate) fn normalize(
    command: &clap::Command,
    args: impl Iterator<Item = OsString>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    insert_slice(command, &mut args);
    let Some(subcommand) = args.get(1).and_then(|name| command.find_subcommand(name)) else {
        return args;
    };
    let takes_value = |flag: &OsString| takes_value(subcommand, flag);
    let mut flags = Vec::<OsString>::new();
    let mut behind = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let negative = is_negative(&arg);
        let digit_flag = is_digit_flag(subcommand, &arg);
        let is_flag = arg.as_encoded_bytes().starts_with(b"-") && arg != "-";
        let is_flag = is_flag && (!negative || digit_flag);
        match flags.last_mut() {
            _ if arg == "--" => behind.extend(args.by_ref()),
            Some(flag) if negative && takes_value(flag) => {
                if flag.as_encoded_bytes().starts_with(b"--") {
                    flag.push("=");
                }
                flag.push(arg);
            }
            Some(flag) if !behind.is_empty() && !is_flag && !takes_value(flag) => behind.push(arg),
            _ if negative && !digit_flag => behind.push(arg),
            _ => flags.push(arg),
        }
    }
    if !behind.is_empty() {
        flags.push("--".into());
        flags.extend(behind);
    }
    flags
}

fn takes_value(command: &clap::Command, flag: &OsStr) -> bool {
    let is_flag = |arg: &clap::Arg| match flag.as_encoded_bytes() {
        [b'-', b'-', long @ ..] => arg.get_long().is_some_and(|name| name.as_bytes() == long),
        [b'-', short] => arg.get_short() == Some(char::from(*short)),
        _ => false,
    };
    command.get_arguments().any(|arg| arg.get_action().takes_values() && is_flag(arg))
}

/// Whether a word is a flag of a digit, as `-0` of `--files-from`.
fn is_digit_flag(command: &clap::Command, word: &OsStr) -> bool {
    let [b'-', digit @ b'0'..=b'9'] = word.as_encoded_bytes() else { return false };
    command.get_arguments().any(|arg| arg.get_short() == Some(char::from(*digit)))
}

/// Whether an argument begins like a negative number: `-1`, `- 1`.
fn is_negative(arg: &OsStr) -> bool {
    let number = arg.as_encoded_bytes().strip_prefix(b"-").map(<[u8]>::trim_ascii_start);
    number.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
}

/// Join the words of an index that the shell divided at blanks: from a word with open brackets, or
/// a comma at its end, to where the index is complete.
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

fn is_begun(index: &str) -> bool {
    let count = |brackets: [char; 2]| index.chars().filter(|c| brackets.contains(c)).count();
    let is_open = count(['[', '(']) > count([']', ')']);
    is_open || index.ends_with(',') && index != ","
}

/// A list that was typed with blanks, so that its rest would be an index.
pub(crate) struct PartedList {
    /// The flag, its value, and the word behind it.
    pub(crate) typed: String,
    /// How a list is written, and how an index.
    pub(crate) hint: String,
}

/// Find a list with blanks in a command line, program name first: a word of integers right behind the value
/// of a flag that takes a list, or behind `-T`. Where no index is expected, it may also be the name of a file
/// that exists.
pub(crate) fn parted_list(args: &[OsString]) -> Option<PartedList> {
    let words = args.iter().take_while(|word| *word != "--");
    let words = Vec::from_iter(words.map(|word| word.to_str().unwrap_or_default()));
    // few lines have such a word, and to make the definition takes long
    let is_suspect = |at: &usize| {
        is_numbers(words[*at]) && words[at - 2..*at].iter().any(|word| word.starts_with('-'))
    };
    let mut suspects = (2..words.len()).filter(is_suspect).peekable();
    suspects.peek()?;
    let definition = super::command();
    let named = definition.find_subcommand(words[1]);
    let command = named.or_else(|| definition.find_subcommand(SLICE))?;
    let is_index = command.get_positionals().any(|arg| arg.get_id() == "text");
    suspects.find_map(|at| {
        let (first, flag, value) = match words[at - 1].split_once('=') {
            Some((flag, value)) => (at - 1, flag, value),
            None if words[at - 1] == "-T" => (at - 1, "-T", ""),
            None => (at - 2, words[at - 2], words[at - 1]),
        };
        let is_flag = |arg: &&clap::Arg| match flag.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long) && arg.get_action().takes_values(),
            None => value.is_empty() && flag == "-T" && arg.get_short() == Some('T'),
        };
        let arg = command.get_arguments().find(is_flag).filter(|_| !value.starts_with("--"))?;
        let names = arg.get_value_names().unwrap_or_default();
        let takes_several = match names.first().map_or("", |name| name.as_str()) {
            "AXIS" | "[NAME=]AXIS" => false,
            "LIST" | "AXES" | "SHAPE" | "A[,B...]" | "N,N,..." | "LO,HI" => true,
            _ if flag == "-T" => true,
            _ => return None,
        };
        let word = words[at];
        if is_digit_flag(command, word.as_ref()) || !is_index && Path::new(word).exists() {
            return None;
        }
        let rest = words[at..].iter().copied().take_while(|word| is_numbers(word));
        let numbers = std::iter::once(value).chain(rest);
        let numbers = numbers.map(|word| word.trim_matches(['[', ']', '(', ')', ',', ' ']));
        let numbers: Vec<&str> = numbers.filter(|word| !word.is_empty()).collect();
        let name = arg.get_long().unwrap_or("transpose");
        let is_list = takes_several && numbers.iter().all(|numbers| is_numbers(numbers));
        let list = is_list.then(|| format!("a list is written --{name} {}", numbers.join(",")));
        let index = is_index.then(|| format!("an index here in brackets, '[{}]'", word.trim()));
        let hint = Vec::from_iter([list, index].into_iter().flatten()).join("; ");
        Some(PartedList { typed: words[first..=at].join(" "), hint })
    })
}

fn is_numbers(word: &str) -> bool {
    let word = word.strip_suffix(',').unwrap_or(word);
    word.split(',').map(str::trim).all(|number| {
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    fn normalized(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        normalize(&command(), args).join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn the_main_job_needs_no_subcommand() {
        assert_eq!(normalized("tslice a.npy :"), "tslice slice a.npy :");
        assert_eq!(normalized("tslice -f a.npy"), "tslice slice -f a.npy");
        assert_eq!(normalized("tslice slice"), "tslice slice slice");
        assert_eq!(normalized("tslice info a.npy"), "tslice info a.npy");
        assert_eq!(normalized("tslice --help"), "tslice --help");
    }

    #[test]
    fn a_minus_sign_and_a_digit_begin_no_flag() {
        for (typed, meant) in [
            ("a.npy -3:", "a.npy -- -3:"),
            ("a.npy -3: -o b.npy -f", "a.npy -o b.npy -f -- -3:"),
            ("a.npy -3 4 -j 2 -5", "a.npy -j 2 -- -3 4 -5"),
            ("a.npy -o b.npy -- -3: -f", "a.npy -o b.npy -- -3: -f"),
            ("a.npy --begin 1 --end -3,4", "a.npy --begin 1 --end=-3,4"),
            ("a.npy --end=-3 -1", "a.npy --end=-3 -- -1"),
            ("a.npy -o -3.npy --name -1", "a.npy -o-3.npy --name=-1"),
            ("a.npy --begin --end 3", "a.npy --begin --end 3"),
            ("- -1 -", "- -- -1 -"),
        ] {
            assert_eq!(normalized(&format!("tslice {typed}")), format!("tslice slice {meant}"));
        }
        assert_eq!(
            normalized("tslice explain -1 --shape -5,6"),
            "tslice explain --shape=-5,6 -- -1"
        );
        assert_eq!(
            normalized("tslice concat -0 --axis -1 -3.npy -0 --axis -0"),
            "tslice concat -0 --axis=-1 -0 --axis=-0 -- -3.npy"
        );
    }

    #[test]
    fn white_space_may_follow_the_minus_sign() {
        for (typed, meant) in [
            (["a.npy", "- 1", "-f"], "slice a.npy -f -- - 1"),
            (["a.npy", "-\t 1:", "-f"], "slice a.npy -f -- -\t 1:"),
            (["a.npy", "--end", "- 3"], "slice a.npy --end=- 3"),
            (["a.npy", "- x", "-f"], "slice a.npy - x -f"),
        ] {
            let args = normalize(&command(), ["tslice"].iter().chain(&typed).map(OsString::from));
            assert_eq!(args[1..].join(" ".as_ref()).to_str(), Some(meant));
        }
    }

    #[test]
    fn lists_with_blanks_are_found() {
        let parted = |line: &str| {
            let words = std::iter::once("tslice").chain(line.split(' ')).map(OsString::from);
            parted_list(&Vec::from_iter(words)).map(|it| it.hint)
        };
        for (line, whole) in [
            ("view a.npy --reduce mean --axis 0 1 -o m.npy", "--axis 0,1"),
            ("view --axis=0 1 a.npy", "--axis 0,1"),
            ("split a.npy --at 10 20 30", "--at 10,20,30"),
            ("split a.npy --sizes [10,20] -30", "--sizes 10,20,-30"),
            ("split a.npy --axis 0 1 --parts 2", "'[1]'"),
            ("slice a.bin --shape 3 4", "--shape 3,4"),
            ("slice a.npy -T 0,3,1,2", "--transpose 0,3,1,2"),
            ("slice a.npy --transpose 1 0", "--transpose 1,0"),
            ("slice a.npy --begin 0 1 --end 1,2", "--begin 0,1"),
            ("assign a.npy --fill 0 --strides 1 2", "--strides 1,2"),
            ("diff a.bin b.bin --shape 3 4", "--shape 3,4"),
            ("explain --shape 3 4", "--shape 3,4"),
            ("concat a.bin b.bin --shape 3 4", "--shape 3,4"),
            ("slice a.npy --chunks 4 4 -o a.zarr", "--chunks 4,4"),
        ] {
            assert!(parted(line).unwrap().contains(whole), "{line}");
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
