//! Help for files of a kind that is known but not read: one command, ready to be typed.

use std::path::{Path, PathBuf};

use tslice::error::FileName;
use tslice::format::Foreign;
use tslice::input::{InGzip, in_gzip};

use super::failure::quoted;

/// The hint for a file of this kind; `is_input` if the flags for inputs are about it.
pub(super) fn remedy(kind: Foreign, file: Option<&FileName>, is_input: bool) -> Option<String> {
    let names = Names::of(file);
    if let Some(program) = python(kind, &names.stem) {
        return Some(converted(program, kind, &names));
    }
    let Names { name, npy, .. } = &names;
    let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_string_lossy();
    let streamed = |program: &str| match file {
        Some(FileName::Stdin) => format!("`... | {program} | tslice - ...` reads it"),
        _ => format!("`{program} {name} | tslice - ...` reads it"),
    };
    let as_text = |flags: &str| {
        if is_input {
            format!("--from {flags} reads it")
        } else {
            format!("`tslice {name} --from {flags} -o {npy}` makes a .npy of it")
        }
    };
    match kind {
        Foreign::Gzip => match file {
            Some(FileName::Path(path)) => Some(unzipped(path, name)),
            _ => Some(streamed("zcat")),
        },
        Foreign::Bzip2 => Some(streamed("bzcat")),
        Foreign::Lz4 => Some(streamed("lz4cat")),
        Foreign::Xz => Some(streamed("xzcat")),
        Foreign::Zstd => Some(streamed("zstdcat")),
        Foreign::Distcp => Some(merged(&folder)),
        Foreign::DcpFolder => Some(merged(name)),
        Foreign::Tar => Some(format!("`tar tf {name}` lists what is in it")),
        Foreign::Numbers(None) => Some(as_text("txt")),
        Foreign::Numbers(Some(',')) => Some(as_text("csv")),
        Foreign::Numbers(Some(other)) => Some(as_text(&format!("csv --delimiter '{other}'"))),
        Foreign::JsonList => Some(as_text("json")),
        Foreign::GitLfs => Some("`git lfs pull` fetches the file".to_owned()),
        Foreign::WebPage => Some(format!("`head {name}` shows what the server said")),
        Foreign::Zip => Some(format!("`unzip -l {name}` lists what is in it")),
        _ => None,
    }
}

/// A program in Python that writes a file of this kind as one that is read: `{name}` stands for its
/// name, `{npy}`, `{npz}` and `{pt}` for what is written.
fn python(kind: Foreign, stem: &str) -> Option<&'static str> {
    Some(match kind {
        Foreign::Gzip if stem.ends_with(".nii") => NIBABEL,
        Foreign::Nifti => NIBABEL,
        Foreign::Hdf5 | Foreign::Matlab73 => {
            "import h5py, numpy; d = {}; h5py.File('{name}').visititems(lambda k, v: \
             d.update({k: v[()]}) if hasattr(v, 'shape') else None); numpy.savez('{npz}', **d)"
        }
        Foreign::NetCdf3 => {
            "import numpy, scipy.io; f = scipy.io.netcdf_file('{name}', mmap=False); \
             numpy.savez('{npz}', **{k: v.data for k, v in f.variables.items()})"
        }
        Foreign::Matlab => {
            "import numpy, scipy.io; f = scipy.io.loadmat('{name}'); \
             numpy.savez('{npz}', **{k: v for k, v in f.items() if k[0] != '_'})"
        }
        Foreign::Png | Foreign::Jpeg => {
            "import numpy, PIL.Image; numpy.save('{npy}', PIL.Image.open('{name}'))"
        }
        Foreign::Tiff => "import numpy, tifffile; numpy.save('{npy}', tifffile.imread('{name}'))",
        Foreign::Parquet => {
            "import numpy, pyarrow.parquet as p; t = p.read_table('{name}'); \
             numpy.savez('{npz}', **{c: t[c].to_numpy() for c in t.column_names})"
        }
        Foreign::Arrow => {
            "import numpy, pyarrow.feather as p; t = p.read_table('{name}'); \
             numpy.savez('{npz}', **{c: t[c].to_numpy() for c in t.column_names})"
        }
        Foreign::Onnx => {
            "import numpy, onnx.numpy_helper as h, onnx; t = onnx.load('{name}').graph.initializer; \
             numpy.savez('{npz}', **{x.name: h.to_array(x) for x in t})"
        }
        Foreign::TorchTar => {
            "import torch; torch.save(torch.load('{name}', map_location='cpu', \
             weights_only=False), '{pt}')"
        }
        Foreign::Orbax => {
            "import jax, numpy, os, orbax.checkpoint as o; t = jax.tree_util.\
             tree_flatten_with_path(o.PyTreeCheckpointer().restore(os.path.abspath('{name}')))[0]; \
             numpy.savez('{npz}', **{jax.tree_util.keystr(k): v for k, v in t})"
        }
        Foreign::TorchScript => {
            "import torch; \
             torch.save(torch.jit.load('{name}', map_location='cpu').state_dict(), '{pt}')"
        }
        Foreign::Pickle => {
            "import numpy; d = numpy.load('{name}', allow_pickle=True); d = d.item() if \
             getattr(d, 'shape', 0) == () else d; d = d if hasattr(d, 'items') else \
             dict(enumerate(d)) if getattr(d, 'dtype', object) == object else dict(arr_0=d); \
             numpy.savez('{npz}', **{str(k): v for k, v in d.items()})"
        }
        Foreign::ZarrArray => {
            "import numpy, zarr; numpy.save('{npy}', zarr.open('{name}', mode='r')[...])"
        }
        Foreign::ZarrGroup => {
            "import numpy, zarr; g = zarr.open('{name}', mode='r'); \
             numpy.savez('{npz}', **{k: v[...] for k, v in g.arrays()})"
        }
        _ => return None,
    })
}

fn converted(program: &str, kind: Foreign, names: &Names) -> String {
    let Names { name, npy, npz, pt, .. } = names;
    let marks = [("{name}", name), ("{npy}", npy), ("{npz}", npz), ("{pt}", pt)];
    let line = marks.iter().fold(program.to_owned(), |line, (mark, text)| line.replace(mark, text));
    let trust = match kind {
        Foreign::Pickle | Foreign::TorchScript | Foreign::TorchTar => {
            ", and runs what is in it: trust it first"
        }
        _ => "",
    };
    format!("`python3 -c \"{line}\"` converts it{trust}")
}

fn unzipped(path: &Path, name: &str) -> String {
    let piped = |flags: &str| format!("`zcat {name} | tslice - {flags}...` reads it");
    match in_gzip(path) {
        InGzip::Tensors => piped(""),
        InGzip::Foreign(Foreign::Numbers(None)) => piped("--from txt "),
        InGzip::Foreign(Foreign::Numbers(Some(','))) => piped("--from csv "),
        InGzip::Foreign(Foreign::JsonList) => piped("--from json "),
        InGzip::Foreign(kind) => {
            format!("what it holds is {kind}: `gunzip -k {name}` takes it out")
        }
        InGzip::Unknown => format!(
            "what it holds is no file of tensors; {} if that is raw bytes",
            piped("--dtype DTYPE --shape LIST ")
        ),
        InGzip::Damaged => "it cannot be inflated: the file is damaged".to_owned(),
    }
}

fn merged(folder: &str) -> String {
    let folder = if folder.is_empty() { "." } else { folder };
    format!(
        "`python3 -m torch.distributed.checkpoint.format_utils dcp_to_torch {folder} merged.pt` \
         merges it into one file"
    )
}

const NIBABEL: &str = "import nibabel, numpy; numpy.save('{npy}', nibabel.load('{name}').dataobj)";

/// Names for a command: of a file, and of those that the command writes.
struct Names {
    name: String,
    /// The name without its last extension.
    stem: String,
    npy: String,
    npz: String,
    pt: String,
}

impl Names {
    /// A name that a shell or Python would take apart becomes `FILE`, for the user to fill in.
    fn of(file: Option<&FileName>) -> Names {
        let path = match file {
            Some(FileName::Path(path)) => path.clone(),
            Some(FileName::Remote(address)) => PathBuf::from(address.file_name()),
            _ => PathBuf::from("FILE"),
        };
        let plain = path.to_str().filter(|name| quoted(name) == *name && !name.starts_with('-'));
        let name = plain.unwrap_or("FILE").to_owned();
        let stem = Path::new(&name).with_extension("").to_string_lossy().into_owned();
        let whole = stem.strip_suffix(".nii").unwrap_or(&stem);
        // no file is converted to itself
        let written = |extension: &str| match format!("{whole}.{extension}") {
            same if same == name => format!("{whole}-converted.{extension}"),
            other => other,
        };
        let npy = written("npy");
        let npz = written("npz");
        let pt = written("pt");
        Names { name, stem, npy, npz, pt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(kind: Foreign, path: &str) -> String {
        remedy(kind, Some(&FileName::Path(path.into())), true).unwrap()
    }

    #[test]
    fn no_command_writes_over_its_input_or_is_taken_apart() {
        let line = hint(Foreign::Hdf5, "a/m.npz");
        assert!(line.contains("'a/m.npz'") && line.contains("'a/m-converted.npz'"), "{line}");
        for path in ["it's.tif", "$(x).tif", "a b.tif", "-x.tif", "\".tif"] {
            assert_eq!(
                hint(Foreign::Tiff, path),
                "`python3 -c \"import numpy, tifffile; numpy.save('FILE.npy', \
                 tifffile.imread('FILE'))\"` converts it"
            );
        }
        assert!(hint(Foreign::Gzip, "mri.nii.gz").contains("numpy.save('mri.npy', nibabel."));
        assert_eq!(remedy(Foreign::Text { named: true }, None, true), None);
    }
}
