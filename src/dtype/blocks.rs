//! Blocks of elements that share bytes: the quantised types of GGUF.

/// Elements that are stored together, and have no bytes of their own: so many neighbours along the last
/// axis in so many bytes, of which nothing here says what they mean.
///
/// A tensor of such blocks has a block in place of an item, and its last axis counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockType {
    /// The name in its format, such as `Q4_K`.
    pub name: &'static str,
    /// Elements of a block; at least 1.
    pub elements: u64,
    /// Bytes of a block.
    pub bytes: u64,
}
