//! Batches that belong together: a run is a part of one partition.
//!
//! The bytes of a batch do not name its partition. Two rules decide: a batch that begins where the one before
//! ends, with higher offsets and in the same leader epoch, continues its piece; and a piece whose first
//! offset is exactly the end of another one continues that, if both are the only ones that do.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::finder::Found;
use crate::record::{BatchHeader, Codec};

/// The number of distinct batches that later ones are compared with.
const MAX_COMPARED: usize = 4 << 20;
/// The number of producer ids of a run that are kept.
const MAX_PRODUCERS: usize = 1000;

/// Batches that follow each other in one image.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The number of the image.
    pub(super) image: usize,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first_offset: i64,
    pub(super) last_offset: i64,
    pub(super) facts: Facts,
}

/// What the headers of some batches say.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) batches: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// The number of places at which offsets are missing between two batches.
    pub(super) gaps: u64,
    pub(super) largest_batch: u32,
    /// Of the batches with timestamps.
    pub(super) timestamps: Option<(i64, i64)>,
    pub(super) first_epoch: i32,
    pub(super) last_epoch: i32,
    pub(super) codecs: BTreeSet<&'static str>,
    pub(super) magics: BTreeSet<u8>,
    pub(super) producer_ids: BTreeSet<i64>,
}

impl Facts {
    fn of(header: &BatchHeader) -> Self {
        let timestamp = header.max_timestamp;
        let offsets = (header.last_offset - header.base_offset).saturating_add(1);
        let records = header.count.map_or(offsets, i64::from);
        let codec = header.codec().map_or("none", Codec::name);
        Self {
            batches: 1,
            records: u64::try_from(records).unwrap_or(0),
            bytes: u64::from(header.size),
            gaps: 0,
            largest_batch: header.size,
            timestamps: (timestamp >= 0).then_some((timestamp, timestamp)),
            first_epoch: header.leader_epoch,
            last_epoch: header.leader_epoch,
            codecs: BTreeSet::from([codec]),
            magics: BTreeSet::from([header.magic]),
            producer_ids: (header.producer_id >= 0).then_some(header.producer_id).into_iter().collect(),
        }
    }

    fn add(&mut self, other: Self) {
        self.batches += other.batches;
        self.records += other.records;
        self.bytes += other.bytes;
        self.gaps += other.gaps;
        self.largest_batch = self.largest_batch.max(other.largest_batch);
        self.timestamps = match (self.timestamps, other.timestamps) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (one, other) => one.or(other),
        };
        self.last_epoch = other.last_epoch;
        self.codecs.extend(other.codecs);
        self.magics.extend(other.magics);
        let room = MAX_PRODUCERS.saturating_sub(self.producer_ids.len());
        self.producer_ids.extend(other.producer_ids.into_iter().take(room));
    }
}

/// A part of one partition: pieces with ascending offsets.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) pieces: Vec<Piece>,
    pub(super) facts: Facts,
}

impl Run {
    pub(super) fn first_offset(&self) -> i64 {
        self.pieces.first().map_or(0, |piece| piece.first_offset)
    }

    pub(super) fn last_offset(&self) -> i64 {
        self.pieces.last().map_or(0, |piece| piece.last_offset)
    }
}

/// Collects batches in the order in which they are found.
#[derive(Default)]
pub(super) struct Collector {
    pieces: Vec<Piece>,
    known: HashSet<(i64, i64, u32, u32)>,
    /// The number of batches that were found before.
    pub(super) repeated: u64,
}

impl Collector {
    pub(super) fn add(&mut self, image: usize, found: &Found) {
        let header = &found.header;
        let identity = (header.base_offset, header.last_offset, header.crc, header.size);
        if self.known.contains(&identity) {
            self.repeated += 1;
            return;
        }
        if self.known.len() < MAX_COMPARED {
            self.known.insert(identity);
        }
        let mut facts = Facts::of(header);
        if let Some(last) = self.pieces.last_mut().filter(|last| continues(last, image, found)) {
            facts.gaps = u64::from(header.base_offset - 1 > last.last_offset);
            last.end = found.end();
            last.last_offset = header.last_offset;
            last.facts.add(facts);
            return;
        }
        self.pieces.push(Piece {
            image,
            start: found.position,
            end: found.end(),
            first_offset: header.base_offset,
            last_offset: header.last_offset,
            facts,
        });
    }

    /// The runs, by their first offset.
    pub(super) fn finish(self) -> Vec<Run> {
        let pieces = self.pieces;
        // `None`: several
        let mut starting: HashMap<i64, Option<usize>> = HashMap::new();
        let mut ending: HashMap<i64, Option<usize>> = HashMap::new();
        for (number, piece) in pieces.iter().enumerate() {
            starting.entry(piece.first_offset).and_modify(|one| *one = None).or_insert(Some(number));
            if let Some(end) = piece.last_offset.checked_add(1) {
                ending.entry(end).and_modify(|one| *one = None).or_insert(Some(number));
            }
        }
        let mut next: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, piece) in pieces.iter().enumerate() {
            let Some(end) = piece.last_offset.checked_add(1) else { continue };
            if let (Some(Some(after)), Some(Some(_))) = (starting.get(&end), ending.get(&end))
                && let Some(following) = pieces.get(*after)
                && is_possible_epoch(piece.facts.last_epoch, following.facts.first_epoch)
            {
                next.insert(number, *after);
            }
        }
        let continued: HashSet<_> = next.values().copied().collect();
        let mut runs = Vec::new();
        for first in (0..pieces.len()).filter(|number| !continued.contains(number)) {
            let mut run = Run { pieces: Vec::new(), facts: Facts::default() };
            let mut at = Some(first);
            while let Some(piece) = at.and_then(|at| pieces.get(at)) {
                if run.pieces.is_empty() {
                    run.facts = piece.facts.clone();
                } else {
                    run.facts.add(piece.facts.clone());
                }
                run.pieces.push(piece.clone());
                at = at.and_then(|at| next.get(&at).copied());
            }
            runs.push(run);
        }
        runs.sort_by_key(|run| {
            (run.first_offset(), run.pieces.first().map(|piece| (piece.image, piece.start)))
        });
        runs
    }
}

/// Whether a batch continues a piece: it begins where the piece ends, with higher offsets and a possible
/// epoch. Where offsets are missing, the epoch must be the same.
fn continues(last: &Piece, image: usize, found: &Found) -> bool {
    let header = &found.header;
    let is_next = (last.image, last.end) == (image, found.position) && header.base_offset > last.last_offset;
    let is_exact = header.base_offset - 1 == last.last_offset;
    let epoch = last.facts.last_epoch;
    is_next && is_possible_epoch(epoch, header.leader_epoch) && (is_exact || epoch == header.leader_epoch)
}

/// Whether a batch with a leader epoch may follow a batch with another one. An epoch of −1 means that a batch
/// has none.
fn is_possible_epoch(before: i32, epoch: i32) -> bool {
    before < 0 || epoch < 0 || epoch >= before
}
