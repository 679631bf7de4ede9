//! The model of a log from its client's calls: what was appended, acknowledged and removed; and the logs that
//! are valid after a crash.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// A record that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sent {
    pub offset: i64,
    /// The end offset of its batch, exclusive: a batch is cut as a whole.
    pub batch_end: i64,
    /// A hash of its contents.
    pub fingerprint: u64,
}

/// The client's model of the log after a call has returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Model {
    pub start: i64,
    pub end: i64,
    /// Every record below this offset was acknowledged as durable.
    pub durable: i64,
    /// In ascending order of offsets.
    pub records: Vec<Sent>,
}

impl Model {
    pub fn truncate_to(&mut self, offset: i64) {
        if offset >= self.end {
            return;
        }
        if offset < self.start {
            return self.restart_at(offset);
        }
        self.records.retain(|record| record.batch_end <= offset);
        self.end = offset;
        self.durable = self.durable.min(offset);
    }

    pub fn restart_at(&mut self, offset: i64) {
        *self = Self { start: offset, end: offset, durable: offset, records: Vec::new() };
    }
}

/// The effect of a call on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// No record is removed.
    Grows,
    /// Records are removed from the start.
    DeletesStart,
    /// Records are removed from the end.
    Truncates,
    /// All records are removed.
    Restarts,
}

/// The logs that are valid after a crash, during a call or after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expected {
    start: RangeInclusive<i64>,
    /// Records below this offset must exist.
    durable: i64,
    /// If only the process ends, records below this offset must exist.
    returned: i64,
    end: i64,
    records: Rc<Vec<Sent>>,
    /// An empty log that starts at this offset is also valid.
    restarted: Option<i64>,
    /// Whether bytes that recovery cuts must be kept: false if the client removed them.
    pub keeps_what_it_cuts: bool,
}

/// A violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    Lost,
    Invented,
}

impl Expected {
    /// After a call: exactly the model.
    pub fn after(model: &Model) -> Self {
        Self {
            start: model.start..=model.start,
            durable: model.durable,
            returned: model.end,
            end: model.end,
            records: Rc::new(model.records.clone()),
            restarted: None,
            keeps_what_it_cuts: true,
        }
    }

    /// During a call: any state between the model before it and the model after it.
    pub fn during(effect: Effect, before: &Model, after: &Model) -> Self {
        let mut expected = Self::after(before);
        match effect {
            Effect::Grows => {
                expected.end = after.end;
                expected.records = Rc::new(after.records.clone());
            }
            Effect::DeletesStart => expected.start = before.start..=after.start,
            Effect::Truncates => {
                // a batch with a cut inside is removed as a whole
                let kept = after.records.last().map_or(after.start, |sent| sent.offset + 1);
                expected.durable = before.durable.min(kept);
                expected.returned = kept;
                expected.keeps_what_it_cuts = false;
            }
            Effect::Restarts => {
                expected.durable = before.start;
                expected.returned = before.start;
                expected.restarted = Some(after.start);
                expected.keeps_what_it_cuts = false;
            }
        }
        expected
    }

    /// Adds records that may have been written, although their append failed.
    pub fn with_unsure(mut self, unsure: &[Sent]) -> Self {
        if let Some(last) = unsure.last() {
            self.end = self.end.max(last.offset + 1);
            let mut records = Vec::clone(&self.records);
            records.extend(unsure);
            self.records = Rc::new(records);
        }
        self
    }

    /// The model after the log was opened again with these bounds.
    pub fn left(&self, (start, end): (i64, i64)) -> Model {
        let is_restarted = self.restarted == Some(start) && start == end;
        let records = self.records.iter().filter(|sent| !is_restarted && sent.offset < end);
        Model { start, end, durable: end, records: records.copied().collect() }
    }

    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Checks a log by its bounds and the contents of its files: offsets and hashes. `process_only`: only the
    /// process ended, not the system.
    pub fn check(
        &self,
        (start, end): (i64, i64),
        records: &[(i64, u64)],
        process_only: bool,
    ) -> Result<(), (Fault, String)> {
        let fail = |fault, what: String| Err((fault, what));
        if self.restarted.is_some_and(|offset| (start, end) == (offset, offset)) {
            return match records.iter().find(|(offset, _)| *offset >= start) {
                Some((offset, _)) => fail(Fault::Invented, format!("a record at {offset} of an empty log")),
                None => Ok(()),
            };
        }
        if start < *self.start.start() {
            return fail(Fault::Invented, format!("the log starts at {start}, not at {:?}", self.start));
        }
        if start > *self.start.end() {
            return fail(Fault::Lost, format!("the log starts at {start}, not at {:?}", self.start));
        }
        if start > end || end > self.end {
            return fail(Fault::Invented, format!("the log is {start}..{end}, the end was {}", self.end));
        }
        let found = records.iter().filter(|(offset, _)| *offset >= start).copied();
        let sent = self.records.iter().filter(|sent| sent.offset >= start && sent.offset < end);
        let sent: Vec<_> = sent.map(|sent| (sent.offset, sent.fingerprint)).collect();
        let mut left = sent.iter();
        for record in found {
            match left.next() {
                Some(sent) if *sent == record => {}
                Some(sent) if sent.0 < record.0 => {
                    return fail(Fault::Lost, format!("no record at {}, and one at {}", sent.0, record.0));
                }
                _ => return fail(Fault::Invented, format!("another record at {}", record.0)),
            }
        }
        if let Some((offset, _)) = left.next() {
            return fail(Fault::Lost, format!("no record at {offset}, though the log ends at {end}"));
        }
        let required = if process_only { self.returned.max(self.durable) } else { self.durable };
        let lost = self.records.iter().find(|sent| sent.offset >= end && sent.offset < required);
        match lost {
            Some(sent) => fail(
                Fault::Lost,
                format!("no record at {}, the log ends at {end}; acknowledged up to {required}", sent.offset),
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let sent = |offset| Sent { offset, batch_end: offset + 1, fingerprint: 100 + offset as u64 };
        Model { start: 1, end: 5, durable: 3, records: (0..5).map(sent).collect() }
    }

    fn records(offsets: std::ops::Range<i64>) -> Vec<(i64, u64)> {
        offsets.map(|offset| (offset, 100 + offset as u64)).collect()
    }

    #[test]
    fn only_a_prefix_down_to_the_durable_offset_is_accepted() {
        let expected = Expected::after(&model());
        for end in 3..=5 {
            expected.check((1, end), &records(1..end), false).unwrap();
            expected.check((1, end), &records(0..end), false).unwrap();
        }
        let fault = |bounds, records: &[(i64, u64)]| expected.check(bounds, records, false).unwrap_err().0;
        assert_eq!(fault((1, 2), &records(1..2)), Fault::Lost);
        assert_eq!(fault((2, 5), &records(2..5)), Fault::Lost);
        assert_eq!(fault((0, 5), &records(0..5)), Fault::Invented);
        assert_eq!(fault((1, 6), &records(1..6)), Fault::Invented);
        assert_eq!(fault((1, 5), &records(1..4)), Fault::Lost);
        let mut with_gap = records(1..5);
        with_gap.remove(1);
        assert_eq!(fault((1, 5), &with_gap), Fault::Lost);
        let mut other = records(1..5);
        other[3].1 += 1;
        assert_eq!(fault((1, 5), &other), Fault::Invented);
        assert_eq!(expected.check((1, 4), &records(1..4), true).unwrap_err().0, Fault::Lost);
    }

    #[test]
    fn truncated_records_do_not_reappear() {
        let before = model();
        let mut after = before.clone();
        after.truncate_to(2);
        let during = Expected::during(Effect::Truncates, &before, &after);
        for end in 2..=5 {
            during.check((1, end), &records(1..end), false).unwrap();
        }
        let expected = Expected::after(&after);
        expected.check((1, 2), &records(1..2), false).unwrap();
        assert_eq!(expected.check((1, 3), &records(1..3), false).unwrap_err().0, Fault::Invented);
    }
}
