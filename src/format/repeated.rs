//! Names that stand in a header twice.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The first name that is that of one before it.
pub(crate) fn first_repeated<'a>(
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // equal hashes first: they take less memory than a set of names
    let hasher = RandomState::new();
    let mut hashes: Vec<u64> = names.clone().map(|name| hasher.hash_one(name)).collect();
    hashes.sort_unstable();
    if hashes.windows(2).all(|two| two[0] != two[1]) {
        return None;
    }
    drop(hashes);
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_first_one_that_was_seen(names in prop::collection::vec("[a-d]{0,2}", 0..9)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let seen = |&at: &usize| names[..at].contains(&names[at]);
            let first = (0..names.len()).find(seen).map(|at| names[at]);
            prop_assert_eq!(first_repeated(names.iter().copied()), first);
        }
    }
}
