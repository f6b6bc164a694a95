//! The arguments that change the result of an index on its way to the output.

use clap::Args;
use tslice::cast::Casting;

use super::choice::{Choice, one_of};
use super::input::InputArgs;
use super::output::OutputArgs;

/// What all commands that make whole outputs of inputs take: how those are read, what becomes of their
/// elements, and where these go.
#[derive(Args, Clone, Debug)]
pub(crate) struct ThroughArgs {
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

/// The order of the result's axes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub(crate) struct TransposeArgs {
    /// Put the axes of the result in this order, as np.transpose does: 0,3,1,2
    ///
    /// Negative axes count from the end; `--transpose=` reverses them.
    #[arg(long, value_name = "AXES")]
    pub(crate) transpose: Option<String>,
    /// Reverse the axes of the result, as NumPy's a.T does
    #[arg(short = 'T', conflicts_with = "transpose")]
    pub(crate) reverse_axes: bool,
}

/// The dtype of the result's elements.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub(crate) struct CastArgs {
    /// Convert elements to this dtype, as NumPy's astype does: bfloat16, '>i2', ...
    ///
    /// With FROM only those of that dtype; may be given again. Of several tensors, a float dtype is for those
    /// of floats, and all:DTYPE for integers and booleans, too. Names are those of NumPy, ml_dtypes and
    /// PyTorch (float32, '<f4', half, bfloat16), of safetensors (BF16, F8_E4M3), and short ones that
    /// count bits (f32, bf16, i64); i8, u8 and f16 mean two dtypes without a byte order.
    #[arg(long, value_name = "[FROM:]DTYPE", group = "casts")]
    pub(crate) cast: Vec<String>,
    /// Which casts are allowed
    #[arg(long, value_parser = one_of(RULES), value_name = "RULE", requires = "casts", hide_short_help = true)]
    pub(crate) casting: Option<Casting>,
}

/// Rules for casts, as in NumPy.
const RULES: [Choice<Casting>; 3] = [
    ("safe", "Only those that keep every value", Casting::Safe),
    (
        "same-kind",
        "Those and casts within a kind, such as float64 to float32 (the default)",
        Casting::SameKind,
    ),
    (
        "unsafe",
        "All: from float to integer the nearest end of the range where the number is out of it, \
         0 for NaN",
        Casting::Unsafe,
    ),
];

/// The fields of a structured dtype that are taken.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub(crate) struct FieldArgs {
    /// Take this field of a structured dtype before the index is applied
    ///
    /// `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure, `x,` for a structure of one.
    #[arg(long, value_name = "NAME")]
    pub(crate) field: Option<String>,
}
