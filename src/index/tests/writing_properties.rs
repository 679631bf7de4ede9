//! Random sequences of changes, compared with a list that gets the same changes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::writing::Folder;
use super::*;
use crate::index::{OffsetIndexWriter, TimeIndexWriter};

#[derive(Debug, Clone)]
enum Change {
    /// The distance above the last offset (0: not above) and, for times, above the last timestamp.
    Append(i64, i64, bool),
    /// The distance below the last offset.
    Truncate(i64),
    /// The new size in bytes.
    Resize(u64),
    Trim,
    Reset,
    Flush,
    /// Closed and opened again.
    Reopen,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        30 => (-1_i64..5, -1_i64..4, any::<bool>()).prop_map(|(up, later, skip)| Change::Append(up, later, skip)),
        3 => (-3_i64..12).prop_map(Change::Truncate),
        4 => (0_u64..500).prop_map(Change::Resize),
        1 => Just(Change::Trim),
        1 => Just(Change::Reset),
        1 => Just(Change::Flush),
        1 => Just(Change::Reopen),
    ];
    vec(change, 0..120)
}

const BASE: i64 = 500;
const MAX_INDEX_SIZE: u64 = 250;

/// The number of slots of `size` bytes after a change, if the file has `slots` now, `used` of them by
/// entries; `None` if the change is refused.
fn slots_after(change: &Change, size: u64, slots: u64, used: u64) -> Option<u64> {
    match change {
        Change::Append(..) | Change::Truncate(_) | Change::Flush => Some(slots),
        Change::Resize(bytes) => Some(bytes / size).filter(|slots| *slots >= used),
        Change::Trim | Change::Reopen => Some(used),
        Change::Reset => Some(MAX_INDEX_SIZE / size),
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn an_offset_index_matches_a_list_after_any_changes(changes in changes()) {
        let folder = Folder::new();
        let open = || OffsetIndexWriter::open(&folder.directory, "i", BASE, MAX_INDEX_SIZE).unwrap();
        let (mut index, mut list, mut slots) = (open(), Vec::<(i64, i32)>::new(), MAX_INDEX_SIZE / 8);
        for change in changes {
            let last = list.last().map_or(BASE, |entry| entry.0);
            let used = list.len() as u64;
            let after = slots_after(&change, 8, slots, used);
            match change {
                Change::Append(up, ..) => {
                    let entry = (last + up, i32::try_from(used).unwrap() * 7);
                    let fits = used < slots && entry.0 >= BASE && (list.is_empty() || up > 0);
                    prop_assert_eq!(index.append(entry.0, entry.1).is_ok(), fits);
                    if fits {
                        list.push(entry);
                    }
                }
                Change::Truncate(down) => {
                    index.truncate_to(last - down).unwrap();
                    list.retain(|entry| entry.0 < last - down);
                }
                Change::Resize(bytes) => prop_assert_eq!(index.resize(bytes).ok(), after.map(|after| after != slots)),
                Change::Trim => prop_assert_eq!(index.trim().unwrap(), used != slots),
                Change::Reset => {
                    index.reset().unwrap();
                    list.clear();
                }
                Change::Flush => index.flush().unwrap(),
                Change::Reopen => {
                    index.close().unwrap();
                    index = open();
                }
            }
            slots = after.unwrap_or(slots);
            prop_assert_eq!((index.entries(), index.max_entries()), (list.len() as u64, slots));
            prop_assert_eq!(index.last_entry(), list.last().map_or(at(BASE, 0), |entry| at(entry.0, entry.1)));
            let mut expected = offset_bytes(BASE, &list);
            expected.resize(usize::try_from(8 * slots).unwrap(), 0);
            prop_assert_eq!(folder.bytes("i"), expected);
        }
        let entries: Vec<_> = index.iter().map(|entry| entry.unwrap()).map(|entry| (entry.offset, entry.position)).collect();
        prop_assert_eq!(entries, list);
    }

    #[test]
    fn a_time_index_matches_a_list_after_any_changes(changes in changes()) {
        let folder = Folder::new();
        let open = || TimeIndexWriter::open(&folder.directory, "t", BASE, MAX_INDEX_SIZE).unwrap();
        let (mut index, mut list, mut slots) = (open(), Vec::<(i64, i64)>::new(), MAX_INDEX_SIZE / 12);
        for change in changes {
            let last = list.last().copied().unwrap_or((-1, BASE));
            let used = list.len() as u64;
            let after = slots_after(&change, 12, slots, used);
            match change {
                Change::Append(up, later, skip) => {
                    let entry = (last.0 + later, last.1 + up);
                    let room = if skip { used < slots } else { used + 1 < slots };
                    let (rises, falls) = (later > 0, !list.is_empty() && (later < 0 || up < 0));
                    let allowed = (room || (skip && !rises)) && !falls && !(rises && entry.1 < BASE);
                    let added = index.maybe_append(entry.0, entry.1, skip);
                    prop_assert_eq!(added.ok(), allowed.then_some(rises));
                    if allowed && rises {
                        list.push(entry);
                    }
                }
                Change::Truncate(down) => {
                    index.truncate_to(last.1 - down).unwrap();
                    list.retain(|entry| entry.1 < last.1 - down);
                }
                Change::Resize(bytes) => prop_assert_eq!(index.resize(bytes).ok(), after.map(|after| after != slots)),
                Change::Trim => prop_assert_eq!(index.trim().unwrap(), used != slots),
                Change::Reset => {
                    index.reset().unwrap();
                    list.clear();
                }
                Change::Flush => index.flush().unwrap(),
                Change::Reopen => {
                    index.close().unwrap();
                    index = open();
                }
            }
            slots = after.unwrap_or(slots);
            prop_assert_eq!((index.entries(), index.max_entries()), (list.len() as u64, slots));
            prop_assert_eq!(index.last_entry(), list.last().map_or(when(-1, BASE), |entry| when(entry.0, entry.1)));
            let mut expected = time_bytes(BASE, &list);
            expected.resize(usize::try_from(12 * slots).unwrap(), 0);
            prop_assert_eq!(folder.bytes("t"), expected);
        }
        let entries: Vec<_> = index.iter().map(|entry| entry.unwrap()).map(|entry| (entry.timestamp, entry.offset)).collect();
        prop_assert_eq!(entries, list);
    }
}
