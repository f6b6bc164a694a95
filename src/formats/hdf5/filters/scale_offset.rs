//! The filter scale-offset: numbers of few bits, above the smallest element of the chunk.

const HEADER: usize = 21;

const DAMAGED: &str = "its bytes after scale-offset are damaged";

/// Undo the filter scale-offset: the elements of a chunk, of at most `most` bytes, by the parameters of the filter.
///
/// A chunk begins with 21 bytes, which hold the number of bits of each number, and the smallest element. The numbers
/// follow, their highest bits first. For integers they are added to the smallest element; for floats they count units
/// of 10^-D above it. Where a dataset has a fill value, the highest number of so many bits stands for it.
pub(super) fn undo_scale_offset(
    parameters: &[u32],
    bytes: Vec<u8>,
    most: usize,
) -> Result<Vec<u8>, &'static str> {
    let &[scale, factor, count, class, size, _, order, has_fill, ref fill @ ..] = parameters else {
        return Err(DAMAGED);
    };
    let is_float = match (class, size, scale) {
        (0, 1 | 2 | 4 | 8, 2) => false,
        (1, 4 | 8, 0) => true,
        _ => return Err("a kind of scale-offset that is not known"),
    };
    // no bits were dropped
    if !is_float && factor == size * 8 {
        return Ok(bytes);
    }
    let (header, packed) = bytes.split_at_checked(HEADER).ok_or(DAMAGED)?;
    let bits = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let least = number_of(&header[5..5 + usize::from(header[4].min(8))]);
    let fill: Vec<u8> = fill.iter().flat_map(|word| word.to_le_bytes()).collect();
    let fill = number_of(&fill[..fill.len().min(8)]);
    let count = count as usize;
    let size = size as usize;
    let needed = count.saturating_mul(bits as usize).div_ceil(8);
    let len = count.saturating_mul(size);
    if bits as usize > size * 8 || needed > packed.len() || len > most {
        return Err(DAMAGED);
    }
    let mut out = Vec::with_capacity(len);
    if bits as usize == size * 8 {
        out.extend_from_slice(&packed[..len]);
    } else {
        let all = (1 << bits) - 1;
        let mut numbers = PackedNumbers { packed, bits, held: 0, count: 0 };
        let element = above_least(is_float, size, factor as i32, least);
        for _ in 0..count {
            let element = match numbers.next() {
                number if number == all && has_fill == 1 => fill,
                number => element(number),
            };
            out.extend_from_slice(&element.to_le_bytes()[..size]);
        }
    }
    if order == 1 {
        out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(out)
}

/// A function from a number above the smallest element to the element, of `size` bytes. Floats are rounded at each
/// step, as in the library.
fn above_least(is_float: bool, size: usize, digits: i32, least: u64) -> impl Fn(u64) -> u64 {
    let units = 10f32.powf(digits as f32);
    let long_units = 10f64.powf(digits.into());
    move |number| match (is_float, size) {
        (false, _) => number.wrapping_add(least),
        (true, 4) => (number as f32 / units + f32::from_bits(least as u32)).to_bits().into(),
        (true, _) => (number as f64 / long_units + f64::from_bits(least)).to_bits(),
    }
}

/// A little-endian number of at most 8 bytes.
fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A reader of numbers of less than 64 bits each.
struct PackedNumbers<'a> {
    packed: &'a [u8],
    bits: u32,
    /// The bits read; the last `count` were not used yet.
    held: u128,
    count: u32,
}

impl PackedNumbers<'_> {
    fn next(&mut self) -> u64 {
        while self.count < self.bits {
            let (byte, packed) = self.packed.split_first().unwrap_or((&0, &[]));
            (self.held, self.packed) = (self.held << 8 | u128::from(*byte), packed);
            self.count += 8;
        }
        self.count -= self.bits;
        (self.held >> self.count) as u64 & ((1 << self.bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bits: u8, least: u64, packed: &[u8]) -> Vec<u8> {
        let mut bytes = vec![bits, 0, 0, 0, 8];
        bytes.extend(least.to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(packed);
        bytes
    }

    #[test]
    fn numbers_are_above_the_smallest_one() {
        // three bits each: 1, 7, 2
        let packed = &[0b0011_1101, 0];
        let elements = |order, has_fill, least: i16| {
            let parameters = [2, 0, 3, 0, 2, 1, order, has_fill, 99];
            undo_scale_offset(&parameters, chunk(3, least as u64, packed), 6)
        };
        assert_eq!(elements(0, 0, -2).unwrap(), [255, 255, 5, 0, 0, 0]);
        assert_eq!(elements(0, 1, -2).unwrap(), [255, 255, 99, 0, 0, 0]);
        assert_eq!(elements(1, 0, 1).unwrap(), [0, 2, 0, 8, 0, 3]);
    }

    #[test]
    fn floats_are_units_above_the_smallest_one() {
        let parameters = [0, 2, 2, 1, 4, 0, 0, 0];
        let least = u64::from(1.5f32.to_bits());
        let found = undo_scale_offset(&parameters, chunk(4, least, &[0x31]), 8).unwrap();
        let expected: Vec<u8> = [1.53f32, 1.51].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn damaged_ones_are_refused() {
        let parameters = [2, 0, 3, 0, 2, 1, 0, 0];
        for bytes in [vec![0; 20], chunk(3, 0, &[0]), chunk(17, 0, &[0; 9]), chunk(255, 0, &[])] {
            assert!(undo_scale_offset(&parameters, bytes, 6).is_err());
        }
        assert!(undo_scale_offset(&parameters, chunk(0, 0, &[]), 5).is_err());
        assert!(undo_scale_offset(&[2, 0, 3, 0, 3, 1, 0, 0], chunk(3, 0, &[0; 9]), 99).is_err());
        assert!(undo_scale_offset(&[1], chunk(3, 0, &[0; 9]), 99).is_err());
    }
}
