//! The exit statuses of the program.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done,
    /// Two files were compared, and differ.
    Different,
    /// Two files could not be compared, as diff and cmp have it.
    Trouble,
    /// It could not be done: a file, its data, an index that does not fit the shape.
    Failed,
    /// The command line was not understood: flags, index syntax.
    Usage,
}

impl Exit {
    /// The number that a shell sees.
    pub(crate) fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed | Exit::Different => 1,
            Exit::Usage | Exit::Trouble => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}
