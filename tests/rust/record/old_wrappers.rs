//! Wrappers of magic 1 with offset 0: some producers wrote them, and Kafka then uses the inner offsets
//! unchanged.

use cordwood::log::OnDamage;

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{all, both, folder, time};

fn wrapper(codec: Codec, count: i64) -> Vec<Built> {
    let records = (0..count).map(|n| Rec::at(1000 + n).value([n as u8; 5]));
    let mut built = MessageSet::v1(0).codec(codec).records(records).wrapper_offset(0).build();
    built[0].last_offset = count - 1;
    built
}

fn assert_reads(built: &[Built], end: i64) {
    let parent = folder();
    let dir =
        PartitionBuilder::new(Indexing::default()).segment(0, built.to_vec()).write(parent.path(), "t-0");
    for log in both(&dir) {
        assert_eq!(log.log_end_offset().unwrap(), end);
        for on_damage in [OnDamage::Raise, OnDamage::Skip] {
            let read = all(&log, on_damage).whole();
            let records: Vec<_> = read.records().map(|record| (record.offset, record.timestamp)).collect();
            assert_eq!(records, (0..end).map(|offset| (offset, 1000 + offset)).collect::<Vec<_>>());
            assert_eq!(read.gaps, []);
        }
        for offset in 0..end {
            let base = built.iter().rfind(|batch| batch.base_offset <= offset).unwrap().base_offset;
            assert_eq!(log.locate(offset).unwrap().unwrap().batch_base_offset, base, "offset {offset}");
            assert_eq!(time(&log, 1000 + offset).unwrap(), Some((1000 + offset, offset)));
        }
        assert!(log.locate(end).is_err());
        assert_eq!(log.segments().last().unwrap().end_offset().unwrap(), end);
        assert_eq!(log.warnings(), [""; 0]);
    }
}

#[test]
fn a_wrapper_with_offset_zero_ends_after_its_last_inner_message() {
    for codec in [Codec::Gzip, Codec::SnappyXerial, Codec::Lz4] {
        for count in [1, 2, 3, 40] {
            assert_reads(&wrapper(codec, count), count);
        }
    }
}

#[test]
fn the_batch_after_a_wrapper_with_offset_zero_continues_its_inner_offsets() {
    let rest = |base: i64| (base..base + 3).map(|offset| Rec::at(1000 + offset).value("rest"));
    for next in [
        vec![BatchV2::new(3).records(rest(3)).build()],
        MessageSet::v1(3).records(rest(3)).build(),
        MessageSet::v1(3).codec(Codec::Gzip).records(rest(3)).build(),
    ] {
        let mut built = wrapper(Codec::Gzip, 3);
        built.extend(next);
        assert_reads(&built, 6);
    }
}
