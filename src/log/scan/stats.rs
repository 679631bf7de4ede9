//! What a scan did.

/// What a scan did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct ScanStats {
    /// Records returned.
    pub records: u64,
    /// Batches whose records (or, with `batches_only`, headers) were returned, including batches without a
    /// record.
    pub batches: u64,
    /// Batches skipped by their headers, without decompression.
    pub batches_skipped: u64,
    /// Batches decompressed. Not counted: v0 or v1 wrappers that are decompressed only for their base
    /// offset.
    pub batches_decompressed: u64,
    /// Segments whose `.log` was walked.
    pub segments_opened: u64,
    /// Bytes of the batches that were read.
    pub bytes_read: u64,
    /// Gaps in the offsets between two batches, as compaction and aborted producers leave them.
    pub offset_gaps: u64,
    /// Gaps between two batches of a segment that nothing explains: neither compaction nor damage nor a
    /// truncation. Batches were lost there.
    pub lost_gaps: u64,
}

impl std::ops::AddAssign for ScanStats {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.batches += other.batches;
        self.batches_skipped += other.batches_skipped;
        self.batches_decompressed += other.batches_decompressed;
        self.segments_opened += other.segments_opened;
        self.bytes_read += other.bytes_read;
        self.offset_gaps += other.offset_gaps;
        self.lost_gaps += other.lost_gaps;
    }
}

impl std::ops::Sub for ScanStats {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            records: self.records - other.records,
            batches: self.batches - other.batches,
            batches_skipped: self.batches_skipped - other.batches_skipped,
            batches_decompressed: self.batches_decompressed - other.batches_decompressed,
            segments_opened: self.segments_opened - other.segments_opened,
            bytes_read: self.bytes_read - other.bytes_read,
            offset_gaps: self.offset_gaps - other.offset_gaps,
            lost_gaps: self.lost_gaps - other.lost_gaps,
        }
    }
}
