//! Loom explores every interleaving of a writer with a reader, and every stale value that the memory model
//! allows, without a bound. Nodes and rows have two keys here, so a few pushes cross the end of a node, of
//! the table and of a lane.

use loom::thread;

use super::{Reader, SkipList, View};

const ALL: std::ops::Range<i64> = i64::MIN..i64::MAX;

fn bases<V: Clone>(view: &View<V>) -> Vec<V> {
    view.iter().cloned().collect()
}

/// A value is its own key.
fn list_of(keys: &[i64]) -> SkipList<i64> {
    SkipList::from_sorted(keys.iter().map(|&key| (key, key))).unwrap()
}

/// The queries of a reader while base offsets 10, 20, … are pushed: the active segment, the floor of its base
/// offset, its predecessor.
fn look_around(reader: &mut Reader<i64>) {
    let Some(&active) = reader.floor(i64::MAX - 1) else { return };
    assert_eq!(reader.floor(active), Some(&active));
    assert_eq!(reader.floor(active - 1).copied(), Some(active - 10).filter(|&base| base > 0));
    assert!(reader.floor(i64::MAX - 1) >= Some(&active), "the active segment went backwards");
}

#[test]
fn a_reader_concurrent_with_four_pushes_sees_whole_segments_and_never_fewer() {
    loom::model(|| {
        let mut list = SkipList::with_room(2);
        let mut reader = list.reader();
        let thread = thread::spawn(move || look_around(&mut reader));
        for key in [10, 20, 30, 40] {
            list.push(key, key).unwrap();
        }
        thread.join().unwrap();
        assert_eq!(bases(&list.view()), [10, 20, 30, 40]);
    });
}

#[test]
fn a_reader_concurrent_with_a_push_that_doubles_the_table_sees_whole_segments_and_never_fewer() {
    loom::model(|| {
        let mut list = SkipList::with_room(1);
        for key in [10, 20] {
            list.push(key, key).unwrap();
        }
        let mut reader = list.reader();
        let thread = thread::spawn(move || look_around(&mut reader));
        list.push(30, 30).unwrap();
        thread.join().unwrap();
        assert_eq!(list.current.room(), 2);
    });
}

#[test]
fn a_view_concurrent_with_truncate_replace_and_push_is_one_of_three_lists() {
    loom::model(|| {
        let mut list = SkipList::from_sorted([10, 20, 30].map(|key| (key, (key, 1)))).unwrap();
        let mut reader = list.reader();
        let thread = thread::spawn(move || {
            let legal = [&[(10, 1), (20, 1), (30, 1)][..], &[(10, 1), (25, 2)], &[(10, 1), (25, 2), (35, 2)]];
            let mut oldest = 0;
            for _ in 0..2 {
                let view = reader.view();
                let seen: Vec<_> = view.between(10, 100).copied().collect();
                let at = legal.iter().position(|list| *list == seen).expect("an impossible list");
                assert!(at >= oldest, "a change was taken back");
                assert_eq!(view.floor(29).copied(), seen.iter().copied().rfind(|&(key, _)| key <= 29));
                oldest = at;
            }
        });
        list.change(20..i64::MAX, [(25, (25, 2))]).unwrap();
        list.push(35, (35, 2)).unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn a_view_never_finds_keys_pushed_after_a_truncation_to_a_node_with_room() {
    loom::model(|| {
        let mut list = list_of(&[10, 20, 30]);
        list.change(20..30, []).unwrap(); // nodes [10 ·] and [30 ·]
        let mut reader = list.reader();
        let thread = thread::spawn(move || {
            let view = reader.view();
            let seen = bases(&view);
            assert!([&[10, 30][..], &[10], &[10, 20]].contains(&&seen[..]), "{seen:?} never was");
            assert_eq!(view.floor(25), seen.iter().rfind(|&&key| key <= 25));
        });
        list.change(30..i64::MAX, []).unwrap();
        list.push(20, 20).unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn a_reader_concurrent_with_a_change_of_everything_sees_all_of_it_or_nothing() {
    loom::model(|| {
        let mut list = list_of(&[10, 20, 30, 40, 50]);
        let mut reader = list.reader();
        let thread = thread::spawn(move || {
            let seen = bases(&reader.view());
            assert!(seen == [10, 20, 30, 40, 50] || seen == [7], "{seen:?} never was");
        });
        list.change(ALL, [(7, 7)]).unwrap();
        thread.join().unwrap();
    });
}
