//! How often and how long a request to a server is tried.
//!
//! - A server may send nothing for 30 seconds, or as many as `TSLICE_REMOTE_TIMEOUT` says; an answer may take longer
//!   by a second for each 4 KiB. Then the request counts as failed.
//! - A request that fails in a way that may pass (`wire::FetchFault::is_transient`: connections, timeouts, answers
//!   that break off, statuses 408, 429 and 5xx) is made again: 6 times where the server was ever reached, else twice.
//!   What brought 4 KiB begins the count anew.
//! - Before the next try it waits: 100 milliseconds, then twice as long each time, at random half as long to one and
//!   a half times as long; at least what the server asks for (`Retry-After`), and at most a minute.

use std::env;
use std::time::Duration;

use object_store::RetryConfig;
use tokio::time::sleep;

use super::RemoteError;
use super::wire::FetchFault;

/// How often a request fails before the job does, if it brings nothing in between.
const ATTEMPTS: u32 = 7;

/// The same for a connection to a server that was never reached.
const FIRST_ATTEMPTS: u32 = 3;

/// A try that brought so many bytes was no failure.
const PROGRESS: u64 = 4 << 10;

const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait, also where the server asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a server may send nothing, where `TSLICE_REMOTE_TIMEOUT` does not say.
const PATIENCE: Duration = Duration::from_secs(30);

/// The fewest bytes a second that count as an answer.
const SLOWEST: u64 = 4 << 10;

/// How many times the patience with one answer all answers of a listing together may take: a store tells a
/// thousand names in each.
const ANSWERS: u32 = 20;

pub(super) fn patience() -> Result<Duration, RemoteError> {
    let Some(text) = env::var_os("TSLICE_REMOTE_TIMEOUT") else { return Ok(PATIENCE) };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=3600).contains(seconds)).ok_or_else(|| {
        let message = "TSLICE_REMOTE_TIMEOUT is a number of seconds, from 1 to 3600";
        RemoteError::Configuration(message.to_owned())
    })?;
    Ok(Duration::from_secs(seconds))
}

/// How long an answer of so many bytes may take, however often a few of them come.
pub(super) fn longest_answer(patience: Duration, bytes: u64) -> Duration {
    patience + Duration::from_secs(bytes / SLOWEST)
}

pub(super) fn longest_listing() -> Result<Duration, RemoteError> {
    Ok(patience()? * ANSWERS)
}

/// `object_store` tries nothing again: errors are handled where answers are read, their bodies included.
pub(super) fn none_by_store() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

#[derive(Default)]
pub(super) struct Tries {
    count: u32,
    /// Whether the server was ever reached.
    known: bool,
}

impl Tries {
    /// Those of a request to a server that was reached before.
    pub(super) fn of_known() -> Tries {
        Tries { count: 0, known: true }
    }

    /// Wait before the next try, unless there is none. `brought` are the bytes that came all the same.
    pub(super) async fn failed(
        &mut self,
        fault: FetchFault,
        brought: u64,
    ) -> Result<(), RemoteError> {
        let FetchFault { error, is_transient, is_connect, wait } = fault;
        self.known |= !is_connect;
        self.count = if brought >= PROGRESS { 1 } else { self.count + 1 };
        let most = if self.known { ATTEMPTS } else { FIRST_ATTEMPTS };
        if !is_transient {
            return Err(error);
        }
        if self.count >= most {
            return Err(RemoteError::GaveUp { error: Box::new(error), attempts: self.count });
        }
        let backoff = FIRST_WAIT * (1 << (self.count - 1).min(10));
        // so that those that failed together do not come again together
        let spread = backoff.mul_f64(0.5 + spread());
        sleep(wait.map_or(spread, |wait| wait.max(spread)).min(LONGEST_WAIT)).await;
        Ok(())
    }
}

/// A number from 0 to 1 that differs from call to call.
fn spread() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}
