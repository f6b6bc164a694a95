//! The arguments that are an index.

use clap::Args;

/// An index as StridedSlice's numbers, in place of NumPy's text; and how to take either.
#[derive(Args, Clone, Debug)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) strided: StridedArgs,
    /// Keep the axes that integers index, with length 1
    #[arg(long, help_heading = "Result")]
    pub(crate) keepdims: bool,
    /// Take each list along its own axis, as np.ix_ does
    #[arg(long, help_heading = "Result", conflicts_with = "begin")]
    pub(crate) outer: bool,
}

/// The arguments of TensorFlow's and MindSpore's StridedSlice.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "StridedSlice (in place of INDEX)")]
pub(crate) struct StridedArgs {
    /// First positions, a comma list; '' is the empty list
    #[arg(long, value_name = "LIST", requires = "end", group = "begun", hide_short_help = true)]
    pub(crate) begin: Option<String>,
    /// One past the last positions, as long as --begin
    #[arg(long, value_name = "LIST", requires = "begun", hide_short_help = true)]
    pub(crate) end: Option<String>,
    /// Steps, as long as --begin; 1s when left out
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
    /// Bit i: item i is the integer begin[i], and its axis goes
    #[arg(long, value_name = "MASK", requires_all = ["begun", "end"], hide_short_help = true)]
    pub(crate) shrink_axis_mask: Option<String>,
}
