//! Whole batches between two places of damage of which the index has no right position: one of them is in a
//! wrong place, or bytes before them were removed or inserted.

use std::path::Path;

use cordwood::log::OnDamage;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, file_name, segment_files};
use crate::support::reading::{all, both, folder};

fn built(count: i64) -> Vec<Built> {
    let of =
        |base| BatchV2::new(base).records([Rec::at(base).value(b"value"), Rec::at(base + 1).value(b"value")]);
    (0..count).map(|n| of(n * 2).build()).collect()
}

/// The offsets that both ways of reading return after damage to the `.log`.
fn readable(built: &[Built], index: Option<Indexing>, damage: impl Fn(Vec<Vec<u8>>) -> Vec<u8>) -> Vec<i64> {
    let parent = folder();
    let dir = parent.path().join("t-0");
    std::fs::create_dir(&dir).unwrap();
    let write = |extension, bytes: &[u8]| std::fs::write(dir.join(file_name(0, extension)), bytes).unwrap();
    let batches: Vec<Vec<u8>> = built.iter().map(|batch| batch.bytes.clone()).collect();
    write("log", &damage(batches));
    if let Some(indexing) = index {
        write("index", &segment_files(0, built, indexing).index);
    }
    let [mapped, positional] = both(Path::new(&dir)).map(|log| all(&log, OnDamage::Skip).whole().offsets());
    assert_eq!(mapped, positional);
    mapped
}

fn offsets_of(batches: impl IntoIterator<Item = i64>) -> Vec<i64> {
    batches.into_iter().flat_map(|n| [n * 2, n * 2 + 1]).collect()
}

#[test]
fn a_batch_in_a_wrong_place_does_not_hide_the_batches_between_it_and_damage() {
    let built = built(12);
    for index in [None, Some(Indexing::every(0)), Some(Indexing::every(300))] {
        let found = readable(&built, index, |mut batches| {
            batches.swap(0, 6);
            batches[0].remove(0);
            batches.concat()
        });
        assert_eq!(found, offsets_of((1..12).filter(|n| *n != 6)));
    }
}

#[test]
fn index_entries_at_one_distance_confirm_the_batches_between_two_damaged_ones() {
    let built = built(40);
    for inserted in [false, true] {
        let found = readable(&built, Some(Indexing::every(300)), |mut batches| {
            if inserted {
                batches[0].insert(0, 1);
            } else {
                batches[0].remove(0);
            }
            // its offset is no longer recognisable
            batches[30].drain(..20);
            batches.concat()
        });
        let first = i64::from(!inserted);
        assert_eq!(found, offsets_of((first..40).filter(|n| *n != 30)));
    }
}

/// One entry may be a coincidence: a value may hold a batch with the offset of a batch of the log.
#[test]
fn one_index_entry_confirms_no_batch() {
    let value: Vec<u8> =
        (1..4).flat_map(|n| BatchV2::new(n).record(Rec::at(n).value(b"nested")).build().bytes).collect();
    let outer = BatchV2::new(0).record(Rec::at(0).value(value)).last_offset_delta(3).build();
    let mut all = vec![outer];
    all.extend((2..8).map(|n| BatchV2::new(n * 2).records([Rec::at(n * 2), Rec::at(n * 2 + 1)]).build()));
    let found = readable(&all, Some(Indexing::every(0)), |mut batches| {
        // the header of the outer batch, with all by which its end could be found
        batches[0].drain(..40);
        batches.concat()
    });
    assert_eq!(found, offsets_of(2..8));
}
