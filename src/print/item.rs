//! The bytes of one element: in memory, or read in windows where it is large.

use std::convert::Infallible;

use super::elements::Elements;

/// Elements of more bytes than this are not held.
pub(super) const LARGE: u64 = 64 << 10;

/// The most bytes that are asked for at a time.
pub(super) const CHUNK: u64 = 16 << 10;

/// The bytes of an element.
pub(super) trait PrintedItem {
    /// Why they could not be read.
    type Error;

    /// So many of them from a place in it on, at most [`CHUNK`] or [`LARGE`] of a small one.
    fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8], Self::Error>;
}

/// An element in memory.
pub(super) struct Held<'a>(pub(super) &'a [u8]);

impl PrintedItem for Held<'_> {
    type Error = Infallible;

    fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8], Infallible> {
        Ok(&self.0[at as usize..(at + len) as usize])
    }
}

/// An element that is read in windows.
pub(super) struct Windowed<'a, E> {
    elements: &'a mut Elements<'a, E>,
    /// Where it begins among the bytes of all elements, and how many it has.
    start: u64,
    size: u64,
    /// What is held of it, and from where on.
    window: Vec<u8>,
    from: u64,
}

impl<'a, E> Windowed<'a, E> {
    /// Element `number` of those that have `size` bytes.
    pub(super) fn new(elements: &'a mut Elements<'a, E>, number: u64, size: u64) -> Self {
        Windowed { elements, start: number * size, size, window: Vec::new(), from: 0 }
    }
}

impl<E> PrintedItem for Windowed<'_, E> {
    type Error = E;

    fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8], E> {
        let held = self.from..self.from + self.window.len() as u64;
        if at < held.start || at + len > held.end {
            // those who come from behind go on so
            let backwards = at < self.from;
            self.from = if backwards { (at + len).saturating_sub(LARGE) } else { at };
            let count = LARGE.max(len).min(self.size - self.from);
            self.window.resize(count as usize, 0);
            (self.elements)(self.start + self.from, &mut self.window)?;
        }
        let first = (at - self.from) as usize;
        Ok(&self.window[first..first + len as usize])
    }
}
