//! Copying one run.

use crate::source::is_slow;

/// C libraries copy so many bytes by other instructions.
const SHORT: usize = 1024;

/// Copy one run to a place of the same length; those of some cache lines without a call, in blocks of 64
/// bytes of which the last may overlap the one before it.
pub(super) fn copy_run(to: &mut [u8], from: &[u8]) {
    const BLOCK: usize = 64;
    let len = to.len();
    if len > SHORT && is_slow(from.as_ptr().addr(), to.as_ptr().addr()) {
        let shorts = to.chunks_mut(SHORT).zip(from.chunks(SHORT));
        return shorts.for_each(|(to, from)| to.copy_from_slice(from));
    }
    if !(BLOCK..=512).contains(&len) || from.len() != len {
        return to.copy_from_slice(from);
    }
    for (to, from) in to.as_chunks_mut::<BLOCK>().0.iter_mut().zip(from.as_chunks::<BLOCK>().0) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<BLOCK>(), from.last_chunk::<BLOCK>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::PAGE;

    #[test]
    fn runs_are_copied_between_any_places() {
        let input: Vec<u8> = (0..3 * PAGE).map(|at| (at % 251) as u8).collect();
        let mut output = vec![0; input.len()];
        for len in [0, 1, 63, 64, 200, 512, 513, SHORT, SHORT + 1, 5000] {
            for from in [0, 1, 17, 128] {
                for to in (0..80).chain([PAGE - 31, PAGE - 1]) {
                    output.fill(0);
                    copy_run(&mut output[to..to + len], &input[from..from + len]);
                    assert_eq!(output[to..to + len], input[from..from + len], "{len} {from} {to}");
                    assert!(output[..to].iter().chain(&output[to + len..]).all(|&byte| byte == 0));
                }
            }
        }
    }
}
