//! Batches that a disk wrote to a wrong place: they are put where their offsets are missing, or taken out.
//! They never get other offsets.

use super::rules::{batch, log, offsets};
use super::*;
use crate::support::batches::BatchV2;
use crate::support::partition::{Indexing, PartitionBuilder};

/// Batches of two offsets each, of a producer whose sequences continue.
fn numbered(count: i64) -> Vec<BatchV2> {
    let of_producer = |number: i64| {
        let mut batch = batch(2 * number, 2, 0);
        (batch.producer_id, batch.producer_epoch, batch.base_sequence) = (7, 0, 2 * number as i32);
        batch
    };
    (0..count).map(of_producer).collect()
}

/// A log whose batches are in this order, by the numbers of the batches; the plan of its salvage, and the
/// first offsets that remain.
fn salvaged(batches: &[BatchV2], order: &[usize]) -> (RepairPlan, Vec<i64>) {
    let folder = reading::folder();
    let dir = log(folder.path(), batches, |bytes| {
        *bytes = order.iter().flat_map(|number| batches[*number].build().bytes).collect();
    });
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    let whole: Vec<_> = batches.iter().map(|batch| batch.build().bytes).collect();
    let found = super::batches(&dir, OnDamage::Raise);
    assert!(found.iter().all(|(_, _, bytes)| whole.contains(bytes)), "a batch that was never written");
    assert!(plan.actions.iter().all(|action| action.kind != RepairActionKind::CorrectHeader));
    (plan, found.iter().map(|(first, _, _)| *first).collect())
}

fn without_producers(count: i64) -> Vec<BatchV2> {
    (0..count).map(|number| batch(2 * number, 2, 0)).collect()
}

#[test]
fn a_copy_of_a_batch_over_another_one_is_taken_out() {
    for batches in [numbered(10), without_producers(10)] {
        for (order, kept) in [
            // offsets 6 and 8 differ in three bits, 8 and 10 in one
            ([0, 1, 2, 3, 3, 5, 6, 7, 8, 9], vec![0, 2, 4, 6, 10, 12, 14, 16, 18]),
            ([0, 1, 2, 3, 5, 5, 6, 7, 8, 9], vec![0, 2, 4, 6, 10, 12, 14, 16, 18]),
            ([0, 1, 2, 3, 4, 4, 6, 7, 8, 9], vec![0, 2, 4, 6, 8, 12, 14, 16, 18]),
            ([0, 1, 2, 3, 0, 5, 6, 7, 8, 9], vec![0, 2, 4, 6, 10, 12, 14, 16, 18]),
            ([0, 1, 2, 3, 4, 5, 6, 7, 8, 8], vec![0, 2, 4, 6, 8, 10, 12, 14, 16]),
            ([1, 1, 2, 3, 4, 5, 6, 7, 8, 9], vec![2, 4, 6, 8, 10, 12, 14, 16, 18]),
            ([0, 1, 2, 3, 0, 1, 6, 7, 8, 9], vec![0, 2, 4, 6, 12, 14, 16, 18]),
        ] {
            let (plan, found) = salvaged(&batches, &order);
            assert_eq!(found, kept, "{order:?}");
            assert_eq!(plan.lost_ranges.len(), 1, "{order:?}: {:#?}", plan.lost_ranges);
        }
    }
}

#[test]
fn batches_that_changed_places_are_put_back() {
    for batches in [numbered(10), without_producers(10)] {
        for order in [
            [0, 1, 2, 3, 5, 4, 6, 7, 8, 9],
            [0, 1, 2, 3, 8, 5, 6, 7, 4, 9],
            [0, 1, 2, 3, 5, 6, 4, 7, 8, 9],
            [0, 1, 2, 3, 6, 5, 4, 7, 8, 9],
            [0, 1, 6, 7, 4, 5, 2, 3, 8, 9],
            [0, 1, 2, 3, 4, 5, 6, 7, 9, 8],
            [1, 0, 2, 3, 4, 5, 6, 7, 8, 9],
            [9, 1, 2, 3, 4, 5, 6, 7, 8, 0],
        ] {
            let (plan, found) = salvaged(&batches, &order);
            assert_eq!(found, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18], "{order:?}");
            assert!(plan.lost_ranges.is_empty(), "{order:?}: {:#?}", plan.lost_ranges);
        }
    }
}

#[test]
fn batches_of_two_segments_that_changed_places_get_no_other_offsets() {
    // 2 and 66 differ in one bit
    let of_segment =
        |base: i64| -> Vec<_> { (0..4).map(|number| batch(base + 2 * number, 2, 0).build()).collect() };
    let (mut first, mut second) = (of_segment(0), of_segment(64));
    std::mem::swap(&mut first[1], &mut second[1]);
    let folder = reading::folder();
    let builder = PartitionBuilder::new(Indexing::default());
    let dir = builder.segment(0, first).segment(64, second).write(folder.path(), "orders-0");
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir), [(0, 1), (4, 5), (6, 7), (64, 65), (68, 69), (70, 71)]);
}

#[test]
fn an_offset_is_corrected_only_if_one_bit_differs_and_the_sequences_continue() {
    // the base offset of the batch with offset 4, as stored; its sequence; whether it is corrected
    for (stored, sequence, is_corrected) in
        [(5_i64, 4, true), (4 + (1 << 40), 4, true), (6 + (1 << 40), 4, false), (4 + (1 << 40), 400, false)]
    {
        let mut batches = numbered(6);
        batches[2].base_sequence = sequence;
        let size = batches[0].build().bytes.len();
        let folder = reading::folder();
        let dir = log(folder.path(), &batches, |bytes| {
            bytes[2 * size..2 * size + 8].copy_from_slice(&stored.to_be_bytes());
        });
        repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
        assert_eq!(offsets(&dir).contains(&(4, 5)), is_corrected, "{stored} {sequence}");
        assert_eq!(offsets(&dir).len(), if is_corrected { 6 } else { 5 }, "{stored} {sequence}");
    }
}

#[test]
fn intact_batches_beside_a_displaced_one_are_kept() {
    // a copy of the last batch makes those after it look damaged
    let starts = [0, 1, 4, 6, 7, 12, 15, 16, 18];
    let batches: Vec<_> = starts.windows(2).map(|pair| batch(pair[0], pair[1] - pair[0], 0)).collect();
    for from in 0..batches.len() {
        for to in 0..batches.len() {
            let mut order: Vec<_> = (0..batches.len()).collect();
            order[to] = from;
            let (_, found) = salvaged(&batches, &order);
            let mut kept = order.clone();
            kept.sort_unstable();
            kept.dedup();
            let kept: Vec<_> = kept.iter().map(|number| batches[*number].base_offset).collect();
            assert_eq!(found, kept, "{from} over {to}");
        }
    }
}

#[test]
fn intact_batches_between_garbage_and_a_copy_of_the_first_one_are_kept() {
    let batches = without_producers(8);
    let folder = reading::folder();
    let dir = log(folder.path(), &batches, |bytes| {
        let size = batches[0].build().bytes.len();
        let first = bytes[..size].to_vec();
        bytes[3 * size..4 * size].copy_from_slice(&first);
        bytes.insert(0, 0);
    });
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    let found: Vec<_> = offsets(&dir).iter().map(|(first, _)| *first).collect();
    assert_eq!(found, [0, 2, 4, 8, 10, 12, 14]);
}
