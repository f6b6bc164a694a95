//! Notes and examples of `--help` and the man pages; a test runs the examples.
//!
//! Lines have at most 80 columns, since they are not wrapped again. Notes are paragraphs and
//! sections; a section is a title that ends with a colon, then indented entries, each a term and,
//! from column 20 on, its meaning. Examples follow the line `Examples:`; a line with `#` explains
//! the command below it.
//!
//! A test compares the pages under `man/` with the definition; with `TSLICE_WRITE_MAN=1` it writes
//! them.

pub(super) const SLICE: &str = "\
INDEX is written as in NumPy: items separated by commas, with or without [...]
or (...) around them. An empty one selects everything. Put it in single quotes,
so that the shell does not change it. White space is ignored. The format of an
input is recognised by its first bytes, that of a text (.csv, .tsv, .txt, .json)
by its name.

Items of an index:
  3, -1             one position, from the front or from the end; the axis is
                    dropped, unless --keepdims is given
  2:8, ::2, ::-1    a slice, start:stop:step, each part optional; bounds beyond
                    the ends are clamped
  ...               all remaining axes; at most once, implied at the end
                    (Ellipsis)
  None              a new axis of length 1 (newaxis, np.newaxis, tf.newaxis)
  [0, 2, 2, -1]     a list: these positions, in this order; nested lists such as
                    [[0, 1], [2, 3]] give several axes
  [True, False]     a mask: the positions where it is true; a nested one takes
                    several axes
  @FILE             a list or a mask from a file: a tensor in any input format,
                    or integers as text; @- is standard input
  @FILE#NAME        the tensor NAME of a file that holds several; quoted if it
                    contains commas, brackets, spaces or #: @\"a b.npz\"#\"x,y\"
  @FILE==3          a mask: where ==, !=, <, <=, > or >= holds with a number
  ~@FILE, ~[3, 5]   the opposite of a mask; of positions, all others
  shuffle(42)       all positions of the axis in random order, by the seed and
                    the length of the axis; or a slice: shuffle(42)[:800]
  time=0, lat=2:8   items for the dimensions of these names, in any order

Integers are written as in Python: 1_000, 0x10, 0b1, 0o7. Several lists are
broadcast against each other, as in NumPy, and integers beside lists count as
lists; with --outer each list is taken along its own axis, as np.ix_ does. In
place of INDEX, --begin, --end, --strides and masks take TensorFlow's arguments.

Exit status:
  0                 done
  1                 failed: a problem with a file or its data, or an index that
                    does not fit the shape; of diff: the files differ
  2                 the command line is invalid: wrong flags, or an index that
                    is invalid for every shape; of diff: any trouble
  130, 143          stopped by SIGINT or SIGTERM, after cleaning up

Environment:
  TMPDIR            the folder for unnamed temporary files; /tmp if unset
  NO_COLOR          when set and not empty: no colours; view --image draws in
                    characters
  COLUMNS           the width of view --image and of this help, off a terminal
  TSLICE_PARTS      the number of parts for --part auto, if the variables of the
                    scheduler do not state it
  TSLICE_COMPLETE   set by the completion scripts: only completions are printed

Environment of schedulers:
  SLURM_ARRAY_TASK_ID, SLURM_PROCID
                    with SLURM_ARRAY_TASK_* and SLURM_NTASKS: the part of
                    --part auto in arrays and steps of Slurm
  JOB_COMPLETION_INDEX
                    the part in indexed jobs of Kubernetes
  PBS_ARRAY_INDEX, PBS_ARRAYID
                    the part in arrays of PBS and Torque
  LSB_JOBINDEX      with LSB_JOBINDEX_*: the part in arrays of LSF
  SGE_TASK_ID       with SGE_TASK_*: the part in arrays of SGE
  OMPI_COMM_WORLD_RANK, PMI_RANK
                    with OMPI_COMM_WORLD_SIZE, PMI_SIZE: the part in ranks of
                    Open MPI, MPICH and Intel MPI

Environment of remote inputs, in builds that read them:
  TSLICE_REMOTE_TIMEOUT
                    the seconds for which a server may send nothing, from 1 to
                    3600; 30 if unset
  HF_TOKEN          sent to huggingface.co, and to no other host
  AWS_*             credentials, region and endpoint of s3://; if unset, the
                    profile AWS_PROFILE, or the default, of ~/.aws
  GOOGLE_*          credentials of gs://, such as
                    GOOGLE_APPLICATION_CREDENTIALS
  AZURE_*           account and credentials of az://, such as
                    AZURE_STORAGE_ACCOUNT_NAME
  HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY
                    proxies, and hosts that need none
  SSL_CERT_FILE, SSL_CERT_DIR
                    certificates to trust, instead of the system's

Examples:
  # a crop of every image in a batch
  tslice photos.npy '[:, 16:32, 20:44]' -o crops.npy
  # the first rows of one tensor, all others as they are
  tslice model.safetensors -t embed.weight '[:500]' --keep-rest \\
      -o small.safetensors
  # another format and another dtype
  tslice volume.npy --cast float32 -o density.safetensors";

pub(super) const GATHER: &str = "\
With indices of shape (..., N) the output has shape indices.shape[:-1] +
params.shape[N:]; with --axis A, params.shape[:A] + indices.shape +
params.shape[A+1:].

Examples:
  # rows in any order, as np.take
  tslice gather photos.npy --axis 0 --indices rows.npy -o chosen.npy
  # the vectors of tokens
  tslice gather model.safetensors -t embed.weight --axis 0 \\
      --indices tokens.txt -o vectors.npy
  # two pixels, by tuples, as gather_nd
  tslice gather photos.npy --indices '[[0, 5, 5], [47, 0, 63]]' \\
      -o two-pixels.npy";

pub(super) const ASSIGN: &str = "\
With -o the output is a copy of TARGET with the slice changed; it appears when
it is complete. With --in-place only the bytes of the slice are written, after
all checks: processes may write disjoint slices of one file at the same time. A
killed run is completed by running it again; so a value in these bytes is
refused.

Several tensors that -t names are changed at once, each by the tensor of its
name in the value file, or all by the only one there. All are checked before the
first is written. In place TARGET may be a sharded checkpoint.

Examples:
  # a copy with opaque images
  tslice assign photos.npy '[..., 3]' --fill 255 -o opaque.npy
  # one image in place
  tslice assign photos.npy '[-1]' --value image.npy --in-place
  # one tensor of a checkpoint
  tslice assign model.safetensors -t head.weight '[:8]' --fill 0 \\
      -o patched.safetensors";

pub(super) const SCATTER: &str = "\
With indices of shape (..., N) the values have shape indices.shape[:-1] +
target.shape[N:]. If a position occurs twice, the last value stays. All
positions are checked before the first byte is written. In place, indices and
values in the bytes to be written are refused, so that a killed run can be
completed by running it again.

Examples:
  # two images, in a copy
  tslice scatter photos.npy --indices '[[7], [0]]' --values two.npy \\
      -o changed.npy
  # one pixel, at image 5, row 20, column 30
  tslice scatter photos.npy --indices '[[5, 20, 30]]' --values pixel.npy \\
      -o dot.npy
  # in the file itself; positions beyond its end are left out
  tslice scatter photos.npy --indices '[[3], [99]]' --values two.npy \\
      --out-of-range skip --in-place";

pub(super) const CONCAT: &str = "\
Shapes may differ along the axis only, and dtypes in byte order only; the output
has that of the first input. --cast converts different dtypes. In files of
several tensors -t chooses, and those of one name are joined; an array without a
name follows the one tensor that -t names. With --group tensors are joined by
their names, whatever file they are in.

Examples:
  # files in the order of their names
  tslice concat part-*.npy -o all.npy
  # tensor-parallel shards become one checkpoint
  tslice concat rank-?.safetensors -t '*.weight' --axis 'head.weight=1' \\
      --keep-rest -o whole.safetensors
  # any number of files
  find . -name 'part-*.npy' -print0 | sort -z | tslice concat \\
      --files-from - -0 -o found.npy";

pub(super) const STACK: &str = "\
All shapes must be equal; dtypes may differ in byte order, and the output has
that of the first input. --cast converts different dtypes. In files of several
tensors -t chooses, and those of one name are joined; with --group tensors are
joined by their names, 'layers.{l}.experts.{e}.up' into 'layers.{l}.experts.up'.

Examples:
  # images become a batch
  tslice stack part-*.npy -o batch.npy
  # channels become images
  tslice stack red.npy green.npy blue.npy --axis -1 -o images.npy
  # a crop of each
  ls part-*.npy | tslice stack --files-from - --index '[..., :32, :32, :]' \\
      -o crops.npy";

pub(super) const MERGE: &str = "\
The output has the tensors of all inputs, in their order. A name that occurs in
two inputs is an error, unless --first or --last chooses one; it takes the
position of the first. -t and --exclude apply to the names in the inputs, before
--rename; an array without a name is named after its file. Metadata are joined.

Examples:
  # arrays in one .npz
  tslice merge photos.npy volume.npy -o both.npz
  # tensors over those of the same names
  tslice merge model.safetensors rank-0.safetensors --last -o new.safetensors
  # some tensors of two files, in one of them with other names
  tslice merge model.safetensors rank-0.safetensors -t '*.weight' \\
      --rename '1:*=rank.*' -o renamed.safetensors";

pub(super) const SPLIT: &str = "\
All outputs are checked before the first is written, and appear together when
all are complete. In files of several tensors -t chooses those that are cut.
With --group the parts are tensors of one output, under the names of --into.

Examples:
  # ten images a file
  tslice split photos.npy --every 10 -o 'photos-{:04}.npy'
  # a long and a short part of the last axis
  tslice split volume.npy --axis -1 --sizes 20,10 -o 'volume-{}.npy'
  # a checkpoint for tensor parallelism
  tslice split model.safetensors -t '*.weight' --axis 'head.weight=1' \\
      --keep-rest --parts 4 \\
      -o 'rank-{}.safetensors'";

pub(super) const VIEW: &str = "\
Values are printed as NumPy's print(a) does; below them the name, the shape and
the dtype.

Examples:
  # a corner of a tensor, with three digits
  tslice view model.safetensors -t head.weight '[:4, :6]' --precision 3
  # extremes, mean, deviation, quantiles, a histogram
  tslice view volume.npy --stats
  # slices through a volume as a sheet of pictures
  tslice view volume.npy '[::4]' -o sheet.png --range p1,p99";

pub(super) const DIFF: &str = "\
Tensors of the same name are compared, and the only tensors of two files, if one
has no name. Byte order, memory order and
container make no difference. Elements are compared by value, NaN equal to NaN
of the same bits; with --atol or --rtol as np.allclose does, numbers of
different dtypes by their exact values.

Exit status:
  0                 the same
  1                 different
  2                 trouble

Examples:
  # nothing is printed where all is the same
  tslice diff volume.npy volume.safetensors
  # nearly the same, in the first rows
  tslice diff volume.npy volume.safetensors '[:10]' --rtol 1e-5 --atol 1e-8 \\
      --equal-nan
  # one tensor of two checkpoints
  tslice diff model.safetensors model.safetensors -t embed.weight -q";

pub(super) const INFO: &str = "\
Only headers are read. The last line of a file is the total of the tensors that
are shown, also of each dtype.

Examples:
  # what is in some files
  tslice info photos.npy model.safetensors
  # the largest tensors, and what they add up to
  tslice info model.safetensors --sort bytes --min-bytes 20kB
  # for programs
  tslice info model.safetensors --json";

pub(super) const EXPLAIN: &str = "\
What is printed can be given to NumPy, TensorFlow and MindSpore.

Examples:
  # what an index selects of a file
  tslice explain photos.npy '[:, ::-2, [0, 5], -1]'
  # of a shape
  tslice explain '[1, 2:4, None, ..., :-3:-1, :]' --shape 3,5,2,4,3
  # from TensorFlow's arguments to NumPy's
  tslice explain --begin 1,0 --end 2,5 --shrink-axis-mask 1 --shape 4,6";

pub(super) const COMPLETIONS: &str = "\
The script asks tslice for what may follow: subcommands, flags, their values,
and the names of the tensors in the file on the line.

Examples:
  # for bash, in ~/.bashrc
  source <(tslice completions bash)
  # for zsh, in a folder of $fpath
  tslice completions zsh > _tslice
  # for fish
  tslice completions fish > ~/.config/fish/completions/tslice.fish
  # for PowerShell, to be loaded by $PROFILE
  tslice completions powershell > tslice.ps1";

pub(super) const HELP: &str = "\
Examples:
  # the flags of tslice itself, the items of an index, and the commands
  tslice help
  # all about one command
  tslice help gather";

pub(super) const MAN: &str = "\
The pages are those that packages install. man formats and shows them; without
man, --help is printed, without the variables of schedulers for --part auto.

Examples:
  # the page of tslice itself
  tslice man
  # of a command, as a text
  tslice man gather > gather.txt";

pub(super) struct Notes<'t> {
    pub(super) before: Vec<&'t str>,
    pub(super) behind: Vec<&'t str>,
    pub(super) examples: &'t str,
}

impl Notes<'_> {
    pub(super) fn of(text: &str) -> Notes<'_> {
        let (notes, examples) = text.split_once("Examples:\n").unwrap_or((text, ""));
        let paragraphs = notes.trim().split("\n\n").filter(|paragraph| !paragraph.is_empty());
        let (behind, before) = paragraphs
            .partition(|text| ["Exit status", "Environment"].iter().any(|it| text.starts_with(it)));
        Notes { before, behind, examples }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Command;
    use clap_mangen::Man;

    use super::Notes;
    use crate::cli::args::command;

    /// By their names under `man/`.
    fn pages() -> Vec<(String, String)> {
        let mut definition = command();
        definition.build();
        let subcommands = definition.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut pages: Vec<(String, String)> = subcommands
            .map(|sub| {
                let name = format!("tslice-{}", sub.get_name());
                let page = page(sub, &name, &["tslice"]);
                (format!("{name}.1"), page)
            })
            .collect();
        let names: Vec<&str> =
            pages.iter().filter_map(|(name, _)| name.strip_suffix(".1")).collect();
        pages.push(("tslice.1".to_owned(), page(&definition, "tslice", &names)));
        pages
    }

    fn page(command: &Command, name: &str, others: &[&str]) -> String {
        // no date and no version, so that a page changes only with the definition; what `-h` leaves
        // out has its place here
        let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
        let man = Man::new(command.clone()).title(name).source("tslice").manual("tslice manual");
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let Notes { before, behind, examples } = Notes::of(&help);

        let mut page = Vec::new();
        man.render_title(&mut page).unwrap();
        man.render_name_section(&mut page).unwrap();
        man.render_synopsis_section(&mut page).unwrap();
        man.render_description_section(&mut page).unwrap();
        page.extend(before.into_iter().map(noted).collect::<String>().bytes());
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page).unwrap();
        }
        man.render_options_section(&mut page).unwrap();
        page.extend(behind.into_iter().map(noted).collect::<String>().bytes());
        let mut page = String::from_utf8(page).unwrap();
        page += ".SH EXAMPLES\n";
        for line in examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)) {
            match line.strip_prefix("# ") {
                Some(about) => page += &format!(".TP\n{}\n", escaped(about)),
                None => page += &format!(".nf\n\\fB{}\\fR\n.fi\n", escaped(line)),
            }
        }
        let others: Vec<String> =
            others.iter().map(|other| format!("\\fB{}\\fR(1)", escaped(other))).collect();
        page + ".SH SEE ALSO\n" + &others.join(",\n") + "\n"
    }

    fn noted(paragraph: &str) -> String {
        let Some((title, entries)) = paragraph.split_once(":\n  ") else {
            return format!(".PP\n{}\n", escaped(paragraph));
        };
        let mut page = format!(".SH {}\n", escaped(&title.to_uppercase()));
        for entry in entries.replace(&format!("\n{}", " ".repeat(20)), "  ").split("\n  ") {
            let (term, meaning) = entry.split_once("  ").unwrap();
            let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
            page += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(&meaning));
        }
        page
    }

    fn escaped(text: &str) -> String {
        let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        text.replace("\n.", "\n\\&.")
    }

    #[test]
    fn man_pages_are_up_to_date() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
        for (name, text) in pages() {
            let path = directory.join(name);
            if std::env::var_os("TSLICE_WRITE_MAN").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let there = fs::read_to_string(&path).unwrap_or_default();
            let shown = path.display();
            assert!(there == text, "{shown} is stale: TSLICE_WRITE_MAN=1 cargo test writes it");
        }
    }

    #[test]
    fn notes_and_examples_fit_80_columns() {
        let definition = command();
        for part in std::iter::once(&definition).chain(definition.get_subcommands()) {
            let text = part.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(text.lines().count() >= 5, "{}", part.get_name());
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", part.get_name());
            }
        }
    }
}
