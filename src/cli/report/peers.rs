//! Words of other programs, and the line of tslice that does the same: `ls` is `info`,
//! `--overwrite` is `--force`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use super::failure::quoted;
use crate::cli::args::{COMMANDS, SLICE, command};

pub(super) fn of_command(args: &[OsString]) -> Option<String> {
    let typed = args.get(1)?.to_str()?;
    let line = Line::new(args.get(2..)?);
    let said = match typed {
        "version" => "tslice --version".to_owned(),
        "ls" | "list" | "dir" | "shape" | "size" | "len" | "wc" | "dtype" | "inspect" | "keys"
        | "header" | "meta" | "metadata" => line.command("info", &[], &["INPUT"]),
        "tree" => line.command("info", &["--tree"], &["INPUT"]),
        "cat" if line.has_two_files() => line.written("concat"),
        "cat" | "show" | "print" | "dump" | "less" | "more" | "load" | "open" | "read" => {
            line.command("view", &[], &["INPUT"])
        }
        "head" | "tail" => line.rows(typed == "head"),
        "nan" | "isnan" | "inf" | "isinf" | "median" | "var" | "quantile" | "percentile"
        | "argmin" | "argmax" | "count" | "hist" | "histogram" | "stat" | "stats" | "summary"
        | "describe" => line.command("view", &["--stats"], &["INPUT"]),
        "plot" | "draw" | "imshow" if line.has(&["-o", "--output", "--out"]) => {
            line.command("view", &[], &["INPUT"])
        }
        "plot" | "draw" | "imshow" => line.command("view", &["--image"], &["INPUT"]),
        "min" | "max" | "sum" | "mean" | "std" | "any" | "all" => {
            line.command("view", &["--reduce", typed], &["INPUT"])
        }
        "cp" | "convert" | "export" => line.converted(),
        "cut" if line.has(&CUTS) => line.written("split"),
        "chunk" | "chunks" => of_parts(args.get(2..)?).unwrap_or_else(|| line.written("split")),
        "get" | "extract" | "select" => line.got(),
        "set" | "put" => line.assigned(),
        "fill" => line.filled(),
        "flip" | "reverse" => line.reversed(),
        "slice" | "cut" => line.piped(SLICE),
        "transpose" | "permute" => line.flagged("--transpose", "AXES"),
        "rearrange" => line.flagged("--rearrange", "PATTERN"),
        "reshape" => line.flagged("--reshape", "SHAPE"),
        "cast" | "astype" => line.flagged("--cast", "DTYPE"),
        "rename" => line.flagged("--rename", "OLD=NEW"),
        "rm" | "remove" | "delete" | "drop" => line.flagged("--exclude", "NAME"),
        "take" => line.taken(),
        "compare" | "cmp" | "equal" | "equals" | "allclose" => {
            line.command("diff", &[], &["A", "B"])
        }
        "join" | "concatenate" | "append" | "vstack" => line.written("concat"),
        "hstack" => line.along("1"),
        "dstack" => line.along("2"),
        "combine" | "zip" => line.written("merge"),
        _ => return None,
    };
    Some(said)
}

/// Flags for what is taken, which here an index says.
const INDEXES: [&str; 5] = ["--rows", "--index", "--select", "--slice", "--slices"];
/// A flag for a file of positions, which here an index names.
const MASK: &str = "--mask";
/// Flags for the first or last rows, which here an index says.
const ENDS: [&str; 2] = ["--head", "--tail"];
/// Flags for the input, which here is no flag.
const INPUTS: [&str; 4] = ["--input", "--in", "--file", "-i"];
/// Flags for what is computed along axes, which here is the value of `--reduce`.
const REDUCTIONS: [&str; 7] = ["--min", "--max", "--sum", "--mean", "--std", "--any", "--all"];
const STATISTICS: [&str; 4] = ["--summary", "--describe", "--histogram", "--hist"];
const CUTS: [&str; 4] = ["--parts", "--at", "--every", "--sizes"];

/// Flags of other programs, and those of tslice in their place: the first that the command has.
const FLAGS: &[(&str, &[&str])] = &[
    ("--overwrite", &["--force"]),
    ("--replace", &["--force"]),
    ("--clobber", &["--force"]),
    ("--yes", &["--force"]),
    ("-y", &["--force"]),
    ("-i", &["--in-place"]),
    ("--out", &["--output"]),
    ("--prefix", &["--output"]),
    ("--dim", &["--axis", "--transpose"]),
    ("--dims", &["--axis", "--transpose"]),
    ("--axes", &["--axis", "--transpose"]),
    ("--sort-by", &["--sort"]),
    ("--key", &["--tensor"]),
    ("--keys", &["--tensor"]),
    ("--dataset", &["--tensor"]),
    ("--variable", &["--tensor"]),
    ("--array", &["--tensor"]),
    ("--include", &["--tensor"]),
    ("--filter", &["--tensor"]),
    ("--pattern", &["--tensor"]),
    ("--skip", &["--exclude"]),
    ("--omit", &["--exclude"]),
    ("--max-shard-size", &["--shard-size"]),
    ("--type", &["--cast"]),
    ("--compression", &["--codec"]),
    ("--compressor", &["--codec"]),
    ("--cmap", &["--colormap"]),
    ("--jobs", &["--threads"]),
    ("--workers", &["--threads"]),
    ("--num-threads", &["--threads"]),
    ("--tol", &["--atol"]),
    ("--tolerance", &["--atol"]),
    ("--delta", &["--atol"]),
    ("--eps", &["--atol"]),
    ("--epsilon", &["--atol"]),
    ("--relative", &["--rtol"]),
    ("--nan-equal", &["--equal-nan"]),
    ("--num", &["--parts"]),
    ("--number", &["--parts"]),
    ("--num-parts", &["--parts"]),
    ("--num-chunks", &["--parts"]),
    ("--sections", &["--parts"]),
    ("--size", &["--every"]),
    ("--split-size", &["--every"]),
    ("--chunk-size", &["--every"]),
    ("--lines", &["--every"]),
    ("-l", &["--every"]),
    ("--indices", &["--at"]),
    ("--summary", &["--stats"]),
    ("--describe", &["--stats"]),
    ("--histogram", &["--stats"]),
    ("--hist", &["--stats"]),
    // `info` shows this in any case
    ("--header", &[]),
    ("--shapes", &[]),
    ("--long", &[]),
    ("--recursive", &[]),
    ("--verbose", &[]),
    ("-r", &[]),
    ("-v", &[]),
    ("--append", &["--append-to"]),
    ("--list", &[]),
    ("--ls", &[]),
    ("--permute", &["--transpose"]),
    ("--compress", &["--deflate"]),
    ("--format", &["--to"]),
    ("--delete", &["--exclude"]),
    ("--drop", &["--exclude"]),
    ("--remove", &["--exclude"]),
];

pub(super) fn of_flags(args: &[OsString]) -> Option<String> {
    let first = args.get(1)?.to_str()?;
    let named = COMMANDS.contains(&first).then_some(first);
    let line = Line::new(&args[if named.is_some() { 2 } else { 1 }..]);
    let given = |flag: &str| line.has(&[flag]);
    let own = named.unwrap_or(SLICE);
    if own == "split"
        && let Some(line) = of_parts(&args[2..])
    {
        return Some(line);
    }
    let is_meant = |&(flag, meant): &(&str, &[&str])| {
        given(flag)
            && !has_flag(own, flag)
            && (meant.is_empty() || meant.iter().any(|it| has_flag(own, it)))
    };
    let is_alone = |flag: &&str| given(flag) && !has_flag(own, flag);
    let mut alone = INDEXES.iter().chain(&ENDS).chain(&INPUTS).chain([&MASK]);
    let reduces = own == "view" && line.has(&REDUCTIONS);
    let sorts = own == SLICE && given("--sort-by");
    let measures = own == SLICE && line.has(&STATISTICS);
    if !(reduces || sorts || measures || FLAGS.iter().any(is_meant) || alone.any(is_alone)) {
        return None;
    }
    if given("--append") {
        return line.appended();
    }
    let is_listing = ["--list", "--ls", "--header", "--shapes"].into_iter().any(given);
    let command = match own {
        _ if is_listing || sorts => "info",
        _ if measures => "view",
        own => own,
    };
    Some(line.command(command, &[], &[]))
}

/// Complete a line of `split` that gives the number of parts as split(1), numpy.split and
/// torch.chunk take it: behind `-n` or `--chunks`, or behind the input.
pub(super) fn of_parts(words: &[OsString]) -> Option<String> {
    let mut line = Line::new(words);
    if line.has(&CUTS) {
        return None;
    }
    let is_count = |word: &String| word.parse::<u64>().is_ok_and(|count| count > 0);
    for flag in ["-n", "--chunks"] {
        let Some(at) = line.words.iter().position(|word| word.starts_with(flag)) else { continue };
        let joined = line.words[at][flag.len()..].trim_start_matches('=').to_owned();
        if is_count(&joined) {
            line.words.insert(at + 1, joined);
        }
        if line.words.get(at + 1).is_some_and(is_count) {
            line.words[at] = "--parts".to_owned();
            return Some(line.written("split"));
        }
    }
    let Parts { operands, .. } = line.parts("split");
    let count = operands.get(1).filter(|word| is_count(word))?;
    let at = line.words.iter().position(|word| word == count)?;
    line.words.insert(at, "--parts".to_owned());
    Some(line.written("split"))
}

/// Complete a line of `view`: `--json` needs `--stats`, and `-n` is meant as that of head(1).
pub(super) fn of_view(args: &[OsString]) -> Option<String> {
    let line = Line::new(args.get(2..).filter(|_| args.get(1).is_some_and(|word| word == "view"))?);
    if line.has(&["--json"]) {
        let statistics = line.command("view", &["--stats"], &["INPUT"]);
        let mut values = line.parts(SLICE);
        values.flags.retain(|flag| flag != "--json");
        let values = said(
            SLICE,
            values.operands,
            [values.flags, vec!["--to".to_owned(), "json".to_owned()]].concat(),
        );
        return Some(format!("`{statistics}` prints statistics, `{values}` the values"));
    }
    let at = line.words.iter().position(|word| word == "-n")?;
    line.words.get(at + 1)?.parse::<u64>().ok()?;
    // the operands are the input and the number
    (line.parts("view").operands.len() == 2).then(|| line.rows(true))
}

fn has_flag(command_name: &str, flag: &str) -> bool {
    flag_of(command_name, flag).is_some()
}

/// Whether a flag of a command takes a value; `None` if it has no such flag.
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

/// The flag of a command that does what one of another program does; unknown flags stay as they are.
fn own_flag<'f>(command: &str, flag: &'f str) -> Option<&'f str> {
    match FLAGS.iter().find(|(other, _)| *other == flag) {
        Some((_, own)) => own.iter().copied().find(|own| has_flag(command, own)),
        None => Some(flag),
    }
}

/// The index that says what a flag of another program does.
fn index_of(flag: &str, value: String) -> String {
    match flag {
        MASK => format!("[@{value}]"),
        "--head" => format!("[:{value}]"),
        "--tail" => format!("[-{value}:]"),
        _ => value,
    }
}

/// The value of a flag: behind its `=`, or the next word.
fn value_of<'w>(joined: Option<&str>, words: &mut impl Iterator<Item = &'w String>) -> String {
    let value = joined.map(str::to_owned).or_else(|| words.next().cloned());
    value.unwrap_or_else(|| "VALUE".to_owned())
}

struct Line {
    words: Vec<String>,
}

/// A line, taken apart as a command would do it.
#[derive(Default)]
struct Parts {
    operands: Vec<String>,
    /// Flags with their values, without those that the command has not.
    flags: Vec<String>,
}

impl Line {
    fn new(words: &[OsString]) -> Line {
        Line { words: words.iter().map(|word| word.to_string_lossy().into_owned()).collect() }
    }

    fn has(&self, flags: &[&str]) -> bool {
        self.words.iter().any(|word| {
            let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
            flags.contains(&flag)
        })
    }

    fn has_two_files(&self) -> bool {
        let files = self.parts("concat").operands;
        files.len() > 1 && files[..2].iter().all(|file| Path::new(file).exists())
    }

    fn parts(&self, command: &str) -> Parts {
        let mut parts = Parts::default();
        let mut words = self.words.iter();
        let mut index = None;
        let mut is_behind = false;
        while let Some(word) = words.next() {
            let is_number = |word: &str| word[1..].starts_with(|c: char| c.is_ascii_digit());
            if is_behind || !word.starts_with('-') || word == "-" || is_number(word) {
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
            let is_own = has_flag(command, flag);
            if !is_own && command == "view" && REDUCTIONS.contains(&flag) {
                parts.flags.extend(["--reduce".to_owned(), flag[2..].to_owned()]);
                continue;
            }
            let alone = [&INDEXES[..], &ENDS, &INPUTS, &[MASK]].concat();
            // -i of sed(1), which edits in place
            let is_edit = flag == "-i" && has_flag(command, "--in-place");
            if !is_own && !is_edit && alone.contains(&flag) {
                let value = value_of(value, &mut words);
                if INPUTS.contains(&flag) {
                    parts.operands.insert(0, value);
                } else {
                    index = Some(index_of(flag, value));
                }
                continue;
            }
            let meant = if is_own { Some(flag) } else { own_flag(command, flag) };
            let Some(meant) = meant else { continue };
            match flag_of(command, meant) {
                None => {}
                Some(false) => parts.flags.push(meant.to_owned()),
                Some(true) => {
                    let short = if meant == "--output" { "-o" } else { meant };
                    parts.flags.push(short.to_owned());
                    parts.flags.push(value_of(value, &mut words));
                }
            }
        }
        parts.operands.extend(index);
        parts
    }

    /// Write the line with another command; `missing` stands for operands that it lacks.
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

    fn written(&self, name: &str) -> String {
        let line = self.command(name, &[], &["INPUT"]);
        let is_named = self.parts(name).flags.iter().any(|flag| flag == "-o");
        match name {
            _ if is_named || self.has(&["--in-place"]) => line,
            "split" => format!("{line} -o 'part{{}}.npy'"),
            _ => format!("{line} -o OUTPUT"),
        }
    }

    /// As `written`, but to standard output if that is no terminal.
    fn piped(&self, name: &str) -> String {
        if std::io::stdout().is_terminal() {
            self.written(name)
        } else {
            self.command(name, &[], &["INPUT"])
        }
    }

    /// The first or last rows: `head -n 5 a.npy`, `tail -3 a.npy`.
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

    /// A command that is a flag here: `transpose IN 0,2,1`, `rename IN OLD=NEW`.
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

    /// np.take is `gather`; taking a slice is the main job.
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

    /// `get IN NAME` and `get IN INDEX`: a word that cannot be an index is a name.
    fn got(&self) -> String {
        let Parts { mut operands, mut flags } = self.parts(SLICE);
        let is_name = |word: &String| word.starts_with(|first: char| first.is_ascii_alphabetic());
        if operands.get(1).is_some_and(is_name) {
            flags.splice(0..0, ["-t".to_owned(), operands.remove(1)]);
        }
        if operands.is_empty() {
            operands.push("INPUT".to_owned());
        }
        let has_output = flags.iter().any(|flag| flag == "-o");
        if !has_output {
            flags.extend(["-o".to_owned(), "OUTPUT".to_owned()]);
        }
        said(SLICE, operands, flags)
    }

    fn assigned(&self) -> String {
        let mut words = self.words.clone();
        if !self.has(&["--fill", "--value"]) {
            words.extend(["--fill".to_owned(), "NUMBER".to_owned()]);
        }
        Line { words }.written("assign")
    }

    fn filled(&self) -> String {
        let mut words = self.words.clone();
        let operands = self.parts("assign").operands;
        let number = operands.get(1).and_then(|number| words.iter().position(|it| it == number));
        if let Some(at) = number.filter(|_| !self.has(&["--fill", "--value"])) {
            words.insert(at, "--fill".to_owned());
        }
        Line { words }.assigned()
    }

    fn reversed(&self) -> String {
        let mut words = self.words.clone();
        let axis = words.iter().position(|word| word == "--axis" || word == "--dim");
        let axis =
            axis.filter(|at| at + 1 < words.len()).map(|at| words.drain(at..at + 2).collect());
        let axis = axis.and_then(|words: Vec<String>| words[1].parse::<usize>().ok());
        words.push(format!("[{}::-1]", ":, ".repeat(axis.unwrap_or(0).min(MOST_AXES))));
        Line { words }.written(SLICE)
    }

    fn along(&self, axis: &str) -> String {
        let mut words = self.words.clone();
        words.extend(["--axis".to_owned(), axis.to_owned()]);
        Line { words }.written("concat")
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

/// More axes than an array of NumPy can have.
const MOST_AXES: usize = 64;

fn said(name: &str, operands: Vec<String>, flags: Vec<String>) -> String {
    let words = operands.into_iter().chain(flags);
    let line = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    match name {
        SLICE => format!("tslice {line}"),
        _ => format!("tslice {name} {line}"),
    }
}
