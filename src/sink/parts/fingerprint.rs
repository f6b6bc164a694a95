//! One number for a long text: FNV-1a with 128 bits, which is the same on every machine.

use std::fmt;

/// The hash of all text that was written to it.
///
/// ```
/// use std::fmt::Write;
/// let mut hash = tslice::sink::Fingerprint::default();
/// write!(hash, "{}", "a").unwrap();
/// assert_eq!(hash.to_string(), "d228cb696f1a8caf78912b704e4a8964");
/// ```
#[derive(Clone, Debug)]
pub struct Fingerprint(u128);

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fingerprint {
    /// Add bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul((1 << 88) + 0x13b);
        }
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
