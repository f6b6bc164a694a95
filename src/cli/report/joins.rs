//! Messages about tensors that do not fit together: in joins, merges and groups, and about their
//! new names.

use tslice::dtype::{DType, NpyType};
use tslice::error::Error;
use tslice::input::{GroupFault, SelectFault};
use tslice::job::{JoinFault, MergeFault, SplitFault};

use super::failure::{Exit, Failure, quoted};

pub(super) fn join(fault: &JoinFault, failed: impl Fn() -> Failure) -> Failure {
    match fault {
        JoinFault::NoAxes => failed().hint("`tslice stack` joins along a new axis"),
        JoinFault::DType { common: Some(common), .. } => failed()
            .hint(format_args!("--cast {} casts all of them first", quoted(&common.to_string()))),
        JoinFault::Meaning { is_packing: true, .. } => {
            failed().hint("--unpack joins the unpacked values")
        }
        // this is how a .npy stores bfloat16
        JoinFault::DType { dtype: dtype @ DType::Npy(NpyType::Void(..)), first, .. }
            if dtype.item_bits() == first.item_bits() =>
        {
            let void = dtype.type_name();
            let both =
                format!("{}:{}", void.trim_start_matches(['<', '>', '|']), first.type_name());
            failed().hint(format_args!("--as {} reads its bytes as such", quoted(&both)))
        }
        JoinFault::Nothing | JoinFault::StdinTwice => Failure::usage(fault),
        _ => failed(),
    }
}

pub(super) fn merge(fault: &MergeFault, failed: impl Fn() -> Failure) -> Failure {
    failed().hint(match fault {
        MergeFault::Twice { name, .. } if name.is_empty() => {
            "--first or --last chooses an input, --rename N:=NEW names the tensor of input N"
                .to_owned()
        }
        MergeFault::Twice { .. } => {
            "--first or --last chooses an input, --rename N:OLD=NEW renames the tensor of input N"
                .to_owned()
        }
        MergeFault::Metadata { key, .. } => {
            let text = quoted(&format!("{key}=VALUE"));
            format!("--metadata {text} sets it, --first or --last chooses an input")
        }
    })
}

pub(super) fn rename(fault: &SelectFault) -> Failure {
    let message = format!("--rename {fault}");
    match fault {
        SelectFault::BadRename { hint, .. } => Failure::usage(message).hint_if(hint.as_ref()),
        SelectFault::RenameNotFound { rename, nameless, .. } => {
            let name = rename.split_once('=').filter(|_| *nameless).map(|(_, name)| quoted(name));
            Failure::new(message).hint_if(name.map(|name| {
                format!("the tensor has no name in the input: --name {name} gives it one")
            }))
        }
        _ => Failure::usage(message),
    }
}

pub(super) fn group(fault: &GroupFault, failed: impl Fn() -> Failure) -> Failure {
    match fault {
        GroupFault::Names { pattern, into, hint, .. } => {
            let pattern = quoted(pattern);
            let into = quoted(into);
            Failure::usage(format_args!("--group {pattern} --into {into}: {fault}"))
                .hint_if(hint.as_ref())
        }
        GroupFault::NoNumber { listed, .. } => failed().hint(match listed {
            Some(listed) => format!("--group {} gives them an order", quoted(listed)),
            None => "{p:a,b} lists texts in their order".to_owned(),
        }),
        _ => failed(),
    }
}

pub(super) fn split(fault: &SplitFault, failed: impl Fn() -> Failure) -> Failure {
    match fault {
        SplitFault::Texts { is_asked: true, .. } => Failure { exit: Exit::Usage, ..failed() },
        _ => failed(),
    }
}

/// The hint for rows that do not fit the file to which they are appended.
pub(crate) fn hint_in_append(error: &Error) -> Option<String> {
    match error.cause.downcast_ref()? {
        // structures are not cast
        JoinFault::DType { first: first @ DType::Scalar(..), .. } => Some(format!(
            "--cast {} gives the rows the dtype of the file",
            quoted(&first.to_string())
        )),
        _ => None,
    }
}

/// The hint for a union that is joined by names, where no flag decides between several tensors of
/// one name.
pub(crate) fn hint_in_group(error: &Error) -> Option<String> {
    Some(match error.cause.downcast_ref()? {
        MergeFault::Twice { .. } => {
            "`tslice merge` makes one set of tensors of them: --rename '1:x.{e}=x.{e+8}' gives the tensors of input 1 \
             other numbers, --first takes the first of several tensors of one name"
                .to_owned()
        }
        MergeFault::Metadata { key, .. } => {
            format!("--metadata {} decides", quoted(&format!("{key}=VALUE")))
        }
    })
}
