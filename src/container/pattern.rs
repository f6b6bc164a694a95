//! Names and globs of tensors.
//!
//! A pattern that is the very name of a tensor means that tensor, whatever else it would match as
//! a glob.

use globset::GlobBuilder;

use super::fault::SelectFault;

/// The positions of the names that the patterns mean, ascending.
///
/// # Errors
/// [`SelectFault::NotFound`] for a pattern that matches nothing, [`SelectFault::Glob`] for a text
/// that is no name and no glob.
pub(super) fn find<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    patterns: &[String],
) -> Result<Vec<usize>, SelectFault> {
    let mut found = Vec::new();
    for pattern in patterns {
        let positions = find_one(names.clone(), pattern)?;
        if positions.is_empty() {
            let names = names.map(str::to_owned).collect();
            return Err(SelectFault::NotFound { pattern: pattern.clone(), names });
        }
        found.extend(positions);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn find_one<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    pattern: &str,
) -> Result<Vec<usize>, SelectFault> {
    if let Some(exact) = names.clone().position(|name| name == pattern) {
        return Ok(vec![exact]);
    }
    let glob = GlobBuilder::new(pattern).build().map_err(|error| SelectFault::Glob {
        pattern: pattern.to_owned(),
        reason: error.kind().to_string(),
    })?;
    let glob = glob.compile_matcher();
    Ok(names.enumerate().filter(|(_, name)| glob.is_match(name)).map(|(at, _)| at).collect())
}
