//! Random damage, with a naive oracle: a batch of the source whose bytes are untouched is there after a salvage, and nothing else.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::support::{fixed_seed, golden};

/// A change of a `.log`.
#[derive(Debug, Clone)]
enum Mutation {
    Flip { place: u16, bit: u8 },
    Fill { place: u16, length: u16, byte: u8 },
    Remove { place: u16, length: u16 },
    Insert { place: u16, bytes: Vec<u8> },
    Truncate { place: u16 },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (any::<u16>(), 0_u8..8).prop_map(|(place, bit)| Mutation::Flip { place, bit }),
        2 => (any::<u16>(), 1_u16..3000, any::<u8>()).prop_map(|(place, length, byte)| Mutation::Fill { place, length, byte }),
        1 => (any::<u16>(), 1_u16..3000).prop_map(|(place, length)| Mutation::Remove { place, length }),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 1..300)).prop_map(|(place, bytes)| Mutation::Insert { place, bytes }),
        1 => any::<u16>().prop_map(|place| Mutation::Truncate { place }),
    ]
}

fn apply(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let at = |place: u16| usize::from(place) * bytes.len() / 65_536;
    match mutation {
        _ if bytes.is_empty() => {}
        Mutation::Flip { place, bit } => {
            let at = at(*place);
            bytes[at] ^= 1 << bit;
        }
        Mutation::Fill { place, length, byte } => {
            let start = at(*place);
            let end = (start + usize::from(*length)).min(bytes.len());
            bytes[start..end].fill(*byte);
        }
        Mutation::Remove { place, length } => {
            let start = at(*place);
            let end = (start + usize::from(*length)).min(bytes.len());
            bytes.drain(start..end);
        }
        Mutation::Insert { place, bytes: new } => {
            let at = at(*place);
            bytes.splice(at..at, new.iter().copied());
        }
        Mutation::Truncate { place } => bytes.truncate(at(*place)),
    }
}

const CASES: [&str; 5] = ["01-small", "05-zstd", "11-transactions", "17-v1-gzip", "19-leader-epochs"];

/// A copy of a case with changed logs, and its batches before.
struct Mutated {
    folder: tempfile::TempDir,
    intact: Vec<OwnBatch>,
    /// The contents of the changed logs.
    logs: Vec<Vec<u8>>,
    interval: u32,
}

impl Mutated {
    fn new(case: &str, mutations: &[(prop::sample::Index, Mutation)]) -> Self {
        let source = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
        let folder = reading::folder();
        let dir = reading::copy(&source.dir, folder.path(), "orders-0");
        let mut files = reading::files(&dir);
        let logs: Vec<_> = files.keys().filter(|name| is_live_log(name)).cloned().collect();
        for (log, mutation) in mutations {
            let name = log.get(&logs);
            apply(files.get_mut(name).unwrap(), mutation);
            std::fs::write(dir.join(name), &files[name]).unwrap();
        }
        Self {
            folder,
            intact: batches(&source.dir, OnDamage::Raise),
            logs: logs.iter().map(|name| files[name].clone()).collect(),
            interval: interval(&source.manifest),
        }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.folder.path().join("orders-0")
    }
}

/// The bytes that a checksum protects.
fn protected(batch: &OwnBatch) -> &[u8] {
    &batch.2[17..]
}

fn assert_salvaged(case: &str, mutations: &[(prop::sample::Index, Mutation)]) {
    let mutated = Mutated::new(case, mutations);
    let dir = mutated.dir();
    let readable = batches(&dir, OnDamage::Skip);
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, mutated.interval)).unwrap();
    let found = batches(&dir, OnDamage::Raise);
    assert_eq!(plan.kept_batches, found.len() as u64);
    let known: HashSet<_> = mutated.intact.iter().map(protected).collect();
    let kept: HashSet<_> = found.iter().map(protected).collect();
    for batch in &found {
        assert!(known.contains(protected(batch)), "the batch at {} was never written", batch.0);
    }
    for batch in &readable {
        assert!(kept.contains(protected(batch)), "a reader returns the batch at {}", batch.0);
    }
    let haystacks: Vec<_> = mutated.logs.iter().map(|log| Haystack::new(log)).collect();
    let is_untouched = |batch: &&OwnBatch| haystacks.iter().any(|log| log.contains(&batch.2));
    let lost =
        mutated.intact.iter().filter(is_untouched).filter(|batch| !kept.contains(protected(batch))).count();
    // beside a batch with damaged offsets, an intact one may be taken for the damaged one
    assert!(lost <= mutations.len(), "{lost} untouched batches are lost: {:#?}", plan.lost_ranges);
}

fn assert_cut(case: &str, mutations: &[(prop::sample::Index, Mutation)]) {
    let mutated = Mutated::new(case, mutations);
    let dir = mutated.dir();
    repaired(&dir, &options(RepairPolicy::Kafka, mutated.interval)).unwrap();
    let found = batches(&dir, OnDamage::Raise);
    let known: HashSet<_> = mutated.intact.iter().map(protected).collect();
    assert!(found.iter().all(|batch| known.contains(protected(batch))));
}

fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, Mutation)>> {
    prop::collection::vec((any::<prop::sample::Index>(), mutation()), 1..5)
}

proptest! {
    #![proptest_config(fixed_seed(15))]

    #[test]
    fn salvage_keeps_every_untouched_batch_and_invents_none(case in prop::sample::select(&CASES), mutations in mutations()) {
        assert_salvaged(case, &mutations);
    }

    #[test]
    fn a_cut_log_has_only_batches_that_were_written(case in prop::sample::select(&CASES), mutations in mutations()) {
        assert_cut(case, &mutations);
    }
}

proptest! {
    #![proptest_config(fixed_seed(1500))]

    #[test]
    #[ignore = "takes minutes; `make repair-crashes` runs it"]
    fn salvage_keeps_every_untouched_batch_of_many_mutated_logs(case in prop::sample::select(&CASES), mutations in mutations()) {
        assert_salvaged(case, &mutations);
    }
}
