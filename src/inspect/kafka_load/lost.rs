//! The offsets that a log no longer has after Kafka has loaded it.

use std::fmt;

use super::action::{ActionKind, ActionReason};
use super::run::{Run, offset_in};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::log::{Log, LogOptions};
use crate::types::{Io, is_or_are, offsets_in_words};

/// Offsets whose records cannot be read afterwards. Compaction may have removed some of them before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LostOffsets {
    /// Inclusive.
    pub start_offset: i64,
    /// Exclusive; `None` if it is not known where the log ended.
    pub end_offset: Option<i64>,
    /// Whether their bytes remain in the files, where Kafka does not find them: the log ends below them.
    pub is_hidden: bool,
}

impl fmt::Display for LostOffsets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start_offset, end_offset, is_hidden } = self;
        let how = if *is_hidden { "hidden: the log ends below" } else { "lost" };
        let verb = is_or_are(*start_offset, end_offset.unwrap_or(i64::MAX));
        write!(formatter, "{} {verb} {how}", offsets_in_words(*start_offset, *end_offset))
    }
}

/// The lost offsets, ascending. `log_end_offset`: where Kafka ends the log.
pub(super) fn find(run: &Run, log_end_offset: Option<i64>) -> Result<Vec<LostOffsets>> {
    let mut bases: Vec<i64> = run.disk.before().keys().filter_map(|name| base_of(name)).collect();
    bases.sort_unstable();
    let end_before = end_before(run)?;
    let end_of = |base_offset: i64| {
        let next = bases.iter().find(|base| **base > base_offset).copied();
        next.or(end_before)
    };
    let mut lost: Vec<LostOffsets> = Vec::new();
    let mut add = |start_offset: i64, end_offset: Option<i64>, is_hidden: bool| {
        if end_offset.is_some_and(|end| end <= start_offset) {
            return;
        }
        match lost.last_mut() {
            Some(before) if before.end_offset == Some(start_offset) && before.is_hidden == is_hidden => {
                before.end_offset = end_offset;
            }
            _ => lost.push(LostOffsets { start_offset, end_offset, is_hidden }),
        }
    };
    for (base_offset, end_offset) in &run.cuts {
        add(*end_offset, end_of(*base_offset), false);
    }
    for action in &run.actions {
        let is_lost = matches!(action.reason, ActionReason::AfterCut | ActionReason::BelowLogStart);
        if action.kind == ActionKind::DeleteLater
            && is_lost
            && action.file.ends_with(FileKind::Log.suffix())
            && let Ok(base_offset) = offset_in(&action.file)
        {
            add(base_offset, end_of(base_offset), false);
        }
    }
    if let (Some(end), Some(before), true) = (log_end_offset, end_before, lost.is_empty())
        && end < before
    {
        lost.push(LostOffsets { start_offset: end, end_offset: Some(before), is_hidden: true });
    }
    Ok(lost)
}

fn base_of(name: &str) -> Option<i64> {
    let parsed = SegmentFileName::parse(name)?;
    (parsed.kind == FileKind::Log && parsed.stage == Stage::Live).then_some(parsed.base_offset)
}

/// Where the log ends as a reader of this crate sees it; `None` if it cannot be read.
fn end_before(run: &Run) -> Result<Option<i64>> {
    let options = LogOptions { io: Io::Pread, interrupt: run.interrupt, ..LogOptions::default() };
    match Log::open_in(run.disk.directory().clone(), options).and_then(|log| log.log_end_offset()) {
        Err(error @ (Error::Interrupted(_) | Error::LogChanged { .. })) => Err(error),
        end => Ok(end.ok()),
    }
}
