//! The name that a misspelt one was meant to be.

/// The known name with the fewest edits to `name`, upper and lower case taken as equal. `None` where more than a third of
/// the letters differ: a far-fetched guess misleads.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(name, known, 3)
}

/// The suggestion of the [`nearest`] name, to be appended to an error; empty if there is none.
#[cfg(feature = "arrow")]
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|meant| format!(" (did you mean {meant:?}?)")).unwrap_or_default()
}

/// As [`nearest`], with at most one edit for each `letters` letters of the name.
pub(crate) fn nearest_within<'a>(
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

/// How many letters must be put in, left out or changed to make one of the other (Levenshtein).
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
    fn a_name_is_suggested_only_where_it_is_near() {
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
    fn edits_are_counted_as_in_the_textbook() {
        for (from, to, count) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("ab", "ab", 0)] {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }
}
