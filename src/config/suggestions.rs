//! Suggestions for misspelt names.

/// The known name with the fewest edits to `name`, ignoring case. `None` if more than a third of the letters
/// differ: a poor suggestion would mislead.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(name, known, 3)
}

/// The suggestion of the `nearest` name, to be appended to an error; empty if there is none.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|meant| format!(" (did you mean {meant:?}?)")).unwrap_or_default()
}

/// As `nearest`, with at most one edit for each `letters` letters of the name.
pub fn nearest_within<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    letters: usize,
) -> Option<&'a str> {
    let name = name.to_lowercase();
    let max_edits = name.chars().count().checked_div(letters).unwrap_or(0).max(1);
    known
        .into_iter()
        .map(|known| (edits(&name, &known.to_lowercase()), known))
        .filter(|(edits, _)| *edits <= max_edits)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, known)| known)
}

/// The number of letters to insert, delete or change (Levenshtein distance).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        let mut next = vec![left];
        for (other, up) in to.iter().zip(row.iter().skip(1)) {
            let changed = diagonal + usize::from(*other != letter);
            diagonal = *up;
            left = changed.min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let known = ["topic", "offset", "timestamp", "key"];
        let cases = [
            ("OFFSET", Some("offset")),
            ("offsett", Some("offset")),
            ("TimeStmap", Some("timestamp")),
            ("ky", Some("key")),
            ("nope", None),
            ("", None),
            ("x", None),
        ];
        for (given, meant) in cases {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }

    #[test]
    fn edits_are_the_levenshtein_distance() {
        for (from, to, count) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("ab", "ab", 0)] {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }
}
