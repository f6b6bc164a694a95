//! What is typed, made strict before clap looks.
//!
//! The main job has no subcommand of its own (`tslice data.npy '[::2]'`), and an index may begin
//! with a minus sign. Both are settled here, so that clap itself is strict, and its suggestions
//! for mistyped flags stay right.

use std::ffi::{OsStr, OsString};

/// The name under which [`normalize`] hands the main job to clap; nobody types it.
pub(crate) const SLICE: &str = "slice";

/// Put the main job's name before the first argument, where that is no subcommand.
pub(crate) fn insert_slice(command: &clap::Command, args: &mut Vec<OsString>) {
    let top_level = |first: &str| {
        matches!(first, "-h" | "--help" | "-V" | "--version")
            || command.get_subcommands().any(|sub| sub.get_name() == first && first != SLICE)
    };
    if args.get(1).is_some_and(|first| !first.to_str().is_some_and(top_level)) {
        args.insert(1, SLICE.into());
    }
}

/// The command line as clap can parse it: where the first argument is no
/// subcommand, the main job's is put before it; an argument that begins with a minus sign and a
/// digit, white space between them or not, is no flag, but the value of the flag before it (`--end -3` becomes `--end=-3`) or else
/// an index, and goes behind a `--`, with whatever else is no flag from there on.
pub(crate) fn normalize(
    command: &clap::Command,
    args: impl Iterator<Item = OsString>,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    insert_slice(command, &mut args);
    let Some(subcommand) = args.get(1).and_then(|name| command.find_subcommand(name)) else {
        return args;
    };
    let takes_value = |flag: &OsString| {
        let is_flag = |arg: &clap::Arg| match flag.as_encoded_bytes() {
            [b'-', b'-', long @ ..] => arg.get_long().is_some_and(|name| name.as_bytes() == long),
            [b'-', short] => arg.get_short() == Some(char::from(*short)),
            _ => false,
        };
        subcommand.get_arguments().any(|arg| arg.get_action().takes_values() && is_flag(arg))
    };
    // `-0` of `--files-from`
    let is_digit_flag = |arg: &OsString| match arg.as_encoded_bytes() {
        [b'-', digit @ b'0'..=b'9'] => {
            let short = Some(char::from(*digit));
            subcommand.get_arguments().any(|arg| arg.get_short() == short)
        }
        _ => false,
    };
    let (mut flags, mut behind) = (Vec::<OsString>::new(), Vec::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let negative = is_negative(&arg);
        let digit_flag = is_digit_flag(&arg);
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

/// Whether an argument begins like a negative number: `-1`, `- 1`.
fn is_negative(arg: &OsStr) -> bool {
    let number = arg.as_encoded_bytes().strip_prefix(b"-").map(<[u8]>::trim_ascii_start);
    number.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

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
}
