//! Words that stand for values of the library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, what the help says of it, and what it stands for.
pub(super) type Choice<T> = (&'static str, &'static str, T);

/// Reads one of these words.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = Choice<T>>,
) -> impl TypedValueParser<Value = T> {
    let choices = Vec::from_iter(choices);
    let values = choices.iter().map(|(word, about, _)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values).try_map(move |typed| {
        let meant = choices.iter().find(|(word, ..)| word.eq_ignore_ascii_case(&typed));
        meant.map(|(.., value)| *value).ok_or("no such word")
    })
}
