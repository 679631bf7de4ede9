//! What a client of the log knows: what it appended, what was acknowledged, what it took away. And what it may find after
//! a crash.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// A record that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sent {
    pub offset: i64,
    /// Of its batch: a batch is cut as a whole.
    pub batch_end: i64,
    /// Stands for all that it holds.
    pub fingerprint: u64,
}

/// The log, as its client knows it after a call has returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Model {
    pub start: i64,
    pub end: i64,
    /// Everything below was acknowledged as durable.
    pub durable: i64,
    /// Rising.
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

/// What a call does to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing goes.
    Grows,
    /// Records go from the front.
    Passes,
    /// Records go from the end.
    Truncates,
    /// All goes.
    Restarts,
}

/// What may be found after a crash: in a call, or after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expected {
    start: RangeInclusive<i64>,
    /// Records below are there.
    durable: i64,
    /// Where only the process ends, records below are there.
    returned: i64,
    end: i64,
    records: Rc<Vec<Sent>>,
    /// Or the log is empty, and starts here.
    restarted: Option<i64>,
    /// Whether what recovery takes away has to be kept: it has not, where the client wanted it gone.
    pub keeps_what_it_cuts: bool,
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    Lost,
    Invented,
}

impl Expected {
    /// Exactly what is known.
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

    /// What lies between what was known before a call and what is known once it has returned.
    pub fn during(effect: Effect, before: &Model, after: &Model) -> Self {
        let mut expected = Self::after(before);
        match effect {
            Effect::Grows => {
                expected.end = after.end;
                expected.records = Rc::new(after.records.clone());
            }
            Effect::Passes => expected.start = before.start..=after.start,
            Effect::Truncates => {
                // a batch that is cut through goes as a whole
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

    /// The same, where more may have been written than was ever acknowledged.
    pub fn with_unsure(mut self, unsure: &[Sent]) -> Self {
        if let Some(last) = unsure.last() {
            self.end = self.end.max(last.offset + 1);
            let mut records = Vec::clone(&self.records);
            records.extend(unsure);
            self.records = Rc::new(records);
        }
        self
    }

    /// What a client knows that has opened the log again, and found these bounds to be right.
    pub fn left(&self, (start, end): (i64, i64)) -> Model {
        let is_restarted = self.restarted == Some(start) && start == end;
        let there = self.records.iter().filter(|sent| !is_restarted && sent.offset < end);
        Model { start, end, durable: end, records: there.copied().collect() }
    }

    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Judges a log by what it says and what its files hold: offsets and fingerprints. `process_only`: the system has
    /// lived on.
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
        let there = records.iter().filter(|(offset, _)| *offset >= start).copied();
        let sent = self.records.iter().filter(|sent| sent.offset >= start && sent.offset < end);
        let sent: Vec<_> = sent.map(|sent| (sent.offset, sent.fingerprint)).collect();
        let mut left = sent.iter();
        for record in there {
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
        let needed = if process_only { self.returned.max(self.durable) } else { self.durable };
        let lost = self.records.iter().find(|sent| sent.offset >= end && sent.offset < needed);
        match lost {
            Some(sent) => fail(
                Fault::Lost,
                format!("no record at {}, the log ends at {end}; acknowledged up to {needed}", sent.offset),
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
    fn a_prefix_down_to_the_durable_offset_is_right_and_nothing_else() {
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
        let mut holed = records(1..5);
        holed.remove(1);
        assert_eq!(fault((1, 5), &holed), Fault::Lost);
        let mut other = records(1..5);
        other[3].1 += 1;
        assert_eq!(fault((1, 5), &other), Fault::Invented);
        assert_eq!(expected.check((1, 4), &records(1..4), true).unwrap_err().0, Fault::Lost);
    }

    #[test]
    fn what_was_truncated_does_not_come_back() {
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
