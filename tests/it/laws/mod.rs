//! Properties of the library that hold for any tensor, on random ones.

mod assign;
mod gather;
mod lists;
mod reads;
mod slice;
mod storage;

use proptest::prelude::ProptestConfig;

/// How many cases a law is tried on: `usual`, or what `PROPTEST_CASES` says.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.unwrap_or(usual);
    ProptestConfig { cases, max_global_rejects: cases.saturating_mul(20), ..Default::default() }
}
