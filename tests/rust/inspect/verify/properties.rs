//! Random logs: an intact one has no finding; a damaged one has a finding if, and only if, a naive reader
//! sees a difference or the damage is in a file that is compared with the log.

use cordwood::inspect::verify::{Finding, Severity};
use cordwood::types::Io;
use proptest::prelude::*;

use super::{deep, options, verified};
use crate::support::fixed_seed;
use crate::support::generated::{ALL, PLAIN, steps, write};
use crate::support::naive;
use crate::support::reading::{files, folder};

proptest! {
    #![proptest_config(fixed_seed(150))]

    #[test]
    fn an_intact_log_has_no_finding_but_notes(steps in steps(&ALL, 30), segment_bytes in 200usize..3000) {
        let parent = folder();
        let dir = write(parent.path(), "random-0", &steps, segment_bytes);
        for io in [Io::Mmap, Io::Pread] {
            let found = verified(&dir, &deep(io));
            let wrong: Vec<_> = found.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
            // offsets between segments are missing on purpose, in a log that may not show that it is
            // compacted
            let is_gap = |finding: &&Finding| finding.rule.code() == "offset_gap";
            prop_assert!(wrong.iter().all(|finding| is_gap(finding) && has_gaps(&steps)), "{wrong:?}");
        }
    }

    #[test]
    fn a_flipped_byte_of_a_log_is_found_unless_a_naive_reader_sees_no_difference(
        steps in steps(&PLAIN, 12),
        at in any::<prop::sample::Index>(),
        flip in 1u8..=255,
    ) {
        let steps: Vec<_> = steps.into_iter().map(|(kind, codec, times, _)| (kind, codec, times, 0)).collect();
        let parent = folder();
        let dir = write(parent.path(), "random-0", &steps, 900);
        let logs: Vec<_> = files(&dir).into_iter().filter(|(name, bytes)| name.strip_suffix(".log").is_some() && !bytes.is_empty()).collect();
        let (name, bytes) = &logs[at.index(logs.len())];
        let intact = naive::read(&dir).unwrap().batches;
        let mut damaged = bytes.clone();
        let place = at.index(damaged.len());
        damaged[place] ^= flip;
        std::fs::write(dir.join(name), &damaged).unwrap();
        let differs = naive::read(&dir).map_or(true, |log| log.batches != intact);
        let found = verified(&dir, &options(Io::Pread));
        let segment: i64 = name[..20].parse().unwrap();
        let holds = |batch: &&naive::Batch| {
            batch.segment == segment && (batch.position..batch.position + batch.size).contains(&(place as u64))
        };
        let batch = intact.iter().find(holds).unwrap();
        let field = place as u64 - batch.position;
        // nothing protects an epoch that rises before no other batch, and one at an end of the log may be
        // that of another cluster; a base offset that rises at the end of the log is a note
        let is_fall = |finding: &Finding| finding.rule.code() == "leader_epochs_fall";
        let is_at_end = [intact.first(), intact.last()].contains(&Some(batch));
        let is_of_other_cluster = is_at_end && found.findings.iter().any(is_fall);
        let is_unprotected = (12..16).contains(&field) && (found.findings.is_empty() || is_of_other_cluster)
            || field < 8 && Some(batch) == intact.last() && !found.findings.is_empty();
        prop_assert!(differs, "byte {place} of {name}: the naive reader sees no difference");
        prop_assert!(!found.is_intact() || is_unprotected, "byte {field} of the batch at {} of {name}: {:?}", batch.position, found.findings);
    }
}

fn has_gaps(steps: &[crate::support::generated::Step]) -> bool {
    steps.iter().any(|(.., gap)| *gap > 0)
}
