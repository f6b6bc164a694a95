//! The arguments that change the result of an index on its way to the output.

use clap::{Args, ValueEnum};
use tslice::internals::cast;

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
    /// With FROM only those of that dtype; may be given again. Names are those of NumPy, ml_dtypes and
    /// PyTorch (float32, '<f4', half, bfloat16), of safetensors (BF16, F8_E4M3), and short ones that
    /// count bits (f32, bf16, i64); i8, u8 and f16 mean two dtypes without a byte order.
    #[arg(long, value_name = "[FROM:]DTYPE", group = "casts")]
    pub(crate) cast: Vec<String>,
    /// Which casts are allowed
    #[arg(long, value_enum, value_name = "RULE", requires = "casts")]
    pub(crate) casting: Option<CastingArg>,
}

/// Rules for casts, as in NumPy.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum CastingArg {
    /// Only those that keep every value
    Safe,
    /// Those and casts within a kind, such as float64 to float32 (the default)
    #[default]
    SameKind,
    /// All: from float to integer the nearest end of the range where the number is out of it, 0 for
    /// NaN
    Unsafe,
}

impl From<CastingArg> for cast::Casting {
    fn from(casting: CastingArg) -> cast::Casting {
        match casting {
            CastingArg::Safe => cast::Casting::Safe,
            CastingArg::SameKind => cast::Casting::SameKind,
            CastingArg::Unsafe => cast::Casting::Unsafe,
        }
    }
}

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
