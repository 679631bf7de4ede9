//! The decision whether an append begins a new segment. Kafka: `LogSegment.shouldRoll`, `RollParams`.

/// The batches that are appended, and the limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RollParams {
    /// `LogConfig::max_segment_ms`.
    pub(crate) max_segment_ms: i64,
    /// `segment.bytes`.
    pub(crate) max_segment_bytes: u64,
    /// The largest timestamp of the batches, ms; −1 = none.
    pub(crate) max_timestamp: i64,
    /// The last offset of the batches.
    pub(crate) last_offset: i64,
    /// Bytes of the batches.
    pub(crate) size: u64,
    /// The clock, ms.
    pub(crate) now: i64,
}

/// The state of the segment that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RollState {
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    /// The largest timestamp of the segment's first batch; −1 if it has none, `None` without a batch.
    pub(crate) first_batch_timestamp: Option<i64>,
    /// When the segment was opened, ms.
    pub(crate) created: i64,
    /// A random number of ms, the same for the life of the segment.
    pub(crate) jitter_ms: i64,
    pub(crate) is_offset_index_full: bool,
    pub(crate) is_time_index_full: bool,
}

/// Whether the append begins a new segment.
///
/// In Kafka's order: the size; the time, measured by record timestamps if the first batch has one and by the
/// clock otherwise, and never for an empty segment; either index is full; an offset too far from the base.
pub(crate) fn should_roll(params: &RollParams, state: &RollState) -> bool {
    let waited = match state.first_batch_timestamp {
        Some(first) if first >= 0 => params.max_timestamp.saturating_sub(first),
        _ => params.now.saturating_sub(state.created),
    };
    let is_late = state.size > 0 && waited > params.max_segment_ms.saturating_sub(state.jitter_ms);
    state.size.saturating_add(params.size) > params.max_segment_bytes
        || is_late
        || state.is_offset_index_full
        || state.is_time_index_full
        || !is_relative(params.last_offset, state.base_offset)
}

/// Whether an offset can be written relative to a base: 0 to 2^31 − 1 above it.
pub(crate) fn is_relative(offset: i64, base_offset: i64) -> bool {
    offset.checked_sub(base_offset).is_some_and(|relative| (0..=i64::from(i32::MAX)).contains(&relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: RollParams = RollParams {
        max_segment_ms: 1000,
        max_segment_bytes: 500,
        max_timestamp: 5000,
        last_offset: 40,
        size: 100,
        now: 9000,
    };
    const STATE: RollState = RollState {
        base_offset: 32,
        size: 400,
        first_batch_timestamp: Some(4000),
        created: 8000,
        jitter_ms: 0,
        is_offset_index_full: false,
        is_time_index_full: false,
    };

    #[test]
    fn a_segment_is_filled_to_the_last_byte() {
        assert!(!should_roll(&PARAMS, &STATE));
        assert!(should_roll(&PARAMS, &RollState { size: 401, ..STATE }));
        // even an empty one, if the append alone is too large
        assert!(should_roll(&RollParams { size: 501, ..PARAMS }, &RollState { size: 0, ..STATE }));
    }

    #[test]
    fn segment_age_is_measured_from_the_first_batch_timestamp_or_else_by_the_clock() {
        assert!(!should_roll(&PARAMS, &STATE));
        assert!(should_roll(&RollParams { max_timestamp: 5001, ..PARAMS }, &STATE));
        assert!(!should_roll(&RollParams { max_timestamp: -1, ..PARAMS }, &STATE));
        let untimed = RollState { first_batch_timestamp: Some(-1), ..STATE };
        assert!(!should_roll(&PARAMS, &untimed));
        assert!(should_roll(&RollParams { now: 9001, ..PARAMS }, &untimed));
    }

    #[test]
    fn jitter_shortens_the_wait() {
        assert!(should_roll(&PARAMS, &RollState { jitter_ms: 1, ..STATE }));
    }

    #[test]
    fn an_empty_segment_never_rolls_for_time() {
        let empty = RollState { size: 0, first_batch_timestamp: None, created: 0, ..STATE };
        assert!(!should_roll(&PARAMS, &empty));
        assert!(should_roll(&PARAMS, &RollState { is_offset_index_full: true, ..empty }));
        assert!(should_roll(&PARAMS, &RollState { is_time_index_full: true, ..empty }));
    }

    #[test]
    fn offsets_are_relative_in_31_bits() {
        assert!(!should_roll(&RollParams { last_offset: 32 + i64::from(i32::MAX), ..PARAMS }, &STATE));
        assert!(should_roll(&RollParams { last_offset: 33 + i64::from(i32::MAX), ..PARAMS }, &STATE));
        assert!(is_relative(35, 32));
        assert!(!is_relative(31, 32));
    }
}
