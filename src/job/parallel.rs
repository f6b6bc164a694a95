//! Numbered pieces of work, several at a time: headers of files, rows of pictures.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::execute::Workers;

/// Call `work` with each number of `0..count`, from several threads, and return the results in the
/// order of the numbers. After an error no further numbers are begun, but all before it are done,
/// so that the first error is that of the lowest number.
///
/// # Errors
/// The first one of `work`, in the order of the numbers.
pub(crate) fn each<T: Send, E: Send>(
    count: usize,
    workers: &Workers,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(count));
    let worker = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        let result = work(number);
        if result.is_err() {
            next.store(count, Ordering::Relaxed);
        }
        results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
    };
    let threads = workers.count().min(count);
    // without more threads this one does it all
    if threads <= 1 || workers.broadcast(threads, worker).is_err() {
        worker();
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_error_counts() {
        for threads in [1, 3, 200] {
            let workers = &Workers::new(threads);
            let all: Result<Vec<usize>, usize> = each(100, workers, Ok);
            assert_eq!(all, Ok((0..100).collect()));
            let failing = |number| if number % 7 == 6 { Err(number) } else { Ok(()) };
            assert_eq!(each(100, workers, failing), Err(6));
        }
        assert_eq!(each(0, &Workers::new(4), Ok::<usize, ()>), Ok(vec![]));
    }
}
