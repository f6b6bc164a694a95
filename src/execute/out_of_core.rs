//! How bytes are copied that do not fit in memory: what the functions that choose a plan say of it.

/// The plan of a copy whose input and output do not fit in memory together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfCore {
    /// What is done, one step after the other. Each but the last writes what the next one reads.
    pub steps: Vec<CopyStep>,
    /// Bytes of temporary files, at most.
    pub temporary_bytes: u64,
}

/// A step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// From the beginning to the end, in the order of the output.
    InOrder,
    /// In panels, each of which is read in the order of the input.
    Panels,
    /// In bands of the input, each of which is put in the order of the output in a temporary file.
    Bands,
    /// Each row by itself, where it lies.
    Rows,
    /// Rows are put in order in temporary files, which are read for the output.
    Distribution,
}

impl CopyStep {
    /// The name of the step, in one word or a few.
    pub fn name(self) -> &'static str {
        match self {
            CopyStep::InOrder => "in order",
            CopyStep::Panels => "panels",
            CopyStep::Bands => "bands",
            CopyStep::Rows => "rows one by one",
            CopyStep::Distribution => "distribution",
        }
    }

    /// How often the bytes are read and written.
    pub fn passes(self) -> u64 {
        match self {
            CopyStep::InOrder | CopyStep::Panels | CopyStep::Bands | CopyStep::Rows => 1,
            CopyStep::Distribution => 2,
        }
    }
}

impl OutOfCore {
    /// A plan of one step.
    pub(crate) fn of(step: CopyStep, temporary_bytes: u64) -> OutOfCore {
        OutOfCore { steps: vec![step], temporary_bytes }
    }

    /// How often bytes are read, and written, in all.
    pub fn passes(&self) -> u64 {
        self.steps.iter().map(|step| step.passes()).sum()
    }

    /// The plan of two copies to one output, which are made together: the steps of the one that has more.
    pub(crate) fn and(self, other: OutOfCore) -> OutOfCore {
        let temporary_bytes = self.temporary_bytes.saturating_add(other.temporary_bytes);
        let more = if other.passes() > self.passes() { other } else { self };
        OutOfCore { temporary_bytes, ..more }
    }
}
