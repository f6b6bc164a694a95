//! What a mistyped word may have been meant to be.

/// The known words that are near to a typed one, the nearest first, at most three.
fn nearest<'w>(typed: &str, known: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    const MOST: usize = 3;
    let mut near: Vec<(usize, &str)> = Vec::new();
    for word in known.take(MOST_KNOWN) {
        let Some(distance) = distance(typed, word) else { continue };
        let at = near.partition_point(|(other, _)| *other <= distance);
        near.insert(at, (distance, word));
        near.truncate(MOST);
    }
    near.into_iter().map(|(_, word)| word).collect()
}

/// Whether a word or a flag is near to a typed one; the dashes of flags do not count.
pub(crate) fn is_near(typed: &str, word: &str) -> bool {
    distance(typed.trim_start_matches('-'), word.trim_start_matches('-')).is_some()
}

/// A hint that proposes the known words that are near to a typed one.
pub(crate) fn did_you_mean<'w>(
    typed: &str,
    known: impl Iterator<Item = &'w str>,
) -> Option<String> {
    let near = nearest(typed, known).into_iter();
    let quoted: Vec<String> = near.map(|word| format!("'{word}'")).collect();
    let (last, others) = quoted.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        others => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

/// The most words that are compared, and the longest, in bytes: what waits for a hint must not
/// wait long.
const MOST_KNOWN: usize = 100_000;
const LONGEST: usize = 200;

/// How many letters are wrong, where it is at most a third of them: changed, missing, too many, or
/// two that changed places.
fn distance(typed: &str, word: &str) -> Option<usize> {
    let (longer, shorter) = (typed.len().max(word.len()), typed.len().min(word.len()));
    let most = (longer / 3).max(1);
    if longer > LONGEST || longer - shorter > most {
        return None;
    }
    Some(strsim::osa_distance(typed, word))
        .filter(|&distance| distance <= most && distance < shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_proposed() {
        for (typed, word) in
            [("gahter", "gather"), ("--outptu", "--output"), ("wrpa", "wrap"), ("inof", "info")]
        {
            assert!(is_near(typed, word), "{typed}");
        }
        for (typed, word) in [
            ("--transpose", "--tensor"),
            ("--strip", "--strides"),
            ("stats", "gather"),
            ("x", "y"),
            ("--x", "--tensor"),
        ] {
            assert!(!is_near(typed, word), "{typed}");
        }
    }

    #[test]
    fn the_nearest_come_first() {
        let names: Vec<String> =
            (0..1000).map(|layer| format!("model.layers.{layer}.mlp.weight")).collect();
        let names = || names.iter().map(String::as_str);
        let near = nearest("model.layer.17.mlp.weight", names());
        assert_eq!(near[0], "model.layers.17.mlp.weight");
        assert_eq!(near.len(), 3);
        assert!(nearest("lm_head", names()).is_empty());
        let words = ["stats", "stat", "state"].into_iter();
        let hint = did_you_mean("stat", words).unwrap();
        assert_eq!(hint, "did you mean 'stat', 'stats' or 'state'?");
        assert_eq!(did_you_mean("stat", [].into_iter()), None);
    }
}
