//! The builder and the naive reader compared with the test vectors of the format (`kafka-format.md`, Appendix
//! A and 14.16).

use crate::support::batches::{self, BatchV2, COMMIT, Codec, MessageSet, Rec, put_varlong};
use crate::support::lz4;
use crate::support::naive::{self, Control};
use crate::support::partition::{
    Indexing, PartitionBuilder, file_name, offset_entry, segment_files, time_entry, txn_entry,
};

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

#[test]
fn a1_crc32c_of_the_digits() {
    assert_eq!(batches::crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(naive::crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(naive::crc32c(b"Some String"), 608_512_271);
}

#[test]
fn crc32_of_the_digits() {
    assert_eq!(batches::crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(naive::crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a2_lz4_header_with_the_right_and_the_wrong_checksum() {
    assert_eq!(twox_hash::XxHash32::oneshot(0, b""), 0x02cc_5d05);
    assert_eq!(hex(&lz4::frame(b"", false)[..7]), "04224d18604082");
    assert_eq!(hex(&lz4::frame(b"", true)[..7]), "04224d1860401a");
}

#[test]
fn a3_v2_with_key_and_value() {
    let built = BatchV2::new(0).record(Rec::at(1000).key("k").value("v")).build();
    assert_eq!(
        hex(&built.bytes),
        "00000000000000000000003a0000000002716a618900000000000000000000000003e800000000000003e8ffff\
         ffffffffffffffffffffffff0000000110000000026b027600"
    );
}

#[test]
fn a4_v2_with_null_key() {
    let built = BatchV2::new(0).record(Rec::at(1_700_000_000_000).value("hello")).build();
    assert_eq!(
        hex(&built.bytes),
        "00000000000000000000003d0000000002e641a44b0000000000000000018bcfe568000000018bcfe56800ffff\
         ffffffffffffffffffffffff0000000116000000010a68656c6c6f00"
    );
}

#[test]
fn a5_commit_marker() {
    let built = BatchV2::marker(0, COMMIT, 1, 0, 0).leader_epoch(-1).build();
    assert_eq!(
        hex(&built.bytes),
        "000000000000000000000042ffffffff02bda9896c0030000000000000000000000000000000000000000000000000\
         000000010000ffffffff000000012000000008000000010c00000000000000"
    );
    assert_eq!(built.control, Some(COMMIT));
    let read = naive::read_batch(&built.bytes).unwrap();
    assert_eq!(read.records[0].control, Some(Control::Commit { coordinator_epoch: 0 }));
}

#[test]
fn a6_empty_batch() {
    let built = BatchV2::empty(5, 3, 2000).leader_epoch(7).producer(9, 1, 10).build();
    assert_eq!(
        hex(&built.bytes),
        "0000000000000005000000310000000702032b6085000000000003ffffffffffffffff00000000000007d000000000\
         0000000900010000000a00000000"
    );
    let read = naive::read_batch(&built.bytes).unwrap();
    assert_eq!((read.base_offset, read.last_offset, read.last_sequence), (5, 8, 13));
}

#[test]
fn a9_v1_message() {
    let built = MessageSet::v1(0).record(Rec::at(0).value("hello")).build();
    assert_eq!(
        hex(&built[0].bytes),
        "00000000000000000000001bb9a7b7c501000000000000000000ffffffff0000000568656c6c6f"
    );
}

#[test]
fn a10_v0_message() {
    let built = MessageSet::v0(0).record(Rec::at(0).value("hello")).build();
    assert_eq!(hex(&built[0].bytes), "00000000000000000000001387a77ab20000ffffffff0000000568656c6c6f");
}

#[test]
fn a11_offset_index_entries() {
    let entries = [offset_entry(45, 51, 0), offset_entry(45, 52, 4096)].concat();
    assert_eq!(hex(&entries), "00000006000000000000000700001000");
}

#[test]
fn a12_time_index_entry() {
    assert_eq!(hex(&time_entry(45, 1000, 51)), "00000000000003e800000006");
}

#[test]
fn a13_txn_index_entry() {
    let entry = "000000000000000000010000000000000000000000000000001d0000000000000008";
    assert_eq!(hex(&txn_entry(1, 0, 29, 8)), entry);

    let data =
        |offset, pid| BatchV2::new(offset).transaction(pid, 0, 0).record(Rec::at(5).value("v")).build();
    let abort = BatchV2::marker(29, batches::ABORT, 1, 0, 6).build();
    let parent = tempfile::tempdir().unwrap();
    let dir =
        PartitionBuilder::default().segment(0, [data(0, 1), data(8, 2), abort]).write(parent.path(), "t-0");
    assert_eq!(hex(&std::fs::read(dir.join(file_name(0, "txnindex"))).unwrap()), entry);
}

/// 30 equal batches with an interval of two batches minus one byte: every second batch has an entry, 14 in
/// total (7.2).
#[test]
fn an_entry_follows_when_the_bytes_since_the_last_one_exceed_the_interval() {
    let batches: Vec<_> = (0..30).map(|i| BatchV2::new(i).record(Rec::at(i).value("v")).build()).collect();
    let size = batches[0].bytes.len();
    let files = segment_files(0, &batches, Indexing::every(2 * size - 1));
    let entries: Vec<_> = (1..15).flat_map(|i| offset_entry(0, 2 * i, 2 * i as i32 * size as i32)).collect();
    assert_eq!(files.index, entries);
    assert_eq!(segment_files(0, &batches, Indexing::every(1)).index.len(), 29 * 8);
}

#[test]
fn a15_varints() {
    let cases = [
        (-1, "01"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (i64::from(i32::MAX), "feffffff0f"),
        (i64::from(i32::MIN), "ffffffff0f"),
        (17_179_869_184, "808080808001"),
        (i64::MIN, "ffffffffffffffffff01"),
    ];
    for (n, encoded) in cases {
        let mut bytes = Vec::new();
        put_varlong(&mut bytes, n);
        assert_eq!(hex(&bytes), encoded, "{n}");
        assert_eq!(naive::varlong(&bytes), Ok((n, bytes.len())));
        if let Ok(small) = i32::try_from(n) {
            assert_eq!(naive::varint(&bytes), Ok((small, bytes.len())));
        }
    }
    assert!(naive::varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).is_err());
    assert!(naive::varlong(&[0x80; 11]).is_err());
}

/// `MemoryRecordsTest.testChecksum`, which asserts the CRC of the first batch.
#[test]
fn checksums_of_kafkas_own_test() {
    let records =
        || [Rec::at(283_843).key("key1").value("value1"), Rec::at(1234).key("key2").value("value2")];
    let crc = |bytes: &[u8]| naive::read_batch(bytes).unwrap().crc;
    assert_eq!(crc(&MessageSet::v0(0).records(records()).build()[0].bytes), 1_978_725_405);
    assert_eq!(crc(&MessageSet::v1(0).records(records()).build()[0].bytes), 109_425_508);
    assert_eq!(crc(&BatchV2::new(0).records(records()).build().bytes), 3_851_219_455);
}

/// Compressed bytes are not canonical, but for an input this short both compressors produce the same bytes.
#[test]
fn checksums_of_kafkas_own_test_with_lz4() {
    let records =
        || [Rec::at(283_843).key("key1").value("value1"), Rec::at(1234).key("key2").value("value2")];
    let crc = |bytes: &[u8]| naive::read_batch(bytes).unwrap().crc;
    let v0 = MessageSet::v0(0).codec(Codec::Lz4).records(records()).build();
    let v1 = MessageSet::v1(0).codec(Codec::Lz4).records(records()).build();
    let v2 = BatchV2::new(0).codec(Codec::Lz4).records(records()).build();
    assert_eq!(crc(&v0[0].bytes), 66_944_826);
    assert_eq!(crc(&v1[0].bytes), 1_407_303_399);
    assert_eq!(crc(&v2.bytes), 2_745_969_314);
}
