//! `tslice view --stats --fail-on`: tensors with elements that none should have.

use tslice::input::Input;
use tslice::statistics::Summary;

use crate::cli::args::Column;
use crate::cli::report::Failure;

#[derive(Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    /// Look at the summary of a tensor, or of a slice of it, for what was `asked`.
    pub(super) fn look(&mut self, asked: &[Column], name: Option<&str>, summary: &Summary) {
        let counts = [
            (Column::Nan, summary.nan, "nan"),
            (Column::Infinite, summary.infinite, "inf"),
            (Column::Zero, summary.zero, "zero"),
        ];
        let found = counts.iter().filter(|(column, count, _)| asked.contains(column) && *count > 0);
        let found: Vec<String> = found.map(|(_, count, what)| format!("{count} {what}")).collect();
        if !found.is_empty() {
            let name = name.map(|name| format!("{name} ")).unwrap_or_default();
            self.0.push(format!("{name}has {}", found.join(", ")));
        }
    }

    /// Fail with their names, if there are any.
    pub(super) fn failure(self, input: &Input) -> Result<(), Failure> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(format_args!("{}: {}", input.location(), self.0.join("; "))))
        }
    }
}
