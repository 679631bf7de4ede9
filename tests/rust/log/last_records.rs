//! The last records of a range are those that a whole scan ends with.

use cordwood::log::{Log, LogOptions, OnDamage, Ranges, RecordFilter, Scan, ScanOptions, ScanStep};

const CASES: [&str; 6] = [
    "01-plain/orders-0",
    "11-transactions/payments-0",
    "12-compacted/profiles-0",
    "17-v1-gzip/old.v1.gzip-0",
    "damaged/flip-record/tickets-0",
    "15-empty/nothing-yet-0",
];

fn offsets(mut scan: Scan, filter: Option<&RecordFilter>) -> Vec<i64> {
    let mut offsets = Vec::new();
    while let Some(step) = scan.next_step().unwrap() {
        let ScanStep::Batch(_) = step else { continue };
        while let Some(record) = scan.next_record().unwrap() {
            if filter.is_none_or(|filter| filter.accepts(record.key, record.value)) {
                offsets.push(record.offset);
            }
        }
    }
    offsets
}

#[test]
fn they_are_the_end_of_a_whole_scan() {
    let every_third = RecordFilter::new(|_, value| value.is_some_and(|value| value.len() % 3 == 0));
    for case in CASES {
        let log = Log::open(format!("../golden/{case}"), LogOptions::default()).unwrap();
        let middle = i64::midpoint(log.log_start_offset(), log.log_end_offset().unwrap());
        for ranges in [
            Ranges::default(),
            Ranges { end_offset: Some(middle), ..Ranges::default() },
            Ranges { start_offset: Some(middle), ..Ranges::default() },
            Ranges { start_time: Some(1_700_000_005_000), ..Ranges::default() },
        ] {
            let options = ScanOptions { ranges, on_damage: OnDamage::Skip, ..ScanOptions::default() };
            for filter in [None, Some(&every_third)] {
                let all = offsets(log.scan(options).unwrap(), filter);
                for count in [0, 1, 7, all.len().saturating_sub(1), all.len(), all.len() + 1, usize::MAX] {
                    let last = log.last_records(count, options, filter).unwrap();
                    let wanted = &all[all.len().saturating_sub(count)..];
                    assert_eq!(offsets(last, filter), wanted, "{case} {ranges:?} {count}");
                }
            }
        }
    }
}

#[test]
fn damage_before_them_is_not_reported() {
    let log = Log::open("../golden/damaged/flip-record/tickets-0", LogOptions::default()).unwrap();
    let options = ScanOptions::default();
    let last = log.last_records(3, options, None).unwrap();
    assert_eq!(offsets(last, None).len(), 3);
    let mut whole = log.scan(options).unwrap();
    assert!(std::iter::from_fn(|| whole.next_step().transpose()).any(|step| step.is_err()));
}
