//! `-h` and `--help` of every command, and the examples in it, which are run.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::inputs::{I64, integers, write_npy};
use crate::program::{bash, tslice};
use crate::readme::write_inputs;

/// The commands; none is the main job.
const COMMANDS: [&str; 15] = [
    "",
    "gather",
    "assign",
    "scatter",
    "concat",
    "stack",
    "merge",
    "split",
    "view",
    "diff",
    "info",
    "explain",
    "completions",
    "help",
    "man",
];

fn help(folder: &TempDir, command: &str, flag: &str) -> String {
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let output = tslice(folder, &[&words[..], &[flag]].concat()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

/// Files that the examples name, beside those of the README's.
const PREPARE: &str = "
    seq 0 39 > train.txt
    echo '3 1 4 1 5' > tokens.txt
    tslice photos.npy 5 -o image.npy
    tslice photos.npy '[4:6]' -o two.npy
    tslice photos.npy '[:24]' -o early.npy
    tslice photos.npy '[24:]' -o late.npy
    cp early.npy part-0.npy && cp late.npy part-1.npy
    for c in 0:red 1:green 2:blue; do tslice photos.npy \"[..., ${c%:*}]\" -o ${c#*:}.npy; done
    tslice split model.safetensors -t '*.weight' --axis 'head.weight=1' --keep-rest --parts 2 \\
        -o 'rank-{}.safetensors'
    tslice volume.npy -o volume.safetensors
    mkdir -p .config/fish/completions
";

#[test]
fn the_examples_of_every_help_run() {
    for command in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        write_inputs(&folder);
        let rows = folder.path().join("rows.npy");
        write_npy(&rows, &I64, &[3], &integers(&[5, 0, 7]));
        let prepared = bash(&folder, &format!("set -e; {PREPARE}")).output().unwrap();
        assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        if command == "split" {
            fs::remove_file(folder.path().join("rank-0.safetensors")).unwrap();
            fs::remove_file(folder.path().join("rank-1.safetensors")).unwrap();
        }

        let help = help(&folder, command, "--help");
        let (_, examples) = help.split_once("\nExamples:\n").expect(command);
        let (examples, _) = examples.split_once("\n\n").expect(command);
        let examples = examples.replace("\\\n", "");
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let (about, commands): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.starts_with("# "));
        assert_eq!(about.len(), commands.len(), "{command}");
        assert!(commands.len() >= 2, "{command}");
        for example in commands {
            let line = format!("set -euo pipefail; {example}");
            let run = bash(&folder, &line).env("HOME", folder.path()).output().unwrap();
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{command}: {example}\n{said}");
        }
    }
}

#[test]
fn the_short_help_is_shorter_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let (short, long) = (help(&folder, command, "-h"), help(&folder, command, "--help"));
        assert!(short.lines().count() < 80, "{command}");
        assert!(short.lines().count() * 3 < long.lines().count() * 2, "{command}");
        assert!(!short.contains("Examples:"), "{command}");
        assert!(long.lines().all(|line| line.chars().count() <= 100), "{command}");
        for text in [short, long] {
            // the main job has no name
            assert!(!text.contains("tslice slice"), "{command}");
            assert!(!text.contains('\x1b'), "{command}: no colours into a pipe");
        }
    }
}

/// The names of the environment's variables that files below a folder read.
fn variables(folder: &Path, found: &mut Vec<String>) {
    let markers =
        ["env::var(\"", "env::var_os(\"", "task: \"", "COUNT: &str = \"", "VARIABLE: &str = \""];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            variables(&path, found);
        } else if !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let program = text.split("\nmod tests {").next().unwrap();
            let named = markers.iter().flat_map(|marker| program.split(marker).skip(1));
            found.extend(named.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
}

#[test]
fn help_and_docs_tell_every_variable_that_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    variables(&root.join("src"), &mut found);
    assert!(found.len() >= 15, "{found:?}");
    let help = page_of(&tempfile::tempdir().unwrap(), "");
    let page = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    for name in found {
        let name = if name.starts_with("AWS_") { "AWS_*" } else { &name };
        assert!(help.contains(name) && page.contains(name), "{name}");
    }
}

#[test]
fn the_help_holds_the_grammar_and_the_exit_statuses() {
    let help = help(&tempfile::tempdir().unwrap(), "", "--help");
    let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/tslice.1");
    let man = fs::read_to_string(man).unwrap().replace('\\', "");
    assert!(help.lines().next().unwrap().contains(".npz"));
    let items = ["start:stop:step", "[True, False]", "@FILE#NAME", "SIGTERM", "TMPDIR", "--outer"];
    for item in items {
        assert!(help.contains(item) && man.contains(item), "{item}");
    }
    for section in [".SH ITEMS OF AN INDEX", ".SH EXIT STATUS", ".SH ENVIRONMENT"] {
        assert!(man.contains(section), "{section}");
    }
}

/// What `tslice man` prints, as text.
fn page_of(folder: &TempDir, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let output = tslice(folder, &[&["man"], &words[..]].concat()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_and_man_are_commands_too() {
    let folder = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let output = tslice(&folder, &[&["help"], &words[..]].concat()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), help(&folder, command, "--help"));
        let page = page_of(&folder, command);
        let name =
            format!("NAME\n       tslice{}{command} - ", if command.is_empty() { "" } else { "-" });
        assert!(page.starts_with(&name), "{page}");
        assert!(page.contains("\nEXAMPLES\n") && !page.contains('\u{8}'), "{command}");
    }
}

/// The order in which people need it: examples, the daily flags, what few need, the environment.
#[test]
fn what_few_people_need_comes_last() {
    let folder = tempfile::tempdir().unwrap();
    let long = help(&folder, "", "--help");
    let at = |text: &str| long.find(text).unwrap_or_else(|| panic!("{text}"));
    let places = [
        "\nExamples:",
        "\nItems of an index:",
        "  -o, --output",
        "  -t, --tensor",
        "      --cast",
        "  -f, --force",
        "      --outer",
        "      --with-files",
        "      --delimiter",
        "      --input-order",
        "      --begin ",
        "      --shrink-axis-mask",
        "\nExit status:",
        "  TMPDIR",
    ];
    assert!(places.map(at).is_sorted(), "{:?}", places.map(at));
    assert!(long.lines().count() < 300);
    // those of schedulers stand in the manual page
    assert!(!long.contains("SLURM") && page_of(&folder, "").contains("SLURM_ARRAY_TASK_ID"));
    for command in COMMANDS {
        let long = help(&folder, command, "--help");
        let option = |flag: &str| long.find(&format!("\n  {flag}, --"));
        if let (Some(output), Some(other)) = (option("-o"), option("-j")) {
            assert!(output < other, "{command}");
            assert!(long.find("\nExamples:") < Some(output), "{command}");
        }
    }
}

#[test]
fn the_version_names_the_build_and_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let first = concat!("tslice ", env!("CARGO_PKG_VERSION"), "\n");
    tslice(&folder, &["-V"]).assert().success().stdout(first);
    let output = tslice(&folder, &["--version"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let features = said.strip_prefix(first).unwrap().strip_prefix("features: ").unwrap();
    let (features, instructions) = features.split_once("\ninstructions: ").unwrap();
    let built = [("hdf5", cfg!(feature = "hdf5")), ("remote", cfg!(feature = "remote"))];
    for (name, is_on) in built.into_iter().chain([("zarr", cfg!(feature = "zarr"))]) {
        assert_eq!(features.split(", ").any(|it| it == name), is_on, "{said}");
    }
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    for name in instructions.trim_end().split(", ").filter(|name| *name != "none") {
        let is_there = flags.split_whitespace().any(|flag| flag == name);
        assert!(!cfg!(target_arch = "x86_64") || flags.is_empty() || is_there, "{name}");
    }
}

/// A word of another program is answered by the whole line; typed again it is understood.
#[test]
fn words_of_other_programs_are_answered_by_the_line_that_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    for (typed, meant) in [
        ("ls photos.npy", "tslice info photos.npy"),
        ("list -l photos.npy volume.npy", "tslice info photos.npy volume.npy"),
        ("tree model.safetensors", "tslice info model.safetensors"),
        ("cat volume.npy '[0, :2]'", "tslice view volume.npy '[0, :2]'"),
        ("cat photos.npy photos.npy -o o.npy", "tslice concat photos.npy photos.npy -o o.npy"),
        ("head -n 2 volume.npy", "tslice view volume.npy '[:2]'"),
        ("tail -2 volume.npy", "tslice view volume.npy '[-2:]'"),
        ("show photos.npy", "tslice view photos.npy"),
        ("print photos.npy", "tslice view photos.npy"),
        ("stat volume.npy", "tslice view volume.npy --stats"),
        ("stats volume.npy", "tslice view volume.npy --stats"),
        ("mean volume.npy --axis 0", "tslice view volume.npy --reduce mean --axis 0"),
        ("cp volume.npy o.npz", "tslice volume.npy -o o.npz"),
        ("convert volume.npy -o o.npz", "tslice volume.npy -o o.npz"),
        ("slice photos.npy '[0]' -o o.npy", "tslice photos.npy '[0]' -o o.npy"),
        ("cut photos.npy ':5' -o o.npy", "tslice photos.npy :5 -o o.npy"),
        ("cut photos.npy --parts 2 -o '{}.npy'", "tslice split photos.npy --parts 2 -o '{}.npy'"),
        ("take volume.npy '[0, 2]'", "tslice gather volume.npy --axis 0 --indices '[0, 2]'"),
        ("photos.npy '[0]' --overwrite -o o.npy", "tslice photos.npy '[0]' --force -o o.npy"),
        ("photos.npy '[0]' --out=o.npy", "tslice photos.npy '[0]' -o o.npy"),
        ("photos.npy --dims 0,3,1,2", "tslice photos.npy --transpose 0,3,1,2"),
        (
            "concat volume.npy volume.npy --dim -1 -o o.npy",
            "tslice concat volume.npy volume.npy --axis -1 -o o.npy",
        ),
        ("info photos.npy --sort-by bytes", "tslice info photos.npy --sort bytes"),
        ("photos.npy --list", "tslice info photos.npy"),
        ("version", "tslice --version"),
        ("keys model.safetensors", "tslice info model.safetensors"),
        ("plot volume.npy 3", "tslice view volume.npy 3 --image"),
        ("plot volume.npy 3 -o o.png", "tslice view volume.npy 3 -o o.png"),
        ("transpose photos.npy 0,3,1,2", "tslice photos.npy --transpose 0,3,1,2 -o OUTPUT"),
        ("cast photos.npy float16 -o o.npy", "tslice photos.npy --cast float16 -o o.npy"),
        (
            "rename model.safetensors steps=s head.weight=h -o o.npz",
            "tslice model.safetensors --rename steps=s --rename head.weight=h -o o.npz",
        ),
        (
            "rm model.safetensors steps -o o.npz",
            "tslice model.safetensors --exclude steps -o o.npz",
        ),
        (
            "model.safetensors --delete steps -o o.npz",
            "tslice model.safetensors --exclude steps -o o.npz",
        ),
        ("photos.npy --permute 0,3,1,2 -o o.npy", "tslice photos.npy --transpose 0,3,1,2 -o o.npy"),
        ("volume.npy --compress -o o.npz", "tslice volume.npy --deflate -o o.npz"),
        ("volume.npy --format npz -o o.npz", "tslice volume.npy --to npz -o o.npz"),
        ("--rows 0:8 photos.npy -o o.npy", "tslice photos.npy 0:8 -o o.npy"),
        ("view photos.npy --rows=0:2", "tslice view photos.npy 0:2"),
        ("photos.npy --mask keep.npy -o o.npy", "tslice photos.npy '[@keep.npy]' -o o.npy"),
        ("split -n 2 photos.npy -o '{}.npy'", "tslice split photos.npy --parts 2 -o '{}.npy'"),
        ("split photos.npy -n2 -o '{}.npy'", "tslice split photos.npy --parts 2 -o '{}.npy'"),
        ("split photos.npy 2 -o '{}.npy'", "tslice split photos.npy --parts 2 -o '{}.npy'"),
        (
            "split photos.npy --chunks 2 --dim 1 -o '{}.npy'",
            "tslice split photos.npy --parts 2 --axis 1 -o '{}.npy'",
        ),
        (
            "split photos.npy --chunks 2 -o '{}.npy'",
            "tslice split photos.npy --parts 2 -o '{}.npy'",
        ),
        (
            "split photos.npy --size 24 -o '{}.npy'",
            "tslice split photos.npy --every 24 -o '{}.npy'",
        ),
        ("split photos.npy -l 24 -o '{}.npy'", "tslice split photos.npy --every 24 -o '{}.npy'"),
        (
            "split photos.npy --sections 2 -o '{}.npy'",
            "tslice split photos.npy --parts 2 -o '{}.npy'",
        ),
        ("chunk photos.npy 2 -o '{}.npy'", "tslice split photos.npy --parts 2 -o '{}.npy'"),
        ("view volume.npy -n 5", "tslice view volume.npy '[:5]'"),
        ("view volume.npy --head 5", "tslice view volume.npy '[:5]'"),
        ("view volume.npy --mean --dim 0", "tslice view volume.npy --reduce mean --axis 0"),
        ("volume.npy --summary", "tslice view volume.npy --stats"),
        ("argmax volume.npy", "tslice view volume.npy --stats"),
        ("info --header volume.npy", "tslice info volume.npy"),
        ("info -r volume.npy", "tslice info volume.npy"),
        ("-i volume.npy '[0]' -o o.npy", "tslice volume.npy '[0]' -o o.npy"),
        ("--input volume.npy -o o.npy", "tslice volume.npy -o o.npy"),
        (
            "model.safetensors --key steps -o o.npy",
            "tslice model.safetensors --tensor steps -o o.npy",
        ),
        ("get model.safetensors steps -o o.npy", "tslice model.safetensors -t steps -o o.npy"),
        ("get volume.npy 0:3 -o o.npy", "tslice volume.npy 0:3 -o o.npy"),
        ("diff volume.npy volume.npy --tol 1e-3", "tslice diff volume.npy volume.npy --atol 1e-3"),
        ("allclose volume.npy volume.npy", "tslice diff volume.npy volume.npy"),
        ("volume.npy --type f4 -o o.npy", "tslice volume.npy --cast f4 -o o.npy"),
        ("volume.npy -y -o o.npy", "tslice volume.npy --force -o o.npy"),
        ("flip volume.npy --axis 1 -o o.npy", "tslice volume.npy '[:, ::-1]' -o o.npy"),
        ("vstack volume.npy volume.npy -o o.npy", "tslice concat volume.npy volume.npy -o o.npy"),
        (
            "hstack volume.npy volume.npy -o o.npy",
            "tslice concat volume.npy volume.npy -o o.npy --axis 1",
        ),
        ("fill volume.npy 0 -o o.npy", "tslice assign volume.npy --fill 0 -o o.npy"),
        ("set volume.npy 0 --fill 1 -o o.npy", "tslice assign volume.npy 0 --fill 1 -o o.npy"),
    ] {
        let run = bash(&folder, &format!("tslice {typed}")).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{typed}: {said}");
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
        let is_meant =
            hint.is_some_and(|hint| hint.strip_suffix(" --tree").unwrap_or(hint) == meant);
        assert!(is_meant, "{typed}: {said}");
        let line = meant.replace("OUTPUT", "m.npy");
        let run = bash(&folder, &line).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{line}: {said}");
        for made in ["o.npy", "o.npz", "o.png", "m.npy", "0.npy", "1.npy"] {
            let _ = fs::remove_file(folder.path().join(made));
        }
    }
    // a file of that name is an input
    fs::copy(folder.path().join("volume.npy"), folder.path().join("ls")).unwrap();
    tslice(&folder, &["ls", "[0]", "-o", "o.npy"]).assert().success();
}

#[test]
fn beside_json_an_error_is_json_too() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    for (args, exit) in [
        (&["info", "none.npy", "--json"][..], 1),
        (&["explain", "volume.npy", "[99]", "--json"], 1),
        (&["explain", "volume.npy", "[1:x]", "--json"], 2),
        (&["diff", "volume.npy", "none.npy", "--json"], 2),
        (&["view", "none.npy", "--stats", "--json"], 1),
        (&["volume.npy", "-o", "o.txt", "--dry-run", "--json", "--zap"], 2),
        (&["assign", "volume.npy", "--fill", "x", "-o", "o.npy", "-n", "--json"], 2),
    ] {
        let output = tslice(&folder, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(said["error"].is_string() && said.get("hint").is_some(), "{said}");
        assert_eq!(said["exit"], exit, "{said}");
        assert_eq!(output.status.code(), Some(exit), "{said}");
        let caret = said.get("at").map(|at| {
            let place = |key: &str| at[key].as_u64().unwrap() as usize;
            at["text"].as_str().unwrap()[place("start")..place("end")].to_owned()
        });
        let expected = args.iter().find_map(|arg| arg.strip_prefix('[')?.strip_suffix(']'));
        assert_eq!(caret.is_some(), expected.is_some(), "{said}");
        assert!(caret.is_none_or(|caret| expected.unwrap().contains(&caret)), "{said}");
    }
}

/// Notes go the way of errors.
#[test]
fn beside_json_a_note_is_json_too() {
    let folder = tempfile::tempdir().unwrap();
    write_inputs(&folder);
    let args = ["split", "volume.npy", "--parts", "3", "-o", "{}.npy", "--dry-run", "--json"];
    let output = tslice(&folder, &args).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let note = "volume.npy: the axis has size 20, and its 3 parts have sizes from 6 to 7";
    let expected = serde_json::json!({ "note": note, "hint": "--equal refuses that" });
    assert_eq!(said, expected);
    for (args, hint) in [
        (
            &["view", "volume.npy", "0", "--json"][..],
            "`tslice view volume.npy 0 --stats --json` prints statistics, `tslice volume.npy 0 --to json` the values",
        ),
        (
            &["split", "volume.npy", "-o", "{}.npy", "--json"],
            "--parts 4 cuts into four parts, --every 100 into parts of 100 positions",
        ),
    ] {
        let output = tslice(&folder, args).output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!((said["hint"].as_str(), output.status.code()), (Some(hint), Some(2)), "{said}");
    }
}

/// In a terminal, which `script` makes.
#[test]
fn a_manual_page_goes_through_a_pager_or_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    if bash(&folder, "command -v script").output().is_ok_and(|output| !output.status.success()) {
        return;
    }
    let shown = |pager: &str| {
        let run = format!("stty cols 0; PAGER=\"{pager}\" tslice man gather");
        let line = format!("script -qec '{run}' /dev/null < /dev/null");
        let output = bash(&folder, &line).output().unwrap();
        assert!(output.status.success(), "{pager}: {output:?}");
        String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
    };
    let page = tslice(&folder, &["man", "gather"]).output().unwrap().stdout;
    let page = String::from_utf8(page).unwrap();
    assert_eq!(shown("col -b | expand").trim_end(), page.trim_end());
    assert_eq!(shown("head -n 1"), "N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n");
    // a pager that is not there, or fails
    for pager in ["no-such-pager 2> /dev/null", "false", "exit 3"] {
        assert_eq!(shown(pager), page, "{pager}");
    }
    // keys that interrupt are the pager's
    for signal in ["INT", "QUIT"] {
        assert_eq!(
            shown(&format!("cat > /dev/null; kill -{signal} \\$PPID; echo shown")),
            "shown\n"
        );
    }
    // without one
    let run = "env -u PAGER PATH=/nowhere `command -v tslice` man gather";
    let output =
        bash(&folder, &format!("script -qec \"{run}\" /dev/null < /dev/null")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
    assert_eq!(said, page);
}
