//! A kernel that copies the items that a mask selects, one after the other.
//!
//! With AVX-512 a register of items is compressed at once and stored whole; the next store
//! overwrites the items that are not selected. Otherwise items are handled in groups of 8: a group
//! that is selected or dropped as a whole takes one step; in other groups every item is written
//! after the selected ones, and the next item overwrites it unless it is selected. So there is no
//! branch per item to mispredict.
//!
//! ```text
//!   mask  1 0 0 1 1 0 1 1     items  a b c d e f g h     out  a d e g h
//! ```

use super::transpose::Register;

const GROUP: usize = 8;

/// The usual mask of a group that is selected whole; bytes other than 1 are true as well.
const ALL: u64 = u64::from_ne_bytes([1; GROUP]);

pub(crate) fn can_compress(size: u64) -> bool {
    matches!(size, 1 | 2 | 4 | 8 | 16)
}

/// Copy the items of `input` whose byte of `mask` is not 0 to the beginning of `out`, until it is
/// full; returns the number of bytes copied. Items have `size` bytes, a size that [can be
/// compressed](can_compress); `mask` has a byte for each item. Bytes of `out` after the result may
/// be overwritten.
pub(crate) fn compress(mask: &[u8], size: usize, input: &[u8], out: &mut [u8]) -> usize {
    compress_with(Register::widest(), mask, size, input, out)
}

/// [`compress`] with the instructions of a register; without one, with the instructions of every
/// processor.
pub(super) fn compress_with(
    register: Option<Register>,
    mask: &[u8],
    size: usize,
    input: &[u8],
    out: &mut [u8],
) -> usize {
    match size {
        1 => items::<1>(register, mask, input, out),
        2 => items::<2>(register, mask, input, out),
        4 => items::<4>(register, mask, input, out),
        8 => items::<8>(register, mask, input, out),
        _ => items::<16>(register, mask, input, out),
    }
}

/// Compress items of `SIZE` bytes: by registers as long as they fit, then in groups, then singly.
fn items<const SIZE: usize>(
    register: Option<Register>,
    mask: &[u8],
    input: &[u8],
    out: &mut [u8],
) -> usize {
    let input = input.as_chunks::<SIZE>().0;
    let out = out.as_chunks_mut::<SIZE>().0;
    let (mut consumed, mut selected) = match register {
        // SAFETY: the register exists only where the machine has the instructions.
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code)]
        Some(Register::Avx512) => unsafe { x86::avx512(mask, input, out) },
        _ => (0, 0),
    };
    let groups = mask[consumed..].as_chunks::<GROUP>().0;
    for (group, items) in groups.iter().zip(input[consumed..].as_chunks::<GROUP>().0) {
        let Some(room) = out[selected..].first_chunk_mut::<GROUP>() else { break };
        match u64::from_ne_bytes(*group) {
            0 => {}
            ALL => {
                *room = *items;
                selected += GROUP;
            }
            _ => {
                let mut number = 0;
                for (byte, item) in group.iter().zip(items) {
                    room[number] = *item;
                    number += usize::from(*byte != 0);
                }
                selected += number;
            }
        }
        consumed += GROUP;
    }
    for (byte, item) in mask[consumed..].iter().zip(&input[consumed..]) {
        let Some(room) = out.get_mut(selected) else { break };
        if *byte != 0 {
            *room = *item;
            selected += 1;
        }
    }
    selected * SIZE
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::*;

    const WIDTH: usize = 64;

    /// Compress while `out` has room for the next [`WIDTH`] items; returns the number of items
    /// consumed, and of items selected.
    ///
    /// Items are compressed in a register, since compressing into memory is slow on some
    /// processors.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    pub(super) fn avx512<const SIZE: usize>(
        mask: &[u8],
        input: &[[u8; SIZE]],
        out: &mut [[u8; SIZE]],
    ) -> (usize, usize) {
        const { assert!(WIDTH.is_multiple_of(SIZE)) };
        let mut consumed = 0;
        let mut selected = 0;
        // wider items are moved as fast without registers
        if SIZE > 8 {
            return (consumed, selected);
        }
        let groups = mask.as_chunks::<WIDTH>().0.iter().zip(input.as_chunks::<WIDTH>().0);
        for (group, items) in groups {
            if out.len() - selected < WIDTH {
                break;
            }
            // SAFETY: the group is as long as a register, and needs no alignment.
            let group = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
            let mut bits = _mm512_test_epi8_mask(group, group);
            consumed += WIDTH;
            // dropped items are not even loaded: their pages may not be in memory
            if bits == 0 {
                continue;
            }
            for items in items.chunks_exact(WIDTH / SIZE) {
                let room = &mut out[selected..][..WIDTH / SIZE];
                // SAFETY: `WIDTH / SIZE` items are as long as a register, and need no alignment.
                let loaded = unsafe { _mm512_loadu_si512(items.as_ptr().cast()) };
                let (compressed, count) = match SIZE {
                    1 => (_mm512_maskz_compress_epi8(bits, loaded), bits.count_ones()),
                    2 => {
                        let bits = bits as u32;
                        (_mm512_maskz_compress_epi16(bits, loaded), bits.count_ones())
                    }
                    4 => {
                        let bits = bits as u16;
                        (_mm512_maskz_compress_epi32(bits, loaded), bits.count_ones())
                    }
                    _ => {
                        let bits = bits as u8;
                        (_mm512_maskz_compress_epi64(bits, loaded), bits.count_ones())
                    }
                };
                // SAFETY: the room is as long as a register, and needs no alignment.
                unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), compressed) };
                selected += count as usize;
                bits = bits.checked_shr((WIDTH / SIZE) as u32).unwrap_or(0);
            }
        }
        (consumed, selected)
    }
}
