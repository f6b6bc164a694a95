//! The library's errors in the words of the command line: with flags, hints, and the status of the
//! program.

use std::fmt::Display;
use std::io;
use std::path::Path;

use tslice::cast::{Cast, CastError, Casting, can_cast};
use tslice::dtype::{DType, Endian, NpyType, Scalar};
use tslice::error::{Cause, Error, FileName, InputIsOutput};
use tslice::execute::ExecuteError;
use tslice::formats::npy::{DescrError, NpyError};
use tslice::formats::pickle::PickleError;
use tslice::formats::shards::{ShardsError, ShardsFault};
use tslice::formats::text::{CellRemedy, TextFault};
use tslice::formats::{ForeignBytes, FormatError, NotRead, outputs};
use tslice::input::{FieldFault, LengthFault, RawFault, RawOption, ReadAsFault, UnusedReadAs};
use tslice::job::{AxisFault, EditFault, StatisticsFault, UnusedCast};
use tslice::output::{FormatOption, LayoutFault};
use tslice::shape::{ArrangeError, NoDimension};
use tslice::sink::{PartsError, SinkError};
use tslice::source::remote::{RemoteError, Scheme};
use tslice::source::{OpenError, SourceError, is_too_many_open_files};
use tslice::tensor::shortened;

use super::chosen::{SEVERAL, select};
use super::failure::{Failure, plain, quoted};
use super::foreign::{CONVERTED, remedy};
use super::joins::{group, join, merge, split};

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        failure(&error, "-t")
    }
}

/// Word the error of an input whose tensor is chosen by `flag` in place of `-t`.
pub(crate) fn of_flag(flag: &str) -> impl Fn(Error) -> Failure {
    move |error| failure(&error, flag)
}

fn failure(error: &Error, flag: &str) -> Failure {
    let cause = &error.cause;
    let file = error.file.as_ref();
    let worded = |words: &dyn Display| Failure::new(of_place(error, words));
    let failed = || worded(cause);
    let of_kind = (cause.downcast_ref().map(|fault| select(error, fault, flag, &failed)))
        .or_else(|| Some(layout(cause.downcast_ref()?, file, failed)))
        .or_else(|| Some(raw(cause.downcast_ref()?, file, worded)))
        .or_else(|| format(error, flag, failed))
        .or_else(|| Some(edit(cause.downcast_ref()?, flag, failed)))
        .or_else(|| Some(of_tensor(error, cast(cause.downcast_ref()?))))
        .or_else(|| Some(join(cause.downcast_ref()?, failed)))
        .or_else(|| Some(merge(cause.downcast_ref()?, failed)))
        .or_else(|| Some(group(cause.downcast_ref()?, failed)))
        .or_else(|| Some(split(cause.downcast_ref()?, failed)))
        .or_else(|| Some(text(cause.downcast_ref()?, worded)))
        .or_else(|| value_of_flag(error))
        .or_else(|| opening(error, failed))
        .or_else(|| Some(sink(cause.downcast_ref()?, failed)));
    of_kind.unwrap_or_else(failed)
}

/// Put the file and the tensor before the words.
fn of_place(error: &Error, words: &dyn Display) -> String {
    let file = error.file.iter().map(|file| format!("{file}: "));
    let tensor = error.tensor.iter().map(|name| format!("tensor {:?}: ", shortened(name)));
    file.chain(tensor).collect::<String>() + &plain(words)
}

fn of_tensor(error: &Error, failure: Failure) -> Failure {
    match &error.tensor {
        Some(name) => failure.of_tensor(name),
        None => failure,
    }
}

/// The error in the value of one flag, which is named first.
fn value_of_flag(error: &Error) -> Option<Failure> {
    let cause = &error.cause;
    if let Some(StatisticsFault(dtype)) = cause.downcast_ref() {
        let message = format!("--stats is for real numbers, and the dtype is {dtype}");
        return Some(Failure::new(message).hint_if(as_complex(dtype)));
    }
    if let Some(UnusedCast(from)) = cause.downcast_ref() {
        let from = from.type_name();
        let message = format!("--cast {from}:... has no effect: no tensor has dtype {from}");
        return Some(Failure::new(message));
    }
    if let Some(fault) = cause.downcast_ref::<ArrangeError>() {
        let failure = of_tensor(error, Failure::new(format_args!("--{fault}")));
        return Some(match fault {
            ArrangeError::Pattern(fault) => failure.at(&fault.text, fault.span.clone()),
            ArrangeError::Permutation(_) | ArrangeError::Dimension(_) => failure,
        });
    }
    if let Some(fault) = cause.downcast_ref::<AxisFault>() {
        return Some(of_tensor(error, Failure::new(format_args!("--axis: {fault}"))));
    }
    if let Some(fault) = cause.downcast_ref::<NoDimension>() {
        return Some(of_tensor(error, Failure::new(format_args!("--axis: {fault}"))));
    }
    if let Some(fault) = cause.downcast_ref::<ReadAsFault>() {
        return Some(Failure::new(of_place(error, &format_args!("--{fault}"))));
    }
    if let Some(fault) = cause.downcast_ref::<UnusedReadAs>() {
        return Some(Failure::new(of_place(error, &format_args!("--{fault}"))));
    }
    let fault = cause.downcast_ref::<FieldFault>()?;
    Some(Failure::new(of_place(error, &format_args!("--field: {fault}"))))
}

fn text(fault: &TextFault, failed: impl Fn(&dyn Display) -> Failure) -> Failure {
    let hint = match fault {
        TextFault::Field(fault) => return failed(&format_args!("--field: {fault}")),
        TextFault::Cell { remedy: Some(remedy), position, .. } => {
            cell_remedy(remedy, position.column)
        }
        TextFault::Utf16 { unmarked } => {
            let order = match unmarked {
                Some(Endian::Little) => "LE",
                Some(Endian::Big) => "BE",
                None => "",
            };
            format!("`iconv -f UTF-16{order} -t UTF-8 FILE` converts it")
        }
        // text next to numbers
        TextFault::NumberInNames { position, .. } if position.column > 1 => {
            only_columns(&[position.column])
        }
        TextFault::EmptyCell { may_be_nan: true, .. } => {
            "--missing '' reads empty cells as NaN".to_owned()
        }
        _ => return failed(fault),
    };
    failed(fault).hint(hint)
}

fn cell_remedy(remedy: &CellRemedy, column: u64) -> String {
    match remedy {
        CellRemedy::Delimiter('\t') => "--delimiter '\\t' separates columns by tabs".to_owned(),
        CellRemedy::Delimiter(delimiter) => {
            format!("--delimiter '{delimiter}' separates columns by this character")
        }
        CellRemedy::Points => "`tr , . < FILE` turns decimal commas into points".to_owned(),
        CellRemedy::Missing(word) => {
            let parting = if word.starts_with('-') { '=' } else { ' ' };
            format!("--missing{parting}{} reads it as NaN", quoted(word))
        }
        CellRemedy::Booleans => "--dtype bool reads TRUE and FALSE".to_owned(),
        CellRemedy::OtherColumns(count) if *count <= MOST_COLUMNS => {
            let others: Vec<u64> = (1..=*count).filter(|&other| other != column).collect();
            only_columns(&others)
        }
        CellRemedy::OtherColumns(count) => {
            format!("--columns LIST reads only some of columns 0 to {}", count - 1)
        }
    }
}

/// Columns that are listed in a hint.
const MOST_COLUMNS: u64 = 6;

/// `columns` count from 1.
fn only_columns(columns: &[u64]) -> String {
    let list: Vec<String> = columns.iter().map(|column| (column - 1).to_string()).collect();
    let these = if list.len() == 1 { "this column" } else { "these columns" };
    format!("--columns {} reads only {these}, counted from 0", list.join(","))
}

/// The error of opening a file of any format.
fn opening(error: &Error, failed: impl Fn() -> Failure) -> Option<Failure> {
    let cause = &error.cause;
    if let Some(ShardsFault::Outside) = cause.downcast_ref() {
        return Some(failed().hint(
            "links out of the folder are not followed: `cp -rL FOLDER COPY` copies what they lead to",
        ));
    }
    if let Some(ExecuteError::Threads { threads: 2.., .. }) = cause.downcast_ref() {
        return Some(failed().hint("-j 1 works with one thread"));
    }
    if let Some(InputIsOutput) = cause.downcast_ref() {
        return Some(failed().hint("-o FILE --force replaces a file in one step"));
    }
    if let (Some(OpenError::Remote(fault)), _) | (_, Some(SourceError::Remote(fault))) =
        (cause.downcast_ref(), cause.downcast_ref())
    {
        return Some(remote(fault, error.file.as_ref(), failed));
    }
    if let Some(OpenError::Io(reason)) = cause.downcast_ref()
        && reason.kind() == io::ErrorKind::NotFound
        && let Some(hint) = error.file.as_ref().and_then(with_index)
    {
        return Some(failed().hint(hint));
    }
    io_error(cause).is_some_and(is_too_many_open_files).then(|| {
        failed().hint("the limit of open files is too low: `ulimit -n` shows and raises it")
    })
}

/// The error of a file that breaks the rules of its format.
fn format(error: &Error, flag: &str, failed: impl Fn() -> Failure) -> Option<Failure> {
    let Error { file, cause, .. } = error;
    let remedy = |kind, is_input| remedy(kind, file.as_ref(), is_input);
    if let Some(ForeignBytes(kind)) = cause.downcast_ref() {
        let raw = "--offset 0 reads its bytes as numbers";
        let said = format!("--dtype is for raw bytes, and the input is {kind}");
        let remedy = remedy(*kind, true).map(|remedy| format!("{remedy}; {raw}"));
        let failure = Failure::new(of_place(error, &said));
        return Some(failure.hint(remedy.unwrap_or_else(|| raw.to_owned())));
    }
    if let Some(NotRead(kind)) = cause.downcast_ref() {
        return Some(failed().hint_if(remedy(*kind, flag == "-t")));
    }
    if let Some(FormatError::Unrecognised) = cause.downcast_ref() {
        return Some(failed().hint(raw_bytes(error, flag)));
    }
    let has_objects = matches!(
        cause.downcast_ref(),
        Some(NpyError::Descr(DescrError::Object(_)) | NpyError::Objects { .. })
    );
    if has_objects || matches!(cause.downcast_ref(), Some(PickleError::NoTensors(_))) {
        return Some(failed().hint(CONVERTED));
    }
    if let (Some(LengthFault::CutShort { .. }), Some(FileName::Stdin)) =
        (cause.downcast_ref(), file)
    {
        return Some(failed().hint(
            "a file that is still being written is shorter than its header says: wait for its end",
        ));
    }
    if let Some(ShardsError::Json(_)) = cause.downcast_ref() {
        return Some(failed().hint(
            "--no-index reads all shards in the folder; `tslice info DIR --reindex` writes a new index",
        ));
    }
    let Some(FileName::Path(path)) = file else { return None };
    let name = quoted(&path.to_string_lossy());
    if let Some(LengthFault::TrailingBytes { expected, .. }) = cause.downcast_ref() {
        return Some(
            failed().hint(format_args!("`head -c {expected} {name} > NEW` leaves them out")),
        );
    }
    if let Some(ShardsError::Several { tensor, second, .. }) = cause.downcast_ref()
        && tensor.is_empty()
    {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let file = quoted(&folder.join(second).to_string_lossy());
        return Some(failed().hint(format_args!(
            "`tslice {file} --name NAME -o NEW.safetensors` names it: put NEW.safetensors in place of {file}"
        )));
    }
    None
}

fn raw(
    fault: &RawFault,
    file: Option<&FileName>,
    failed: impl Fn(&dyn Display) -> Failure,
) -> Failure {
    match fault {
        RawFault::NotRaw { given, format } => {
            let flag = flag_of(*given);
            let purpose = given.purpose();
            failed(&format_args!("{flag} is for {purpose}, and the input is of format {format}"))
                .hint_if(match given {
                    RawOption::Shape => {
                        let name = file.map(|file| quoted(&file.to_string())).unwrap_or_default();
                        Some(format!("the shape is in the file: `tslice info {name}` shows it"))
                    }
                    RawOption::Order => Some("the order is in the file".to_owned()),
                    RawOption::Offset => {
                        Some("the offset of the elements is in the file".to_owned())
                    }
                    _ => None,
                })
        }
        RawFault::NoneRaw { given } => {
            let flag = flag_of(*given);
            let purpose = given.purpose();
            Failure::new(format_args!("{flag} is for {purpose}, and no input is {purpose}"))
        }
        RawFault::Short { asked, found } => {
            failed(&format_args!("--shape and --offset need {asked} bytes, the file has {found}"))
        }
        RawFault::NotWhole { .. } => failed(fault),
        RawFault::OtherDType { given, .. } => {
            let name = file.map(|file| quoted(&file.to_string())).unwrap_or_default();
            failed(&format_args!("--{fault}")).hint(format_args!(
                "--dtype is for raw bytes; `tslice {name} --cast {given} -o OTHER` converts elements"
            ))
        }
        fault => failed(&format_args!("--{fault}")),
    }
}

fn edit(fault: &EditFault, flag: &str, failed: impl Fn() -> Failure) -> Failure {
    match fault {
        EditFault::Archive => failed().hint("-o COPY.npz writes a copy with the change in it"),
        EditFault::Deflated => failed()
            .hint("`tslice FILE -o STORED.npz` stores all arrays uncompressed: change that file"),
        EditFault::CopyName { format, .. } => {
            let extension = format.extensions.first().unwrap_or(&"");
            failed().hint(format_args!("give it a name that ends in .{extension}"))
        }
        EditFault::Shape { stretches: true, .. } => {
            failed().hint("--broadcast stretches it, as NumPy does")
        }
        EditFault::OfOne { name, .. } => failed().hint(format_args!(
            "-t {name} writes it to that one, {flag} {name} to all",
            name = quoted(name)
        )),
        EditFault::Overlap => {
            failed().hint("copy it first, or use -o FILE, with --force to replace the target")
        }
        EditFault::DType {
            value: DType::Scalar(value, _),
            target: target @ DType::Scalar(to, _),
        } if Cast::new(&DType::Scalar(*value, Endian::Little), target, Casting::Unsafe).is_ok() => {
            let casting =
                if can_cast(*value, *to, Casting::SameKind) { "" } else { " --casting unsafe" };
            failed().hint(format_args!("--cast {}{casting} converts it", to.name()))
        }
        EditFault::PartsOfBytes(_) => failed().hint(
            "`tslice FILE --cast DTYPE -o OTHER` writes the converted elements to a new file",
        ),
        EditFault::ReadOnly(_) => failed()
            .hint("take the tensor out with `tslice FILE -t NAME -o NAME.npy`, and change that"),
        EditFault::Text => {
            failed().hint("make a .npy of it with `tslice FILE -o FILE.npy`, and change that")
        }
        EditFault::Sharded => failed().hint(
            "-t NAME --in-place changes tensors of it; -o DIR/ writes a copy of all its files",
        ),
        EditFault::Remote => failed().hint("download it first"),
        _ => failed(),
    }
}

/// The hint for structures that are complex numbers of MATLAB.
fn as_complex(dtype: &DType) -> Option<&'static str> {
    let DType::Npy(NpyType::Structure(structure)) = dtype else { return None };
    let [real, imaginary] = &structure.fields[..] else { return None };
    let are_parts = (real.name.as_str(), imaginary.name.as_str()) == ("real", "imag");
    match (&real.dtype, &imaginary.dtype) {
        (DType::Scalar(Scalar::F64, _), DType::Scalar(Scalar::F64, _)) if are_parts => {
            Some("--as complex128 reads real and imag as one number")
        }
        (DType::Scalar(Scalar::F32, _), DType::Scalar(Scalar::F32, _)) if are_parts => {
            Some("--as complex64 reads real and imag as one number")
        }
        _ => None,
    }
}

fn cast(error: &CastError) -> Failure {
    Failure::new(format_args!("--cast: {error}")).hint_if(match error {
        CastError::Refused { casting: Casting::Safe, .. } => {
            Some("leave out --casting safe: casts within a kind are allowed by default")
        }
        CastError::Refused { .. } => Some("--casting unsafe allows every cast"),
        CastError::NotNumbers(dtype) if as_complex(dtype).is_some() => as_complex(dtype),
        CastError::NotNumbers(dtype) if dtype.is_void() => {
            Some("--dtype gives the bytes of a void type a meaning: --dtype bfloat16")
        }
        _ => None,
    })
}

fn sink(fault: &SinkError, failed: impl Fn() -> Failure) -> Failure {
    match fault {
        SinkError::BrokenPipe => Failure { quiet: true, ..failed() },
        SinkError::AlreadyExists => failed().hint("--force replaces it"),
        SinkError::NamedByContent { .. } => failed()
            .hint("copy it first: -o with the name of another file leaves the cache as it is"),
        SinkError::Parts(
            PartsError::OtherJob(_) | PartsError::Damaged(_) | PartsError::OtherLen { .. },
        ) => failed().hint("--part discard removes them"),
        SinkError::Os { what: "cannot be replaced", error }
            if error.kind() == io::ErrorKind::PermissionDenied =>
        {
            failed().hint("the output is a new file, so its folder must be writable")
        }
        SinkError::OtherFolder => {
            failed().hint("--force replaces only a folder of Zarr by another")
        }
        SinkError::FolderNotEmpty => {
            failed().hint("--force replaces the checkpoint, or the arrays of Zarr, that it holds")
        }
        _ => failed(),
    }
}

/// The probable meaning, if no such file exists and its name looks like a file and an index in one
/// word.
fn with_index(file: &FileName) -> Option<String> {
    let FileName::Path(path) = file else { return None };
    let typed = path.to_str().filter(|typed| typed.ends_with(']'))?;
    let cuts = typed.match_indices('[').map(|(at, _)| typed.split_at(at));
    let (name, index) = cuts.into_iter().find(|(name, _)| Path::new(name).exists())?;
    Some(format!("an index is a separate argument: {} {}", quoted(name), quoted(index)))
}

fn flag_of(given: RawOption) -> &'static str {
    match given {
        RawOption::DType => "--dtype",
        RawOption::Shape => "--shape",
        RawOption::Order => "--input-order",
        RawOption::Offset => "--offset",
        RawOption::From => "--from",
        RawOption::Delimiter => "--delimiter",
        RawOption::SkipRows => "--skip-rows",
        RawOption::Missing => "--missing",
        RawOption::Names => "--names",
        RawOption::Columns => "--columns",
    }
}

/// The hint at flags for raw bytes, which apply to the input of a command, not to its values and
/// indices.
fn raw_bytes(error: &Error, flag: &str) -> String {
    match &error.file {
        Some(FileName::Path(path)) if flag != "-t" => {
            let name = quoted(&path.to_string_lossy());
            format!(
                "`tslice {name} --dtype DTYPE --shape LIST -o OTHER.npy` makes a .npy of raw bytes"
            )
        }
        _ => "--dtype, with --shape and --offset, reads raw bytes".to_owned(),
    }
}

fn io_error(cause: &Cause) -> Option<&io::Error> {
    match cause.downcast_ref() {
        Some(OpenError::Io(error)) => Some(error),
        _ => cause.downcast_ref().or_else(|| cause.downcast_ref::<SinkError>()?.io()),
    }
}

fn remote(fault: &RemoteError, file: Option<&FileName>, failed: impl Fn() -> Failure) -> Failure {
    match (fault, file) {
        (RemoteError::Denied(_), Some(FileName::Remote(address))) => {
            failed().hint(credentials(address.scheme()))
        }
        (RemoteError::NotMappable, _) => failed().hint("leave out --io mmap"),
        (RemoteError::NoRanges, _) => failed().hint("download it first"),
        (RemoteError::Changed, _) => failed().hint("run it again to read the new version"),
        _ => failed(),
    }
}

fn credentials(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Url => {
            "a name and password, or a token as the password, stand before the host: \
             //NAME:PASSWORD@HOST/...; HF_TOKEN is for huggingface.co"
        }
        Scheme::S3 => {
            "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile of \
             ~/.aws that AWS_PROFILE names"
        }
        Scheme::Gcs => {
            "credentials come from GOOGLE_APPLICATION_CREDENTIALS, or from \
             `gcloud auth application-default login`"
        }
        Scheme::Azure => {
            "credentials come from AZURE_STORAGE_ACCOUNT_NAME, with AZURE_STORAGE_ACCOUNT_KEY or \
             AZURE_STORAGE_SAS_KEY"
        }
    }
}

fn layout(fault: &LayoutFault, file: Option<&FileName>, failed: impl Fn() -> Failure) -> Failure {
    let usage = || Failure { exit: super::failure::Exit::Usage, ..failed() };
    match fault {
        LayoutFault::Extension(extension) if extension.eq_ignore_ascii_case("png") => {
            let place = file.map(|file| quoted(&file.to_string())).unwrap_or_default();
            usage().hint(format_args!("`tslice view INPUT [INDEX] -o {place}` draws a picture"))
        }
        LayoutFault::Extension(_) => usage().hint(extensions()),
        LayoutFault::NoExtension => {
            let folder = file.map(|file| quoted(&format!("{file}/"))).unwrap_or_default();
            usage().hint(extensions() + &format!("; a folder is {folder}"))
        }
        LayoutFault::NoEffect { option, format } => {
            let (flag, hint) = match option {
                FormatOption::Name => ("--name", None),
                FormatOption::Rename => ("--rename", None),
                FormatOption::Deflate => ("--deflate", Some("use it with .npz, or --to npz")),
                FormatOption::OrderF => ("--order F", None),
                FormatOption::Metadata => (
                    "--metadata, --metadata-from or --no-metadata",
                    Some("use it with .safetensors or .gguf"),
                ),
                FormatOption::ShardSize => ("--shard-size", Some("a folder has shards: -o DIR/")),
                FormatOption::Chunking => {
                    ("--chunks, --shards or --codec", Some("use it with .zarr"))
                }
                FormatOption::Files => ("--with-files", Some("a folder has other files: -o DIR/")),
            };
            let why_not = option.why_not();
            let message = format!("{flag} has no effect: an output of format {format} {why_not}");
            Failure::usage(message).hint_if(hint)
        }
        LayoutFault::DType { dtype, .. } if dtype.blocks().is_some() => failed().hint(
            "a .gguf output stores blocks, and a .npy, .npz or .bin the bytes of blocks; -t chooses other tensors",
        ),
        LayoutFault::Metadata { .. } => usage(),
        LayoutFault::Count { .. } => failed().hint(SEVERAL),
        _ => failed(),
    }
}

fn extensions() -> String {
    let first = outputs().filter_map(|format| format.extensions.first());
    let all: Vec<String> = first.map(|extension| format!(".{extension}")).collect();
    match all.split_last() {
        Some((last, others)) => format!("use {} or {last}, or --to FORMAT", others.join(", ")),
        None => String::new(),
    }
}
