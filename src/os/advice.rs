//! What the system may be told of bytes before they are used.

/// How a range of an input is going to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// From beginning to end: read ahead.
    Sequential,
    /// Here and there: don't read ahead.
    Random,
    /// Soon: start reading from the disk, don't wait.
    WillNeed,
    /// Now, by this thread: fault in its pages in one call, waiting for the disk. For maps only.
    Populate,
    /// All of it, now, by this thread, in units as large as the kernel has them: waits for the disk. For
    /// maps only.
    Load,
    /// Not needed any more: unmap its pages; touching them brings them back. For maps only.
    DontNeed,
    /// Not needed any more, where more is read than fits in memory: let go of its pages in the cache too.
    Evict,
}
