//! What helps with a file of a kind that is known, and not read: one command, as it can be typed.

use std::path::{Path, PathBuf};

use tslice::internals::error::FileName;
use tslice::internals::format::{Foreign, TextTable};

use super::shell::quoted;

/// The hint for a file of that kind.
pub(super) fn remedy(kind: Foreign, file: Option<&FileName>) -> Option<String> {
    let names = Names::of(file);
    let Names { name, stem, npy, npz } = &names;
    let streamed = |program: &str| match file {
        Some(FileName::Stdin) => Some(format!("`... | {program} | tslice - ...` reads it")),
        _ => Some(format!("`{program} {name} | tslice - ...` reads it")),
    };
    let python = |line: &str| Some(format!("`python3 -c \"{line}\"` converts it"));
    match kind {
        Foreign::Gzip if stem.ends_with(".nii") => python(&nibabel(&names)),
        Foreign::Gzip => streamed("zcat"),
        Foreign::Bzip2 => streamed("bzcat"),
        Foreign::Lz4 => streamed("lz4cat"),
        Foreign::Xz => streamed("xzcat"),
        Foreign::Zstd => streamed("zstdcat"),
        Foreign::Nifti => python(&nibabel(&names)),
        Foreign::Hdf5 | Foreign::Matlab73 => python(&format!(
            "import h5py, numpy; d = {{}}; h5py.File('{name}').visititems(lambda k, v: \
             d.update({{k: v[()]}}) if hasattr(v, 'shape') else None); numpy.savez('{npz}', **d)"
        )),
        Foreign::NetCdf3 => python(&format!(
            "import numpy, scipy.io; f = scipy.io.netcdf_file('{name}', mmap=False); \
             numpy.savez('{npz}', **{{k: v.data for k, v in f.variables.items()}})"
        )),
        Foreign::Matlab => python(&format!(
            "import numpy, scipy.io; f = scipy.io.loadmat('{name}'); \
             numpy.savez('{npz}', **{{k: v for k, v in f.items() if k[0] != '_'}})"
        )),
        Foreign::Png | Foreign::Jpeg => python(&format!(
            "import numpy, PIL.Image; numpy.save('{npy}', PIL.Image.open('{name}'))"
        )),
        Foreign::Tiff => python(&format!(
            "import numpy, tifffile; numpy.save('{npy}', tifffile.imread('{name}'))"
        )),
        Foreign::Parquet | Foreign::Arrow => {
            let module = if kind == Foreign::Parquet { "parquet" } else { "feather" };
            python(&format!(
                "import numpy, pyarrow.{module} as p; t = p.read_table('{name}'); \
                 numpy.savez('{npz}', **{{c: t[c].to_numpy() for c in t.column_names}})"
            ))
        }
        Foreign::Gguf => python(&format!(
            "import gguf, numpy; t = gguf.GGUFReader('{name}').tensors; \
             numpy.savez('{npz}', **{{x.name: x.data for x in t}})"
        )),
        Foreign::Onnx => python(&format!(
            "import numpy, onnx.numpy_helper as h, onnx; t = onnx.load('{name}').graph.initializer; \
             numpy.savez('{npz}', **{{x.name: h.to_array(x) for x in t}})"
        )),
        Foreign::Torch | Foreign::TorchPickle => python(&format!(
            "import torch, safetensors.torch as s; m = torch.load('{name}', map_location='cpu'); \
             s.save_file({{k: v.clone() for k, v in m.items()}}, '{stem}.safetensors')"
        )),
        Foreign::Pickle => python(&format!(
            "import numpy; numpy.save('{npy}', numpy.load('{name}', allow_pickle=True))"
        ))
        .map(|hint| hint + ", and runs what is in it: trust it first"),
        Foreign::Numbers(TextTable { delimiter, heading }) => {
            let mut options = String::new();
            if let Some(delimiter) = delimiter {
                options.push_str(&format!(", delimiter='{delimiter}'"));
            }
            if heading > 0 {
                options.push_str(&format!(", skiprows={heading}"));
            }
            python(&format!("import numpy; numpy.save('{npy}', numpy.loadtxt('{name}'{options}))"))
        }
        Foreign::JsonList => {
            python(&format!("import json, numpy; numpy.save('{npy}', json.load(open('{name}')))"))
        }
        Foreign::ZarrArray => python(&format!(
            "import numpy, zarr; numpy.save('{npy}', zarr.open('{name}', mode='r')[...])"
        )),
        Foreign::ZarrGroup => python(&format!(
            "import numpy, zarr; g = zarr.open('{name}', mode='r'); \
             numpy.savez('{npz}', **{{k: v[...] for k, v in g.arrays()}})"
        )),
        Foreign::GitLfs => Some("`git lfs pull` fetches the file".to_owned()),
        Foreign::WebPage => Some(format!("`head {name}` shows what the server said")),
        Foreign::Zip => Some(format!("`unzip -l {name}` lists what is in it")),
        Foreign::Text { .. } => None,
    }
}

fn nibabel(Names { name, npy, .. }: &Names) -> String {
    format!("import nibabel, numpy; numpy.save('{npy}', nibabel.load('{name}').dataobj)")
}

/// A file in a command, and those that the command writes.
struct Names {
    name: String,
    /// Without its last extension.
    stem: String,
    npy: String,
    npz: String,
}

impl Names {
    /// Names that a shell or Python would take apart are left to whoever types the command.
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
        // no file is converted into itself
        let written = |extension: &str| match format!("{whole}.{extension}") {
            same if same == name => format!("{whole}-converted.{extension}"),
            other => other,
        };
        let (npy, npz) = (written("npy"), written("npz"));
        Names { name, stem, npy, npz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(kind: Foreign, path: &str) -> String {
        remedy(kind, Some(&FileName::Path(path.into()))).unwrap()
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
        assert_eq!(hint(Foreign::Gzip, "x.npy.gz"), "`zcat x.npy.gz | tslice - ...` reads it");
        assert!(hint(Foreign::Gzip, "mri.nii.gz").contains("numpy.save('mri.npy', nibabel."));
        assert_eq!(remedy(Foreign::Text { named: true }, None), None);
    }
}
