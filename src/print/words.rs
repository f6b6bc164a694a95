//! The text of an element, which may be longer than is held: counted, written as it comes, or cut.

/// Text that is collected, and handed on where there is much of it.
pub(super) struct Words<'a, E> {
    /// What has been collected.
    pub(super) text: String,
    to: To<'a, E>,
}

/// Writes a part of a text.
pub(super) type Write<'a, E> = dyn FnMut(&str) -> Result<(), E> + 'a;

/// Where text goes.
pub(super) enum To<'a, E> {
    /// Nowhere: it is held.
    Held,
    /// Its characters are counted.
    Counted(usize),
    /// It is written as it comes.
    Written(&'a mut Write<'a, E>),
    /// No more than so many characters are held.
    Cut(usize),
}

/// How much text is collected, in bytes.
const COLLECTED: usize = 64 << 10;

impl<'a, E> Words<'a, E> {
    pub(super) fn new(to: To<'a, E>) -> Words<'a, E> {
        Words { text: String::new(), to }
    }

    /// Hand on what has been collected, if it is much; to be called between parts of a text.
    /// Whether more of it is wanted.
    pub(super) fn go_on(&mut self) -> Result<bool, E> {
        if let To::Cut(most) = self.to {
            return Ok(self.text.len() <= 4 * most);
        }
        if self.text.len() >= COLLECTED {
            self.hand_on()?;
        }
        Ok(true)
    }

    fn hand_on(&mut self) -> Result<(), E> {
        match &mut self.to {
            To::Held | To::Cut(_) => return Ok(()),
            To::Counted(count) => *count += self.text.chars().count(),
            To::Written(write) => write(&self.text)?,
        }
        self.text.clear();
        Ok(())
    }

    /// The text is complete: how many characters were counted, and what is held, with dots where
    /// it was cut.
    pub(super) fn end(mut self) -> Result<(usize, String), E> {
        self.hand_on()?;
        let count = if let To::Counted(count) = self.to { count } else { 0 };
        if let To::Cut(most) = self.to
            && let Some((end, _)) = self.text.char_indices().nth(most)
        {
            self.text.truncate(end);
            self.text.push_str("...");
        }
        Ok((count, self.text))
    }
}
