//! Batches are built as in Kafka: the golden batches are rebuilt byte for byte, and random records survive a
//! round trip with every codec.

use std::fs;

use cordwood::record::codec::{check_level, compress};
use cordwood::record::{
    BatchBuilder, BatchHeader, BatchOptions, Codec, MAX_BATCH_BYTES, NewRecord, Records, V2_HEADER,
};
use cordwood::types::TimestampType;
use proptest::prelude::*;

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::file_name;
use crate::support::{fixed_seed, golden, naive};

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

fn options(base_offset: i64) -> BatchOptions {
    BatchOptions {
        base_offset,
        leader_epoch: 0,
        codec: Codec::None,
        level: None,
        timestamp_type: TimestampType::CreateTime,
        log_append_time: -1,
    }
}

/// The headers of a record, borrowed.
fn borrowed(headers: &[(Vec<u8>, Option<Vec<u8>>)]) -> Vec<(&[u8], Option<&[u8]>)> {
    headers.iter().map(|(name, value)| (&name[..], value.as_deref())).collect()
}

fn append(builder: &mut BatchBuilder, rec: &Rec) {
    let headers = borrowed(&rec.headers);
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    let record = NewRecord { timestamp: rec.timestamp, key, value, headers: &headers };
    let (size, count) = (builder.size_with(&record), builder.count());
    builder.append(&record).unwrap();
    assert_eq!((builder.size(), builder.count()), (size, count + 1));
}

fn built(builder: &mut BatchBuilder, records: &[Rec], options: &BatchOptions) -> Vec<u8> {
    for record in records {
        append(builder, record);
    }
    let mut bytes = Vec::new();
    let header = builder.finish(options, &mut bytes).unwrap();
    assert_eq!(BatchHeader::parse(&bytes, bytes.len() as u64).unwrap(), header);
    assert_eq!((builder.size(), builder.count(), builder.max_timestamp()), (V2_HEADER, 0, -1));
    bytes
}

/// The records of a batch with their own timestamps, also if the batch has a log append time.
fn records_of(bytes: &[u8]) -> Vec<Rec> {
    let mut header = BatchHeader::parse(bytes, bytes.len() as u64).unwrap();
    header.attributes.0 &= !(1 << 3);
    let mut buffer = Vec::new();
    let (mut records, payload) = Records::open(header, bytes, &mut buffer).unwrap();
    let payload = payload.of(bytes, &buffer);
    let mut found = Vec::new();
    while let Some(record) = records.next(payload).unwrap() {
        found.push(Rec {
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect(),
            offset_delta: None,
        });
    }
    found
}

/// For batches of a plain producer: no producer id, no marker, no record removed by compaction.
#[test]
fn batches_of_kafka_are_rebuilt_byte_for_byte() {
    let (mut plain, mut append_time, mut compressed) = (0, 0, 0);
    let mut builder = BatchBuilder::new();
    for partition in golden::intact() {
        let log = naive::read(&partition.dir).unwrap();
        for batch in &log.batches {
            let is_complete = batch.count.is_some_and(|count| {
                count > 0 && i64::from(count) == batch.last_offset - batch.base_offset + 1
            });
            // batches of a coordinator have an epoch and a sequence, but no producer id
            let producer = (batch.producer_id, batch.producer_epoch, batch.base_sequence);
            if !is_complete || producer != (-1, -1, -1) || batch.control || batch.delete_horizon.is_some() {
                continue;
            }
            let path = partition.dir.join(file_name(batch.segment, "log"));
            let bytes = fs::read(path).unwrap()[batch.position as usize..][..batch.size as usize].to_vec();
            let codec = CODECS.into_iter().find(|codec| codec.name() == batch.codec.name()).unwrap();
            let is_append_time = batch.timestamp_type == naive::TimestampType::LogAppendTime;
            let options = BatchOptions {
                leader_epoch: batch.leader_epoch,
                codec,
                timestamp_type: if is_append_time {
                    TimestampType::LogAppendTime
                } else {
                    TimestampType::CreateTime
                },
                log_append_time: batch.max_timestamp,
                ..options(batch.base_offset)
            };
            let ours = built(&mut builder, &records_of(&bytes), &options);
            if codec == Codec::None {
                assert_eq!(ours, bytes, "{} offset {}", partition.case, batch.base_offset);
                plain += 1;
                append_time += i32::from(is_append_time);
            } else {
                let mut ours = naive::read_batch(&ours).unwrap();
                let theirs = naive::read_batch(&bytes).unwrap();
                (ours.size, ours.crc) = (theirs.size, theirs.crc);
                assert_eq!(ours, theirs, "{} offset {}", partition.case, batch.base_offset);
                compressed += 1;
            }
        }
    }
    println!("{plain} {append_time} {compressed}");
    assert!(plain > 1000 && append_time > 10 && compressed > 100);
}

/// `MemoryRecordsTest.testChecksum`: for an input this short, even the LZ4 stream is the same.
#[test]
fn checksums_of_kafkas_own_test() {
    let records = [Rec::at(283_843).key("key1").value("value1"), Rec::at(1234).key("key2").value("value2")];
    for (codec, crc) in [(Codec::None, 3_851_219_455), (Codec::Lz4, 2_745_969_314)] {
        let bytes = built(&mut BatchBuilder::new(), &records, &BatchOptions { codec, ..options(0) });
        assert_eq!(naive::read_batch(&bytes).unwrap().crc, crc, "{}", codec.name());
    }
}

#[test]
fn a_refused_record_does_not_change_the_batch() {
    let good = Rec::at(1000).key("k").value("v");
    let alone = built(&mut BatchBuilder::new(), std::slice::from_ref(&good), &options(0));
    let mut builder = BatchBuilder::new();
    append(&mut builder, &good);
    let refuse = |builder: &mut BatchBuilder, record: NewRecord<'_>, argument: &str| {
        let before = (builder.size(), builder.count(), builder.max_timestamp());
        let error = builder.append(&record).unwrap_err().to_string();
        assert!(error.starts_with(argument), "{error}");
        assert_eq!((builder.size(), builder.count(), builder.max_timestamp()), before);
    };
    for timestamp in [-2, i64::MIN] {
        refuse(&mut builder, NewRecord { timestamp, ..NewRecord::default() }, "timestamp");
    }
    let headers = [(&b"fine"[..], None), (&b"\xff"[..], None)];
    refuse(&mut builder, NewRecord { timestamp: 5000, headers: &headers, ..NewRecord::default() }, "headers");
    let huge = vec![0; MAX_BATCH_BYTES];
    refuse(&mut builder, NewRecord { value: Some(&huge), ..NewRecord::default() }, "batch size");
    let fits = MAX_BATCH_BYTES - builder.size() - 16;
    assert!(
        builder.size_with(&NewRecord { value: Some(&huge[..fits]), ..NewRecord::default() })
            < MAX_BATCH_BYTES
    );
    let mut bytes = Vec::new();
    builder.finish(&options(0), &mut bytes).unwrap();
    assert_eq!(bytes, alone);
}

#[test]
fn a_refused_batch_keeps_its_records() {
    let mut builder = BatchBuilder::new();
    let mut bytes = vec![7];
    assert_eq!((builder.size(), builder.count(), builder.max_timestamp()), (V2_HEADER, 0, -1));
    assert!(builder.finish(&options(0), &mut bytes).is_err(), "no record");
    append(&mut builder, &Rec::at(1).value("a"));
    append(&mut builder, &Rec::at(2).value("b"));
    let refused = [
        options(-1),
        options(i64::MAX - 1),
        BatchOptions { leader_epoch: -2, ..options(0) },
        BatchOptions { codec: Codec::Gzip, level: Some(0), ..options(0) },
        BatchOptions { codec: Codec::None, level: Some(1), ..options(0) },
    ];
    for options in refused {
        assert!(builder.finish(&options, &mut bytes).is_err(), "{options:?}");
    }
    assert_eq!(bytes, [7]);
    builder.finish(&options(i64::MAX - 2), &mut bytes).unwrap();
    assert_eq!(naive::read_batch(&bytes[1..]).unwrap().records.len(), 2);
}

#[test]
fn a_sealed_batch_can_be_sealed_again_and_extended() {
    let records = [Rec::at(1).value("a"), Rec::at(2).value("b")];
    let mut builder = BatchBuilder::new();
    append(&mut builder, &records[0]);
    builder.seal(&BatchOptions { codec: Codec::Zstd, ..options(9) }).unwrap();
    let (header, bytes) = builder.seal(&options(5)).unwrap();
    assert_eq!(
        (header.base_offset, bytes),
        (5, &BatchV2::new(5).record(records[0].clone()).build().bytes[..])
    );
    append(&mut builder, &records[1]);
    let (_, bytes) = builder.seal(&options(5)).unwrap();
    assert_eq!(bytes, BatchV2::new(5).records(records).build().bytes);
}

#[test]
fn levels_are_those_of_kafka() {
    let known = |codec, level| check_level(codec, Some(level)).is_ok();
    let levels = |codec| (-140_000..40).filter(|level| known(codec, *level)).collect::<Vec<_>>();
    assert_eq!(levels(Codec::None), [0; 0]);
    assert_eq!(levels(Codec::Snappy), [0; 0]);
    assert_eq!(levels(Codec::Gzip), [-1, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(levels(Codec::Lz4), (1..=17).collect::<Vec<_>>());
    assert_eq!(levels(Codec::Zstd), (-131_072..=22).collect::<Vec<_>>());
    let message = check_level(Codec::Gzip, Some(0)).unwrap_err().to_string();
    assert_eq!(message, "compression.gzip.level: expected -1 (the default) or 1 to 9, found 0");
}

/// The frame headers equal Kafka's; the compressed blocks may differ.
#[test]
fn compressed_streams_begin_as_kafkas_do() {
    let stream = |codec, length: usize| {
        let mut out = Vec::new();
        compress(codec, None, &vec![b'a'; length], &mut out).unwrap();
        out
    };
    assert_eq!(stream(Codec::Gzip, 9)[..4], [0x1f, 0x8b, 8, 0]);
    assert_eq!(stream(Codec::Snappy, 9)[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    assert_eq!(stream(Codec::Lz4, 9)[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    // the descriptor: neither content size (bits 6, 7 and 5) nor checksum (bit 2) nor dictionary
    assert_eq!(stream(Codec::Zstd, 9)[..5], [0x28, 0xb5, 0x2f, 0xfd, 0]);
    // a chunk for every 32 KiB, a block for every 64 KiB
    let chunks = |bytes: &[u8]| {
        let (mut rest, mut count) = (&bytes[16..], 0);
        while let Some(length) = rest.first_chunk() {
            (rest, count) = (&rest[4 + i32::from_be_bytes(*length) as usize..], count + 1);
        }
        count
    };
    for (length, expected) in [(0, 0), (1, 1), (32 << 10, 1), ((32 << 10) + 1, 2), (96 << 10, 3)] {
        assert_eq!(chunks(&stream(Codec::Snappy, length)), expected, "{length}");
    }
    // an incompressible block is stored: bit 31 of the size
    let mut out = Vec::new();
    compress(Codec::Lz4, None, b"abc", &mut out).unwrap();
    assert_eq!(out[7..], *b"\x03\0\0\x80abc\0\0\0\0");
}

/// Incompressible bytes, or bytes that every codec compresses.
fn noise(length: usize, is_random: bool) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|at| if is_random { next() } else { (at / 1000) as u8 }).collect()
}

#[test]
fn values_around_block_sizes_survive_a_round_trip_with_every_codec_and_level() {
    let levels: [(Codec, &[i32]); 5] = [
        (Codec::None, &[]),
        (Codec::Gzip, &[-1, 1, 9]),
        (Codec::Snappy, &[]),
        (Codec::Lz4, &[1, 9, 17]),
        (Codec::Zstd, &[-131_072, -5, 1, 3, 12]),
    ];
    let mut builder = BatchBuilder::new();
    for (codec, levels) in levels {
        for level in levels.iter().copied().map(Some).chain([None]) {
            for length in [0, 1, (32 << 10) - 10, 32 << 10, (64 << 10) - 8, 64 << 10, 200_000] {
                for is_random in [false, true] {
                    let record = Rec::at(7).value(noise(length, is_random));
                    let options = BatchOptions { codec, level, ..options(3) };
                    let bytes = built(&mut builder, std::slice::from_ref(&record), &options);
                    let read = naive::read_batch(&bytes).unwrap();
                    assert_eq!(read.codec.name(), codec.name());
                    assert_eq!(read.records[0].value, record.value, "{codec:?} {level:?} {length}");
                    assert_eq!(records_of(&bytes), [record]);
                    // the fastest level of zstd hardly compresses
                    let is_packed = codec != Codec::None && level != Some(-131_072);
                    if !is_random && length > 32 << 10 && is_packed {
                        assert!(bytes.len() < length / 4, "{codec:?} {level:?}: {} bytes", bytes.len());
                    }
                }
            }
        }
    }
}

fn any_record() -> impl Strategy<Value = Rec> {
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
    let timestamp =
        prop_oneof![Just(-1i64), 0..100_000i64, 1_700_000_000_000..1_700_000_100_000i64, 0..i64::MAX / 2];
    let headers = prop::collection::vec((".{0,5}", bytes()), 0..4);
    (timestamp, bytes(), bytes(), headers).prop_map(|(timestamp, key, value, headers)| Rec {
        timestamp,
        key,
        value,
        headers: headers.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect(),
        offset_delta: None,
    })
}

proptest! {
    #![proptest_config(fixed_seed(400))]

    #[test]
    fn random_records_are_built_as_by_the_naive_builder_and_survive_a_round_trip(
        records in prop::collection::vec(any_record(), 1..20),
        base_offset in 0..i64::MAX - 100,
        leader_epoch in -1..i32::MAX,
        log_append_time: Option<u32>,
        codec in prop::sample::select(&CODECS[1..]),
    ) {
        let log_append_time = log_append_time.map(i64::from);
        let mut naive_builder = BatchV2::new(base_offset).leader_epoch(leader_epoch).records(records.clone());
        naive_builder.log_append_time = log_append_time;
        let options = BatchOptions {
            leader_epoch,
            timestamp_type: if log_append_time.is_some() {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            log_append_time: log_append_time.unwrap_or(-1),
            ..options(base_offset)
        };
        let mut builder = BatchBuilder::new();
        let plain = built(&mut builder, &records, &options);
        prop_assert_eq!(&plain, &naive_builder.build().bytes);
        let packed = built(&mut builder, &records, &BatchOptions { codec, ..options });
        prop_assert_eq!(&records_of(&packed), &records);
        if log_append_time.is_none() {
            let read = naive::read_batch(&packed).unwrap();
            let timestamps: Vec<_> = records.iter().map(|record| record.timestamp).collect();
            let read: Vec<_> = read.records.iter().map(|record| record.timestamp).collect();
            prop_assert_eq!(read, timestamps);
        }
    }
}
