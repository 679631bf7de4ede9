//! Every one-bit flip and every truncation length of a small log's files: the result is the same answers, an
//! error, or, at the tail, a shorter log with a warning. Bits that the format does not protect are counted
//! exactly.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::flips::{Answers, Damage, Judged, Outcome, answers, judge_every};
use crate::support::naive::{self, Batch};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::folder;

/// Contiguous batches with two leader epochs, one batch compressed, and timestamps out of order.
fn batches_v2() -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for n in 0..12i64 {
        let base = built.last().map_or(0, Built::next_offset);
        let records =
            (0..2 + n % 2).map(|i| Rec::at(1000 + (n * 37 + i * 11) % 90).key([b'k'; 1]).value([n as u8, 7]));
        let codec = if n == 4 { Codec::Gzip } else { Codec::None };
        let epoch = i32::from(n >= 7);
        built.push(BatchV2::new(base).leader_epoch(epoch).codec(codec).records(records).build());
    }
    built
}

/// Messages v1, including two wrappers.
fn batches_v1() -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for n in 0..9i64 {
        let base = built.last().map_or(0, Built::next_offset);
        let records =
            (0..2 + n % 2).map(|i| Rec::at(1000 + (n * 37 + i * 11) % 90).key([b'k'; 1]).value([n as u8, 7]));
        let codec = if n == 3 || n == 6 { Codec::Gzip } else { Codec::None };
        built.extend(MessageSet::v1(base).codec(codec).records(records).build());
    }
    built
}

/// A log in one segment, or in two.
fn log(parent: &Path, batches: &[Built], split: Option<usize>) -> std::path::PathBuf {
    let indexing = Indexing::every(150);
    let (first, second) = batches.split_at(split.unwrap_or(batches.len()));
    let mut builder = PartitionBuilder::new(indexing).segment(0, first.to_vec());
    if let Some(batch) = second.first() {
        builder = builder.segment(batch.base_offset, second.to_vec());
    }
    builder.write(parent, "t-0")
}

struct Tried {
    /// The index of the segment whose file was damaged.
    segment: usize,

    whole: Answers,
    naive: naive::Log,
    /// The position of the last entry of the segment's offset index.
    last_indexed: u64,
    judged: Vec<(Damage, Judged)>,
}

fn try_all(batches: &[Built], split: Option<usize>, segment: usize, extension: &str) -> Tried {
    let parent = folder();
    let dir = log(parent.path(), batches, split);
    let whole = answers(&dir);
    let naive = naive::read(&dir).unwrap();
    assert_eq!(whole.batches, naive.batches);
    let base = naive.segments[segment].base_offset;
    let index = std::fs::read(dir.join(file_name(base, "index"))).unwrap();
    let last_indexed = u32::from_be_bytes(index[index.len() - 4..].try_into().unwrap()).into();
    let judged = judge_every(&dir, &file_name(base, extension), &whole);
    Tried { segment, whole, naive, last_indexed, judged }
}

impl Tried {
    fn counts(&self) -> BTreeMap<(bool, Outcome), usize> {
        let mut counts = BTreeMap::new();
        for (damage, judged) in &self.judged {
            *counts.entry((matches!(damage, Damage::Flip(_)), judged.outcome)).or_default() += 1;
        }
        counts
    }

    /// The batches of the segment whose `.log` was damaged, and the next segment's base offset.
    fn of_segment(&self) -> (Vec<&Batch>, i64) {
        let base = self.naive.segments[self.segment].base_offset;
        let next = self.naive.segments.get(self.segment + 1).map_or(i64::MAX, |segment| segment.base_offset);
        (self.naive.batches.iter().filter(|batch| batch.segment == base).collect(), next)
    }
}

/// For each bit of a field of a batch: the damage that flips it, and the flipped value.
fn flips(batch: &Batch, field: Range<u64>, value: i64) -> impl Iterator<Item = (Damage, i64)> {
    let bits = (field.end - field.start) * 8;
    let start = (batch.position + field.start) * 8;
    (0..bits).map(move |bit| {
        let flipped = value ^ (1i64 << (bits - 1 - bit));
        (Damage::Flip((start + bit) as usize), if bits == 32 { i64::from(flipped as i32) } else { flipped })
    })
}

/// Flips of a leader epoch that nothing in the format contradicts: with a result between the neighbours'
/// epochs, or from which the epochs fall at an end of the log or of its segment. Only a batch on both sides
/// shows that one that falls is wrong, and a scan does not look at the next segment.
fn plausible_epochs(tried: &Tried) -> Vec<Damage> {
    let all = &tried.naive.batches;
    let (batches, _) = tried.of_segment();
    let mut plausible = Vec::new();
    for batch in batches.into_iter().filter(|batch| batch.magic == 2) {
        let n = all.iter().position(|other| other == batch).unwrap();
        let low = n.checked_sub(1).map_or(-1, |before| i64::from(all[before].leader_epoch));
        let high = all.get(n + 1).map_or(i64::MAX, |next| i64::from(next.leader_epoch));
        // one below -1 is none, as for Kafka; `verify` warns of it
        let of_segment = |n: usize| all.get(n).filter(|other| other.segment == batch.segment);
        let is_last = of_segment(n + 1).is_none();
        let is_third_below = |epoch: i64| {
            let of_next = |other: &&Batch| all.get(n + 1).is_some_and(|next| next.segment == other.segment);
            all.get(n + 2).filter(of_next).is_none_or(|third| i64::from(third.leader_epoch) < epoch)
        };
        let falls = |epoch: i64| {
            (0..low).contains(&epoch) && is_last
                || epoch > high && (n == 0 || is_last) && is_third_below(epoch)
        };
        let is_plausible = |epoch: &i64| *epoch < -1 || (low..=high).contains(epoch) || falls(*epoch);
        let flips = flips(batch, 12..16, i64::from(batch.leader_epoch));
        plausible.extend(flips.filter(|(_, epoch)| is_plausible(epoch)).map(|(damage, _)| damage));
    }
    plausible
}

/// Flips that move the last batch of a log to higher offsets within its segment's range.
fn plausible_offsets(tried: &Tried) -> Vec<Damage> {
    let (batches, next) = tried.of_segment();
    let (last, base) = (batches[batches.len() - 1], tried.naive.segments[tried.segment].base_offset);
    let stored = if last.magic == 2 { last.base_offset } else { last.last_offset };
    let span = last.last_offset - stored;
    flips(last, 0..8, stored)
        .filter(|(_, offset)| *offset > stored && *offset + span < next.min(base + (1 << 31)))
        .map(|(damage, _)| damage)
        .collect()
}

/// Truncations between two batches, in the last segment only those after the last indexed batch: the log is
/// still legal.
fn plausible_ends(tried: &Tried) -> Vec<Damage> {
    let (batches, next) = tried.of_segment();
    let is_last = next == i64::MAX;
    let legal = batches.into_iter().filter(|batch| !is_last || batch.position > tried.last_indexed);
    legal.map(|batch| Damage::Truncate(batch.position as usize)).collect()
}

fn undetected(tried: &Tried) -> Vec<Damage> {
    let mut undetected = Vec::new();
    for (damage, judged) in &tried.judged {
        if judged.outcome == Outcome::Undetected {
            undetected.push(*damage);
        }
    }
    undetected
}

/// Checks that exactly the expected bits are undetected, and prints the others.
fn assert_undetected(tried: &Tried, mut expected: Vec<Damage>) {
    expected.sort_unstable();
    expected.dedup();
    let found = undetected(tried);
    let unexpected: Vec<_> = tried
        .judged
        .iter()
        .filter(|(damage, judged)| judged.outcome == Outcome::Undetected && !expected.contains(damage))
        .map(|(damage, judged)| format!("{}: {}", describe(tried, *damage), judged.what))
        .collect();
    assert!(
        unexpected.is_empty(),
        "{} not detected: {:#?}",
        unexpected.len(),
        &unexpected[..unexpected.len().min(20)]
    );
    let detected: Vec<_> = expected
        .iter()
        .filter(|damage| !found.contains(damage))
        .map(|damage| describe(tried, *damage))
        .collect();
    assert!(detected.is_empty(), "unexpectedly detected: {detected:?}");
}

/// The damaged batch and the byte in it.
fn describe(tried: &Tried, damage: Damage) -> String {
    let position = match damage {
        Damage::Flip(bit) => bit / 8,
        Damage::Truncate(length) => length,
    } as u64;
    let base = tried.naive.segments[tried.segment].base_offset;
    let of_segment = tried.naive.batches.iter().filter(|batch| batch.segment == base);
    let batch = of_segment.clone().find(|b| (b.position..b.position + b.size).contains(&position));
    let location = batch.map(|batch| (batch.base_offset, position - batch.position));
    format!("{damage:?} (batch, byte) {location:?}")
}

/// Checks that skipping loses only the batch that has the flipped bit, and returns only original records.
/// Returns the flips that lose the next batch instead.
fn assert_skips_one_batch(tried: &Tried, undetected: &[Damage]) -> Vec<Damage> {
    let (batches, _) = tried.of_segment();
    let (mut wrong, mut neighbours) = (Vec::new(), Vec::new());
    for (damage, judged) in &tried.judged {
        let Damage::Flip(bit) = damage else { continue };
        if undetected.contains(damage) || judged.outcome == Outcome::Far {
            continue;
        }
        let position = (bit / 8) as u64;
        let n = batches.iter().position(|b| (b.position..b.position + b.size).contains(&position)).unwrap();
        if judged.invented || judged.lost.iter().any(|base| *base != batches[n].base_offset) {
            let is_next = |base: &i64| *base == batches[n].last_offset + 1;
            if !judged.invented && judged.lost.len() == 1 && judged.lost.iter().all(is_next) {
                neighbours.push(*damage);
            } else {
                wrong.push(format!("{}: {judged:?}", describe(tried, *damage)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    neighbours
}

#[test]
fn a_flipped_bit_of_a_log_is_detected_unless_the_format_does_not_protect_it() {
    let tried = try_all(&batches_v2(), None, 0, "log");
    let (epochs, offsets, ends) =
        (plausible_epochs(&tried), plausible_offsets(&tried), plausible_ends(&tried));
    assert_eq!((epochs.len(), offsets.len(), ends.len()), (76, 27, 1));
    assert_eq!(
        tried.counts(),
        [
            ((false, Outcome::Shorter), 1048),
            ((false, Outcome::Undetected), 1),
            ((true, Outcome::Error), 7620),
            ((true, Outcome::Shorter), 637),
            ((true, Outcome::Far), 32),
            ((true, Outcome::Undetected), 103)
        ]
        .into()
    );
    let exceptions = [epochs, offsets, ends].concat();
    assert_undetected(&tried, exceptions.clone());
    // epochs 0, 1, 0, 1 in a row: the second may have been 0 or the third 1, and the third is taken for the
    // damaged one
    assert_eq!(assert_skips_one_batch(&tried, &exceptions).len(), 1);
}

#[test]
fn a_flipped_bit_of_a_segment_that_is_not_the_last_is_detected() {
    let tried = try_all(&batches_v2(), Some(6), 0, "log");
    let (epochs, offsets, ends) =
        (plausible_epochs(&tried), plausible_offsets(&tried), plausible_ends(&tried));
    assert_eq!((epochs.len(), offsets.len(), ends.len()), (67, 0, 6));
    assert_eq!(
        tried.counts(),
        [
            ((false, Outcome::Error), 525),
            ((false, Outcome::Undetected), 6),
            ((true, Outcome::Error), 4181),
            ((true, Outcome::Undetected), 67)
        ]
        .into()
    );
    let exceptions = [epochs, offsets, ends].concat();
    assert_undetected(&tried, exceptions.clone());
    // epochs 0, 1, 0, 1 in a row: the second may have been 0 or the third 1, and the third is taken for the
    // damaged one
    assert_eq!(assert_skips_one_batch(&tried, &exceptions).len(), 1);
}

#[test]
fn a_flipped_bit_of_the_last_of_two_segments_is_detected() {
    let tried = try_all(&batches_v2(), Some(6), 1, "log");
    let (epochs, offsets, ends) =
        (plausible_epochs(&tried), plausible_offsets(&tried), plausible_ends(&tried));
    assert_eq!((epochs.len(), offsets.len(), ends.len()), (39, 27, 1));
    assert_eq!(
        tried.counts(),
        [
            ((false, Outcome::Shorter), 517),
            ((false, Outcome::Undetected), 1),
            ((true, Outcome::Error), 3409),
            ((true, Outcome::Shorter), 637),
            ((true, Outcome::Far), 32),
            ((true, Outcome::Undetected), 66)
        ]
        .into()
    );
    let exceptions = [epochs, offsets, ends].concat();
    assert_undetected(&tried, exceptions.clone());
    assert_eq!(assert_skips_one_batch(&tried, &exceptions), []);
}

#[test]
fn a_flipped_bit_of_an_old_log_is_detected_unless_the_format_does_not_protect_it() {
    let tried = try_all(&batches_v1(), None, 0, "log");
    let (offsets, ends) = (plausible_offsets(&tried), plausible_ends(&tried));
    assert_eq!((offsets.len(), ends.len()), (28, 2));
    assert_eq!(
        tried.counts(),
        [
            ((false, Outcome::Shorter), 826),
            ((false, Outcome::Undetected), 2),
            ((true, Outcome::Error), 6328),
            ((true, Outcome::Shorter), 236),
            ((true, Outcome::Far), 32),
            ((true, Outcome::Undetected), 28)
        ]
        .into()
    );
    let exceptions = [offsets, ends].concat();
    assert_undetected(&tried, exceptions.clone());
    assert_eq!(assert_skips_one_batch(&tried, &exceptions), []);
}

#[test]
fn damage_to_an_index_changes_no_result() {
    let mut counts: BTreeMap<(bool, Outcome), usize> = BTreeMap::new();
    for (batches, split) in [(batches_v2(), None), (batches_v2(), Some(6)), (batches_v1(), None)] {
        for segment in 0..=usize::from(split.is_some()) {
            for extension in ["index", "timeindex"] {
                let tried = try_all(&batches, split, segment, extension);
                let changed: Vec<_> =
                    tried.judged.iter().filter(|(_, judged)| judged.outcome != Outcome::Same).collect();
                assert!(
                    changed.is_empty(),
                    "{extension} {}: {:#?}",
                    changed.len(),
                    &changed[..changed.len().min(10)]
                );
                assert_eq!(tried.whole.batches, tried.naive.batches);
                for (kind, count) in tried.counts() {
                    *counts.entry(kind).or_default() += count;
                }
            }
        }
    }
    assert_eq!(counts, [((false, Outcome::Same), 176), ((true, Outcome::Same), 1408)].into());
}
