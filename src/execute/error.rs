//! Why a job stopped.

use std::fmt;

use crate::shape::AsList;
use crate::sink::SinkError;
use crate::source::SourceError;

/// Why a job stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A piece could not be filled.
    #[error("{error}")]
    Fill {
        /// The number of its transfer in the job.
        transfer: usize,
        /// What went wrong.
        error: FillError,
    },
    /// The output failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The operating system gave no threads.
    #[error("cannot start {threads} threads: {message}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        message: String,
    },
    /// A worker panicked, which is a bug; its own message has been printed by then.
    #[error("a worker stopped unexpectedly: this is a bug")]
    Panicked,
}

/// Why a piece could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input that holds indices failed.
    #[error("{error}")]
    Indices {
        /// Which one, where there are several.
        list: usize,
        /// What went wrong.
        error: SourceError,
    },
    /// An index is no position of its axis.
    #[error(transparent)]
    Position(#[from] BadPosition),
}

impl FillError {
    /// The same, of list number `list` of several.
    #[must_use]
    pub(crate) fn of_list(self, list: usize) -> FillError {
        match self {
            FillError::Indices { error, .. } => FillError::Indices { list, error },
            error => error,
        }
    }
}

/// A number in an index tensor that is no position of its axis. The words are TensorFlow's; those of a list
/// in an index are NumPy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPosition {
    /// In a tuple.
    Tuple {
        /// The place of the tuple in the index tensor.
        at: Vec<u64>,
        /// The numbers of the tuple, those of batch axes before them.
        tuple: Vec<i128>,
        /// The shape that it does not index.
        params: Vec<u64>,
    },
    /// By itself.
    Number {
        /// The place of the number in the index tensor.
        at: Vec<u64>,
        /// The number.
        number: i128,
        /// The length of its axis.
        len: u64,
        /// Whether negative numbers that count from the end are positions.
        negative: bool,
    },
    /// In a list of an index.
    Listed {
        /// The number of the list among those of the index.
        list: usize,
        /// The number of the list's item in the index.
        item: usize,
        /// The place of the number in the list.
        at: Vec<u64>,
        /// The number.
        number: i128,
        /// The axis that it indexes.
        axis: usize,
        /// The length of that axis.
        len: u64,
    },
}

impl BadPosition {
    /// Whether it would be a position if negative numbers counted from the end.
    pub fn counts_from_the_end(&self) -> bool {
        let fits =
            |(&number, &len): (&i128, &u64)| number >= -i128::from(len) && number < i128::from(len);
        match self {
            BadPosition::Tuple { tuple, params, .. } => tuple.iter().zip(params).all(fits),
            BadPosition::Number { number, len, .. } => fits((number, len)),
            // they do count from the end
            BadPosition::Listed { .. } => false,
        }
    }

    /// Whether the indices are one flat list, which fits the first axis: then each number by
    /// itself may be meant.
    pub fn fits_first_axis(&self) -> bool {
        let BadPosition::Tuple { at, tuple, params } = self else { return false };
        let len = params.first().map_or(0, |&len| i128::from(len));
        at.is_empty() && tuple.iter().all(|number| (0..len).contains(number))
    }
}

impl fmt::Display for BadPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self {
            BadPosition::Tuple { at, .. } | BadPosition::Number { at, .. } => {
                f.write_str("indices")?;
                at
            }
            BadPosition::Listed { at, .. } => {
                f.write_str(if at.is_empty() { "" } else { "at " })?;
                at
            }
        };
        if !at.is_empty() {
            let at: Vec<String> = at.iter().map(u64::to_string).collect();
            write!(f, "[{}]", at.join(","))?;
        }
        match self {
            BadPosition::Tuple { tuple, params, .. } => {
                // Debug of a list of integers is Python's notation
                write!(f, " = {tuple:?} does not index into params of shape {}", AsList(params))
            }
            BadPosition::Number { number, len, negative, .. } => {
                let least = if *negative { -i128::from(*len) } else { 0 };
                write!(f, " = {number} is not in [{least}, {len})")
            }
            BadPosition::Listed { number, axis, len, .. } => {
                let colon = if at.is_empty() { "" } else { ": " };
                write!(f, "{colon}index {number} is out of bounds for axis {axis} with size {len}")
            }
        }
    }
}

impl std::error::Error for BadPosition {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_positions_speak_tensorflows_words() {
        let tuple = BadPosition::Tuple { at: vec![1, 0], tuple: vec![3, 0], params: vec![3, 4] };
        assert_eq!(
            tuple.to_string(),
            "indices[1,0] = [3, 0] does not index into params of shape [3, 4]"
        );
        let number = BadPosition::Number { at: vec![1, 0], number: -1, len: 3, negative: false };
        assert_eq!(number.to_string(), "indices[1,0] = -1 is not in [0, 3)");
        let scalar = BadPosition::Number { at: vec![], number: 5, len: 3, negative: false };
        assert_eq!(scalar.to_string(), "indices = 5 is not in [0, 3)");
        let further = BadPosition::Number { at: vec![2], number: -4, len: 3, negative: true };
        assert_eq!(further.to_string(), "indices[2] = -4 is not in [-3, 3)");
    }

    #[test]
    fn what_would_be_right_is_known() {
        let tuple = |at: &[u64], tuple: &[i128]| BadPosition::Tuple {
            at: at.to_vec(),
            tuple: tuple.to_vec(),
            params: vec![5, 4],
        };
        assert!(tuple(&[0], &[0, -4]).counts_from_the_end());
        assert!(!tuple(&[0], &[0, -5]).counts_from_the_end());
        assert!(tuple(&[], &[0, 4]).fits_first_axis());
        assert!(!tuple(&[], &[5, 0]).fits_first_axis() && !tuple(&[0], &[0, 4]).fits_first_axis());
    }
}
