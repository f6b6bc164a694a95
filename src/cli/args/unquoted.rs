//! An index that was not quoted, so that the shell took it apart: `data.npy [0, 1]`.

/// The index that words make together which the shell parted at its spaces: from one whose brackets
/// are open, or that ends with a comma, to where it is complete.
pub(crate) fn unquoted<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let mut words = words.into_iter();
    let mut index = words.find(|word| is_begun(word))?.to_owned();
    for word in words {
        index.push(' ');
        index.push_str(word);
        if !is_begun(&index) {
            return Some(index);
        }
    }
    None
}

/// Whether more must follow.
fn is_begun(index: &str) -> bool {
    let count = |brackets: [char; 2]| index.chars().filter(|c| brackets.contains(c)).count();
    let is_open = count(['[', '(']) > count([']', ')']);
    is_open || index.ends_with(',') && index != ","
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn parted_indices_are_joined() {
        let joined = |words: &str| unquoted(words.split(' '));
        assert_eq!(joined("a.npy [0, 1:] -o b.npy").as_deref(), Some("[0, 1:]"));
        assert_eq!(joined("a.npy 0, [1, 2], 3").as_deref(), Some("0, [1, 2], 3"));
        assert_eq!(joined("a.npy ( 1, 2 )").as_deref(), Some("( 1, 2 )"));
        assert_eq!(joined("a.npy [0] b.npy"), None);
        assert_eq!(joined("a.npy [0, 1"), None);
    }
}
