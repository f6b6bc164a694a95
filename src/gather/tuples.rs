//! The tuples of positions that a list stands for: the numbers of an index tensor, or the places
//! where a mask is true; and how they are read.
//!
//! Blocks follow the order in which tuples are numbered. Where the numbers lie in another order in
//! a file that is read by position, each block would read most of the file: then the numbers are
//! put in order in a temporary file first.

use super::mask::MaskPositions;
use super::positions::Positions;
use crate::execute::{FillError, Workers, spool};
use crate::permutation::Permutation;
use crate::plan::Plan;
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
            Tuples::Numbers(positions) => positions.count,
            Tuples::Mask(positions) => positions.count(),
        }
    }

    /// How far their places lie before the first element of the params, at most: their offsets count
    /// from there.
    pub(super) fn before(&self) -> u64 {
        match self {
            Tuples::Numbers(positions) => positions.before,
            Tuples::Mask(positions) => positions.before,
        }
    }

    /// How far one step on the outermost axis that they index leads in the params, in bytes.
    pub(super) fn longest_stride(&self) -> u64 {
        let axes = match self {
            Tuples::Numbers(positions) => &positions.indexed,
            Tuples::Mask(positions) => &positions.axes,
        };
        axes.iter().map(|axis| axis.stride.unsigned_abs()).max().unwrap_or(0)
    }

    /// The shape along which they lie.
    pub(super) fn shape(&self) -> Vec<u64> {
        match self {
            Tuples::Numbers(positions) => positions.shape.clone(),
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
        let ndim = self.shape().len();
        self.numbered(Permutation::identity(ndim))
    }

    /// Whether they are numbered in their own order.
    pub(super) fn is_in_their_order(&self) -> bool {
        match self {
            Tuples::Numbers(positions) => positions.is_in_their_order(),
            Tuples::Mask(_) => true,
        }
    }
}

/// Tuples whose offsets are computed at a time: they stay in a level-1 cache.
pub(super) const TUPLES_AT_ONCE: usize = 2048;

/// Tuples with the source of their list, read in blocks.
pub(super) struct TupleReader<'a> {
    /// The number of the list among several, for errors.
    list: usize,
    pub(super) tuples: Tuples,
    /// The source of the list, as it was given.
    pub(super) given: &'a dyn Source,
    /// The numbers in order, where they are not in the source.
    spooled: Option<Box<dyn Source>>,
    /// All positions, where they are held in memory.
    pub(super) held: Option<Vec<u64>>,
}

impl<'a> TupleReader<'a> {
    /// Read list number `list` from that source; `workers` put the numbers in order, if that is necessary.
    ///
    /// # Errors
    /// [`FillError::Indices`]: the source failed, or the temporary file.
    pub(super) fn new(
        list: usize,
        tuples: Tuples,
        given: &'a dyn Source,
        workers: &Workers,
    ) -> Result<TupleReader<'a>, FillError> {
        let reader = |tuples, spooled| TupleReader { list, tuples, given, spooled, held: None };
        let Tuples::Numbers(positions) = tuples else { return Ok(reader(tuples, None)) };
        let (numbers, tuple) = (&positions.coalesced, positions.tuple_bytes() as u64);
        let once = || Plan::new(numbers, tuple, TUPLES_AT_ONCE as u64 * tuple).reads_once();
        if given.window_limit().is_none() || positions.bytes() == 0 || once() {
            return Ok(reader(Tuples::Numbers(positions), None));
        }
        let spooled = spool(given, numbers, tuple, workers);
        let spooled = spooled.map_err(|error| match error.into_fill() {
            Ok(FillError::Source(error)) => FillError::Indices { list, error },
            Ok(error) => error,
            Err(error) => {
                let error = std::io::Error::other(error.to_string()).into();
                FillError::Indices { list, error }
            }
        })?;
        Ok(reader(Tuples::Numbers(positions.in_order()), Some(spooled)))
    }

    /// Read all tuples, and hold their positions in memory.
    ///
    /// # Errors
    /// As [`read`](TupleReader::read).
    pub(super) fn hold(&mut self, workers: &Workers) -> Result<(), FillError> {
        if !self.tuples.is_in_their_order() {
            // in the order of the indices first, in which bad positions are reported
            let ordered = self.tuples.clone().in_their_order();
            TupleReader::new(self.list, ordered, self.given, workers)?.all()?;
        }
        self.held = Some(self.all()?);
        Ok(())
    }

    /// All positions.
    fn all(&self) -> Result<Vec<u64>, FillError> {
        let mut positions = vec![0; self.tuples.count() as usize];
        for (number, block) in positions.chunks_mut(TUPLES_AT_ONCE).enumerate() {
            self.read((number * TUPLES_AT_ONCE) as u64, block)?;
        }
        Ok(positions)
    }

    /// Read the tuples from number `first` on, as many as `out` holds: the offset of each in bytes
    /// from the first of all elements that they can name.
    ///
    /// # Errors
    /// Those of [`Positions::read`] and of [`MaskPositions::read`].
    pub(super) fn read(&self, first: u64, out: &mut [u64]) -> Result<(), FillError> {
        if let Some(held) = &self.held {
            out.copy_from_slice(&held[first as usize..][..out.len()]);
            return Ok(());
        }
        let read = match &self.tuples {
            Tuples::Numbers(positions) => positions.read(first, self.source(), out),
            Tuples::Mask(positions) => positions.read(first, self.source(), out),
        };
        read.map_err(|error| error.of_list(self.list))
    }

    /// Make sure that what was read was in the source.
    ///
    /// # Errors
    /// [`FillError::Indices`].
    pub(super) fn verify(&self) -> Result<(), FillError> {
        self.source().verify().map_err(|error| FillError::Indices { list: self.list, error })
    }

    fn source(&self) -> &dyn Source {
        self.spooled.as_deref().unwrap_or(self.given)
    }
}
