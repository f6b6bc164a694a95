//! Sizes in bytes, as people write them.

/// The bytes that a text such as `5GB`, `1.5 GB`, `500MiB` or `4096` says: decimal units and binary
/// ones, in any case. Parts of a byte are dropped.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    const MISREAD: &str = "bytes are needed, as in 4096, 5GB (1000^3 each) or 500MiB (1024^2 each)";
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction = fraction.get(..MOST_DIGITS).unwrap_or(fraction);
    let digits = format!("{whole}{fraction}");
    let scale = 10u128.pow(fraction.len() as u32);
    let number: u128 = match digits.parse() {
        Ok(number) if !whole.is_empty() && !fraction.is_empty() => number,
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            return Err(TOO_LARGE);
        }
        _ => return Err(MISREAD),
    };
    let bytes = number.checked_mul(unit_bytes(unit.trim_start()).ok_or(MISREAD)?);
    bytes.and_then(|bytes| u64::try_from(bytes / scale).ok()).ok_or(TOO_LARGE)
}

const TOO_LARGE: &str = "that is more than 64 bits of bytes";

/// The digits after the point that count: more could not change a number of bytes.
const MOST_DIGITS: usize = 18;

/// Bytes of a unit. `K`, `M` and so on alone mean different things to different programs.
fn unit_bytes(unit: &str) -> Option<u128> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "" | "b" | "byte" | "bytes") {
        return Some(1);
    }
    let power = |prefix: &str| "kmgtpe".find(prefix).map(|at| at as u32 + 1);
    match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
        (Some(prefix), _) if prefix.len() == 1 => Some(1024u128.pow(power(prefix)?)),
        (_, Some(prefix)) if prefix.len() == 1 => Some(1000u128.pow(power(prefix)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal_and_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            (" 7 B ", 7),
            ("5GB", 5_000_000_000),
            ("500MiB", 500 << 20),
            ("1.5 kB", 1500),
            ("1.3GiB", 1_395_864_371),
            ("2kib", 2048),
            ("16EB", 16_000_000_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "5G", "GB", "5 gigabytes", "-1", "1.GB", ".5GB", "1e9", "5GBB", "1.2.3", "5xb"]
        {
            assert!(size(text).unwrap_err().starts_with("bytes are needed"), "{text}");
        }
        for text in ["16EiB", "18446744073709551616", &"9".repeat(60), "999999999999EB"] {
            assert_eq!(size(text), Err(TOO_LARGE), "{text}");
        }
    }
}
