//! Words of other programs, and tslice's words for them: looked up when clap has refused a line.

/// Commands of other programs, each with a line of tslice that does the same, and flags, each with tslice's flags:
/// the first that the command has is meant.
const WORDS: &[(&str, &str)] = &[
    ("ls list dir keys shape header", "tslice info INPUT"),
    ("tree", "tslice info --tree INPUT"),
    ("cat head tail show print dump", "tslice view INPUT [INDEX]"),
    ("stat stats summary describe", "tslice view --stats INPUT"),
    ("min max sum mean std any all", "tslice view INPUT --reduce HOW --axis AXIS"),
    ("cp convert export", "tslice INPUT -o OUTPUT"),
    ("slice cut", "tslice INPUT INDEX -o OUTPUT"),
    ("take", "tslice gather PARAMS --axis 0 --indices INDICES"),
    ("compare cmp", "tslice diff A B"),
    ("join concatenate append", "tslice concat INPUT... -o OUTPUT"),
    ("--overwrite --replace --clobber", "--force"),
    ("--out", "--output"),
    ("--dim --dims --axes", "--axis --transpose"),
    ("--key --keys --dataset --variable", "--tensor"),
    ("--astype", "--cast"),
    ("--append", "--append-to"),
    ("--sort-by", "--sort"),
];

/// What tslice has for a command or a flag of another program.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.split(' ').any(|it| it == word)).map(|(_, own)| *own)
}
