//! BLAKE3 of bytes that are hashed in windows, in any order and by several threads.
//!
//! BLAKE3 is a tree over chunks of 1024 bytes. A window is a subtree. Two neighbours of one size are merged as soon as
//! both are there, so that only a few values per thread wait, however long the input is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

pub use blake3::{Hash as Digest, Hasher};

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

/// The length of a window in bytes: a power of two of chunks.
const WINDOW: u64 = 256 << 10;

pub(crate) struct Windows {
    len: u64,
    /// Subtrees whose neighbours are missing, by the number of their first window.
    waiting: Mutex<BTreeMap<u64, Subtree>>,
}

struct Subtree {
    windows: u64,
    /// The chaining value; the digest itself, where one window holds all bytes.
    value: ChainingValue,
}

impl Windows {
    pub(crate) fn new(len: u64) -> Windows {
        Windows { len, waiting: Mutex::default() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.len.div_ceil(WINDOW).max(1)
    }

    /// The bytes of window `number`.
    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        let start = number * WINDOW;
        start..self.len.min(start + WINDOW)
    }

    /// Add the bytes of window `number`, in consecutive parts. Each window is added once.
    pub(crate) fn add(&self, number: u64, parts: &[&[u8]]) {
        let count = self.count();
        let mut hasher = Hasher::new();
        hasher.set_input_offset(number * WINDOW);
        for part in parts {
            hasher.update(part);
        }
        let is_all = count == 1;
        let mut value =
            if is_all { *hasher.finalize().as_bytes() } else { hasher.finalize_non_root() };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = number;
        let mut windows = 1;
        // the last two subtrees are merged in another way
        while windows * 2 < count {
            let neighbour = first ^ windows;
            if waiting.get(&neighbour).is_none_or(|other| other.windows != windows) {
                break;
            }
            let Some(other) = waiting.remove(&neighbour) else { break };
            let [left, right] =
                if neighbour < first { [other.value, value] } else { [value, other.value] };
            value = merge_subtrees_non_root(&left, &right, Mode::Hash);
            first = first.min(neighbour);
            windows *= 2;
        }
        waiting.insert(first, Subtree { windows, value });
    }

    /// The digest of all bytes, once each window was added.
    pub(crate) fn finish(self) -> Digest {
        let waiting = self.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut values = waiting.into_values().rev().map(|subtree| subtree.value).peekable();
        let mut right = values.next().unwrap_or_default();
        while let Some(left) = values.next() {
            if values.peek().is_none() {
                return merge_subtrees_root(&left, &right, Mode::Hash);
            }
            right = merge_subtrees_non_root(&left, &right, Mode::Hash);
        }
        Digest::from_bytes(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_in_any_order_have_the_digest_of_all_bytes() {
        for windows in 1..20 {
            for len in [(windows - 1) * WINDOW + 1, windows * WINDOW - 1, windows * WINDOW] {
                let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                for step in [1, 3, 7, 11] {
                    let all = Windows::new(len);
                    assert_eq!(all.count(), windows);
                    let order = (0..windows).map(|number| number * step % windows);
                    let order = if windows % step == 0 {
                        (0..windows).rev().collect()
                    } else {
                        order.collect::<Vec<_>>()
                    };
                    for number in order {
                        let range = all.range(number);
                        let middle = range.start.midpoint(range.end);
                        let part =
                            |range: Range<u64>| &bytes[range.start as usize..range.end as usize];
                        all.add(number, &[part(range.start..middle), part(middle..range.end)]);
                    }
                    assert_eq!(all.finish(), blake3::hash(&bytes), "{len} {step}");
                }
            }
        }
        let nothing = Windows::new(0);
        nothing.add(0, &[]);
        assert_eq!(nothing.finish(), blake3::hash(b""));
    }
}
