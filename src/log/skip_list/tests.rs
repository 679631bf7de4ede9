//! Kafka's own cases, the boundaries of nodes and lanes, and random histories compared with a sorted `Vec`.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;

use super::{OutOfOrder, SkipList, View};

fn list_of(keys: impl IntoIterator<Item = i64>) -> SkipList<i64> {
    SkipList::from_sorted(keys.into_iter().map(|key| (key, key))).unwrap()
}

fn between(view: &View<i64>, start: i64, end: i64) -> Vec<i64> {
    view.between(start, end).copied().collect()
}

fn all<V: Clone, const N: usize>(view: &View<V, N>) -> Vec<V> {
    view.iter().cloned().collect()
}

#[test]
fn an_empty_list_has_no_entries() {
    let list = SkipList::<i64>::new();
    let (view, mut reader) = (list.view(), list.reader());
    assert!(view.is_empty());
    assert_eq!(view.len(), 0);
    assert!(view.first().is_none() && view.last().is_none() && view.get(0).is_none());
    for key in [i64::MIN, -1, 0, i64::MAX] {
        assert!(view.floor(key).is_none() && view.higher(key).is_none());
        assert!(reader.floor(key).is_none() && reader.higher(key).is_none());
    }
    assert!(between(&view, i64::MIN, i64::MAX).is_empty());
    assert!(all(&view).is_empty());
}

/// `LogSegmentsTest.testClosestMatchOperations`, `testHigherSegments`.
#[test]
fn floor_and_higher_equal_kafkas() {
    let list = list_of([1, 3, 5, 7]);
    let (view, mut reader) = (list.view(), list.reader());
    for (key, floor) in
        [(0, None), (1, Some(1)), (2, Some(1)), (3, Some(3)), (7, Some(7)), (i64::MAX, Some(7))]
    {
        assert_eq!(view.floor(key).copied(), floor, "floor({key})");
        assert_eq!(reader.floor(key).copied(), floor, "floor({key})");
    }
    for (key, higher) in
        [(i64::MIN, Some(1)), (0, Some(1)), (4, Some(5)), (5, Some(7)), (6, Some(7)), (7, None)]
    {
        assert_eq!(view.higher(key).copied(), higher, "higher({key})");
        assert_eq!(reader.higher(key).copied(), higher, "higher({key})");
    }
}

/// `LogSegmentsTest.testSegmentAccess`, `LocalLogTest.testLogSegmentsCallCorrect`.
#[test]
fn between_equals_kafkas_values() {
    let view = list_of([1, 2, 3, 4]).view();
    let cases: [(i64, i64, &[i64]); 8] = [
        (1, 1, &[]),
        (1, 2, &[1]),
        (1, 4, &[1, 2, 3]),
        (2, 4, &[2, 3]),
        (4, 4, &[]),
        (4, 5, &[4]),
        (2, 1, &[]), // Kafka throws
        (9, i64::MAX, &[4]),
    ];
    for (start, end, bases) in cases {
        assert_eq!(between(&view, start, end), bases, "between({start}, {end})");
    }

    let view = list_of([0, 10, 20]).view();
    assert_eq!(between(&view, 1, 5), [0]);
    assert_eq!(between(&view, 13, 21), [10, 20]);
    assert_eq!(between(&view, 13, 17), [10]);
    assert!(between(&view, 10, 10).is_empty());
    assert!(between(&view, -5, 0).is_empty(), "no floor, and no base below the end");
    assert_eq!(between(&view, -5, 1), [0], "no floor: from the first");
    assert_eq!(between(&view, i64::MIN, i64::MAX), [0, 10, 20]);
    assert_eq!(view.between(i64::MIN, i64::MAX).len(), 3);
}

/// `LogSegmentsTest.testBasicOperations`.
#[test]
fn a_segment_with_an_equal_base_is_replaced_by_a_change_of_its_base() {
    let mut list = SkipList::from_sorted([(40, "old"), (50, "kept")]).unwrap();
    list.change(40..41, [(40, "new")]).unwrap();
    assert_eq!(all(&list.view()), ["new", "kept"]);
}

#[test]
fn a_key_out_of_order_is_refused_and_changes_nothing() {
    let mut list = list_of([10, 20]);
    let refused = |key, allowed: Range<i64>| Err(OutOfOrder { key, allowed });
    assert_eq!(list.push(20, 0), refused(20, 21..i64::MAX));
    assert_eq!(list.push(-1, 0), refused(-1, 21..i64::MAX));
    assert_eq!(list.push(i64::MAX, 0), refused(i64::MAX, 21..i64::MAX));
    assert_eq!(list.change(10..20, [(12, 0), (12, 0)]), refused(12, 13..20));
    assert_eq!(list.change(10..20, [(20, 0)]), refused(20, 10..20));
    let backwards = Range { start: 20, end: 10 };
    assert_eq!(list.change(backwards.clone(), [(15, 0)]), refused(15, 20..20));
    assert_eq!(list.change(backwards, []), Ok(()), "no range, no change");
    assert_eq!(all(&list.view()), [10, 20]);

    let (key, allowed) = (i64::MAX, i64::MIN..i64::MAX);
    assert_eq!(SkipList::from_sorted([(key, 0)]).err(), Some(OutOfOrder { key, allowed }));
    let words = list.push(5, 0).unwrap_err().to_string();
    assert!(words.contains("base offset 5") && words.contains("21 (inclusive)"), "{words}");
}

#[test]
fn every_key_but_the_greatest_is_allowed() {
    let keys = [i64::MIN, -1, 0, i64::MAX - 1];
    let mut list = SkipList::new();
    for key in keys {
        list.push(key, key).unwrap();
    }
    assert_eq!(list.push(i64::MAX, 0).unwrap_err().allowed, i64::MAX..i64::MAX);
    let view = list.view();
    assert_eq!(view.floor(i64::MIN), Some(&i64::MIN));
    assert_eq!(view.floor(i64::MAX), Some(&(i64::MAX - 1)));
    assert_eq!(view.higher(i64::MIN), Some(&-1));
    assert_eq!(between(&view, i64::MIN, i64::MAX), keys);
}

/// Around a node, a row of lane1, and (with nodes of 4 keys: 4³ = 64) a row of lane2, pushed and built at
/// once.
#[test]
fn look_ups_at_every_boundary_of_nodes_and_lanes_equal_a_vecs() {
    for count in [1, 2, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 4161] {
        let model: Vec<_> = (0..count).map(|n| (n * 10, n)).collect();
        let mut pushed = SkipList::new();
        for &(key, value) in &model {
            pushed.push(key, value).unwrap();
        }
        assert_agrees(&pushed.view(), &model);
        assert_agrees(&SkipList::from_sorted(model.iter().copied()).unwrap().view(), &model);
    }
    for count in (0..70).chain(250..260) {
        let model: Vec<_> = (0..count).map(|n| (n * 10, n)).collect();
        let mut pushed = SkipList::<_, 4>::with_room(1);
        for &(key, value) in &model {
            pushed.push(key, value).unwrap();
            assert_eq!(pushed.view().last(), Some(&value));
        }
        assert_agrees(&pushed.view(), &model);
    }
}

#[test]
fn a_second_row_of_the_upper_lane_is_searched() {
    let count: i64 = 64 * 64 * 64 + 100;
    let view = list_of(0..count).view();
    for key in (0..count).step_by(997).chain([0, 262_143, 262_144, 262_145, count - 1]) {
        assert_eq!(view.floor(key), Some(&key));
    }
}

#[test]
fn a_reader_follows_pushes_and_changes_and_its_views_do_not_change() {
    let mut list = SkipList::new();
    let mut reader = list.reader();
    let empty = reader.view();
    for key in 0..200 {
        list.push(key, key).unwrap();
        assert_eq!(reader.floor(1000), Some(&key));
        assert_eq!(reader.higher(key - 1), Some(&key));
    }
    let full = reader.view();
    let mut other = reader.clone();
    list.change(i64::MIN..150, []).unwrap();
    assert_eq!(reader.floor(149), None);
    assert_eq!(other.floor(149), None);
    assert_eq!(other.view().len(), 50);
    assert_eq!(full.floor(149), Some(&149));
    assert_eq!(full.len(), 200);
    assert!(empty.is_empty());
}

#[test]
fn a_view_does_not_find_keys_pushed_after_a_truncation_to_a_node_with_room() {
    let mut list = list_of(0..192);
    list.change(100..128, []).unwrap(); // the second node keeps 64..100 and has room
    let before = list.view();
    list.change(128..i64::MAX, []).unwrap();
    list.push(110, 110).unwrap();
    assert_eq!(before.floor(127), Some(&99), "a key pushed later is in the free slots of its second node");
    assert_eq!(list.view().floor(127), Some(&110));
}

#[test]
fn nodes_outside_a_change_are_shared_and_small_ones_joined() {
    let mut list = list_of(0..640);
    let before: Vec<_> = list.current.nodes().map(Arc::clone).collect();
    list.change(130..140, [(135, 135)]).unwrap();
    let after: Vec<_> = list.current.nodes().map(Arc::clone).collect();
    for (index, (old, new)) in before.iter().zip(&after).enumerate() {
        assert_eq!(Arc::ptr_eq(old, new), index != 2, "node {index}");
    }

    // a compaction of each 8 into 1, from the front: the remaining 80 fill two nodes
    for start in (0..640).step_by(8) {
        list.change(start..start + 8, [(start, start)]).unwrap();
    }
    assert_eq!(all(&list.view()), (0..640).step_by(8).collect::<Vec<_>>());
    assert_eq!(list.current.nodes().count(), 2);
}

#[test]
fn a_value_is_freed_with_its_last_view() {
    let value = Arc::new(());
    let mut list = SkipList::new();
    list.push(1, Arc::clone(&value)).unwrap();
    let mut reader = list.reader();
    assert!(reader.floor(1).is_some());
    list.change(1..2, []).unwrap();
    assert!(Arc::strong_count(&value) > 1, "an idle reader holds what it saw last");
    assert!(reader.floor(1).is_none());
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Compares all methods of a view with a naive implementation.
fn assert_agrees<V: Clone + PartialEq + std::fmt::Debug, const N: usize>(
    view: &View<V, N>,
    model: &[(i64, V)],
) {
    let values = |entries: &[(i64, V)]| entries.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    assert_eq!(view.len(), model.len());
    assert_eq!(view.is_empty(), model.is_empty());
    assert_eq!(view.first(), model.first().map(|(_, value)| value));
    assert_eq!(view.last(), model.last().map(|(_, value)| value));
    assert_eq!(all(view), values(model));
    assert_eq!(view.get(model.len()), None);
    for (index, (_, value)) in model.iter().enumerate() {
        assert_eq!(view.get(index), Some(value), "get({index})");
    }
    let around = model.iter().flat_map(|(key, _)| [key - 1, *key, key + 1]);
    for key in around.chain([i64::MIN, i64::MAX]) {
        let floor = model.iter().rfind(|(base, _)| *base <= key).map(|(_, value)| value);
        let higher = model.iter().find(|(base, _)| *base > key).map(|(_, value)| value);
        assert_eq!(view.floor(key), floor, "floor({key})");
        assert_eq!(view.higher(key), higher, "higher({key})");
    }
    let some = model.iter().step_by(model.len() / 8 + 1).map(|(key, _)| *key);
    let ends: Vec<_> = some.flat_map(|key| [key, key + 1]).chain([i64::MIN, i64::MAX]).collect();
    for (&start, &end) in ends.iter().flat_map(|start| ends.iter().map(move |end| (start, end))) {
        let first = model.iter().rposition(|(base, _)| *base <= start).unwrap_or(0);
        let after = model.iter().position(|(base, _)| *base >= end).unwrap_or(model.len());
        let expected = if start < end { values(&model[first.min(after)..after]) } else { Vec::new() };
        let found = view.between(start, end);
        assert_eq!(found.len(), expected.len(), "between({start}, {end})");
        assert_eq!(found.cloned().collect::<Vec<_>>(), expected, "between({start}, {end})");
    }
}

/// A log's changes to its segments. Positions are in thousandths of the list.
#[derive(Debug, Clone)]
enum Step {
    Roll { segments: i64, gap: i64 },
    CutHead { to: i64 },
    CutTail { from: i64 },
    Replace { from: i64, to: i64, by: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..=1000_i64;
    prop_oneof![
        4 => (1..90_i64, 1..20_i64).prop_map(|(segments, gap)| Step::Roll { segments, gap }),
        1 => (0..500_i64).prop_map(|to| Step::CutHead { to }),
        1 => (500..1001_i64).prop_map(|from| Step::CutTail { from }),
        3 => (place(), 0..300_i64, 0..6_i64).prop_map(|(from, many, by)| Step::Replace { from, to: from + many, by }),
    ]
}

/// Runs the steps on a list with nodes of `N` keys and on a `Vec`. No view created on the way may change.
fn play<const N: usize>(steps: &[Step]) {
    let mut list = SkipList::<usize, N>::with_room(1);
    let mut model: Vec<(i64, usize)> = Vec::new();
    let mut reader = list.reader();
    let mut views = Vec::new();
    for (serial, step) in steps.iter().enumerate() {
        let (lowest, highest) =
            (model.first().map_or(0, |entry| entry.0), model.last().map_or(0, |entry| entry.0));
        let place = |thousandths: i64| lowest + (highest + 1 - lowest) * thousandths / 1000;
        let (range, with) = match *step {
            Step::Roll { segments, gap } => {
                for n in 1..=segments {
                    list.push(highest + n * gap, serial).unwrap();
                    model.push((highest + n * gap, serial));
                }
                (0..0, Vec::new())
            }
            Step::CutHead { to } => (i64::MIN..place(to), Vec::new()),
            Step::CutTail { from } => (place(from)..i64::MAX, Vec::new()),
            Step::Replace { from, to, by } => {
                let range = place(from)..place(to);
                (
                    range.clone(),
                    range.step_by(7).take(usize::try_from(by).unwrap()).map(|key| (key, serial)).collect(),
                )
            }
        };
        list.change(range.clone(), with.iter().copied()).unwrap();
        model.retain(|(key, _)| !range.contains(key));
        let at = model.partition_point(|(key, _)| *key < range.start);
        model.splice(at..at, with);

        assert_agrees(&reader.view(), &model);
        assert_eq!(reader.floor(i64::MAX), list.view().last());
        views.push((list.view(), model.clone()));
    }
    for (view, model) in &views {
        assert_agrees(view, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_history_equals_a_vecs(steps in proptest::collection::vec(step(), 1..12)) {
        play::<2>(&steps);
        play::<4>(&steps);
        play::<16>(&steps);
        play::<64>(&steps);
    }
}
