//! One output written by several processes, on any machines that see its folder.
//!
//! Each process writes one *part*: a range of the output's element bytes. All write one shared file.
//!
//! ```text
//!   out.npy                      appears last, whole
//!   .tslice-parts-out.npy/       there as long as the job is
//!       job                      what the parts are parts of
//!       data                     the output, of its final length
//!       part.3                   part 3 is complete
//!       join.1.1                 one of parts 2 and 3 was the first to come here
//! ```
//!
//! The protocol, version 1:
//!
//! 1. **Begin.** Whoever finds no folder makes one under a temporary name, with `job` and `data` in
//!    it, and renames it to its place. Of several only the first rename succeeds, since a folder that
//!    is not empty is never replaced; the others go on with the first one's folder. So a folder
//!    that has its name is complete. From here on it is reached by an open descriptor, never by its
//!    name, so that the folder of a later job is not mistaken for it.
//! 2. **Compare.** Whoever finds a folder reads `job`. One of another job is refused. A folder
//!    without `job` is what was left when a run ended during step 8: it is removed, and 1 begins
//!    again. A folder without `data` is the same after step 7. A part whose `part.I` is there goes
//!    to 5.
//! 3. **Write.** The part shares with the input what blocks of its range of `data` it can, allocates
//!    the range if it can share none, and writes the rest by position. It writes no other byte, and
//!    the same bytes each time: so it does not matter whether it runs twice, also at the same time, or
//!    over a range that was half written.
//! 4. **Record.** `data` is brought to the disk. Then the part's record (how many bytes, and the sums
//!    that a zip archive needs) is written to a temporary name, brought to the disk, and linked to
//!    `part.I`; the folder is brought to the disk. The part is complete.
//! 5. **Climb.** The parts are the leaves of a binary tree. At each `join.LEVEL.NUMBER` the record of
//!    all parts below, on the side that this process comes from, is linked to that name. If that
//!    succeeds, the other side is not complete: whoever completes it comes by, and this process is
//!    done. If the name exists and holds the other side's record, both sides are complete: their
//!    records are added, and the sum is taken to the next join. If it holds the own side's, the
//!    process is done too.
//! 6. **Finish.** Who passes the last join has the sum of all records. It opens `data` anew, writes
//!    what stands around the elements (headers; the directory of an archive), and brings it to the
//!    disk. These bytes too are the same whoever writes them. Where the file system has extended
//!    attributes, `data` gets one that names the job, by which a part that is run once more, when
//!    all is over, knows that it is complete.
//! 7. **Place.** `data` is linked to the output's name, which fails if the name is taken; with
//!    `force` it is renamed instead. A name taken by this very file is success.
//! 8. **Remove.** `job` is unlinked first, then all else, then the folder. Discarding a job is this
//!    step alone.
//!
//! **Why the output appears once, and only whole:** a join is passed by a process that has one side
//! complete and reads the other side's record, so the last join is passed only when all parts are
//! complete. When every part has run to its end, at each join the second to come has gone on: so
//! some process passes the last one. A process that is killed between 4 and 8 leaves a part that is
//! complete, but may not have climbed on; running it again does that, from 5. Two that pass the
//! last join do the same, and the file that both place is one.
//!
//! **What it costs:** a part makes a fixed number of calls, and three links on average, at most one
//! more than the tree has levels (15 for 10,000 parts). Nobody lists the folder or looks at all parts,
//! but for step 8, which is done once, and for `status`.
//!
//! **What it relies on:** that of several links or renames to one name the first succeeds and the
//! others fail; that rename is atomic; that what was brought to the disk and then opened anew is seen
//! by all (close-to-open). NFS gives that. There are no locks, and no clock is compared with another.
//! After a refused link, the record behind the name is waited for as long as an NFS client may
//! believe that the name does not exist.
//!
//! **What it does not do:** a process that was taken for dead, and its part run again elsewhere, may
//! still write when the output is in place: the same bytes as stand there. Schedulers end a task
//! before they repeat it; where one does not, don't change an output in place while old tasks live.

mod error;
mod fingerprint;
mod folder;
mod frame;
mod record;
mod sink;
mod status;
mod tree;

pub use error::{Difference, PartsError};
pub use fingerprint::Fingerprint;
pub use frame::FixedFrame;
pub use record::{InputId, JobRecord, Part};
pub use sink::{Begun, PartSink};
pub use status::{PartsStatus, discard, status};
