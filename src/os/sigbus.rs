//! A handler of SIGBUS, which survives the loss of a mapped file's pages.
//!
//! If another process truncates a mapped file, access to a lost page raises SIGBUS, which kills the
//! process. The handler looks the address up among the watched maps, puts zero pages in place of the
//! lost ones, and records the address for [`Watch::lost`]. A fault anywhere else goes to the
//! previous handler.
//!
//! The handler may interrupt any thread at any instruction, so it takes no lock, allocates nothing
//! and calls nothing but `mmap` and `sigaction`. The registry is therefore an array of atomics, and
//! a slot is read under a generation counter (a seqlock).

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use super::system::UNRESERVED;

/// The most maps that are watched at a time: enough for a checkpoint of some hundred shards.
const SLOTS: usize = 1024;

/// The value of [`Slot::lost`] before a loss.
const NOTHING: usize = usize::MAX;

/// One watched map.
///
/// `generation` is odd while a map is registered, and even while the slot is free or being filled;
/// it grows with each change. `start`, `end` and `writable` change only while it is even. So values
/// read between two reads of one odd generation belong together.
#[derive(Debug)]
struct Slot {
    taken: AtomicBool,
    generation: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    /// Whether the map is writable; its replacement must be, too.
    writable: AtomicBool,
    lost: AtomicUsize,
}

static REGISTRY: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        generation: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        writable: AtomicBool::new(false),
        lost: AtomicUsize::new(NOTHING),
    }
}; SLOTS];

/// The page size in bytes; stored before the handler is installed.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

static PREVIOUS: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// Watches one map. Must be dropped before the map.
#[derive(Debug)]
pub(crate) struct Watch {
    slot: &'static Slot,
}

impl Watch {
    /// Watch the map at these addresses, which must belong to the caller. `None` if no slot is free
    /// or the handler cannot be installed: the map must not be used then. Writes to lost pages of a
    /// writable map are lost as well.
    pub(crate) fn new(addresses: Range<usize>, writable: bool) -> Option<Self> {
        install()?;
        let slot = REGISTRY.iter().find(|slot| !slot.taken.swap(true, Ordering::Acquire))?;
        Some(Self::register(slot, addresses, writable))
    }

    fn register(slot: &'static Slot, addresses: Range<usize>, writable: bool) -> Self {
        // The even generation of the last owner becomes visible before any of these stores.
        fence(Ordering::Release);
        slot.lost.store(NOTHING, Ordering::Relaxed);
        slot.writable.store(writable, Ordering::Relaxed);
        slot.start.store(addresses.start, Ordering::Relaxed);
        slot.end.store(addresses.end, Ordering::Relaxed);
        slot.generation.fetch_add(1, Ordering::Release);
        Self { slot }
    }

    /// The offset of the first lost byte in the map, if there was a loss.
    pub(crate) fn lost(&self) -> Option<usize> {
        match self.slot.lost.load(Ordering::Acquire) {
            NOTHING => None,
            address => address.checked_sub(self.slot.start.load(Ordering::Relaxed)),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.slot.generation.fetch_add(1, Ordering::Release);
        self.slot.taken.store(false, Ordering::Release);
    }
}

fn install() -> Option<()> {
    PREVIOUS
        .get_or_init(|| {
            // SAFETY: `sysconf` has no preconditions.
            if let Ok(size) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) {
                PAGE.store(size, Ordering::Relaxed);
            }
            // SAFETY: zeroes are a valid `sigaction` (default action, empty mask), and both pointers
            // are to actions that outlive the calls. SA_ONSTACK, since Rust gives its threads a
            // stack of their own for signals; SA_RESTART does not matter for a synchronous fault. A
            // fault before `previous` is stored finds none, and gets the default action.
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

/// Handle a fault inside a watched map; pass any other one to the previous handler.
extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler installed with SA_SIGINFO, and
    // for SIGBUS `si_addr` is in it.
    let address = unsafe { (*info).si_addr() as usize };
    // The interrupted code must find its errno unchanged: calls that succeed leave it, and after a
    // failed call that code does not continue.
    if !replace_pages(address) {
        let none = const {
            // SAFETY: zeroes are a valid `sigaction`: the default action.
            unsafe { std::mem::zeroed::<libc::sigaction>() }
        };
        let previous = PREVIOUS.get().and_then(Option::as_ref).unwrap_or(&none);
        // SAFETY: restores the previous handler. Returning repeats the fault, which then goes to
        // that handler.
        unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
    }
}

impl Slot {
    /// The map's addresses and whether it is writable; `None` while the slot is free or changes.
    fn read(&self) -> Option<(Range<usize>, bool)> {
        let generation = self.generation.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        let writable = self.writable.load(Ordering::Relaxed);
        // If one of these values is newer than `generation`, the load below sees the change.
        fence(Ordering::Acquire);
        let unchanged = self.generation.load(Ordering::Relaxed) == generation;
        (unchanged && generation % 2 == 1).then_some((start..end, writable))
    }
}

/// Put zero pages over a watched map from the page of `address` to the map's end, and record the
/// loss. Not only one page: the pages that follow are lost as well, the result is void in any case,
/// and single pages could exceed the number of mappings of a process.
fn replace_pages(address: usize) -> bool {
    for slot in &REGISTRY {
        // The faulting thread borrows its map, so the slot of that map is registered and does not
        // change. A slot that changes under `read` belongs to another map.
        let Some((map, writable)) = slot.read().filter(|(map, _)| map.contains(&address)) else {
            continue;
        };
        let page = address & !(PAGE.load(Ordering::Relaxed) - 1);
        let write = if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: page..end lies inside one mapping: `read` gave start, end and protection of one
        // registration, the address is in it, and mappings don't overlap. Its owner is borrowed by
        // the thread that faults, so it is not unmapped. Protection stays the same; only the bytes
        // become zeroes. `mmap` is a bare system call on Linux.
        let zeroes = unsafe {
            libc::mmap(
                page as *mut libc::c_void,
                map.end - page,
                libc::PROT_READ | write,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | UNRESERVED,
                -1,
                0,
            )
        };
        let _ = slot.lost.compare_exchange(NOTHING, address, Ordering::AcqRel, Ordering::Relaxed);
        return zeroes != libc::MAP_FAILED;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps that take turns in a slot, some with the same end, are never mixed up by a reader.
    #[test]
    fn a_slot_is_read_as_one_registration() {
        const MAPS: [(Range<usize>, bool); 3] =
            [(0x1000..0x9000, true), (0x5000..0x9000, false), (0x5000..0xa000, true)];
        let slot = Slot {
            taken: AtomicBool::new(false),
            generation: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            writable: AtomicBool::new(false),
            lost: AtomicUsize::new(NOTHING),
        };
        let slot: &'static Slot = Box::leak(Box::new(slot));
        assert_eq!(slot.read(), None);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..300_000 {
                    let (addresses, writable) = MAPS[turn % 3].clone();
                    drop(Watch::register(slot, addresses, writable));
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let read = slot.read();
                assert!(read.as_ref().is_none_or(|map| MAPS.contains(map)), "{read:x?}");
            }
        });
        assert_eq!(slot.read(), None);
        let watch = Watch::register(slot, MAPS[2].0.clone(), true);
        assert_eq!(slot.read(), Some(MAPS[2].clone()));
        drop(watch);
    }
}
