//! The arguments of the main job.

use std::path::PathBuf;

use clap::Args;
use tslice::cast::Casting;

use super::input::InputArgs;
use super::output::OutputArgs;
use super::parsers::{Choice, factor, one_of};

#[derive(Args, Clone, Debug)]
pub(crate) struct SliceArgs {
    /// The file to read; `-` is standard input, https://... and s3://... are remote files
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) transpose: TransposeArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
    /// Copy the tensors that -t does not choose, unchanged
    #[arg(long, help_heading = "Choose and name tensors")]
    pub(crate) keep_rest: bool,
    /// Give a tensor another name in the output: 'model.layers.{l}.w=blk.{l}'
    ///
    /// {l} matches any text without a dot, {p:q,k} one of these, * any; NEW may use them, {l+4} adds to a number.
    /// Several are applied in turn.
    #[arg(long, value_name = "OLD=NEW", help_heading = "Choose and name tensors")]
    pub(crate) rename: Vec<String>,
    /// Read new names from a file: OLD=NEW a line, or a JSON object (applied before --rename)
    ///
    /// A table is applied at once: each name by the first line that matches it. `-` is standard input.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Choose and name tensors",
        hide_short_help = true
    )]
    pub(crate) rename_from: Option<PathBuf>,
}

impl SliceArgs {
    /// Whether tensors are only converted, copied or renamed.
    pub(crate) fn takes_whole_tensors(&self) -> bool {
        let SliceArgs { index, transpose, .. } = self;
        index.text.is_none()
            && index.strided.begin.is_none()
            && !index.keepdims
            && transpose.is_none()
    }
}

impl TransposeArgs {
    fn is_none(&self) -> bool {
        self.transpose.is_none() && !self.reverse_axes && self.rearrange.is_none()
    }
}

/// An index as NumPy's text or as StridedSlice's numbers, and how to take either.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct IndexArgs {
    /// What to select, as in NumPy: '[1, 2:4, None, ..., ::-1]'
    ///
    /// All elements if omitted; `tslice --help` lists the items.
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) strided: StridedArgs,
    /// Keep the axes that integers index, with length 1
    #[arg(long, help_heading = "Select elements", hide_short_help = true)]
    pub(crate) keepdims: bool,
    /// Take each list along its own axis, as np.ix_ does
    #[arg(
        long,
        help_heading = "Select elements",
        conflicts_with = "begin",
        hide_short_help = true
    )]
    pub(crate) outer: bool,
    #[command(flatten)]
    pub(crate) reshape: ReshapeArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Change shape and axes")]
pub(crate) struct ReshapeArgs {
    /// Give the tensor this shape before the index is applied, as np.reshape: 12,-1,64
    ///
    /// Elements are in C order, whatever the file's order. One length may be -1, which is computed from the others;
    /// `--reshape=` is the shape without axes.
    #[arg(long, value_name = "SHAPE", hide_short_help = true)]
    pub(crate) reshape: Option<String>,
}

/// The arguments of TensorFlow's and MindSpore's StridedSlice.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "StridedSlice (in place of INDEX)")]
pub(crate) struct StridedArgs {
    /// First positions, a comma list; '' is the empty list
    #[arg(long, value_name = "LIST", requires = "end", group = "begun", hide_short_help = true)]
    pub(crate) begin: Option<String>,
    /// One past the last positions, as long as --begin
    #[arg(long, value_name = "LIST", requires = "begun", hide_short_help = true)]
    pub(crate) end: Option<String>,
    /// Steps, as long as --begin; 1s if omitted
    #[arg(long, value_name = "LIST", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) strides: Option<String>,
    /// Bit i: ignore begin[i], take the fullest range
    ///
    /// A mask is a decimal, 0x.., 0b.., or 1<<4|1<<5.
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) begin_mask: Option<String>,
    /// Bit i: ignore end[i], take the fullest range
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) end_mask: Option<String>,
    /// Bit i: item i is an ellipsis
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) ellipsis_mask: Option<String>,
    /// Bit i: item i is a new axis of length 1
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) new_axis_mask: Option<String>,
    /// Bit i: item i is the integer begin[i], and its axis is dropped
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) shrink_axis_mask: Option<String>,
}

/// The arguments of all commands that make outputs of inputs: how inputs are read, how elements are converted, and where
/// outputs are written.
#[derive(Args, Clone, Debug)]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Change shape and axes")]
pub(crate) struct TransposeArgs {
    /// Put the axes of the result in this order, as np.transpose does: 0,3,1,2
    ///
    /// Negative axes count from the end, dimensions may be named: lat,lon,time; `--transpose=` reverses them.
    #[arg(long, value_name = "AXES")]
    pub(crate) transpose: Option<String>,
    /// Reverse the axes of the result, as NumPy's a.T does
    #[arg(short = 'T', conflicts_with = "transpose", hide_short_help = true)]
    pub(crate) reverse_axes: bool,
    /// Split, permute and merge the axes of the result, as einops' rearrange: '(h d) c -> h c d'
    ///
    /// Write a length that cannot be computed at its name: (h=32 d). (a b) on the right merges, the last one fastest;
    /// 1 or () is an axis of length 1, ... is all other axes.
    #[arg(
        long,
        value_name = "PATTERN",
        allow_hyphen_values = true,
        conflicts_with_all = ["transpose", "reverse_axes"], hide_short_help = true)]
    pub(crate) rearrange: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Convert elements")]
pub(crate) struct CastArgs {
    /// Convert elements to this dtype, as NumPy's astype: bfloat16, '>i2', ...
    ///
    /// With FROM, only elements of that dtype are converted; may be given again. Of several tensors, a float dtype
    /// converts only float tensors; all:DTYPE converts integers and booleans, too. Names are taken from NumPy,
    /// ml_dtypes and PyTorch (float32, '<f4', half, bfloat16), and safetensors (BF16, F8_E4M3). Short names count bits
    /// (f32, bf16, i64). i8, u8 and f16 could mean two dtypes, and are refused without a byte order.
    #[arg(long, value_name = "[FROM:]DTYPE", group = "casts")]
    pub(crate) cast: Vec<String>,
    /// The casts that are allowed
    #[arg(long, value_parser = one_of(RULES), value_name = "RULE", requires = "casts", hide_short_help = true)]
    pub(crate) casting: Option<Casting>,
    #[command(flatten)]
    pub(crate) scaling: ScalingArgs,
}

/// Numbers that elements are computed with.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Convert elements")]
pub(crate) struct ScalingArgs {
    /// Multiply elements, before a cast: 0.01, 1/255
    ///
    /// Integers become float64.
    #[arg(long, value_name = "F", value_parser = factor, allow_negative_numbers = true, hide_short_help = true)]
    pub(crate) multiply: Option<f64>,
    /// Add a number to elements, after --multiply: -273.15
    #[arg(long, value_name = "N", value_parser = factor, allow_negative_numbers = true, hide_short_help = true)]
    pub(crate) add: Option<f64>,
    /// Replace NaN by a number, as np.nan_to_num does with its `nan`
    #[arg(long, value_name = "N", value_parser = factor, allow_negative_numbers = true, hide_short_help = true)]
    pub(crate) nan: Option<f64>,
}

const RULES: [Choice<Casting>; 3] = [
    ("safe", "Casts that keep every value", Casting::Safe),
    (
        "same-kind",
        "Also casts within a kind, such as float64 to float32 (the default)",
        Casting::SameKind,
    ),
    (
        "unsafe",
        "All: from float to integer, out of range becomes the nearest end of the range, NaN 0",
        Casting::Unsafe,
    ),
];

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Select elements")]
pub(crate) struct FieldArgs {
    /// Take this field of a structured dtype before the index is applied
    ///
    /// `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure, `x,` for a structure of one.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) field: Option<String>,
}
