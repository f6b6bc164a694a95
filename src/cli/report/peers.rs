//! Words of other programs, and tslice's words for them: looked up when clap has refused a line.

use std::ffi::OsString;

use super::failure::quoted;
use crate::cli::args::{COMMANDS, SLICE, command};

/// Commands of other programs, and the line of tslice that does the same. Words in capitals are
/// filled with the typed words, in order.
const LINES: &[(&str, &str)] = &[
    ("version", "tslice --version"),
    ("ls list dir shape size len wc dtype inspect keys header meta metadata", "tslice info INPUT"),
    ("tree", "tslice info --tree INPUT"),
    (
        "cat head tail show print dump less more load open read get extract select",
        "tslice view INPUT INDEX",
    ),
    (
        "stat stats summary describe nan isnan inf isinf median var quantile percentile argmin argmax count hist histogram",
        "tslice view --stats INPUT",
    ),
    ("plot draw imshow", "tslice view --image INPUT"),
    ("min max sum mean std any all", "tslice view --reduce {} INPUT"),
    ("cp convert export", "tslice INPUT -o OUTPUT"),
    ("slice cut flip reverse", "tslice INPUT INDEX -o OUTPUT"),
    ("chunk chunks", "tslice split INPUT --parts N -o PATTERN"),
    ("set put fill", "tslice assign TARGET INDEX --fill NUMBER -o OUTPUT"),
    ("transpose permute", "tslice INPUT --transpose AXES -o OUTPUT"),
    ("rearrange", "tslice INPUT --rearrange PATTERN -o OUTPUT"),
    ("reshape", "tslice INPUT --reshape SHAPE -o OUTPUT"),
    ("cast astype", "tslice INPUT --cast DTYPE -o OUTPUT"),
    ("rename", "tslice INPUT --rename OLD=NEW -o OUTPUT"),
    ("rm remove delete drop", "tslice INPUT --exclude NAME -o OUTPUT"),
    ("take", "tslice gather PARAMS --axis 0 --indices INDICES"),
    ("compare cmp equal equals allclose", "tslice diff A B"),
    ("join concatenate append vstack", "tslice concat INPUTS -o OUTPUT"),
    ("hstack", "tslice concat --axis 1 INPUTS -o OUTPUT"),
    ("dstack", "tslice concat --axis 2 INPUTS -o OUTPUT"),
    ("combine zip", "tslice merge INPUTS -o OUTPUT"),
];

/// Flags of other programs, and tslice's flags for them: the first that the command has.
const FLAGS: &[(&str, &str)] = &[
    ("--overwrite --replace --clobber --yes -y", "--force"),
    ("-i", "--in-place"),
    ("--out --prefix", "--output"),
    ("--dim --dims --axes", "--axis --transpose"),
    ("--permute", "--transpose"),
    ("--sort-by", "--sort"),
    ("--key --keys --dataset --variable --array", "--tensor"),
    ("--include --filter --pattern", "--tensor"),
    ("--skip --omit --delete --drop --remove", "--exclude"),
    ("--max-shard-size", "--shard-size"),
    ("--type --astype", "--cast"),
    ("--compression --compressor", "--codec"),
    ("--compress", "--deflate"),
    ("--format", "--to"),
    ("--cmap", "--colormap"),
    ("--jobs --workers --num-threads", "--threads"),
    ("--tol --tolerance --delta --eps --epsilon", "--atol"),
    ("--relative", "--rtol"),
    ("--nan-equal", "--equal-nan"),
    ("--num --number --num-parts --num-chunks --sections --chunks", "--parts"),
    ("--size --split-size --chunk-size --lines -l", "--every"),
    ("--indices", "--at"),
    ("--append", "--append-to"),
    ("--summary --describe --histogram --hist", "--stats"),
    ("--min --max --sum --mean --std --any --all", "--reduce"),
];

/// Flags of other programs that tslice does not need, or for which it has a command.
const WITHOUT: &[(&str, &str)] = &[
    (
        "--rows --index --select --slice --slices --head --tail",
        "an index is given without a flag: `tslice INPUT '[:10]'`",
    ),
    (
        "--header",
        "`tslice info INPUT` shows it; --names makes fields of the names above columns of text",
    ),
    ("--mask", "an index takes a mask from a file: `tslice INPUT '[@FILE]'`"),
    ("--input --in --file -i", "the input is given without a flag: `tslice INPUT`"),
    ("--list --ls --shapes --long --sort --sort-by", "`tslice info INPUT` shows that"),
    ("--summary --describe --histogram --hist --stats", "`tslice view --stats INPUT` shows that"),
    ("--min --max --sum --mean --std --any --all", "`tslice view --reduce mean INPUT` computes"),
    ("--reshape", "`tslice INPUT --reshape SHAPE -o OUTPUT` gives elements another shape"),
    ("--append", "`tslice concat --append-to TARGET INPUT` does that"),
];

fn found<'t>(table: &[(&str, &'t str)], word: &str) -> Option<&'t str> {
    table.iter().find(|(words, _)| words.split(' ').any(|it| it == word)).map(|(_, own)| *own)
}

/// The line that does what a command of another program does, with the operands that were typed.
pub(super) fn of_command(args: &[OsString]) -> Option<String> {
    let command = args.get(1)?.to_str()?;
    let line = found(LINES, command)?;
    let has_flags = args[2..].iter().any(|word| word.as_encoded_bytes().starts_with(b"-"));
    let operands = if has_flags { &[] } else { &args[2..] };
    let mut typed = operands.iter().map(|word| word.to_string_lossy()).peekable();
    let fill = |word: &str| match word {
        "{}" => command.to_owned(),
        _ if !word.starts_with(|c: char| c.is_ascii_uppercase()) => word.to_owned(),
        "INPUTS" if typed.peek().is_some() => {
            Vec::from_iter(typed.by_ref().map(|word| quoted(&word))).join(" ")
        }
        "INDEX" if typed.peek().is_none() => "[INDEX]".to_owned(),
        _ => typed.next().map_or_else(|| word.to_owned(), |typed| quoted(&typed)),
    };
    Some(Vec::from_iter(line.split(' ').map(fill)).join(" "))
}

/// The hint for a flag of another program.
pub(super) fn of_flag(flag: &str, args: &[OsString]) -> Option<String> {
    let named = args.get(1).and_then(|word| word.to_str()).filter(|word| COMMANDS.contains(word));
    let definition = command();
    let own = definition.find_subcommand(named.unwrap_or(SLICE))?;
    let has =
        |flag: &&str| own.get_arguments().any(|arg| arg.get_long() == flag.strip_prefix("--"));
    let meant = found(FLAGS, flag).and_then(|flags| flags.split(' ').find(has));
    let said = meant.map(|own| format!("use {own} here"));
    said.or_else(|| found(WITHOUT, flag).map(str::to_owned))
}
