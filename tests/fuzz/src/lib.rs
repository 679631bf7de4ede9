//! What is fuzzed. Each function takes any bytes; a panic, a wrong answer, much time or much memory is a bug.
//! The ordinary tests call the same functions with the inputs in `corpus`.

mod directory;

use std::sync::OnceLock;

use cordwood::inspect::internal_topics::MessageParser;
use cordwood::inspect::profile::Profiler;
use cordwood::inspect::rebuild::{RebuildOptions, rebuild_in};
use cordwood::inspect::repair::{RepairOptions, RepairPolicy, plan_repair_in, repair_in};
use cordwood::log::{Log, LogOptions, OnDamage, ScanOptions, ScanStep};
use cordwood::record::{BatchHeader, PREFIX, Records, V2_HEADER, crc};
use cordwood::state::leader_epochs::LeaderEpochs;
use cordwood::state::partition_metadata::TopicId;
use cordwood::state::producers::ProducerSnapshot;

use directory::{BASE, INTACT_LOG, answers, directory_of, with_files};

/// The bytes of a `.log`: headers, records, every codec. The checksums are not checked, so that changed bytes
/// reach the decoders.
pub fn batches(data: &[u8]) {
    let (mut rest, mut buffer, mut wrapper) = (data, Vec::new(), Vec::new());
    while let Ok(mut header) = BatchHeader::parse(rest, rest.len() as u64) {
        let Some((batch, after)) = rest.split_at_checked(header.size as usize) else { return };
        // a wrapper's base offset is inside
        let _ = header.resolve_base_offset(batch, &mut wrapper);
        if let Ok((mut records, payload)) = Records::open(header, batch, &mut buffer) {
            let bytes = payload.of(batch, &buffer);
            let mut count = 0_u64;
            while let Ok(Some(record)) = records.next(bytes) {
                count += 1;
                assert!(record.key.map_or(0, <[u8]>::len) <= bytes.len());
                for (name, value) in record.headers {
                    assert!(name.len() + value.map_or(0, <[u8]>::len) <= bytes.len());
                }
            }
            // the smallest record has 7 bytes
            assert!(count <= bytes.len() as u64 / 7 + 1);
        }
        rest = after;
    }
}

/// Index files beside an intact log: whatever they contain, look-ups give the answers that they give without
/// an index.
pub fn indexes(data: &[u8]) {
    static WITHOUT: OnceLock<Vec<Option<(i64, u64)>>> = OnceLock::new();
    let Some((slots, data)) = data.split_first() else { return };
    let (offset_index, time_index) = data.split_at((usize::from(*slots) * 8).min(data.len()));
    let without = WITHOUT.get_or_init(|| answers(&with_files(&[(".log", INTACT_LOG)])));
    let with =
        answers(&with_files(&[(".log", INTACT_LOG), (".index", offset_index), (".timeindex", time_index)]));
    assert_eq!(&with, without, "an index changed an answer");
}

/// The small files beside the segments.
pub fn state_files(data: &[u8]) {
    if let Ok(epochs) = LeaderEpochs::parse(data) {
        assert_eq!(LeaderEpochs::parse(epochs.to_text().as_bytes()), Ok(epochs));
    }
    if let Ok(id) = TopicId::parse_file(data) {
        assert_eq!(TopicId::parse_file(id.to_file().as_bytes()), Ok(id));
    }
    if let Ok(snapshot) = ProducerSnapshot::decode(data) {
        assert_eq!(snapshot.encode(), data);
    }
}

/// A partition directory: its files, with checksums that match, so that changed bytes reach what is behind
/// them.
pub fn directories(data: &[u8]) {
    let disk = directory_of(data);
    let directory = disk.directory("/fuzz-0");
    let Ok(log) = Log::open_in(directory, LogOptions::default()) else { return };
    let _ = log.warnings();
    let _ = log.last_stable_offset();
    for on_damage in [OnDamage::Raise, OnDamage::Skip] {
        let Ok(mut scan) = log.scan(ScanOptions { on_damage, ..ScanOptions::default() }) else { continue };
        let mut next = log.log_start_offset();
        while let Ok(Some(ScanStep::Batch(_))) = scan.next_step() {
            while let Ok(Some(record)) = scan.next_record() {
                assert!(record.offset >= next, "offsets rise");
                next = record.offset + 1;
            }
        }
    }
    for offset in [BASE, BASE + 7, BASE + 300] {
        let _ = log.locate(offset);
    }
    for time in [0, 1_700_000_000_100, i64::MAX] {
        let _ = log.offset_for_time(time);
    }
    if let Ok(profiler) = Profiler::new(&log) {
        let _ = profiler.finish();
    }
}

/// A record of an internal topic: the number of the decoder, the size of the key in two bytes, the key, and
/// the value.
pub fn internal_topics(data: &[u8]) {
    let Some(([decoder, high, low], rest)) = data.split_first_chunk() else { return };
    let decoders = [
        MessageParser::Offsets,
        MessageParser::TransactionLog,
        MessageParser::ClusterMetadata,
        MessageParser::ShareGroupState,
        MessageParser::RemoteLogMetadata,
    ];
    let size = usize::from(*high) << 8 | usize::from(*low);
    let (key, value) = rest.split_at(size.min(rest.len()));
    let decoder = decoders[usize::from(*decoder) % decoders.len()];
    if let Ok(parsed) = decoder.parse(0, Some(key), Some(value)) {
        // names of fields and escapes make the text longer, by a factor and not by what a length in the
        // record says
        let texts = parsed.key.map_or(0, |key| key.len()) + parsed.payload.map_or(0, |payload| payload.len());
        assert!(texts <= 4096 + 512 * data.len(), "{texts} bytes of text from {} bytes", data.len());
    }
}

/// A partition directory that is repaired by each policy: a second repair has nothing to do, and no batch is
/// damaged. (Records that cannot be decoded, in a batch whose checksum is right, were written so.)
pub fn repairs(data: &[u8]) {
    for policy in [RepairPolicy::TornTail, RepairPolicy::Kafka, RepairPolicy::Salvage] {
        let disk = directory_of(data);
        let directory = disk.directory("/fuzz-0");
        let options = RepairOptions { policy, ..RepairOptions::default() };
        if repair_in(&directory, &options).is_err() {
            continue;
        }
        let again = plan_repair_in(&directory, &options).expect("what was repaired can be planned again");
        assert!(again.actions.is_empty(), "{policy:?} is not complete: {:?}", again.actions);
        let Ok(log) = Log::open_in(directory, LogOptions::default()) else { continue };
        let mut scan = log
            .scan(ScanOptions { batches_only: true, ..ScanOptions::default() })
            .expect("a repaired log has a range");
        while scan.next_step().expect("a repaired log has no damage").is_some() {}
    }
}

/// A partition directory whose derived files are rebuilt: a second time nothing differs.
pub fn rebuilds(data: &[u8]) {
    let disk = directory_of(data);
    let directory = disk.directory("/fuzz-0");
    let options = RebuildOptions { dry_run: false, ..RebuildOptions::default() };
    if rebuild_in(&directory, &options).is_err() {
        return;
    }
    let again = rebuild_in(&directory, &RebuildOptions::default()).expect("what was rebuilt can be compared");
    assert!(again.is_clean(), "{again:?}");
}

/// Gives each whole v2 batch of a `.log` the checksum that its bytes have.
fn with_checksums(log: &mut [u8]) {
    let mut rest = log;
    while let Ok(header) = BatchHeader::parse(rest, rest.len() as u64) {
        let Some((batch, after)) = rest.split_at_mut_checked(header.size as usize) else { return };
        if header.magic == 2 && batch.len() >= V2_HEADER {
            let checksum = crc::crc32c(&batch[PREFIX + 4..]);
            batch[PREFIX..PREFIX + 4].copy_from_slice(&checksum.to_be_bytes());
        }
        rest = after;
    }
}
