//! Outliving the loss of a mapped file's pages.
//!
//! Another process may cut a file short while it is mapped; touching a page that is no longer
//! there raises SIGBUS, which kills. The handler here looks the address up among the maps that
//! are being watched, puts zero pages in place of the lost ones, and leaves a note that
//! [`Watch::lost`] gives. A fault anywhere else goes to whoever handled it before.
//!
//! The handler may interrupt any thread at any instruction: it takes no lock, allocates nothing
//! and calls nothing but `mmap` and `sigaction`. The registry is an array of atomics, therefore.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many maps can be watched at one time; a checkpoint of some hundred shards fits.
const SLOTS: usize = 1024;

/// A lost address that is none.
const NOTHING: usize = usize::MAX;

/// One map: its addresses, and the first one that was found lost.
struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    /// 0 while the slot is empty or being filled; written last and erased first.
    end: AtomicUsize,
    lost: AtomicUsize,
    /// Whether the map is written to, and what replaces its pages must be too.
    writable: AtomicBool,
}

static REGISTRY: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        lost: AtomicUsize::new(NOTHING),
        writable: AtomicBool::new(false),
    }
}; SLOTS];

/// The size of a page in bytes, known before the handler is installed.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Who handled the signal before.
static PREVIOUS: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// The watch over one map. To be dropped before the map is.
#[derive(Debug)]
pub(crate) struct Watch {
    slot: &'static Slot,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:#x}..{:#x}",
            self.start.load(Ordering::Relaxed),
            self.end.load(Ordering::Relaxed)
        )
    }
}

impl Watch {
    /// Watch over a map at these addresses, which must be the caller's own mapping. `None` where
    /// there is no slot left, or no handler to be had: such a map must not be used.
    pub(crate) fn new(addresses: Range<usize>) -> Option<Self> {
        Self::over(addresses, false)
    }

    /// The same for a map that is written to. What is written to lost pages is lost as well.
    pub(crate) fn writable(addresses: Range<usize>) -> Option<Self> {
        Self::over(addresses, true)
    }

    fn over(addresses: Range<usize>, writable: bool) -> Option<Self> {
        install()?;
        let slot = REGISTRY.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire))?;
        slot.lost.store(NOTHING, Ordering::Relaxed);
        slot.writable.store(writable, Ordering::Relaxed);
        slot.start.store(addresses.start, Ordering::Release);
        slot.end.store(addresses.end, Ordering::Release);
        Some(Self { slot })
    }

    /// How far into the map the first page was that turned out to be lost, in bytes.
    pub(crate) fn lost(&self) -> Option<usize> {
        match self.slot.lost.load(Ordering::Acquire) {
            NOTHING => None,
            address => address.checked_sub(self.slot.start.load(Ordering::Relaxed)),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.slot.end.store(0, Ordering::Release);
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Install the handler, once in the life of the process. `None` where that was refused.
fn install() -> Option<()> {
    PREVIOUS
        .get_or_init(|| {
            // SAFETY: `sysconf` only asks.
            if let Ok(size) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) {
                PAGE.store(size, Ordering::Relaxed);
            }
            // SAFETY: zeroes are a valid `sigaction` (default action, empty mask), and both
            // pointers are to ones that outlive the calls. SA_ONSTACK, since Rust gives its
            // threads an own stack for signals; no SA_RESTART matters for a synchronous fault.
            // A fault between installing and keeping `previous` finds none, and gets the default.
            unsafe {
                let mut previous: libc::sigaction = std::mem::zeroed();
                let mut ours: libc::sigaction = std::mem::zeroed();
                let handler: extern "C" fn(_, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
                ours.sa_sigaction = handler as usize;
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                (libc::sigaction(libc::SIGBUS, &ours, &mut previous) == 0).then_some(previous)
            }
        })
        .as_ref()
        .map(|_| ())
}

/// Mend a fault inside a watched map; hand any other one on.
extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler installed with SA_SIGINFO, and
    // for SIGBUS `si_addr` is in it; errno is this thread's own.
    let (address, errno) = unsafe { ((*info).si_addr() as usize, libc::__errno_location()) };
    // SAFETY: as above; the interrupted code must find its errno unchanged.
    let interrupted = unsafe { *errno };
    if !mend(address) {
        let none = const {
            // SAFETY: zeroes are a valid `sigaction`: the default action.
            unsafe { std::mem::zeroed::<libc::sigaction>() }
        };
        let previous = PREVIOUS.get().and_then(Option::as_ref).unwrap_or(&none);
        // SAFETY: restores what was there before. Returning repeats the fault, which then goes
        // to that handler.
        unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
    }
    // SAFETY: as above.
    unsafe { *errno = interrupted };
}

/// Put zero pages over a watched map from the page of `address` to the map's end, and note the
/// loss. To the end, not one page alone: what follows a cut is lost as well, the result is void
/// in any case, and a page at a time could exceed the number of mappings a process may have.
fn mend(address: usize) -> bool {
    for slot in &REGISTRY {
        // The thread that faults is borrowing its map, so its slot is stable. Reading the end
        // twice keeps a slot that is changing hands from being taken for it.
        let end = slot.end.load(Ordering::Acquire);
        let start = slot.start.load(Ordering::Acquire);
        if !(start..end).contains(&address) || slot.end.load(Ordering::Acquire) != end {
            continue;
        }
        let page = address & !(PAGE.load(Ordering::Relaxed) - 1);
        let write = if slot.writable.load(Ordering::Relaxed) { libc::PROT_WRITE } else { 0 };
        // SAFETY: page..end lies inside a mapping that its owner has registered and, while one
        // of its threads is using it, cannot drop. What may be done with it is the same before
        // and after; only the bytes behind it become zeroes. `mmap` is a bare system call on Linux.
        let zeroes = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                end - page,
                libc::PROT_READ | write,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let _ = slot.lost.compare_exchange(NOTHING, address, Ordering::AcqRel, Ordering::Relaxed);
        return zeroes != libc::MAP_FAILED;
    }
    false
}
