//! Why a part cannot be written.

/// Why a part cannot be written, besides what keeps any output from being written.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// The parts that were begun belong to another job.
    #[error("parts of another job are begun for it: {0}")]
    OtherJob(Difference),
    /// Somebody discarded the job while this part ran.
    #[error("its parts were discarded while this one was being written")]
    Discarded,
    /// An input changed while this part was made from it.
    #[error("changed while a part of the output was made from it")]
    InputChanged,
    /// An input changed while parts were written, as one of them found.
    #[error("an input changed while its parts were written, which may hold bytes of both versions")]
    Spoiled,
    /// The output is no regular file.
    #[error("parts can only be written to a file")]
    NotAFile,
    /// Parts replace no folder, which no call of the system does at once with what others may write.
    #[error("is a folder that is not empty, and parts replace none: remove it first")]
    FolderExists,
    /// A file of the job holds what no run of this program writes.
    #[error("{0} of its parts is damaged")]
    Damaged(String),
    /// The name of a record is taken, and the record cannot be seen.
    #[error("{0} of its parts exists, but does not appear on this machine")]
    Invisible(String),
}

/// In what two jobs differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// In the number of parts.
    #[error("it is cut into {theirs} parts there, and into {ours} here")]
    Parts {
        /// The parts of the job that was begun.
        theirs: u64,
        /// The parts of this job.
        ours: u64,
    },
    /// In the version of the program, or of the protocol.
    #[error("version {theirs} began them, and this is version {ours}")]
    Version {
        /// The version that began the job.
        theirs: String,
        /// The version of this job.
        ours: String,
    },
    /// In the number of inputs, or in their names.
    #[error("they are of other inputs")]
    Inputs,
    /// In the size of an input, or in the time of its last change.
    #[error("the input {0} had another size or another time of last change")]
    Input(String),
    /// In bytes of an input, whose size and time are those of the other.
    #[error("the input {0} had the same size and time of last change, but other content")]
    Content(String),
    /// In something else.
    #[error("the index, or another flag that changes the output, is another one")]
    Work,
}
