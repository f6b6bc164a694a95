//! A join in parts, each written by a process of its own.
//!
//! Each process reads all headers, which decide where everything goes, and elements of those inputs
//! only that give something to its part. Of the tensors that are taken once, each part compares its
//! own range in all inputs, so that all parts together compare all of them.

use std::fmt::Write;
use std::ops::Range;

use super::inputs::Joined;
use super::place::{places, whole};
use crate::error::Error;
use crate::execute::Progress;
use crate::index::{Item, List};
use crate::input::Location;
use crate::job::copy::Writing;
use crate::job::parts::{Divisible, last_name};
use crate::output::Prepared;
use crate::region::{OpenIndex, Take};
use crate::sink::Fingerprint;

/// A join whose output is written in parts.
pub(super) struct JoinedParts<'b, 'a> {
    pub(super) joined: &'b mut Joined<'a>,
    pub(super) prepared: &'b Prepared,
}

impl Divisible for JoinedParts<'_, '_> {
    fn bytes(&self, range: &Range<u64>) -> u64 {
        places(self.prepared, range).iter().map(|place| place.bytes()).sum()
    }

    fn reads(&self, range: &Range<u64>) -> Result<u64, Error> {
        let joined = &*self.joined;
        let places = places(self.prepared, range);
        let mut reads = 0;
        let kept = places.iter().filter(|place| joined.tensors[place.target].join.is_none());
        for place in kept {
            let window = joined.take_kept(place)?.window(place.window.clone(), 0);
            let of_one: u64 = window.iter().map(Take::reads).sum();
            reads += of_one * joined.inputs.locations.len() as u64;
        }
        let targets = joined.joined(&places);
        for number in 0..joined.inputs.locations.len() {
            if !targets.iter().any(|target| target.needs(number)) {
                continue;
            }
            let (input, chosen) = joined.lend_checked(number)?;
            for target in &targets {
                let take = joined.take_joined(&input, &chosen[target.at], target.place)?;
                let cells = target.bands.iter().filter_map(|band| target.cell(number, band));
                let windows = cells.flat_map(|cell| take.window(cell.dense, 0));
                reads += windows.map(|take| take.reads()).sum::<u64>();
            }
        }
        Ok(reads)
    }

    fn shared(&self, range: &Range<u64>, prepared: &Prepared) -> Result<Option<u64>, Error> {
        self.joined.shared(&places(prepared, range), prepared)
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut named = self.joined.inputs.files()?;
        let lists = self
            .joined
            .options
            .index
            .lists
            .lists()
            .filter_map(|list| Some(list.path()?.to_owned()));
        named.extend(lists.map(|path| (last_name(&path), Location::Path(path))));
        Ok(named)
    }

    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        let joined = &*self.joined;
        // writing never fails
        let _ = write!(work, "{:?}", (joined.options.along, joined.order));
        identify_index(&joined.options.index, work)?;
        let (input, chosen) = joined.lend_checked(0)?;
        let places = whole(self.prepared);
        for place in &places {
            let is_joined = joined.tensors[place.target].join.is_some();
            let _ = write!(work, "{:?}", (place.start, place.conversion, is_joined));
            if !is_joined {
                let kept = joined.take_kept(place)?;
                kept.region.identify(&mut |bytes| work.add(bytes))?;
            }
        }
        for target in joined.joined(&places) {
            let take = joined.take_joined(&input, &chosen[target.at], target.place)?;
            let _ = write!(work, "{:?}", (target.row, take.part));
            take.region.identify(&mut |bytes| work.add(bytes))?;
        }
        Ok(())
    }

    fn copy(&mut self, range: &Range<u64>, job: &Writing<'_>) -> Result<(), Error> {
        let places = places(self.prepared, range);
        self.joined.check_rest(&places, &Progress::default())?;
        self.joined.copy(job, &places)
    }
}

/// Add all that decides what an index selects, but for the bytes of files.
fn identify_index(index: &OpenIndex<'_>, work: &mut Fingerprint) -> Result<(), Error> {
    // writing never fails
    let _ = write!(work, "{:?}", index.rules);
    for item in &index.expr.items {
        let _ = match item {
            // the file may have another path elsewhere
            Item::List(List::File(file)) => write!(work, "{:?}", (&file.name, file.opposite)),
            item => write!(work, "{item:?}"),
        };
    }
    index.lists.lists().try_for_each(|list| list.identify(&mut |bytes| work.add(bytes)))
}
