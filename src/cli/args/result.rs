//! The arguments that change the result of an index on its way to the output.

use clap::Args;

/// The order of the result's axes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub(crate) struct TransposeArgs {
    /// Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count
    /// from the end; `--transpose=` reverses them
    #[arg(long, value_name = "AXES")]
    pub(crate) transpose: Option<String>,
    /// Reverse the axes of the result, as NumPy's a.T does
    #[arg(short = 'T', conflicts_with = "transpose")]
    pub(crate) reverse_axes: bool,
}
