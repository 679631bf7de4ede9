//! Random damage, with a naive oracle: a batch of the source whose bytes are untouched is there after a
//! salvage, and nothing else.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::support::{fixed_seed, golden};

/// A change of a `.log`.
#[derive(Debug, Clone)]
enum Mutation {
    Flip {
        place: u16,
        bit: u8,
    },
    Fill {
        place: u16,
        length: u16,
        byte: u8,
    },
    Remove {
        place: u16,
        length: u16,
    },
    Insert {
        place: u16,
        bytes: Vec<u8>,
    },
    Truncate {
        place: u16,
    },
    /// A write went to a wrong place: batch `to` becomes a copy of batch `from`.
    Copy {
        from: u16,
        to: u16,
    },
    /// Two batches change places.
    Swap {
        first: u16,
        second: u16,
    },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => (any::<u16>(), 0_u8..8).prop_map(|(place, bit)| Mutation::Flip { place, bit }),
        2 => (any::<u16>(), 1_u16..3000, any::<u8>()).prop_map(|(place, length, byte)| Mutation::Fill { place, length, byte }),
        1 => (any::<u16>(), 1_u16..3000).prop_map(|(place, length)| Mutation::Remove { place, length }),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 1..300)).prop_map(|(place, bytes)| Mutation::Insert { place, bytes }),
        1 => any::<u16>().prop_map(|place| Mutation::Truncate { place }),
        2 => displacement(),
    ]
}

fn displacement() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Mutation::Copy { from, to }),
        (any::<u16>(), any::<u16>()).prop_map(|(first, second)| Mutation::Swap { first, second }),
    ]
}

/// The batches at the start of a `.log`, by their lengths, and the bytes after them.
fn divided(mut bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut found = Vec::new();
    while let Some(length) = bytes.get(8..12) {
        let size = i32::from_be_bytes(length.try_into().unwrap()).saturating_add(12);
        let Some((batch, rest)) = usize::try_from(size)
            .ok()
            .filter(|size| *size >= 26)
            .and_then(|size| bytes.split_at_checked(size))
        else {
            break;
        };
        found.push(batch.to_vec());
        bytes = rest;
    }
    (found, bytes.to_vec())
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
        Mutation::Copy { from, to } | Mutation::Swap { first: from, second: to } => {
            let (mut batches, rest) = divided(bytes);
            let number = |place: u16| usize::from(place) * batches.len() / 65_536;
            let (from, to) = (number(*from), number(*to));
            match mutation {
                _ if batches.is_empty() => {}
                Mutation::Copy { .. } => {
                    let copy = batches[from].clone();
                    batches[to] = copy;
                }
                _ => batches.swap(from, to),
            }
            *bytes = batches.concat();
            bytes.extend(rest);
        }
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
            interval: interval(source.manifest),
        }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.folder.path().join("orders-0")
    }
}

/// The offsets, and the bytes that a checksum protects.
fn identity(batch: &OwnBatch) -> (i64, i64, &[u8]) {
    (batch.0, batch.1, &batch.2[17..])
}

fn assert_written(found: &[OwnBatch], intact: &[OwnBatch]) {
    let known: HashSet<_> = intact.iter().map(identity).collect();
    // nothing contradicts the offset of the last batch, which no checksum covers
    let bytes: HashSet<_> = intact.iter().map(|batch| identity(batch).2).collect();
    for (place, batch) in found.iter().enumerate() {
        let is_known =
            known.contains(&identity(batch)) || place + 1 == found.len() && bytes.contains(identity(batch).2);
        assert!(is_known, "the batch at {} was never written", batch.0);
    }
}

fn assert_salvaged(case: &str, mutations: &[(prop::sample::Index, Mutation)]) {
    let mutated = Mutated::new(case, mutations);
    let dir = mutated.dir();
    let readable = batches(&dir, OnDamage::Skip);
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, mutated.interval)).unwrap();
    let found = batches(&dir, OnDamage::Raise);
    assert_eq!(plan.kept_batches, found.len() as u64);
    let kept: HashSet<_> = found.iter().map(identity).collect();
    assert_written(&found, &mutated.intact);
    for batch in &readable {
        assert!(kept.contains(&identity(batch)), "a reader returns the batch at {}", batch.0);
    }
    let haystacks: Vec<_> = mutated.logs.iter().map(|log| Haystack::new(log)).collect();
    let is_untouched = |batch: &&OwnBatch| haystacks.iter().any(|log| log.contains(&batch.2));
    let lost =
        mutated.intact.iter().filter(is_untouched).filter(|batch| !kept.contains(&identity(batch))).count();
    // Beside a batch with damaged offsets, an intact one may be taken for the damaged one. A batch in a wrong
    // place, before damage, may be taken for one after a gap: then those that belong into the gap are
    // between two damaged places.
    let is_displaced = |(_, mutation): &_| matches!(mutation, Mutation::Copy { .. } | Mutation::Swap { .. });
    let is_exact = mutations.len() == 1 || !mutations.iter().any(is_displaced);
    assert!(
        !is_exact || lost <= mutations.len(),
        "{lost} untouched batches are lost: {:#?}",
        plan.lost_ranges
    );
}

/// Without other damage, a batch that is somewhere in its `.log` is in its place after a salvage.
fn assert_put_in_place(case: &str, log: prop::sample::Index, mutation: &Mutation) {
    let mutated = Mutated::new(case, &[(log, mutation.clone())]);
    let dir = mutated.dir();
    repaired(&dir, &options(RepairPolicy::Salvage, mutated.interval)).unwrap();
    let found = batches(&dir, OnDamage::Raise);
    let haystacks: Vec<_> = mutated.logs.iter().map(|log| Haystack::new(log)).collect();
    let is_untouched = |batch: &&OwnBatch| haystacks.iter().any(|log| log.contains(&batch.2));
    assert!(found.iter().eq(mutated.intact.iter().filter(is_untouched)), "{case}: {mutation:?}");
}

fn assert_cut(case: &str, mutations: &[(prop::sample::Index, Mutation)]) {
    let mutated = Mutated::new(case, mutations);
    let dir = mutated.dir();
    repaired(&dir, &options(RepairPolicy::Kafka, mutated.interval)).unwrap();
    let found = batches(&dir, OnDamage::Raise);
    assert_written(&found, &mutated.intact);
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
    fn copied_and_swapped_batches_are_put_in_their_places(
        case in prop::sample::select(&CASES), log in any::<prop::sample::Index>(), mutation in displacement()
    ) {
        assert_put_in_place(case, log, &mutation);
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
