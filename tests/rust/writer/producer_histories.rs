//! Random histories of named producers: appends, deletions from the log start, truncations, rolls, closes and
//! crashes, compared with a model that only counts records.

use std::collections::BTreeMap;

use cordwood::config::LogConfig;
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, Producer, TransactionVersion, WriterOptions};

use super::producers::{Log, NOW};

const RECORD: NewRecord<'_> = NewRecord { timestamp: NOW, key: None, value: Some(b"v"), headers: &[] };
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The first and last offsets of the batches of each name, also of those that were deleted from the log
/// start.
#[derive(Default)]
struct Model(BTreeMap<&'static str, Vec<(i64, i64)>>);

impl Model {
    fn batches(&self, name: &str) -> &[(i64, i64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn next_sequence(&self, name: &str) -> i32 {
        self.batches(name).iter().map(|(first, last)| (last - first + 1) as i32).sum()
    }

    /// A batch is removed as a whole. Below the log start those that were deleted stay, as if they ended
    /// below the offset; at 0 nothing is known any more.
    fn truncate_to(&mut self, offset: i64, log_start_offset: i64) {
        for batches in self.0.values_mut() {
            batches.retain(|(_, last)| *last < offset.max(log_start_offset) && offset > 0);
            for (first, last) in batches {
                let above = (*last - (offset - 1)).max(0);
                (*first, *last) = (*first - above, *last - above);
            }
        }
    }

    fn check(&self, name: &str, producer: &Producer, place: &str) {
        let found = (producer.next_sequence().unwrap(), producer.last_offset().unwrap());
        let last_offset = self.batches(name).last().map(|(_, last)| *last);
        assert_eq!(found, (self.next_sequence(name), last_offset), "{place}: {name}");
    }
}

#[test]
fn random_histories_of_named_producers_agree_with_a_model() {
    for seed in 1..=60_u64 {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % limit
        };
        let mut log = Log::new();
        let config = LogConfig {
            segment_bytes: if seed % 2 == 0 { 400 } else { 1 << 20 },
            index_interval_bytes: 0,
            retention_ms: -1,
            ..LogConfig::default()
        };
        log.options =
            WriterOptions { config, flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
        log.reopen();
        let mut model = Model::default();
        let mut handles = BTreeMap::new();
        for step in 0..40 {
            let place = format!("seed {seed}, step {step}");
            let name = NAMES[below(3) as usize];
            let (start, end) = (log.writer().log_start_offset(), log.writer().log_end_offset());
            let within = start + below((end - start + 1) as u64) as i64;
            match below(20) {
                0..=7 => {
                    let handle = handles.entry(name);
                    let producer = handle.or_insert_with(|| log.writer().producer(Some(name)).unwrap());
                    let (records, sequence) =
                        (vec![RECORD; 1 + below(3) as usize], model.next_sequence(name));
                    for is_duplicate in [false, true] {
                        let appended = producer.append_many(&records, Some(sequence)).unwrap();
                        assert_eq!(
                            (appended.first_offset, appended.is_duplicate),
                            (end, is_duplicate),
                            "{place}"
                        );
                    }
                    model.0.entry(name).or_default().push((end, end + records.len() as i64 - 1));
                }
                8 | 9 => log.plain(),
                10 => log.writer().roll().unwrap(),
                11..=13 => drop(log.writer().delete_before(within).unwrap()),
                14 | 15 => {
                    let offset = if below(20) == 0 { start / 2 } else { within };
                    let is_shorter = log.writer().truncate_to(offset).unwrap();
                    assert_eq!(is_shorter, offset < end, "{place}");
                    model.truncate_to(offset, start);
                }
                16 | 17 => {
                    handles.clear();
                    if below(2) == 0 { log.reopen() } else { log.crash() }
                }
                18 => drop(handles.insert(name, log.writer().producer(Some(name)).unwrap())),
                _ => {
                    let mut transaction = log.writer().transaction("t", TransactionVersion::V2).unwrap();
                    transaction.append(&RECORD).unwrap();
                    transaction.commit().unwrap();
                }
            }
            for (name, producer) in &handles {
                model.check(name, producer, &place);
            }
        }
        for name in NAMES {
            model.check(name, &log.writer().producer(Some(name)).unwrap(), &format!("seed {seed}"));
        }
    }
}
