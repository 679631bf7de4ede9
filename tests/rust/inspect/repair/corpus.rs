//! Every damaged case of the corpus with each policy, compared with the intact case that it was made from.

use super::*;
use crate::support::golden::{self, Damaged};
use cordwood::inspect::kafka_load::{KafkaLoad, LoadOptions};

/// The cases whose damage is no torn write.
const NOT_TORN: [&str; 23] = [
    "batch-repeated",
    "batches-swapped",
    "flip-base-offset-back",
    "flip-base-offset-high",
    "flip-base-offset-low",
    "flip-count",
    "flip-crc",
    "flip-leader-epoch",
    "flip-legacy",
    "flip-legacy-offset",
    "flip-magic",
    "flip-magic-0",
    "flip-record",
    "flip-record-first-segment",
    "flip-zstd",
    "length-huge",
    "length-minus-one",
    "length-negative",
    "length-plus-one",
    "length-spans-two",
    "length-zero",
    "torn-middle-segment",
    "zero-tail-middle-segment",
];

fn short_name(case: &Damaged) -> &str {
    case.case.strip_prefix("damaged/").unwrap()
}

/// The batches of the source of which every byte is still there, or of which only a header field that is
/// determined is wrong.
fn savable(case: &Damaged) -> Vec<OwnBatch> {
    let files = reading::files(&case.dir);
    let determined = ["baseOffset", "partitionLeaderEpoch", "magic", "offset"];
    let is_header = |recipe: &serde_json::Value| {
        recipe["do"] == "set batchLength" || determined.iter().any(|field| recipe["what"] == *field)
    };
    let only_header = case.recipe.iter().all(is_header);
    let haystacks: Vec<_> = files.values().map(|file| Haystack::new(file)).collect();
    let has = |bytes: &[u8]| haystacks.iter().any(|file| file.contains(bytes));
    let all = batches(&case.from.dir, OnDamage::Raise);
    all.into_iter().filter(|(_, _, bytes)| only_header || has(bytes)).collect()
}

#[test]
fn each_policy_keeps_what_was_intact_of_each_damaged_case() {
    let cases = golden::damaged();
    assert_eq!(cases.len(), 62);
    for case in cases {
        let name = short_name(&case);
        let savable = savable(&case);
        for policy in RepairPolicy::ALL {
            let folder = reading::folder();
            let dir = reading::copy(&case.dir, folder.path(), &case.from.name);
            let place = format!("{name}, {}", policy.code());
            let readable = batches(&dir, OnDamage::Skip);
            let plan = match repaired(&dir, &options(policy, interval(case.from.manifest))) {
                Ok(plan) => plan,
                Err(error) => {
                    assert_eq!(
                        (policy, NOT_TORN.contains(&name)),
                        (RepairPolicy::TornTail, true),
                        "{place}: {error}"
                    );
                    let text = error.to_string();
                    assert!(text.contains("salvage") && text.contains("kafka"), "{place}: {text}");
                    continue;
                }
            };
            assert!(policy != RepairPolicy::TornTail || !NOT_TORN.contains(&name), "{place}: not refused");
            let found = batches(&dir, OnDamage::Raise);
            assert_eq!(plan.kept_batches, found.len() as u64, "{place}");
            let log = Log::open(&dir, LogOptions::default()).unwrap();
            assert_eq!(plan.log_end_offset, log.log_end_offset().unwrap(), "{place}");
            let warnings = log.warnings();
            assert!(warnings.iter().all(|warning| warning.contains("hidden")), "{place}: {warnings:?}");
            match policy {
                RepairPolicy::Salvage => {
                    assert!(found == savable, "{place}: {} batches of {}", found.len(), savable.len());
                    let missing = readable.iter().find(|(first, last, _)| {
                        !found.iter().any(|(found, end, _)| (found, end) == (first, last))
                            && savable.iter().any(|(found, end, _)| (found, end) == (first, last))
                    });
                    assert!(
                        missing.is_none(),
                        "{place}: a reader returns the batch at {}",
                        missing.unwrap().0
                    );
                }
                RepairPolicy::TornTail => assert!(found == savable, "{place}"),
                _ if !NOT_TORN.contains(&name) => assert!(found == savable, "{place}"),
                _ => {
                    let intact = batches(&case.from.dir, OnDamage::Raise);
                    let same =
                        found.iter().zip(&intact).take_while(|(found, intact)| found == intact).count();
                    // of two batches that changed places, the first one of the file is kept
                    assert!(
                        same == found.len() || name == "batches-swapped" && same + 1 == found.len(),
                        "{place}"
                    );
                    let first = case.recipe[0]["batch"]["baseOffset"].as_i64();
                    let is_before = |batch: &OwnBatch| first.is_some_and(|first| batch.1 < first);
                    let cut_legacy = name.starts_with("flip-legacy");
                    assert!(
                        cut_legacy || same >= intact.iter().filter(|batch| is_before(batch)).count(),
                        "{place}"
                    );
                    assert!(plan.lost_bytes() > 0, "{place}");
                }
            }
        }
    }
}

/// Preallocated space of a killed broker, files that a broker deletes later, and time indexes that Kafka 0.8
/// and 0.9 did not have.
#[test]
fn an_intact_log_has_nothing_to_repair_but_what_a_broker_would_change() {
    for partition in golden::intact() {
        for policy in RepairPolicy::ALL {
            let plan = plan_repair(&partition.dir, &options(policy, 4096)).unwrap();
            assert!(plan.lost_ranges.is_empty(), "{}: {:?}", partition.case, plan.lost_ranges);
            let is_expected = plan.actions.iter().all(|action| {
                let name = action.file.file_name().unwrap().to_str().unwrap();
                name.ends_with(".deleted")
                    || partition.case.starts_with("17-v0-") && name.ends_with(".timeindex")
                    || partition.case.starts_with("14-killed")
            });
            assert!(is_expected, "{}: {:#?}", partition.case, plan.actions);
        }
    }
}

#[test]
fn a_cut_of_a_batch_that_a_broker_keeps_says_so() {
    let mut said = Vec::new();
    for case in golden::damaged() {
        let plan =
            plan_repair(&case.dir, &options(RepairPolicy::Kafka, interval(case.from.manifest))).unwrap();
        if !plan.actions.iter().any(|action| action.reason.contains("a broker keeps that batch")) {
            continue;
        }
        let name = short_name(&case);
        said.push(name.to_owned());
        let unclean = LoadOptions { clean: Some(false), recovery_point: Some(0), ..LoadOptions::default() };
        let load = KafkaLoad::plan(&case.dir, &unclean).unwrap();
        // the split of a segment by its offsets fails, and an index entry is due for the first of two batches
        // that changed places
        let is_kept = load.failure.is_some() || load.lost_offsets.is_empty() || name == "batches-swapped";
        assert!(is_kept, "{name}: {:?}", load.lost_offsets);
    }
    for expected in ["batch-repeated", "batches-swapped", "flip-base-offset-low", "flip-leader-epoch"] {
        assert!(said.iter().any(|name| name == expected), "{expected}: {said:?}");
    }
    assert!(!said.iter().any(|name| name.starts_with("torn-") || name == "flip-crc"), "{said:?}");
}
