//! How a selection is read, by arithmetic: its contiguous runs, and the part of the file that they
//! touch.

use super::{NEAR_BYTES, Panel, Partition, Plan, READAHEAD_BYTES, Tiling, stretches};
use crate::runs::{Runs, dense_bytes};
use crate::view::View;

/// The longest gap between runs, in bytes, that counts as touched: files are read by pages.
pub const TOUCHED_GAP: u64 = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub way: Way,
    /// The number of runs that are contiguous in both input and output, each as long as possible.
    pub runs: u64,
    /// The bytes of a run, where all runs have one length.
    pub run_bytes: Option<u64>,
    pub used: u64,
    /// The bytes of the input that are used, and gaps of at most [`TOUCHED_GAP`] bytes between them.
    pub touched: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Nothing,
    /// From beginning to end, so that a pipe can be read in one pass.
    Streaming,
    /// By position, in the order of the output.
    Strided,
    /// In boxes of several rows, as the fastest axes of input and output differ.
    Relayout,
    Gather,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Nothing => "nothing",
            Way::Streaming => "streaming",
            Way::Strided => "strided",
            Way::Relayout => "relayout",
            Way::Gather => "gather",
        }
    }
}

impl Reading {
    /// How a view of a mapped file is read; a pipe is read in windows of `window` bytes.
    ///
    /// ```
    /// use tslice::index::{numpy, resolve::resolve};
    /// use tslice::plan::{Reading, Way};
    /// use tslice::shape::Order;
    /// use tslice::view::{Layout, View};
    /// let layout = Layout::new(&[100, 50, 4], 8, Order::C, 128);
    /// let reading = |index| {
    ///     let selection = resolve(&numpy::parse(index).unwrap().expr, layout.shape, false);
    ///     Reading::of_view(&View::new(&layout, &selection.unwrap()).unwrap(), 1 << 22)
    /// };
    /// let channels = reading("..., :3");
    /// assert_eq!((channels.way, channels.runs, channels.run_bytes), (Way::Streaming, 5000, Some(3)));
    /// assert_eq!((channels.used, channels.touched), (15_000, 19_999));
    /// assert_eq!(reading("10:20").runs, 1);
    /// assert_eq!(reading("7:7").way, Way::Nothing);
    /// ```
    pub fn of_view(view: &View, window: u64) -> Reading {
        let way = if view.bytes() == 0 {
            Way::Nothing
        } else if Plan::forward(view, 1, window).is_some() {
            Way::Streaming
        } else if Plan::tiled(view.runs(), 1, Tiling::MAPPED).is_relayout() {
            Way::Relayout
        } else {
            Way::Strided
        };
        Reading::of_runs(view.runs(), way)
    }

    /// How `count` slabs of one kind are read, wherever they lie; `touched` is an upper bound.
    pub(crate) fn of_slabs(slab: &Runs, count: u64) -> Reading {
        let one = Reading::of_runs(slab, Way::Gather);
        if one.used == 0 || count == 0 {
            return Reading { way: Way::Nothing, runs: 0, run_bytes: None, used: 0, touched: 0 };
        }
        Reading {
            runs: one.runs.saturating_mul(count),
            used: one.used.saturating_mul(count),
            touched: one.touched.saturating_mul(count),
            ..one
        }
    }

    fn of_runs(runs: &Runs, way: Way) -> Reading {
        let used = runs.bytes();
        if used == 0 {
            return Reading { way, runs: 0, run_bytes: None, used, touched: 0 };
        }
        let gaps = runs.gaps();
        let count: u64 = gaps.iter().filter(|gap| gap.bytes != 0).map(|gap| gap.count).sum();
        // rows of one length: the inner axes are contiguous, and no outer axis is
        let inner = gaps.iter().rev().take_while(|gap| gap.bytes == 0).count();
        let is_even = gaps[..gaps.len() - inner].iter().all(|gap| gap.bytes != 0);
        let near = |gap: i64| u64::try_from(gap).ok().filter(|gap| *gap <= TOUCHED_GAP);
        let in_file = runs.ascending().gaps();
        let touched = in_file.iter().filter_map(|gap| Some(near(gap.bytes)? * gap.count));
        Reading {
            way,
            runs: count + 1,
            run_bytes: is_even.then(|| used / (count + 1)),
            used,
            touched: used + touched.sum::<u64>(),
        }
    }
}

// The input that later pieces need, so that a disk can begin to read it.
//
// Ranges of the output need the input roughly in order: some megabytes ahead are enough. Boxes of a
// relayout need short stretches from all over the input. The stretches of many neighbouring boxes, a
// *panel*, are long when they are read together.

/// How far before its use a range is prefetched, in bytes of the input.
const AHEAD_BYTES: u64 = 32 << 20;

/// The longest range to prefetch at once, in bytes; wider ranges are left to the kernel's read-ahead.
const RANGE_BYTES: u64 = 32 << 20;

/// The most input, in bytes, that a panel of ranges needs.
const PANEL_BYTES: u64 = 64 << 20;

impl Plan {
    /// The input to prefetch when piece `number` begins: ascending ranges that a later piece or the
    /// next panel needs.
    pub fn prefetch(&self, number: u64) -> Vec<Runs> {
        if self.panel_bytes.is_some() {
            return Vec::new();
        }
        match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let later = number.saturating_add(self.ahead(number));
                let mut later =
                    if later < self.pieces() { self.stretches(later) } else { Vec::new() };
                later.retain(|it| it.run <= RANGE_BYTES);
                later
            }
            Partition::Boxes(boxes) => {
                let panel = boxes.panel(&self.input, number);
                panel.and_then(|(_, next)| self.panel_input(next)).into_iter().collect()
            }
        }
    }

    /// The number of pieces after piece `number` whose input is [`AHEAD_BYTES`] further on.
    fn ahead(&self, number: u64) -> u64 {
        let bytes: u64 = self.stretches(number).iter().map(Runs::bytes).sum();
        (AHEAD_BYTES / bytes.max(1)).max(1)
    }

    /// The input to prefetch before the first piece: what no [later call](Plan::prefetch) names.
    pub fn prefetch_first(&self) -> Vec<Runs> {
        if self.panel_bytes.is_some() {
            return Vec::new();
        }
        match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let count = self.ahead(0).min(self.pieces());
                (0..count).flat_map(|number| self.stretches(number)).collect()
            }
            Partition::Boxes(_) => self.panel_input(0).into_iter().collect(),
        }
    }

    /// The input to request when piece `number` begins: ascending ranges; ranges with gaps of at most
    /// `gap` bytes are joined. Boxes of a relayout that are neighbours share stretches: the first box
    /// names them, and the others nothing.
    pub(crate) fn needs(&self, number: u64, gap: u64) -> Vec<Runs> {
        let runs = match &self.partition {
            Partition::Ranges(_) | Partition::Cuts(_) => self.piece(number).input,
            Partition::Boxes(boxes) => {
                boxes.panel(&self.input, number).map_or(Vec::new(), |(panel, _)| panel.input)
            }
        };
        runs.into_iter().map(|runs| stretches(runs, gap)).collect()
    }

    /// The input of a piece. Short gaps are included, since the kernel reads them anyway.
    fn stretches(&self, number: u64) -> Vec<Runs> {
        self.needs(number, READAHEAD_BYTES)
    }

    fn panel_input(&self, number: u64) -> Option<Runs> {
        if number >= self.pieces() {
            return None;
        }
        self.needs(number, NEAR_BYTES).pop()
    }

    /// The panel that begins with piece `number`, where panels are read ahead and one begins there: a
    /// panel of boxes, or of as many ranges of the output.
    pub fn panel(&self, number: u64) -> Option<Panel> {
        let room = self.panel_bytes?;
        let last = self.pieces().checked_sub(1).filter(|last| number <= *last)?;
        match &self.partition {
            Partition::Boxes(boxes) => {
                let (_, next) = boxes.panel(&self.input, number)?;
                Some(Panel { pieces: next - number, input: self.needs(number, NEAR_BYTES), room })
            }
            Partition::Ranges(_) | Partition::Cuts(_) => {
                let first = self.piece(number).output;
                let share = self.share_of_input(first.run).max(1);
                let end =
                    last.min(number + ((room / 4).min(PANEL_BYTES) / share).saturating_sub(1));
                let output = self.piece(end).output;
                let range = first.offset as u64..output.offset as u64 + output.run;
                let input = self.input.boxes(range).into_iter();
                let input = input.map(|runs| stretches(runs, NEAR_BYTES)).collect();
                Some(Panel { pieces: end + 1 - number, input, room })
            }
        }
    }

    /// About how many bytes of the input `bytes` bytes of the output need.
    fn share_of_input(&self, bytes: u64) -> u64 {
        let Runs { axes, run, .. } = stretches(self.input.clone(), NEAR_BYTES);
        let input = u128::from(dense_bytes(&axes, run)) * u128::from(bytes);
        u64::try_from(input / u128::from(self.bytes().max(1))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::resolve::resolve;
    use crate::index::tests::slices;
    use crate::index::{IndexExpr, Item};
    use crate::runs::Axis;
    use crate::shape::{Order, Permutation};
    use crate::view::Layout;

    /// Shapes, an index item for each axis, and a number that selects the order of the result's axes.
    fn selections() -> impl Strategy<Value = (Vec<u64>, Vec<Item>, u64)> {
        let item = prop_oneof![3 => slices().prop_map(Item::Slice), 1 => Just(Item::Integer(0))];
        let axes = prop::collection::vec((1u64..6, item), 0..5);
        (axes, any::<u64>()).prop_map(|(axes, order)| {
            let (shape, items) = axes.into_iter().unzip();
            (shape, items, order)
        })
    }

    fn permutation(ndim: usize, mut number: u64) -> Permutation {
        let mut left: Vec<i64> = (0..ndim as i64).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.remove((number % left.len() as u64) as usize));
            number /= 7;
        }
        Permutation::new(&order, ndim).unwrap()
    }

    /// The offset of each element of a result in the data, in its order, found by walking over
    /// indices.
    fn offsets(shape: &[u64], items: &[Item], order: Order, axes: &Permutation) -> Vec<u64> {
        let positions = |(item, len): (&Item, &u64)| -> Option<Vec<u64>> {
            let Item::Slice(slice) = item else { return None };
            let expr = IndexExpr::new(vec![Item::Slice(*slice)]);
            let numbers = resolve(&expr, &[*len], false).unwrap();
            let crate::index::resolve::AxisSelection::Range { start, step, len, .. } =
                numbers.axes[0]
            else {
                return None;
            };
            Some((0..len).map(|at| (start as i64 + at as i64 * step) as u64).collect())
        };
        let stride = |axis: usize| -> u64 {
            match order {
                Order::C => shape[axis + 1..].iter().product(),
                Order::F => shape[..axis].iter().product(),
            }
        };
        let read = items.iter().zip(shape).enumerate();
        let read = read.filter_map(|(axis, pair)| Some((stride(axis), positions(pair)?)));
        let read: Vec<(u64, Vec<u64>)> = read.collect();
        let mut all = vec![0];
        for (stride, positions) in axes.permute(&read) {
            let along = |at: u64| positions.iter().map(move |position| at + position * stride);
            all = all.into_iter().flat_map(along).collect();
        }
        all
    }

    proptest! {
        #[test]
        fn runs_are_those_of_a_walk_over_all_elements(
            (shape, items, number) in selections(),
            itemsize in prop::sample::select(vec![1u64, 3, 8, 2000, 5000]),
            fortran in any::<bool>(),
        ) {
            let order = if fortran { Order::F } else { Order::C };
            let layout = Layout::new(&shape, itemsize * 8, order, 128);
            let expr = IndexExpr::new(items.clone());
            let selection = resolve(&expr, &shape, false).unwrap();
            let axes = permutation(selection.shape().len(), number);
            let view = View::permuted(&layout, &selection, &axes).unwrap();
            let reading = Reading::of_view(&view, 1 << 22);

            let walked: Vec<u64> =
                offsets(&shape, &items, order, &axes).iter().map(|at| at * itemsize).collect();
            let mut runs: Vec<u64> = Vec::new();
            for (number, at) in walked.iter().enumerate() {
                match runs.last_mut() {
                    Some(run) if walked[number - 1] + itemsize == *at => *run += itemsize,
                    _ => runs.push(itemsize),
                }
            }
            prop_assert_eq!(reading.runs, runs.len() as u64);
            prop_assert_eq!(reading.used, runs.iter().sum::<u64>());
            let even = runs.first().filter(|first| runs.iter().all(|run| run == *first));
            prop_assert_eq!(reading.run_bytes, even.copied());

            let mut sorted = walked.clone();
            sorted.sort_unstable();
            let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0] - itemsize);
            let touched: u64 = gaps.filter(|gap| *gap <= TOUCHED_GAP).sum();
            prop_assert_eq!(reading.touched, reading.used + touched);
            if walked.is_sorted() && !walked.is_empty() {
                prop_assert_eq!(reading.way, Way::Streaming);
            }
            prop_assert_eq!(reading.way == Way::Nothing, walked.is_empty());
        }
    }

    #[test]
    fn all_that_is_needed_is_prefetched() {
        let row = |len, stride| Axis { len, stride };
        for (axes, run) in [
            (vec![], 100 << 20),
            (vec![row(5000, 40_000)], 4096),
            (vec![row(3000, -(1 << 20)), row(512, 16)], 4),
            (vec![row(20_000, 300_000)], 8192),
            (vec![row(700, 1 << 22)], 1 << 17),
        ] {
            let runs = Runs { offset: 1 << 40, axes, run };
            let plan = Plan::new(&runs, 1, 1 << 18);
            let mut asked: Vec<(u64, u64)> = Vec::new();
            let note = |asked: &mut Vec<(u64, u64)>, runs: Runs| {
                asked.extend(runs.starts().map(|at| (at as u64, at as u64 + runs.run)));
            };
            plan.prefetch_first().into_iter().for_each(|runs| note(&mut asked, runs));
            (0..plan.pieces()).flat_map(|at| plan.prefetch(at)).for_each(|it| note(&mut asked, it));
            asked.sort_unstable();
            for at in runs.coalesced().starts() {
                let at = at as u64;
                let before = asked.partition_point(|&(start, _)| start <= at);
                let reach = asked[..before].iter().rev().take(3).map(|&(_, end)| end).max();
                assert!(reach.is_some_and(|end| end > at), "{at} of {runs:?}");
            }
        }
    }
}
