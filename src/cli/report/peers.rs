//! Words of other programs, and the line that says the same to tslice: `ls` is `info`, `--overwrite` is
//! `--force`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use super::shell::quoted;
use crate::cli::args::{COMMANDS, SLICE, command};

/// The line that a command of another program stands for.
pub(super) fn of_command(args: &[OsString]) -> Option<String> {
    let typed = args.get(1)?.to_str()?;
    let line = Line::new(args.get(2..)?);
    let said = match typed {
        "version" => "tslice --version".to_owned(),
        "ls" | "list" | "shape" | "inspect" | "keys" => line.command("info", &[], &["INPUT"]),
        "tree" => line.command("info", &["--tree"], &["INPUT"]),
        "cat" if line.has_two_files() => line.written("concat"),
        "cat" | "show" | "print" => line.command("view", &[], &["INPUT"]),
        "head" | "tail" => line.rows(typed == "head"),
        "nan" | "isnan" | "inf" | "isinf" | "median" | "var" | "quantile" | "percentile" => {
            line.command("view", &["--stats"], &["INPUT"])
        }
        "plot" | "draw" | "imshow" if line.has(&["-o", "--output", "--out"]) => {
            line.command("view", &[], &["INPUT"])
        }
        "plot" | "draw" | "imshow" => line.command("view", &["--image"], &["INPUT"]),
        "stat" | "stats" | "describe" => line.command("view", &["--stats"], &["INPUT"]),
        "min" | "max" | "sum" | "mean" | "std" | "any" | "all" => {
            line.command("view", &["--reduce", typed], &["INPUT"])
        }
        "cp" | "convert" => line.converted(),
        "cut" if line.has(&["--parts", "--at", "--every", "--sizes"]) => line.written("split"),
        "slice" | "cut" => line.piped(SLICE),
        "transpose" | "permute" => line.flagged("--transpose", "AXES"),
        "cast" | "astype" => line.flagged("--cast", "DTYPE"),
        "rename" => line.flagged("--rename", "OLD=NEW"),
        "rm" | "remove" | "delete" | "drop" => line.flagged("--exclude", "NAME"),
        "take" => line.taken(),
        "compare" | "cmp" => line.command("diff", &[], &["A", "B"]),
        "join" | "concatenate" | "append" => line.written("concat"),
        _ => return None,
    };
    Some(said)
}

/// The rows that are taken; here an index says so.
const ROWS: &str = "--rows";
/// A file of the positions that are taken; here an index says so.
const MASK: &str = "--mask";

/// Flags of other programs. Where tslice's own is one of several, the first that the command has.
const FLAGS: [(&str, &[&str]); 16] = [
    ("--overwrite", &["--force"]),
    ("--out", &["--output"]),
    ("--dim", &["--axis", "--transpose"]),
    ("--dims", &["--axis", "--transpose"]),
    ("--sort-by", &["--sort"]),
    ("--append", &["--append-to"]),
    ("--list", &[]),
    ("--ls", &[]),
    ("--permute", &["--transpose"]),
    ("--compress", &["--deflate"]),
    ("--format", &["--to"]),
    ("--delete", &["--exclude"]),
    ("--drop", &["--exclude"]),
    ("--remove", &["--exclude"]),
    (ROWS, &[]),
    (MASK, &[]),
];

/// A line in which flags of other programs stand, with tslice's own in their places.
pub(super) fn of_flags(args: &[OsString]) -> Option<String> {
    let first = args.get(1)?.to_str()?;
    let named = COMMANDS.contains(&first).then_some(first);
    let line = Line::new(&args[if named.is_some() { 2 } else { 1 }..]);
    let given = |flag: &str| line.has(&[flag]);
    let own = named.unwrap_or(SLICE);
    let is_meant = |flag: &&(&str, &[&str])| given(flag.0) && !has_flag(own, flag.0);
    FLAGS.iter().find(is_meant)?;
    if given("--append") {
        return line.appended();
    }
    let is_listing = ["--list", "--ls"].into_iter().any(given);
    let command = if is_listing || given("--sort-by") && own == SLICE { "info" } else { own };
    Some(line.command(command, &[], &[]))
}

/// Whether a command has a flag, as it is typed.
fn has_flag(command_name: &str, flag: &str) -> bool {
    flag_of(command_name, flag).is_some()
}

/// Whether a flag of a command takes a value; `None` where there is no such flag.
fn flag_of(command_name: &str, flag: &str) -> Option<bool> {
    let definition = command();
    let command = definition.find_subcommand(command_name)?;
    let is_flag = |arg: &&clap::Arg| match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
        (Some(long), _) => arg.get_long() == Some(long),
        (_, Some(short)) => arg.get_short().is_some_and(|own| short == own.to_string()),
        _ => false,
    };
    let arg = command.get_arguments().find(is_flag)?;
    Some(arg.get_action().takes_values())
}

/// What stands behind the command in a line.
struct Line {
    words: Vec<String>,
}

/// A line, taken apart as a command takes it.
#[derive(Default)]
struct Parts {
    /// What is no flag.
    operands: Vec<String>,
    /// Flags with their values; those that the command has not are left out.
    flags: Vec<String>,
}

impl Line {
    fn new(words: &[OsString]) -> Line {
        Line { words: words.iter().map(|word| word.to_string_lossy().into_owned()).collect() }
    }

    /// Whether one of these flags is given.
    fn has(&self, flags: &[&str]) -> bool {
        self.words.iter().any(|word| {
            let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
            flags.contains(&flag)
        })
    }

    /// Whether both of the first two operands are files.
    fn has_two_files(&self) -> bool {
        let files = self.parts("concat").operands;
        files.len() > 1 && files[..2].iter().all(|file| Path::new(file).exists())
    }

    fn parts(&self, command: &str) -> Parts {
        let mut parts = Parts::default();
        let mut words = self.words.iter().peekable();
        let mut index = None;
        let mut is_behind = false;
        while let Some(word) = words.next() {
            let number = word.strip_prefix('-').unwrap_or_default();
            let is_number = number.starts_with(|c: char| c.is_ascii_digit());
            if is_behind || !word.starts_with('-') || word == "-" || is_number {
                parts.operands.push(word.clone());
                continue;
            }
            if word == "--" {
                is_behind = true;
                continue;
            }
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
                _ => (word.as_str(), None),
            };
            let meant = FLAGS.iter().find(|(other, _)| *other == flag && !has_flag(command, flag));
            let flag = match meant {
                Some((_, own)) => own.iter().copied().find(|own| has_flag(command, own)),
                None => Some(flag),
            };
            let Some(flag) = flag else {
                if meant.is_some_and(|(other, _)| [ROWS, MASK].contains(other)) {
                    let is_mask = meant.is_some_and(|(other, _)| *other == MASK);
                    let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                    let value = value.unwrap_or_else(|| "VALUE".to_owned());
                    index = Some(if is_mask { format!("[@{value}]") } else { value });
                }
                continue;
            };
            match flag_of(command, flag) {
                None => {}
                Some(false) => parts.flags.push(flag.to_owned()),
                Some(true) => {
                    let flag = if flag == "--output" { "-o" } else { flag };
                    parts.flags.push(flag.to_owned());
                    let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                    parts.flags.push(value.unwrap_or_else(|| "VALUE".to_owned()));
                }
            }
        }
        parts.operands.extend(index);
        parts
    }

    /// The line with another command; `missing` are the operands that it cannot do without.
    fn command(&self, name: &str, extra: &[&str], missing: &[&str]) -> String {
        let mut parts = self.parts(name);
        let lacking = missing.iter().skip(parts.operands.len()).map(|word| (*word).to_owned());
        let lacking: Vec<String> = lacking.collect();
        parts.operands.extend(lacking);
        let is_new = |flag: &&&str| !parts.flags.iter().any(|given| given == **flag);
        let extra: Vec<String> = match extra.first() {
            Some(flag) if is_new(&flag) && has_flag(name, flag) => {
                extra.iter().map(|word| (*word).to_owned()).collect()
            }
            _ => Vec::new(),
        };
        said(name, parts.operands, [extra, parts.flags].concat())
    }

    /// The same for a command that needs an output.
    fn written(&self, name: &str) -> String {
        let line = self.command(name, &[], &["INPUT"]);
        let is_named = self.parts(name).flags.iter().any(|flag| flag == "-o");
        if is_named { line } else { format!("{line} -o OUTPUT") }
    }

    /// The same for a command that writes to standard output where that is no terminal.
    fn piped(&self, name: &str) -> String {
        match std::io::stdout().is_terminal() {
            true => self.written(name),
            false => self.command(name, &[], &["INPUT"]),
        }
    }

    /// The first or the last rows: `head -n 5 a.npy`, `tail -3 a.npy`.
    fn rows(&self, is_head: bool) -> String {
        let mut words = self.words.clone();
        let lines = words.iter().position(|word| word == "-n" || word == "--lines");
        let short = words.iter().position(|word| {
            word.strip_prefix('-').is_some_and(|count| count.parse::<u64>().is_ok())
        });
        let count = match (lines, short) {
            (Some(at), _) if at + 1 < words.len() => {
                let count = words.remove(at + 1);
                words.remove(at);
                count
            }
            (_, Some(at)) => words.remove(at),
            _ => String::new(),
        };
        if let Ok(count) = count.trim_start_matches('-').parse::<u64>() {
            words.push(if is_head { format!("[:{count}]") } else { format!("[-{count}:]") });
        }
        Line { words }.command("view", &[], &["INPUT"])
    }

    /// `cp IN OUT`, `convert IN OUT`, `convert IN -o OUT`.
    fn converted(&self) -> String {
        let Parts { operands, mut flags } = self.parts(SLICE);
        let mut operands = operands.into_iter();
        let input = operands.next().unwrap_or_else(|| "INPUT".to_owned());
        if !flags.iter().any(|flag| flag == "-o") {
            let output = operands.next().unwrap_or_else(|| "OUTPUT".to_owned());
            flags.splice(0..0, ["-o".to_owned(), output]);
        }
        said(SLICE, vec![input], flags)
    }

    /// What is a flag of a slice: `transpose IN 0,2,1`, `rename IN OLD=NEW`.
    fn flagged(&self, flag: &str, missing: &str) -> String {
        let Parts { operands, flags } = self.parts(SLICE);
        let mut operands = operands.into_iter();
        let input = operands.next().unwrap_or_else(|| "INPUT".to_owned());
        let mut values: Vec<String> = operands.collect();
        if values.is_empty() && !flags.iter().any(|given| given == flag) {
            values.push(missing.to_owned());
        }
        let meant = values.into_iter().flat_map(|value| [flag.to_owned(), value]);
        let has_output = flags.iter().any(|given| given == "-o");
        let line = said(SLICE, vec![input], meant.chain(flags).collect());
        if has_output { line } else { format!("{line} -o OUTPUT") }
    }

    /// np.take is `gather`; of a slice it is the main job.
    fn taken(&self) -> String {
        let Parts { mut operands, flags } = self.parts("gather");
        let mut extra = Vec::new();
        let has = |flag: &str| flags.iter().any(|given| given == flag);
        if !has("--axis") {
            extra.extend(["--axis".to_owned(), "0".to_owned()]);
        }
        if !has("--indices") {
            let indices =
                if operands.len() > 1 { operands.remove(1) } else { "INDICES".to_owned() };
            let is_list = !indices.contains(':') && !indices.contains("...");
            if !is_list {
                return self.piped(SLICE);
            }
            extra.extend(["--indices".to_owned(), indices]);
        }
        if operands.is_empty() {
            operands.push("PARAMS".to_owned());
        }
        said("gather", operands, [extra, flags].concat())
    }

    /// `--append` to the output, or to the file behind the flag.
    fn appended(&self) -> Option<String> {
        if !has_flag("concat", "--append-to") {
            return None;
        }
        let mut words = self.words.clone();
        let at =
            words.iter().position(|word| word == "--append" || word.starts_with("--append="))?;
        let behind = words.remove(at);
        let mut parts = Line { words }.parts("concat");
        let output = parts.flags.iter().position(|flag| flag == "-o");
        let target = match (behind.split_once('='), output) {
            (Some((_, target)), _) => target.to_owned(),
            (None, Some(output)) => parts.flags.drain(output..output + 2).next_back()?,
            (None, None) if parts.operands.len() > 1 => parts.operands.pop()?,
            (None, None) => "TARGET".to_owned(),
        };
        parts.flags.splice(0..0, ["--append-to".to_owned(), target]);
        Some(said("concat", parts.operands, parts.flags))
    }
}

/// A line of tslice, as it is typed.
fn said(name: &str, operands: Vec<String>, flags: Vec<String>) -> String {
    let words = operands.into_iter().chain(flags);
    let line = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    match name {
        SLICE => format!("tslice {line}"),
        _ => format!("tslice {name} {line}"),
    }
}
