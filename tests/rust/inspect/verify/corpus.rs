//! The corpus of real Kafka's partitions: no finding in an intact one, and every damage found at its place.

use std::path::Path;

use cordwood::inspect::verify::{Finding, Rule, Severity};
use cordwood::types::Io;
use serde_json::Value;

use super::{deep, options, verified};
use crate::support::golden::{self, Damaged, text};
use crate::support::reading::{IOS, files, folder, write};

fn shown(findings: &[Finding]) -> String {
    findings.iter().flat_map(|finding| ["\n    ".to_owned(), finding.to_string()]).collect()
}

/// The notes about intact partitions: what Kafka left behind, and offsets that it skipped.
fn notes(case: &str, partition: &str) -> &'static [Rule] {
    match (case, partition) {
        // records of the year 3000
        ("08-late" | "08-late-lz4", _) => &[Rule::FutureTimestamps],
        // the zeros of a preallocated segment
        ("14-killed-preallocated-log", _) => &[Rule::ZerosAfterEnd],
        // files that were renamed and not deleted yet
        ("18-far-base", _) => &[Rule::DeletedFile],
        // offsets that were given to the log: nothing shows that no segment is missing, so it is a warning
        ("18-leaps", "leaps-3") => &[Rule::OffsetGap],
        // a truncation inside a batch
        ("23-truncated", _) => &[Rule::OffsetGap, Rule::DeletedFile],
        _ => &[],
    }
}

#[test]
fn intact_partitions_have_no_finding_but_the_documented_notes() {
    let mut wrong: Vec<String> = Vec::new();
    for partition in golden::intact() {
        for io in IOS {
            let found = verified(&partition.dir, &deep(io));
            assert_eq!(found.batches_checked, partition.batches, "{}", partition.case);
            let mut rules: Vec<_> = found.findings.iter().map(|finding| finding.rule).collect();
            rules.dedup();
            let is_noted = rules == notes(&partition.case, &partition.name);
            let severity = if partition.case == "18-leaps" { Severity::Warning } else { Severity::Info };
            if !is_noted || found.findings.iter().any(|finding| finding.severity != severity) {
                wrong.push(format!("{} {}:{}", partition.case, partition.name, shown(&found.findings)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rule that a case breaks, and the suffix of the file if it is not the one of the recipe.
fn broken(case: &str) -> (Rule, Option<&'static str>) {
    let of = |rule| (rule, None);
    match case {
        "batch-removed" => (Rule::IndexEntryWrong, Some("285.index")),
        "both-missing" | "index-missing" => of(Rule::IndexMissing),
        "cleaned-leftover" => (Rule::ReplacementUncommitted, Some("000.log.cleaned")),
        "deleted-leftover" => (Rule::DeletedFile, Some("000.log.deleted")),
        "epochs-beyond-end" => of(Rule::LeaderEpochMismatch),
        "epochs-count" | "epochs-words" => of(Rule::LeaderEpochsUnreadable),
        "epochs-empty" => of(Rule::LeaderEpochsMissing),
        "foreign-harmless" => (Rule::ForeignFile, Some("README")),
        "foreign-index" => (Rule::OrphanFile, Some("123.index")),
        "foreign-log" => (Rule::ForeignSegmentName, Some("notes.log")),
        "index-empty" => of(Rule::IndexEmpty),
        "index-garbage" | "index-positions-beyond-end" | "index-wrong-position" => of(Rule::IndexEntryWrong),
        "index-short" => of(Rule::IndexFragment),
        "index-zero-padded" => of(Rule::IndexZeroTail),
        "segment-removed" => (Rule::OffsetGap, Some("189.log")),
        "short-name" => (Rule::ForeignSegmentName, Some("7.log")),
        "snapshot-corrupt" => of(Rule::SnapshotUnreadable),
        "snapshots-missing" => (Rule::SnapshotMissing, Some("payments-0")),
        "start-beyond-end" => (Rule::LogStartBeyondEnd, Some("log-start-offset-checkpoint")),
        "swap-and-cleaned" => (Rule::ReplacementUncommitted, Some("000.log.swap")),
        "swap-complete" => (Rule::ReplacementCommitted, Some("000.log.swap")),
        "swap-originals-gone" => (Rule::ReplacementCommitted, Some("096.log.swap")),
        "timeindex-disorder" | "timeindex-future" => of(Rule::TimeIndexEntryWrong),
        "timeindex-missing" => of(Rule::TimeIndexMissing),
        "torn-middle-segment" => of(Rule::DamagedBatch),
        "txnindex-fragment" => of(Rule::TransactionIndexFragment),
        "txnindex-garbage" => of(Rule::TransactionIndexEntryWrong),
        "zero-tail-page" | "zero-tail-short" => of(Rule::ZerosAfterEnd),
        torn if torn.starts_with("torn-") => of(Rule::TornTail),
        // flips, lengths, batches repeated and swapped, zeros within a log
        _ => of(Rule::DamagedBatch),
    }
}

/// The positions of which the damage must contain one, from the recipe; empty if it names none.
fn positions(recipe: &Value, case: &Damaged) -> Vec<u64> {
    let size = || std::fs::metadata(case.dir.join(text(&recipe["file"]))).unwrap().len();
    match recipe["do"].as_str().unwrap() {
        "flip a bit" | "set batchLength" | "write" => vec![recipe["position"].as_u64().unwrap()],
        "truncate" if recipe["to"].as_u64() != Some(0) => vec![recipe["to"].as_u64().unwrap() - 1],
        "append zeros" => vec![size() - recipe["bytes"].as_u64().unwrap()],
        "append" => vec![size() - text(&recipe["hex"]).len() as u64 / 2],
        "repeat a batch after itself" => {
            vec![recipe["position"].as_u64().unwrap() + recipe["size"].as_u64().unwrap()]
        }
        // the later one comes first; the other is found after it, or it instead of the other
        "swap two neighbouring batches" => {
            let at = |number: usize| recipe["positions"][number].as_u64().unwrap();
            let end = 2918;
            vec![at(0), at(0) + end - at(1)]
        }
        "swap entries" => {
            recipe["slots"].as_array().unwrap().iter().map(|slot| slot.as_u64().unwrap() * 12).collect()
        }
        _ => Vec::new(),
    }
}

fn file_of(recipe: &Value) -> Option<String> {
    recipe["file"].as_str().map(str::to_owned)
}

/// With `log-start-offset-checkpoint` if that is the damage.
fn findings(case: &Damaged, io: Io) -> Vec<Finding> {
    let Some(offset) = case.recipe[0]["offset"].as_i64() else {
        return verified(&case.dir, &options(io)).findings;
    };
    let parent = folder();
    let dir = write(parent.path(), "tickets-0", &files(&case.dir));
    std::fs::write(parent.path().join("log-start-offset-checkpoint"), format!("0\n1\ntickets 0 {offset}\n"))
        .unwrap();
    verified(&dir, &options(io)).findings
}

#[test]
fn every_damage_of_the_corpus_is_found_at_its_place() {
    let mut wrong: Vec<String> = Vec::new();
    let cases = golden::damaged();
    assert_eq!(cases.len(), 62);
    for case in cases {
        for io in IOS {
            let found = findings(&case, io);
            let (rule, suffix) = broken(case.case.strip_prefix("damaged/").unwrap());
            let recipe = &case.recipe[0];
            let suffix = suffix.map(str::to_owned).or_else(|| file_of(recipe)).unwrap();
            let is_of_recipe = file_of(recipe).is_some_and(|file| file == suffix);
            let positions = if is_of_recipe { positions(recipe, &case) } else { Vec::new() };
            let is_it = |finding: &&Finding| {
                let holds = |position: &u64| {
                    (finding.position.unwrap()..finding.end_position.unwrap()).contains(position)
                };
                finding.rule == rule
                    && finding.file.to_str().unwrap().ends_with(&suffix)
                    && (positions.is_empty() || positions.iter().any(holds))
            };
            match found.iter().find(is_it) {
                Some(finding) => assert_eq!(finding.severity, rule.severity(), "{finding}"),
                None => wrong.push(format!("{} {suffix} {positions:?}:{}", case.case, shown(&found))),
            }
            // what the recipe did not touch has no finding
            if Path::new(&suffix).extension().is_some_and(|ending| ending == "log")
                && rule == Rule::DamagedBatch
            {
                let others =
                    found.iter().filter(|finding| finding.file.extension() != Path::new(&suffix).extension());
                let is_index = |finding: &Finding| {
                    matches!(finding.rule, Rule::IndexEntryWrong | Rule::TimeIndexEntryWrong)
                };
                assert!(others.clone().all(is_index), "{}:{}", case.case, shown(&found));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
