//! What the tool found wrong. It is printed to standard error after all files.

use super::dumped_file::DumpedFile;
use super::text::Text;

/// The checks of the tool, in the order in which it prints their findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// An entry of an offset index, and the last offset of the batch to which it points.
    IndexMismatch,
    /// The timestamp of an entry of a time index, and the largest of the batch that it names.
    TimestampMismatch,
    /// The timestamp of an entry of a time index, and the one of the entry before, which is not lower.
    TimestampOutOfOrder,
    /// The offset of an entry of a time index, and the last offset of the batch found for it, −1 for none.
    OffsetNotFound,
    /// The offset of a record, and the next one, which is not one higher.
    NonConsecutive,
}

impl Check {
    const ALL: [Self; 5] = [
        Self::IndexMismatch,
        Self::TimestampMismatch,
        Self::TimestampOutOfOrder,
        Self::OffsetNotFound,
        Self::NonConsecutive,
    ];

    /// The line before the findings of a file, without the path.
    fn heading(self) -> &'static str {
        match self {
            Self::IndexMismatch => "Mismatches in :",
            Self::TimestampMismatch => "Found timestamp mismatch in :",
            Self::TimestampOutOfOrder => "Found out of order timestamp in :",
            Self::OffsetNotFound => "The following indexed offsets are not found in :",
            Self::NonConsecutive => "Non-consecutive offsets in ",
        }
    }

    /// The words before the first number of a finding, and those between the two.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::IndexMismatch => ["  Index offset: ", ", log offset: "],
            Self::TimestampMismatch => ["  Index timestamp: ", ", log timestamp: "],
            Self::TimestampOutOfOrder => ["  Index timestamp: ", ", Previously indexed timestamp: "],
            Self::OffsetNotFound => ["Indexed offset: ", ", found log offset: "],
            Self::NonConsecutive => ["  ", " is followed by "],
        }
    }

    /// Puts the findings of a file into the order in which they are printed. Where the tool keeps them in a
    /// map, the last one with the same first number counts.
    fn arrange(self, findings: &mut Vec<(i64, i64)>) {
        if !matches!(self, Self::IndexMismatch | Self::NonConsecutive) {
            return;
        }
        findings.sort_by_key(|(first, _)| *first);
        // the sort is stable, so the last of each run is the last one found
        findings.reverse();
        findings.dedup_by_key(|(first, _)| *first);
        if self == Self::NonConsecutive {
            findings.reverse();
        }
    }
}

/// The findings of one check in one file.
#[derive(Debug)]
struct FileFindings {
    check: Check,
    path: String,
    /// 16 bytes a finding, until all files have been read.
    pairs: Vec<(i64, i64)>,
}

/// All findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<FileFindings>);

impl Findings {
    /// Adds a finding.
    pub(super) fn add(&mut self, check: Check, file: &DumpedFile, first: i64, second: i64) {
        let path = file.absolute();
        // nearly always the last one
        let known = self.0.iter_mut().rev().find(|found| found.check == check && found.path == path);
        match known {
            Some(found) => found.pairs.push((first, second)),
            None => self.0.push(FileFindings { check, path, pairs: vec![(first, second)] }),
        }
    }

    /// The lines of all findings.
    pub(super) fn into_lines(self) -> FindingLines {
        let mut files = self.0;
        let mut ordered = Vec::with_capacity(files.len());
        for check in Check::ALL {
            let (own, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|found| found.check == check);
            files = others;
            ordered.extend(in_hash_map_order(own));
        }
        ordered.reverse();
        FindingLines { left: ordered, current: None }
    }
}

/// The lines of findings, block by block.
#[derive(Debug, Default)]
pub(super) struct FindingLines {
    /// The last one is printed first.
    left: Vec<FileFindings>,
    current: Option<(Check, std::vec::IntoIter<(i64, i64)>)>,
}

impl FindingLines {
    /// Adds lines until the block is full; false at the end.
    pub(super) fn fill(&mut self, out: &mut Text) -> bool {
        while !out.is_full() {
            if let Some((check, pairs)) = &mut self.current
                && let Some((first, second)) = pairs.next()
            {
                let [before, between] = check.words();
                out.str(before).int(first).str(between).int(second).end_line();
                continue;
            }
            let Some(mut next) = self.left.pop() else { return false };
            out.str(next.check.heading()).str(&next.path).end_line();
            next.check.arrange(&mut next.pairs);
            self.current = Some((next.check, next.pairs.into_iter()));
        }
        true
    }
}

/// Files in the order in which a Java `HashMap` returns them whose keys are their paths, added by
/// `computeIfAbsent`: by bucket, and within a bucket the one that was added last first. (A bucket of nine
/// keys would be a tree; paths do not get there by accident.)
fn in_hash_map_order(files: Vec<FileFindings>) -> Vec<FileFindings> {
    // 16 buckets at first; twice as many for a new key when more than three quarters as many keys are there
    let mut buckets = 16;
    while files.len().saturating_sub(1) * 4 > buckets * 3 {
        buckets *= 2;
    }
    let mut files = files;
    files.reverse();
    files.sort_by_key(|file| {
        let hash = java_hash(&file.path);
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    });
    files
}

/// `String.hashCode`.
fn java_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn lines(findings: Findings) -> String {
        let mut out = Text::default();
        assert!(!findings.into_lines().fill(&mut out));
        String::from_utf8(out.into_bytes()).unwrap()
    }

    #[test]
    fn maps_are_sorted_and_keep_the_last_value_lists_are_as_found() {
        let file = DumpedFile::new(Path::new("/f.log"));
        let mut findings = Findings::default();
        for (first, second) in [(5, 9), (3, 4), (5, 10)] {
            for check in Check::ALL.into_iter().rev() {
                findings.add(check, &file, first, second);
            }
        }
        let expected = "Mismatches in :/f.log\n  Index offset: 5, log offset: 10\n  Index offset: 3, log offset: 4\n\
            Found timestamp mismatch in :/f.log\n  Index timestamp: 5, log timestamp: 9\n\
            \x20 Index timestamp: 3, log timestamp: 4\n  Index timestamp: 5, log timestamp: 10\n\
            Found out of order timestamp in :/f.log\n  Index timestamp: 5, Previously indexed timestamp: 9\n\
            \x20 Index timestamp: 3, Previously indexed timestamp: 4\n\
            \x20 Index timestamp: 5, Previously indexed timestamp: 10\n\
            The following indexed offsets are not found in :/f.log\nIndexed offset: 5, found log offset: 9\n\
            Indexed offset: 3, found log offset: 4\nIndexed offset: 5, found log offset: 10\n\
            Non-consecutive offsets in /f.log\n  3 is followed by 4\n  5 is followed by 10\n";
        assert_eq!(lines(findings), expected);
    }

    #[test]
    fn files_are_in_the_order_of_javas_hash_map() {
        assert_eq!(java_hash("00000000000000000000.log"), 0xa04d_4856);
        let order = |count: i64| {
            let mut findings = Findings::default();
            for number in 0..count {
                let file = DumpedFile::new(Path::new(&format!("/k{number}")));
                findings.add(Check::NonConsecutive, &file, 0, number);
            }
            let lines = lines(findings);
            let names = lines.lines().filter_map(|line| line.strip_prefix("Non-consecutive offsets in /k"));
            names.collect::<Vec<_>>().join(" ")
        };
        // the orders of JDK 17 and 25; the map is larger from the 14th key on
        assert_eq!(order(13), "0 1 2 3 4 5 11 6 12 7 8 10 9");
        assert_eq!(order(14), "13 11 12 10 0 1 2 3 4 5 6 7 8 9");
        assert_eq!(
            order(40),
            "24 25 22 23 20 21 19 39 17 0 18 1 37 15 2 38 16 3 4 5 6 7 8 9 35 13 36 14 33 11 34 12 31 32 10 30 28 29 26 27"
        );
    }
}
