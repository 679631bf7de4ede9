//! Counts of records are those of a loop over the records.

use std::collections::BTreeMap;
use std::path::Path;

use cordwood::inspect::count::{CountOptions, Counter, GroupCount, Period};
use cordwood::log::{Log, LogOptions, OnDamage, Ranges, RecordFilter, ScanOptions, ScanStep};
use cordwood::text::UtcOffset;

const CASES: [&str; 5] = [
    "01-plain/orders-0",
    "08-no-timestamps/timeless-0",
    "11-transactions/payments-0",
    "12-compacted/profiles-0",
    "damaged/flip-record/tickets-0",
];

fn open(case: &str) -> Log {
    Log::open(Path::new("../golden").join(case), LogOptions::default()).unwrap()
}

/// A row of a count: period, key and number of records.
type Row = (Option<(i64, i32)>, Option<Option<Vec<u8>>>, u64);

fn count(log: &Log, options: CountOptions, max_bytes: u64) -> Vec<Row> {
    let mut counter = Counter::new(std::iter::once(Ok(log.clone())), options);
    while counter.advance(max_bytes).unwrap().is_some() {}
    let row = |GroupCount { group, key, records }: GroupCount| {
        (group.time.map(|time| (time.local, time.utc_offset)), key, records)
    };
    counter.finish().into_iter().map(row).collect()
}

fn naive(log: &Log, options: &CountOptions) -> Vec<Row> {
    let mut scan = log.scan(options.scan).unwrap();
    let mut groups: BTreeMap<_, u64> = BTreeMap::new();
    while let Some(step) = scan.next_step().unwrap() {
        let ScanStep::Batch(_) = step else { continue };
        while let Some(record) = scan.next_record().unwrap() {
            if options.filter.as_ref().is_some_and(|filter| !filter.accepts(record.key, record.value)) {
                continue;
            }
            // the zone of the test is always five and a half hours ahead
            let time = options.by_time.filter(|_| record.timestamp >= 0).map(|_| {
                let local = record.timestamp + 19_800_000;
                (local - local % 3_600_000, 19_800)
            });
            let key = options.by_key.then(|| record.key.map(<[u8]>::to_vec));
            *groups.entry((time, key)).or_default() += 1;
        }
    }
    groups.into_iter().map(|((time, key), records)| (time, key, records)).collect()
}

#[test]
fn groups_are_those_of_a_loop_over_the_records() {
    let with_even_key = RecordFilter::new(|key, _| key.is_some_and(|key| key.len() % 2 == 0));
    for log in CASES.map(open) {
        let middle = i64::midpoint(log.log_start_offset(), log.log_end_offset().unwrap());
        for ranges in [
            Ranges::default(),
            Ranges { start_offset: Some(middle), ..Ranges::default() },
            Ranges { end_time: Some(1_700_000_005_000), ..Ranges::default() },
        ] {
            let scan = ScanOptions { ranges, on_damage: OnDamage::Skip, ..ScanOptions::default() };
            for (by_time, by_key, filter) in [
                (None, false, None),
                (Some(Period::Hour), false, None),
                (None, true, None),
                (Some(Period::Hour), true, Some(with_even_key.clone())),
            ] {
                let utc_offset = Some(UtcOffset::new(|_| Some(19_800)));
                let options =
                    CountOptions { scan, filter, by_time, by_key, utc_offset, ..CountOptions::default() };
                let mut wanted = naive(&log, &options);
                if wanted.is_empty() && by_time.is_none() && !by_key {
                    wanted.push((None, None, 0));
                }
                for max_bytes in [1, u64::MAX] {
                    let mut found = count(&log, options.clone(), max_bytes);
                    found.sort();
                    assert_eq!(found, wanted, "{log:?} {options:?}");
                }
            }
        }
    }
}

#[test]
fn keys_with_the_most_records_are_first() {
    let log = open("01-plain/orders-0");
    let rows = count(&log, CountOptions { by_key: true, ..CountOptions::default() }, u64::MAX);
    assert!(rows.len() > 100);
    assert!(rows.is_sorted_by_key(|(_, _, records)| std::cmp::Reverse(*records)));
    assert_eq!(rows.iter().map(|(_, _, records)| records).sum::<u64>(), 1500);
}
