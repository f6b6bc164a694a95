//! The tuples of positions that a list stands for: the numbers of an index tensor, or the places
//! where a mask is true; and how they are read.

use super::mask_positions::MaskPositions;
use super::positions::Positions;
use super::reader::PositionReader;
use crate::execute::{FillError, Workers};
use crate::permutation::Permutation;
use crate::source::Source;

/// A list of tuples, each one position in the params.
#[derive(Clone, Debug)]
pub(crate) enum Tuples {
    /// The numbers of an index tensor.
    Numbers(Positions),
    /// The places where a mask is true, in C order.
    Mask(MaskPositions),
}

impl Tuples {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        match self {
            Tuples::Numbers(positions) => positions.count(),
            Tuples::Mask(positions) => positions.count(),
        }
    }

    /// How far their places lie before the first element of the params, at most: their offsets count
    /// from there.
    pub(super) fn before(&self) -> u64 {
        match self {
            Tuples::Numbers(positions) => positions.before(),
            Tuples::Mask(positions) => positions.before(),
        }
    }

    /// The shape along which they lie.
    pub(super) fn shape(&self) -> Vec<u64> {
        match self {
            Tuples::Numbers(positions) => positions.shape().to_vec(),
            Tuples::Mask(positions) => vec![positions.count()],
        }
    }

    /// The same, numbered with the axes of their shape in that order, the last one fastest.
    #[must_use]
    pub(super) fn numbered(self, numbering: Permutation) -> Tuples {
        match self {
            Tuples::Numbers(positions) => Tuples::Numbers(positions.numbered(numbering)),
            // they have one axis
            mask @ Tuples::Mask(_) => mask,
        }
    }

    /// The same, numbered in their own order.
    #[must_use]
    pub(super) fn in_their_order(self) -> Tuples {
        match self {
            Tuples::Numbers(positions) => Tuples::Numbers(positions.in_their_order()),
            mask @ Tuples::Mask(_) => mask,
        }
    }

    /// Whether they are numbered in their own order.
    pub(super) fn is_in_their_order(&self) -> bool {
        match self {
            Tuples::Numbers(positions) => positions.is_in_their_order(),
            Tuples::Mask(_) => true,
        }
    }
}

/// Tuples with the source of their list, read in blocks.
pub(crate) enum TupleReader<'a> {
    /// The numbers of an index tensor.
    Numbers(Box<PositionReader<'a>>),
    /// A mask.
    Mask(MaskPositions, &'a dyn Source),
}

impl<'a> TupleReader<'a> {
    /// As [`PositionReader::verify`].
    ///
    /// # Errors
    /// [`FillError::Indices`].
    pub(super) fn verify(&self) -> Result<(), FillError> {
        match self {
            TupleReader::Numbers(reader) => reader.verify(),
            TupleReader::Mask(_, source) => {
                source.verify().map_err(|error| FillError::Indices { list: 0, error })
            }
        }
    }

    /// Read from that source; `workers` put numbers in order, if that is necessary.
    ///
    /// # Errors
    /// As [`PositionReader::new`].
    pub(super) fn new(
        tuples: Tuples,
        source: &'a dyn Source,
        workers: &Workers,
    ) -> Result<TupleReader<'a>, FillError> {
        Ok(match tuples {
            Tuples::Numbers(positions) => {
                TupleReader::Numbers(Box::new(PositionReader::new(positions, source, workers)?))
            }
            Tuples::Mask(positions) => TupleReader::Mask(positions, source),
        })
    }

    /// Read the tuples from number `first` on, as many as `out` holds: the offset of each in bytes
    /// from the first of all elements that they can name.
    ///
    /// # Errors
    /// As [`PositionReader::read`].
    pub(super) fn read(&self, first: u64, out: &mut [u64]) -> Result<(), FillError> {
        match self {
            TupleReader::Numbers(reader) => reader.read(first, out),
            TupleReader::Mask(positions, source) => positions.read(first, *source, out),
        }
    }
}
