//! Whole batches in damaged bytes that have another place in the log: a disk wrote them where they do not
//! belong, or two blocks changed places.
//!
//! ```text
//!   0   1   8   3   4   …   7   2   9         8 and 2 have changed places
//!           └── offset 2 is missing           a hole: offsets that no intact batch has
//! ```
//!
//! A batch is a copy if an intact one with the same offsets and the same checksum is in its place. Otherwise
//! its own offsets may be missing elsewhere: then it is put there. No checksum covers the base offset, so a
//! batch that may belong where it is, with one bit of its offset wrong, needs evidence: its offsets touch the
//! offsets of an intact batch or of another one that is put there, and the hole is at damaged bytes, or
//! directly before the batch that precedes it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::correction::{Neighbours, Sequences};
use super::decide::Target;
use crate::error::Result;
use crate::record::BatchHeader;
use crate::segment::{SCAN_READ, is_relative};

/// A whole batch in damaged bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Displaced {
    /// The number of the segment.
    pub(super) target: usize,
    /// The number of the damaged range.
    pub(super) range: usize,
    /// The position in the `.log`.
    pub(super) start: u64,
    /// The position after its last byte.
    pub(super) end: u64,
    /// Its header; `None` if its offsets are impossible.
    pub(super) header: Option<BatchHeader>,
    /// Whether it may belong where it is: with another bit of its offset, its offsets are among the missing
    /// ones.
    pub(super) may_belong: bool,
    pub(super) sequences: Sequences,
}

impl Displaced {
    fn same_as(&self, other: &BatchHeader) -> bool {
        self.header.is_some_and(|header| {
            (header.base_offset, header.last_offset, header.crc, header.size)
                == (other.base_offset, other.last_offset, other.crc, other.size)
        })
    }
}

/// A place in a segment: before the batch that begins at a position, or at the end.
pub(super) type Place = (usize, Option<u64>);

/// What is known about a displaced batch from the intact ones.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Whether an intact batch has the same offsets and the same bytes.
    pub(super) is_copy: bool,
    /// The place of its own offsets, if it belongs there.
    pub(super) place: Option<Place>,
    /// The sequences of its producer before and after it in the segment.
    before: Option<Sequences>,
    after: Option<Sequences>,
}

impl Known {
    /// Whether the sequences of the producer allow that batches which follow each other belong where they
    /// are. `batches`: the batches of one producer, with what is known of the first and of the last one.
    pub(super) fn continues(first: (&Self, Sequences), last: (&Self, Sequences)) -> bool {
        let before = first.0.before.map(|before| before.is_continued_by(&first.1));
        let after = last.0.after.map(|after| last.1.is_continued_by(&after));
        // a batch that is lost in between may break one of the two
        [before, after].contains(&Some(true)) || (before, after) == (None, None)
    }
}

/// Offsets that no intact batch has.
#[derive(Debug)]
struct Hole {
    place: Place,
    /// The base offset of the segment.
    base_offset: i64,
    neighbours: Neighbours,
    /// Whether bytes between its neighbours were taken out.
    is_damaged: bool,
    /// The position after the batch that follows the hole; 0 if none does.
    after_next: u64,
    /// The batches whose offsets are in it.
    batches: Vec<usize>,
}

/// The batches before a place.
struct Before {
    target: usize,
    base_offset: i64,
    end_offset: i64,
    leader_epoch: i32,
    end_position: u64,
}

/// Compares displaced batches with the intact ones of the whole log.
pub(super) fn find(targets: &[Target], displaced: &[Displaced]) -> Result<Vec<Known>> {
    let mut finder = Finder::new(displaced);
    let mut leader_epoch = -1;
    for (number, target) in targets.iter().enumerate() {
        let mut following = targets.iter().skip(number + 1);
        let next_epoch = following.find_map(|next| next.survey.first_leader_epoch()).unwrap_or(-1);
        leader_epoch = finder.read(number, target, leader_epoch, next_epoch)?;
    }
    let Finder { mut known, holes, .. } = finder;
    for hole in holes {
        for number in hole.accepted(displaced, &mut known) {
            if let Some(known) = known.get_mut(number) {
                known.place = Some(hole.place);
            }
        }
    }
    Ok(known)
}

struct Finder<'a> {
    displaced: &'a [Displaced],
    by_offset: BTreeMap<i64, Vec<usize>>,
    known: Vec<Known>,
    holes: Vec<Hole>,
}

impl<'a> Finder<'a> {
    fn new(displaced: &'a [Displaced]) -> Self {
        let mut by_offset: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (number, batch) in displaced.iter().enumerate() {
            if let Some(header) = &batch.header {
                by_offset.entry(header.base_offset).or_default().push(number);
            }
        }
        Self { displaced, by_offset, known: vec![Known::default(); displaced.len()], holes: Vec::new() }
    }

    /// Reads the intact batches of a segment, which is between other segments with these leader epochs.
    /// Returns the highest one up to its end.
    fn read(&mut self, number: usize, target: &Target, leader_epoch: i32, next_epoch: i32) -> Result<i32> {
        let base_offset = target.survey.base_offset();
        let mut before =
            Before { target: number, base_offset, end_offset: base_offset, leader_epoch, end_position: 0 };
        let own = |batch: &&Displaced| batch.target == number;
        let first = self.displaced.iter().position(|batch| own(&batch)).unwrap_or(0);
        let count = self.displaced.iter().filter(own).count();
        let mut producers = Producers { own: first..first + count, ..Producers::default() };
        let mut log = target.survey.segment.log_file(SCAN_READ)?;
        target.contents.for_each_batch(&mut log, |batch, position| {
            let header = &batch.header;
            let next = (header.base_offset, header.leader_epoch);
            let end = position + u64::from(header.size);
            self.add_hole(&before, Some(next), Some(position..end), position != before.end_position);
            self.compare(header);
            producers.add(header, position, self.displaced, &mut self.known);
            before.end_offset = header.last_offset + 1;
            before.leader_epoch = before.leader_epoch.max(header.leader_epoch);
            before.end_position = end;
            Ok(())
        })?;
        producers.add_before(u64::MAX, self.displaced, &mut self.known);
        let upper = Some(target.survey.segment.upper()).filter(|upper| *upper != i64::MAX);
        let is_damaged = before.end_position != target.survey.size;
        self.add_hole(&before, upper.map(|upper| (upper, next_epoch)), None, is_damaged);
        Ok(before.leader_epoch)
    }

    /// `next`: the base offset and the leader epoch of the next batch; `positions`: where it is.
    fn add_hole(
        &mut self,
        before: &Before,
        next: Option<(i64, i32)>,
        positions: Option<Range<u64>>,
        is_damaged: bool,
    ) {
        let (next_offset, next_epoch) = next.map_or((None, -1), |(offset, epoch)| (Some(offset), epoch));
        let expected = before.end_offset;
        let end = next_offset.unwrap_or(i64::MAX);
        if end <= expected {
            return;
        }
        let inside = self.by_offset.range(expected..end).flat_map(|(_, numbers)| numbers.iter().copied());
        let batches: Vec<_> = inside.collect();
        if !batches.is_empty() {
            let epoch_before = before.leader_epoch;
            let neighbours = Neighbours { expected, epoch_before, next_offset, next_epoch };
            self.holes.push(Hole {
                place: (before.target, positions.as_ref().map(|positions| positions.start)),
                base_offset: before.base_offset,
                neighbours,
                is_damaged,
                after_next: positions.map_or(0, |positions| positions.end),
                batches,
            });
        }
    }

    fn compare(&mut self, header: &BatchHeader) {
        for number in self.by_offset.get(&header.base_offset).into_iter().flatten() {
            if let (Some(batch), Some(known)) = (self.displaced.get(*number), self.known.get_mut(*number)) {
                known.is_copy |= batch.same_as(header);
            }
        }
    }
}

impl Hole {
    /// The batches that belong to the hole, ascending.
    fn accepted(&self, displaced: &[Displaced], known: &mut [Known]) -> Vec<usize> {
        let mut chains: Vec<Vec<usize>> = Vec::new();
        let header_of = |number: usize| displaced.get(number).and_then(|batch| batch.header);
        let mut epoch = self.neighbours.epoch_before;
        for (number, header) in self.distinct(displaced, known) {
            let own = Neighbours { epoch_before: epoch, ..self.neighbours };
            let is_far = !is_relative(header.last_offset, self.base_offset);
            if !own.fits(&header) || !own.allows_epoch(header.leader_epoch) || is_far {
                continue;
            }
            epoch = epoch.max(header.leader_epoch);
            let last = chains.last_mut().filter(|chain| {
                chain
                    .last()
                    .and_then(|last| header_of(*last))
                    .is_some_and(|last| last.last_offset + 1 == header.base_offset)
            });
            match last {
                Some(chain) => chain.push(number),
                None => chains.push(vec![number]),
            }
        }
        chains.retain(|chain| self.is_proven(chain, displaced));
        chains.concat()
    }

    /// The batches without copies, and without those that overlap others, of which none is known to be right.
    fn distinct(&self, displaced: &[Displaced], known: &mut [Known]) -> Vec<(usize, BatchHeader)> {
        let mut found: Vec<(usize, BatchHeader)> = Vec::new();
        let mut overlapping = Vec::new();
        for number in &self.batches {
            let Some(batch) = displaced.get(*number) else { continue };
            let Some(header) = batch.header else { continue };
            if found.iter().any(|(_, other)| batch.same_as(other)) {
                if let Some(known) = known.get_mut(*number) {
                    known.is_copy = true;
                }
                continue;
            }
            if let Some((other, _)) = found.iter().find(|(_, other)| other.last_offset >= header.base_offset)
            {
                overlapping.extend([*other, *number]);
            }
            found.push((*number, header));
        }
        found.retain(|(number, _)| !overlapping.contains(number));
        found
    }

    fn is_proven(&self, chain: &[usize], displaced: &[Displaced]) -> bool {
        let batches: Vec<_> = chain.iter().filter_map(|number| displaced.get(*number)).collect();
        let (Some(first), Some(last)) =
            (batches.first().and_then(|batch| batch.header), batches.last().and_then(|batch| batch.header))
        else {
            return false;
        };
        let begins = first.base_offset == self.neighbours.expected;
        let ends = Some(last.last_offset + 1) == self.neighbours.next_offset;
        let is_joined = begins || ends;
        let is_chain = batches.len() > 1;
        let is_exchanged =
            batches.first().is_some_and(|first| begins && ends && first.start == self.after_next);
        // one flipped bit does not make two batches follow each other
        (is_exchanged
            || is_joined && is_chain
            || batches.iter().all(|batch| !batch.may_belong || self.is_damaged))
            && (begins && ends || is_joined && is_chain || self.is_damaged && (is_joined || is_chain))
    }
}

/// The sequences of producers around displaced batches of one segment.
#[derive(Default)]
struct Producers {
    /// The displaced batches of the segment, which are ascending by position.
    own: Range<usize>,
    /// The sequences of the last batch of each producer.
    last: BTreeMap<i64, Sequences>,
    /// The batches of each producer after which no batch of it was read.
    waiting: BTreeMap<i64, Vec<usize>>,
}

impl Producers {
    /// Passes the displaced batches before a position.
    fn add_before(&mut self, position: u64, displaced: &[Displaced], known: &mut [Known]) {
        while let Some(batch) = displaced.get(self.own.start)
            && !self.own.is_empty()
            && batch.start < position
        {
            if let Some(known) = known.get_mut(self.own.start)
                && !batch.sequences.is_none()
            {
                let producer = batch.sequences.producer_id;
                known.before = self.last.get(&producer).copied();
                self.waiting.entry(producer).or_default().push(self.own.start);
            }
            self.own.start += 1;
        }
    }

    fn add(&mut self, header: &BatchHeader, position: u64, displaced: &[Displaced], known: &mut [Known]) {
        if self.own.is_empty() && self.waiting.is_empty() {
            return;
        }
        self.add_before(position, displaced, known);
        let Some(sequences) = Sequences::of(header) else { return };
        for number in self.waiting.remove(&sequences.producer_id).into_iter().flatten() {
            if let Some(known) = known.get_mut(number) {
                known.after = Some(sequences);
            }
        }
        self.last.insert(sequences.producer_id, sequences);
    }
}
