//! What there is of an output's parts, and removing it.

use std::path::Path;

use super::create::remove_leftovers;
#[cfg(doc)]
use super::error::PartsError;
use super::folder::{Folder, any_output_at, part_of_name};
use crate::sink::SinkError;

/// How far the parts of an output are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsStatus {
    /// How many there are.
    pub count: u64,
    /// The numbers of those that are not complete, ascending.
    pub missing: Vec<u64>,
}

/// How far the parts of the output at `path` are; `None` where none are begun. Lists the folder.
///
/// # Errors
/// [`PartsError::NotAFile`], [`PartsError::Damaged`], [`PartsError::Spoiled`]; the operating
/// system's errors.
pub fn status(path: &Path) -> Result<Option<PartsStatus>, SinkError> {
    let Some(folder) = Folder::open(&any_output_at(path)?)? else { return Ok(None) };
    let Some(job) = folder.job()? else { return Ok(None) };
    folder.check_unspoiled()?;
    let names = folder.names()?;
    let mut complete: Vec<u64> =
        names.iter().filter_map(|name| part_of_name(name.to_bytes())).collect();
    complete.sort_unstable();
    let missing = (0..job.parts).filter(|index| complete.binary_search(index).is_err());
    Ok(Some(PartsStatus { count: job.parts, missing: missing.collect() }))
}

/// Remove what was begun of the output at `path`; false where nothing was.
///
/// # Errors
/// [`PartsError::NotAFile`]; the operating system's errors.
pub fn discard(path: &Path) -> Result<bool, SinkError> {
    let entry = any_output_at(path)?;
    remove_leftovers(&entry);
    match Folder::open(&entry)? {
        Some(folder) => folder.remove(&entry).map(|()| true),
        None => Ok(false),
    }
}
