//! Torn tails: the last batches cut at every byte, followed by different fillings.

use cordwood::fs::mem::MemoryDisk;
use cordwood::writer::FlushMode;

use crate::found;
use crate::judge::{Judge, Tally};
use crate::model::{Expected, Model};
use crate::script::{Before, Client, Op, Setup};

/// The bytes after the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Nothing,
    Zeros,
    Random,
    /// The bytes of an earlier log at the same position.
    Stale,
    /// Zeros up to the next sector, then the written bytes: a lost sector.
    Hole(usize),
}

const FILLS: [Fill; 6] =
    [Fill::Nothing, Fill::Zeros, Fill::Random, Fill::Stale, Fill::Hole(512), Fill::Hole(4096)];

const LOG: &str = "00000000000000000000.log";
const DURABLE_OFFSET_FILE: &str = ".cordwood.durable";

/// A log with one segment after its process was killed, and the ends of its batches.
struct Written {
    client: Client,
    bytes: Vec<u8>,
    /// Position, offset and contents of the durable offset file after each batch.
    ends: Vec<(usize, i64, Vec<u8>)>,
}

fn write(sizes: &[usize], first: u8) -> Written {
    let setup = Setup { flush: FlushMode::Always, sector: 512, before: Before::Nothing };
    let mut options = setup.options();
    options.config.segment_bytes = 1 << 20;
    options.config.segment_index_bytes = 4096;
    let mut client = Client::new(MemoryDisk::new(512), options);
    client.apply(Op::Reopen, &mut |_| ());
    let file = |client: &Client, name: &str| {
        let files = client.disk.shown().files();
        files.iter().find(|(file, _)| file == name).unwrap().1.to_vec()
    };
    let mut ends = vec![(0, 0, file(&client, DURABLE_OFFSET_FILE))];
    for size in sizes {
        client.append_of(&[first].repeat(*size));
        ends.push((file(&client, LOG).len(), client.model.end, file(&client, DURABLE_OFFSET_FILE)));
    }
    client.writer = None;
    let bytes = file(&client, LOG);
    Written { client, bytes, ends }
}

/// Cuts at every `step`-th byte of the last three batches, with each filling.
pub fn cut(size: usize, step: usize) -> Tally {
    let written = write(&[size / 2, size, size + 77, size - 33], b'n');
    let stale = write(&[size / 3, size + 900, size / 2, size * 2], b's').bytes;
    let mut judge = Judge::new(written.client.options.clone());
    let image = written.client.disk.shown();
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    for (position, fill) in
        (written.ends[1].0..written.bytes.len()).step_by(step).flat_map(|cut| FILLS.map(|fill| (cut, fill)))
    {
        let mut bytes = written.bytes.clone();
        match fill {
            Fill::Nothing => bytes.truncate(position),
            Fill::Zeros => bytes[position..].fill(0),
            Fill::Random => {
                for byte in &mut bytes[position..] {
                    noise = noise.wrapping_mul(0xd129_0d3d_4a5c_2b7b).wrapping_add(1);
                    *byte = (noise >> 56) as u8;
                }
            }
            Fill::Stale => bytes[position..].copy_from_slice(&stale[position..written.bytes.len()]),
            Fill::Hole(sector) => {
                let end = (position / sector + 1) * sector;
                bytes[position..end.min(written.bytes.len())].fill(0);
            }
        }
        let unchanged = bytes.iter().zip(&written.bytes).take_while(|(a, b)| a == b).count();
        let kept = written.ends.iter().rev().find(|(end, _, _)| *end <= unchanged).unwrap();
        // everything before the torn batch was synced; or only the first batch; or the durable offset is
        // unknown
        for acknowledged in [Some(kept), Some(&written.ends[1]), None] {
            let disk = image.disk();
            disk.put(LOG, &bytes);
            match acknowledged {
                Some((_, _, durable_offset)) => disk.put(DURABLE_OFFSET_FILE, durable_offset),
                // without a durable offset, a torn batch before a valid batch is damage: an error, tested
                // below
                None if matches!(fill, Fill::Hole(_) | Fill::Stale) => continue,
                None => disk.take(DURABLE_OFFSET_FILE),
            }
            let mut model = Model { durable: kept.1, ..written.client.model.clone() };
            model.end = kept.1;
            model.records.retain(|sent| sent.offset < kept.1);
            judge.tally.images += 1;
            let place = || format!("batches of {size} cut at {position}, {fill:?}");
            judge.judge_disk(disk, &[Expected::after(&model)], true, &place);
        }
    }
    judge.tally
}

#[test]
fn a_torn_tail_is_cut_at_the_last_whole_batch_and_kept() {
    let mut tally = cut(200, 1);
    tally.add(cut(5_000, 61));
    println!("{{\"rig\": \"torn tails\", \"tails\": {}}}", tally.images);
    tally.assert_none();
    assert!(tally.images > 5_000, "{} tails", tally.images);
}

#[test]
#[ignore = "takes a minute; `make guarantees` runs it"]
fn torn_tails_of_every_length_are_cut_at_the_last_whole_batch() {
    let tally = cut(6_000, 1);
    println!("{{\"rig\": \"torn tails\", \"tails\": {}}}", tally.images);
    tally.assert_none();
    assert!(tally.images > 250_000, "{} tails", tally.images);
}

/// If everything was acknowledged, a torn batch is damage: an error, and no byte is changed.
#[test]
fn acknowledged_records_are_never_cut() {
    let written = write(&[150, 200, 277, 167], b'n');
    let judge = Judge::new(written.client.options.clone());
    let shown = written.client.disk.shown();
    for position in 0..written.bytes.len() {
        let disk = shown.disk();
        disk.put(LOG, &written.bytes[..position]);
        let before = disk.shown().files();
        let error = judge.recover(disk.clone()).err().unwrap_or_else(|| panic!("cut at {position}: opened"));
        assert!(error.contains("damaged"), "cut at {position}: {error}");
        assert!(before == disk.shown().files(), "cut at {position}: something was changed");
    }
}

/// A batch in the middle is damaged, and there is no durable offset. A valid batch follows, so it is not a
/// torn write.
#[test]
fn damage_before_a_valid_batch_is_never_cut_without_a_durable_offset() {
    let written = write(&[150, 200, 277, 167], b'n');
    let judge = Judge::new(written.client.options.clone());
    for position in written.ends[1].0 + 12..written.ends[2].0 {
        let disk = written.client.disk.shown().disk();
        let mut bytes = written.bytes.clone();
        bytes[position] ^= 0x40;
        disk.put(LOG, &bytes);
        disk.take(DURABLE_OFFSET_FILE);
        let before = disk.shown().files();
        let opened = judge.recover(disk.clone());
        // also if the damage is in the leader epoch or the magic
        assert!(opened.is_err(), "byte {position} of the log: opened");
        assert!(before == disk.shown().files(), "byte {position} of the log: something was changed");
        assert_eq!(found::segments(&before).len(), 1);
    }
}

/// A failed read during recovery makes the open fail, and the next open recovers the same log.
#[test]
fn a_failed_read_during_recovery_loses_nothing() {
    let written = write(&[150, 200, 277, 167], b'n');
    let mut judge = Judge::new(written.client.options.clone());
    let mut failures = 0;
    for read in 0.. {
        let disk = written.client.disk.shown().disk();
        let before = found::segments(&disk.shown().files())
            .iter()
            .map(|(_, bytes)| bytes.to_vec())
            .collect::<Vec<_>>();
        disk.set_failing_read(Some(read));
        let opened = judge.recover(disk.clone());
        if !disk.read_has_failed() {
            break;
        }
        failures += 1;
        disk.set_failing_read(None);
        let after = found::segments(&disk.shown().files())
            .iter()
            .map(|(_, bytes)| bytes.to_vec())
            .collect::<Vec<_>>();
        assert!(before == after, "read {read}: the log was changed; opened: {}", opened.is_ok());
        judge.judge_disk(disk, &[Expected::after(&written.client.model)], true, &|| format!("read {read}"));
    }
    judge.tally.assert_none();
    assert!(failures > 5, "{failures} reads");
}
