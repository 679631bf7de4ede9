//! Timestamp 1632390207745, which a time index has at offset 23388, and a search by time finds at 23390.
//!
//! An entry of a time index has an offset of the first batch with that largest timestamp; the record itself
//! may come later in the batch. If the entry has an offset of another batch, it is wrong, and the finding
//! says where the timestamp really is.

use std::path::{Path, PathBuf};

use cordwood::inspect::verify::{Finding, Rule};
use cordwood::types::{Io, Io::Pread};
use cordwood::{Log, LogOptions};

use super::{deep, verified};
use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, time_entry};
use crate::support::reading::folder;

const BASE: i64 = 23_000;
const TIMESTAMP: i64 = 1_632_390_207_745;

/// Batches of three records up to offset 23393, with the timestamp at 23390 and lower ones before; `shift`
/// moves the batches.
fn batches(shift: i64) -> Vec<Built> {
    let mut built = vec![
        BatchV2::new(BASE)
            .records((0..388 - shift).map(|n| Rec::at(TIMESTAMP - 5000 + n).value("a")))
            .build(),
    ];
    for base in (BASE + 388 - shift..BASE + 394 - shift).step_by(3) {
        let times = (base..base + 3).map(|offset| {
            let late = i64::from(offset == 23_390) * 100;
            Rec::at(TIMESTAMP - 100 + late).value(format!("value {offset}"))
        });
        built.push(BatchV2::new(base).records(times).build());
    }
    built
}

/// The log with this last entry in the time index.
fn log(parent: &Path, shift: i64, offset: i64) -> PathBuf {
    let dir = PartitionBuilder::new(Indexing::every(1 << 20))
        .segment(BASE, batches(shift))
        .write(parent, "times-0");
    std::fs::write(dir.join("leader-epoch-checkpoint"), format!("0\n1\n0 {BASE}\n")).unwrap();
    std::fs::write(dir.join(file_name(BASE, "timeindex")), time_entry(BASE, TIMESTAMP, offset)).unwrap();
    dir
}

fn findings(dir: &Path) -> Vec<Finding> {
    verified(dir, &deep(Pread)).findings
}

fn found_at(dir: &Path) -> (i64, i64) {
    let log = Log::open(dir, LogOptions { io: Io::Pread, ..LogOptions::default() }).unwrap();
    let found = log.offset_for_time(TIMESTAMP).unwrap().unwrap();
    (found.timestamp, found.offset)
}

#[test]
fn an_entry_with_the_first_offset_of_the_batch_is_right_and_the_record_is_later_in_it() {
    let parent = folder();
    // the batch has the offsets 23388 to 23390
    let dir = log(parent.path(), 0, 23_388);
    assert_eq!(findings(&dir), []);
    assert_eq!(found_at(&dir), (TIMESTAMP, 23_390));
}

#[test]
fn an_entry_with_an_offset_of_the_batch_before_is_wrong_and_the_finding_names_the_right_one() {
    let parent = folder();
    // the batches have the offsets 23387 to 23389, and 23390 to 23392
    let dir = log(parent.path(), 1, 23_388);
    let found = findings(&dir);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.rule, Rule::TimeIndexEntryWrong);
    assert_eq!((finding.position, finding.end_position), (Some(0), Some(12)));
    assert_eq!((finding.start_offset, finding.end_offset), (Some(23_388), Some(23_389)));
    assert_eq!(finding.found, format!("timestamp {TIMESTAMP} at offset 23388"));
    assert!(finding.expected.contains(&format!("which is {}", TIMESTAMP - 100)), "{finding}");
    let evidence = finding.evidence.join("; ");
    assert_eq!(
        evidence,
        format!("timestamp {TIMESTAMP} is first reached by the batch with the offsets 23390 to 23392")
    );
    // a search does not trust the entry
    assert_eq!(found_at(&dir), (TIMESTAMP, 23_390));
}
