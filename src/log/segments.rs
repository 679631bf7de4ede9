//! The segments of a log, by base offset: an immutable view of a list that its owner extends. Kafka:
//! `LogSegments`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::skip_list::{SkipList, View};
use crate::segment::Segment;

/// The segments at one opening or refresh. Cloning shares them.
#[derive(Clone)]
pub struct Segments {
    list: Arc<Mutex<SkipList<Arc<Segment>>>>,
    view: View<Arc<Segment>>,
}

impl fmt::Debug for Segments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter().map(|segment| segment.base_offset())).finish()
    }
}

impl Segments {
    /// `segments` in ascending order of base offsets.
    pub(super) fn new(segments: impl IntoIterator<Item = Arc<Segment>>) -> Self {
        let mut list = SkipList::new();
        for segment in segments {
            // names in a directory are unique, and the listing is sorted, so each base is above the last
            let pushed = list.push(segment.base_offset(), segment);
            debug_assert!(pushed.is_ok(), "segments come in rising order");
        }
        let view = list.view();
        Self { list: Arc::new(Mutex::new(list)), view }
    }

    /// A later view of the same list: unchanged segments (by identity) are shared, the others are replaced in
    /// one step. Other views do not change.
    pub(super) fn refreshed(&self, segments: Vec<Arc<Segment>>) -> Self {
        let is_same = |(old, new): &(&Arc<Segment>, &Arc<Segment>)| Arc::ptr_eq(old, new);
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let current = list.view();
        let kept = current.iter().zip(&segments).take_while(is_same).count();
        if kept < segments.len().max(current.len()) {
            let from = |segment: &Arc<Segment>| segment.base_offset();
            let start =
                [current.get(kept).map(from), segments.get(kept).map(from)].into_iter().flatten().min();
            let changed = segments.into_iter().skip(kept).map(|segment| (segment.base_offset(), segment));
            let done = list.change(start.unwrap_or(0)..i64::MAX, changed);
            debug_assert!(done.is_ok(), "segments come in rising order");
        }
        let view = list.view();
        Self { list: Arc::clone(&self.list), view }
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// True if there is no segment; a log has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The segment at an index, from 0.
    pub fn get(&self, index: usize) -> Option<&Arc<Segment>> {
        self.view.get(index)
    }

    /// The first segment.
    pub fn first(&self) -> Option<&Arc<Segment>> {
        self.view.first()
    }

    /// The last segment, to which a broker would append.
    pub fn last(&self) -> Option<&Arc<Segment>> {
        self.view.last()
    }

    /// The segment with the greatest base offset ≤ `offset`. Kafka: `floorSegment`.
    pub fn floor(&self, offset: i64) -> Option<&Arc<Segment>> {
        self.view.floor(offset)
    }

    /// The segment with the smallest base offset > `offset`. Kafka: `higherSegment`.
    pub fn higher(&self, offset: i64) -> Option<&Arc<Segment>> {
        self.view.higher(offset)
    }

    /// The segments with a base offset from that of `floor(start)` (or from the first) to below `end`; none
    /// if `start == end`. Kafka: `LogSegments.values`.
    pub fn between(&self, start: i64, end: i64) -> impl Iterator<Item = &Arc<Segment>> {
        self.view.between(start, end)
    }

    /// The index of the floor of an offset; 0 if all segments are above it.
    pub(super) fn index_of_floor(&self, offset: i64) -> usize {
        self.view.rank_of_floor(offset).unwrap_or(0)
    }

    /// The segments from an index on, in order.
    pub(super) fn skip_to(&self, index: usize) -> impl Iterator<Item = &Arc<Segment>> {
        self.view.iter_from(index)
    }

    /// All segments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.view.iter()
    }
}
