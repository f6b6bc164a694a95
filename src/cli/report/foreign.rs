//! Hints for files of a recognised kind that is not read.

use tslice::error::FileName;
use tslice::formats::Foreign;

use super::failure::quoted;

/// The hint at a page of the docs.
pub(super) const CONVERTED: &str =
    "docs/files.md, \"Files of other programs\", has a command that converts it";

/// The hint for a file of this kind; `is_input` if the flags for inputs are about it.
pub(super) fn remedy(kind: Foreign, file: Option<&FileName>, is_input: bool) -> Option<String> {
    let name = match file {
        Some(FileName::Path(path)) => quoted(&path.to_string_lossy()),
        _ => "FILE".to_owned(),
    };
    let streamed = |program: &str| match file {
        Some(FileName::Stdin) => format!("`... | {program} | tslice - ...` reads it"),
        _ => format!("`{program} {name} | tslice - ...` reads it"),
    };
    let as_text = |flags: &str| {
        if is_input {
            format!("--from {flags} reads it")
        } else {
            format!("`tslice {name} --from {flags} -o OTHER.npy` makes a .npy of it")
        }
    };
    Some(match kind {
        Foreign::Gzip => streamed("zcat"),
        Foreign::Bzip2 => streamed("bzcat"),
        Foreign::Lz4 => streamed("lz4cat"),
        Foreign::Xz => streamed("xzcat"),
        Foreign::Zstd => streamed("zstdcat"),
        Foreign::Numbers(None) => as_text("txt"),
        Foreign::Numbers(Some(',')) => as_text("csv"),
        Foreign::Numbers(Some(other)) => as_text(&format!("csv --delimiter '{other}'")),
        Foreign::JsonList => as_text("json"),
        Foreign::GitLfs => "`git lfs pull` fetches the file".to_owned(),
        Foreign::WebPage => format!("`head {name}` shows what the server said"),
        Foreign::Tar => format!("`tar tf {name}` lists what is in it"),
        Foreign::Zip => format!("`unzip -l {name}` lists what is in it"),
        Foreign::Text { .. } | Foreign::JsonObject => return None,
        _ => CONVERTED.to_owned(),
    })
}
