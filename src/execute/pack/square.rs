//! A kernel that transposes squares of items in registers.
//!
//! A square has as many lines as a register has items. Interleaving the first half of the lines with the second half,
//! log2(lines) times, transposes it:
//!
//! ```text
//!   a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
//!   b0 b1 b2 b3  ─►  a2 c2 a3 c3  ─►  a1 b1 c1 d1
//!   c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
//!   d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
//! ```
//!
//! With registers of 64 bytes, each line of the input is one cache line, loaded once; each line of the output is
//! stored once.

#![allow(unsafe_code)]

/// A register and the operations that a transposition needs.
///
/// # Safety
/// The methods may only be called where the processor has the register's instructions.
pub(super) trait Vector: Copy {
    const WIDTH: usize;

    /// Whether items shorter than a word of 4 bytes are transposed [by words](by_words).
    const HAS_WORDS: bool = false;

    /// Load the first [`WIDTH`](Vector::WIDTH) bytes of a slice, which must be that long.
    #[inline(always)]
    unsafe fn load(from: &[u8]) -> Self {
        debug_assert!(from.len() >= Self::WIDTH);
        // SAFETY: the caller's slice is long enough; no alignment is needed, and any bytes are a register.
        unsafe { from.as_ptr().cast::<Self>().read_unaligned() }
    }

    /// Store to the beginning of a slice, which must be that long.
    #[inline(always)]
    unsafe fn store(self, to: &mut [u8]) {
        debug_assert!(to.len() >= Self::WIDTH);
        // SAFETY: the caller's slice is long enough; no alignment is needed.
        unsafe { to.as_mut_ptr().cast::<Self>().write_unaligned(self) }
    }

    /// Take items of `SIZE` bytes of both registers in turn: from the lower halves, then from the upper halves.
    unsafe fn interleave<const SIZE: usize>(self, other: Self) -> [Self; 2];

    /// Take the first item of `SIZE` bytes of each word, then the second of each, and so on.
    unsafe fn split_words<const SIZE: usize>(self) -> Self {
        self
    }
}

/// Transpose `SIDE` lines of one register each. Line `n` begins at `first + stride * n` in the input; column `n` goes
/// to byte `at` of the row that begins at `rows[n]`, or is dropped if `rows[n]` is [`usize::MAX`].
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, const SIZE: usize, const SIDE: usize>(
    input: &[u8],
    first: i64,
    stride: i64,
    rows: &[usize],
    at: usize,
    out: &mut [u8],
) {
    const { assert!(SIZE * SIDE == V::WIDTH) };
    if V::HAS_WORDS && SIZE < WORD {
        // SAFETY: the caller knows of the instructions.
        return unsafe { by_words::<V, SIZE>(input, first, stride, rows, at, out) };
    }
    // Plain loops: closures would be functions without the instructions, which are not inlined there. SAFETY: slices
    // have the length of a register; the caller knows of the instructions.
    unsafe {
        let mut lines = [V::load(&input[first as usize..][..V::WIDTH]); SIDE];
        let mut from = first;
        for line in &mut lines {
            *line = V::load(&input[from as usize..][..V::WIDTH]);
            from += stride;
        }
        let mut others = lines;
        if SIDE > 1 {
            interleave_halves::<V, SIZE, SIDE>(&lines, &mut others);
        }
        if SIDE > 2 {
            interleave_halves::<V, SIZE, SIDE>(&others, &mut lines);
        }
        if SIDE > 4 {
            interleave_halves::<V, SIZE, SIDE>(&lines, &mut others);
        }
        if SIDE > 8 {
            interleave_halves::<V, SIZE, SIDE>(&others, &mut lines);
        }
        if SIDE > 16 {
            interleave_halves::<V, SIZE, SIDE>(&lines, &mut others);
        }
        if SIDE > 32 {
            interleave_halves::<V, SIZE, SIDE>(&others, &mut lines);
        }
        let columns = if SIDE.ilog2().is_multiple_of(2) { &lines } else { &others };
        for (column, &row) in columns.iter().zip(&rows[..SIDE]) {
            if row != usize::MAX {
                column.store(&mut out[row + at..][..V::WIDTH]);
            }
        }
    }
}

/// The bytes of a word, and the words in a register of 64 bytes.
const WORD: usize = 4;
const WORDS: usize = 16;

/// [`transpose`] for registers of 64 bytes and items smaller than a word: their square would need more registers than
/// there are, and twice as many steps.
///
/// Words are transposed first, [`WORDS`] lines at a time, and the items of each register are sorted by column. Then
/// the items of each line that belong to a row are neighbours, and are joined from the registers of all lines.
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
unsafe fn by_words<V: Vector, const SIZE: usize>(
    input: &[u8],
    first: i64,
    stride: i64,
    rows: &[usize],
    at: usize,
    out: &mut [u8],
) {
    let columns = (WORD / SIZE).max(1);
    // SAFETY: slices have the length of a register; the caller knows of the instructions.
    unsafe {
        let nothing = V::load(&input[first as usize..][..V::WIDTH]);
        let mut parts = [[nothing; WORD]; WORDS];
        let mut from = first;
        for number in 0..columns {
            let mut lines = [nothing; WORDS];
            for line in &mut lines {
                *line = V::load(&input[from as usize..][..V::WIDTH]);
                from += stride;
            }
            let mut others = lines;
            interleave_halves::<V, WORD, WORDS>(&lines, &mut others);
            interleave_halves::<V, WORD, WORDS>(&others, &mut lines);
            interleave_halves::<V, WORD, WORDS>(&lines, &mut others);
            interleave_halves::<V, WORD, WORDS>(&others, &mut lines);
            for (word, part) in lines.iter().zip(&mut parts) {
                part[number] = word.split_words::<SIZE>();
            }
        }
        for (part, rows) in parts.iter().zip(rows.chunks_exact(columns)) {
            let mut joined = *part;
            if SIZE == 1 {
                let mut halves = joined;
                interleave_halves::<V, 16, WORD>(part, &mut halves);
                interleave_halves::<V, 16, WORD>(&halves, &mut joined);
            } else {
                [joined[0], joined[1]] = part[0].interleave::<32>(part[1]);
            }
            for (column, &row) in joined.iter().zip(rows) {
                if row != usize::MAX {
                    column.store(&mut out[row + at..][..V::WIDTH]);
                }
            }
        }
    }
}

/// Interleave each line of the first half with its counterpart in the second half.
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
unsafe fn interleave_halves<V: Vector, const SIZE: usize, const SIDE: usize>(
    lines: &[V; SIDE],
    to: &mut [V; SIDE],
) {
    for pair in 0..SIDE / 2 {
        // SAFETY: the caller knows of the instructions.
        let [low, high] = unsafe { lines[pair].interleave::<SIZE>(lines[pair + SIDE / 2]) };
        to[2 * pair] = low;
        to[2 * pair + 1] = high;
    }
}

/// The register of 16 bytes, which every processor of the architecture has.
#[cfg(target_arch = "aarch64")]
pub(super) use std::arch::aarch64::uint8x16_t as Narrow;
/// The register of 16 bytes, which every processor of the architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) use std::arch::x86_64::__m128i as Narrow;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Vector;

    impl Vector for __m128i {
        const WIDTH: usize = 16;

        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> [Self; 2] {
            // SAFETY: all processors of this kind have SSE2.
            unsafe {
                match SIZE {
                    1 => [_mm_unpacklo_epi8(self, other), _mm_unpackhi_epi8(self, other)],
                    2 => [_mm_unpacklo_epi16(self, other), _mm_unpackhi_epi16(self, other)],
                    4 => [_mm_unpacklo_epi32(self, other), _mm_unpackhi_epi32(self, other)],
                    8 => [_mm_unpacklo_epi64(self, other), _mm_unpackhi_epi64(self, other)],
                    _ => [self, other],
                }
            }
        }
    }

    impl Vector for __m256i {
        const WIDTH: usize = 32;

        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> [Self; 2] {
            // SAFETY: the caller knows that there is AVX2.
            unsafe {
                // in each half of the registers
                let [low, high] = match SIZE {
                    1 => [_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)],
                    2 => [_mm256_unpacklo_epi16(self, other), _mm256_unpackhi_epi16(self, other)],
                    4 => [_mm256_unpacklo_epi32(self, other), _mm256_unpackhi_epi32(self, other)],
                    8 => [_mm256_unpacklo_epi64(self, other), _mm256_unpackhi_epi64(self, other)],
                    _ => [self, other],
                };
                [
                    _mm256_permute2x128_si256::<0x20>(low, high),
                    _mm256_permute2x128_si256::<0x31>(low, high),
                ]
            }
        }
    }

    impl Vector for __m512i {
        const WIDTH: usize = 64;
        const HAS_WORDS: bool = true;

        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> [Self; 2] {
            // SAFETY: the caller knows that there is AVX-512 F and BW.
            unsafe {
                match SIZE {
                    // in each quarter of the registers, then the quarters
                    1 => {
                        let low = _mm512_unpacklo_epi8(self, other);
                        low.interleave::<16>(_mm512_unpackhi_epi8(self, other))
                    }
                    2 => {
                        let low = _mm512_unpacklo_epi16(self, other);
                        low.interleave::<16>(_mm512_unpackhi_epi16(self, other))
                    }
                    4 => {
                        let low = _mm512_set_epi32(
                            23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0,
                        );
                        let high = _mm512_set_epi32(
                            31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                        );
                        [
                            _mm512_permutex2var_epi32(self, low, other),
                            _mm512_permutex2var_epi32(self, high, other),
                        ]
                    }
                    8 => {
                        let low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
                        let high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
                        [
                            _mm512_permutex2var_epi64(self, low, other),
                            _mm512_permutex2var_epi64(self, high, other),
                        ]
                    }
                    32 => [
                        _mm512_shuffle_i64x2::<0x44>(self, other),
                        _mm512_shuffle_i64x2::<0xEE>(self, other),
                    ],
                    _ => {
                        let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
                        let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
                        [
                            _mm512_permutex2var_epi64(self, low, other),
                            _mm512_permutex2var_epi64(self, high, other),
                        ]
                    }
                }
            }
        }

        #[inline(always)]
        unsafe fn split_words<const SIZE: usize>(self) -> Self {
            let mut indices = [0; 64];
            let mut at = 0;
            while at < indices.len() {
                let item = at / SIZE;
                let word = item % super::WORDS;
                let number = item / super::WORDS;
                indices[at] = (word * super::WORD + number * SIZE + at % SIZE) as u8;
                at += 1;
            }
            // SAFETY: the caller knows that there is AVX-512 VBMI; the indices are as long as a register.
            unsafe { _mm512_permutexvar_epi8(Self::load(&indices), self) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::Vector;

    impl Vector for uint8x16_t {
        const WIDTH: usize = 16;

        #[inline(always)]
        unsafe fn interleave<const SIZE: usize>(self, other: Self) -> [Self; 2] {
            // SAFETY: all processors of this kind have NEON; any 16 bytes are a value of each type.
            unsafe {
                match SIZE {
                    1 => [vzip1q_u8(self, other), vzip2q_u8(self, other)],
                    2 => {
                        let a = vreinterpretq_u16_u8(self);
                        let b = vreinterpretq_u16_u8(other);
                        [vzip1q_u16(a, b), vzip2q_u16(a, b)].map(|it| vreinterpretq_u8_u16(it))
                    }
                    4 => {
                        let a = vreinterpretq_u32_u8(self);
                        let b = vreinterpretq_u32_u8(other);
                        [vzip1q_u32(a, b), vzip2q_u32(a, b)].map(|it| vreinterpretq_u8_u32(it))
                    }
                    8 => {
                        let a = vreinterpretq_u64_u8(self);
                        let b = vreinterpretq_u64_u8(other);
                        [vzip1q_u64(a, b), vzip2q_u64(a, b)].map(|it| vreinterpretq_u8_u64(it))
                    }
                    _ => [self, other],
                }
            }
        }
    }
}
