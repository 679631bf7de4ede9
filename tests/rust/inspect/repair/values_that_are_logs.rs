//! A record may hold a whole log. If its batch is torn, every policy cuts it, and no part of the record
//! becomes a record.

use cordwood::inspect::copy::{CopyOptions, copy};

use super::*;
use crate::support::is_exhaustive;
use crate::support::nested_logs::{NestedLog, whole_offsets};
use crate::support::partition::{Indexing, file_name, segment_files};

#[test]
fn each_policy_keeps_the_batches_before_a_torn_record_with_a_log() {
    let (mut number, mut judged) = (0_usize, 0);
    for case in NestedLog::all() {
        let built = case.batches();
        let files = segment_files(0, &built, Indexing::every(0));
        for cut in NestedLog::outer_position(&built) + 1..files.log.len() {
            number += 1;
            if !is_exhaustive() && !number.is_multiple_of(397) {
                continue;
            }
            let log = &files.log[..cut];
            let expected = whole_offsets(&built, log);
            for policy in RepairPolicy::ALL {
                let folder = reading::folder();
                let mut made = BTreeMap::from([(file_name(0, "log"), log.to_vec())]);
                if number.is_multiple_of(2) {
                    made.insert(file_name(0, "index"), files.index.clone());
                }
                let dir = reading::write(folder.path(), "orders-0", &made);
                let place = format!("{case:?}, cut at {cut}, {}", policy.code());
                if policy == RepairPolicy::Salvage {
                    assert_copied(&dir, &folder.path().join("copy-0"), &expected, &place);
                }
                let plan =
                    repaired(&dir, &options(policy, 4096)).unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(plan.log_end_offset, expected.last().map_or(0, |last| last + 1), "{place}");
                let log = Log::open(&dir, LogOptions::default()).unwrap();
                assert_eq!(reading::all(&log, OnDamage::Raise).whole().offsets(), expected, "{place}");
                assert_eq!(log.warnings(), [""; 0], "{place}");
                judged += 1;
            }
        }
    }
    println!("{{\"rig\": \"repairs of values that are logs\", \"images\": {judged}}}");
    assert!(judged > 400, "{judged} images");
}

/// A copy that leaves damage out has the batches before it.
fn assert_copied(dir: &Path, to: &Path, expected: &[i64], place: &str) {
    let options = CopyOptions { on_damage: OnDamage::Skip, ..CopyOptions::default() };
    copy(dir, to, &options, &mut |_| Ok(())).unwrap_or_else(|error| panic!("{place}: {error}"));
    let log = Log::open(to, LogOptions::default()).unwrap();
    assert_eq!(reading::all(&log, OnDamage::Raise).whole().offsets(), expected, "{place}");
}
