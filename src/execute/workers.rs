//! The threads of a run: one pool, made when it is first needed, kept for all that follows.
//!
//! The only file that knows rayon. A run is many jobs: a join copies each large input by itself, checks
//! come before copies, pictures are painted in bands. Each starts as many threads as it has use for, and
//! a small job none; those that were started for one wait for the next.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// How many threads may work, and those that do. Clones share them.
///
/// Jobs that run at the same time never wait for each other's threads: the second one has its own.
///
/// ```
/// let workers = tslice::execute::Workers::new(4);
/// assert_eq!(workers.count(), 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// 0 stands for as many as there are cores.
    asked: usize,
    /// The pool, where no job has it.
    idle: Arc<Mutex<Option<ThreadPool>>>,
}

impl Workers {
    /// At most so many; 0 stands for as many as there are cores. None is started yet.
    pub fn new(threads: usize) -> Workers {
        Workers { asked: threads, idle: Arc::default() }
    }

    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    pub fn count(&self) -> usize {
        match self.asked {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            asked => asked,
        }
    }

    /// Call `work` in `count` threads at the same time, and wait for all of them.
    pub(crate) fn broadcast(
        &self,
        count: usize,
        work: impl Fn() + Sync,
    ) -> Result<(), ThreadPoolBuildError> {
        let pool = self.take(count)?;
        pool.broadcast(|thread| {
            if thread.index() < count {
                work();
            }
        });
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let threads =
            |pool: &Option<ThreadPool>| pool.as_ref().map(ThreadPool::current_num_threads);
        let pool = Some(pool);
        if threads(&idle) < threads(&pool) {
            *idle = pool;
        }
        Ok(())
    }

    /// A pool of at least `count` threads. One that is too small at least doubles, so that few are made
    /// where jobs grow.
    fn take(&self, count: usize) -> Result<ThreadPool, ThreadPoolBuildError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads = idle.as_ref().map_or(0, ThreadPool::current_num_threads);
        match idle {
            Some(pool) if threads >= count => Ok(pool),
            small => {
                drop(small);
                let threads = count.max(self.count().min(2 * threads));
                ThreadPoolBuilder::new().num_threads(threads).build()
            }
        }
    }
}

impl From<usize> for Workers {
    fn from(threads: usize) -> Workers {
        Workers::new(threads)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;
    use std::thread::ThreadId;

    use super::*;

    /// The threads that so many workers of a job were.
    fn threads(workers: &Workers, count: usize) -> HashSet<ThreadId> {
        let all = Barrier::new(count);
        let seen = Mutex::new(HashSet::new());
        let note = || {
            seen.lock().unwrap().insert(thread::current().id());
            // until all are there, so that no thread is two workers
            all.wait();
        };
        workers.broadcast(count, note).unwrap();
        seen.into_inner().unwrap()
    }

    #[test]
    fn jobs_share_threads() {
        let workers = Workers::new(4);
        let first = threads(&workers, 4);
        assert_eq!(first.len(), 4);
        for count in [4, 1, 3, 2, 4] {
            let again = threads(&workers.clone(), count);
            assert!(again.len() == count && again.is_subset(&first), "{count}");
        }
    }

    #[test]
    fn pools_grow_in_few_steps() {
        let workers = Workers::new(100);
        let mut all = HashSet::new();
        (1..=100).for_each(|count| all.extend(threads(&workers, count)));
        assert!(all.len() < 300, "{}", all.len());
    }

    #[test]
    fn a_job_inside_another_has_threads_of_its_own() {
        let workers = Workers::new(2);
        let inner = Mutex::new(0);
        let work = || *inner.lock().unwrap() += threads(&workers, 2).len();
        workers.broadcast(2, work).unwrap();
        assert_eq!(inner.into_inner().unwrap(), 4);
    }
}
