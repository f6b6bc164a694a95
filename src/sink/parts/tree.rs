//! Step 5: finding out, without looking at all parts, that all are complete.

use super::error::PartsError;
use super::folder::{Folder, Stored};
use super::record::{DoneRecord, Part};
use crate::sink::SinkError;

/// Climb from the record of a complete part as far as all parts below are complete: the sum of all
/// records, for whoever passes the last join. `stored` is the part's own record, where it was just
/// written.
pub(super) fn climb(
    folder: &Folder,
    part: Part,
    own: DoneRecord,
    mut stored: Option<Stored>,
) -> Result<Option<DoneRecord>, SinkError> {
    let mut record = own;
    // the number of the node that this process stands at, and how many parts are below each
    let (mut at, mut span) = (part.index, 1u64);
    for level in 1.. {
        if span >= part.count {
            break;
        }
        let sibling = at ^ 1;
        // the last node of a level may have no sibling
        if sibling.checked_mul(span).is_some_and(|first| first < part.count) {
            let name = format!("join.{level}.{}", at / 2);
            let file = match stored.take() {
                Some(file) => file,
                None => folder.store(&record)?,
            };
            let theirs: Option<DoneRecord> = folder.publish(&file, &name)?;
            let Some(theirs) = theirs else { return Ok(None) };
            if theirs.first / span == at {
                return Ok(None);
            }
            let sum = record.add(&theirs).filter(|_| theirs.first / span == sibling);
            record = sum.ok_or(PartsError::Damaged(name))?;
        }
        at /= 2;
        span = span.saturating_mul(2);
    }
    Ok(Some(record))
}
