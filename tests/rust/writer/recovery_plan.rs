//! The recovery plan: it changes nothing, lists the changes of the next open, and fails if the open fails.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::writer::{FileChangeReason, LogWriter, RebuildReason, RecoveryPlan, WriterOptions};

use crate::support::golden;
use crate::support::reading::{copy, files, folder};
use crate::support::step;

type Files = BTreeMap<String, Vec<u8>>;
type Change = fn(&mut Files);
/// Size, seconds and nanoseconds of modification and change time, bytes.
type FileState = (u64, i64, i64, i64, i64, Vec<u8>);

/// A change of the files of a closed log, and its name.
const DAMAGES: [(&str, Change); 12] = [
    ("none", |_| ()),
    ("torn batch", |files| last_log(files).extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 9])),
    ("cut in a batch", |files| {
        let log = last_log(files);
        let size = log.len();
        log.truncate(size.saturating_sub(5));
    }),
    ("zeros after the log", |files| last_log(files).extend_from_slice(&[0; 5000])),
    ("no indexes", |files| files.retain(|name, _| !name.ends_with("index"))),
    ("flipped index", |files| {
        for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with("index")) {
            bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1);
        }
    }),
    ("untrimmed indexes", |files| {
        for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with("index")) {
            bytes.extend_from_slice(&[0; 240]);
        }
    }),
    ("short indexes", |files| {
        for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with("index")) {
            let size = bytes.len();
            bytes.truncate(size.saturating_sub(24));
        }
    }),
    ("no epochs", |files| drop(files.remove("leader-epoch-checkpoint"))),
    ("uncommitted replacement", |files| {
        let (name, bytes) = first_log(files);
        files.insert(format!("{name}.cleaned"), bytes);
    }),
    ("committed replacement", |files| {
        let (name, bytes) = first_log(files);
        files.insert(format!("{name}.swap"), bytes);
    }),
    ("staged file", |files| {
        let (name, bytes) = first_log(files);
        files.insert(format!("{name}.tmp"), bytes);
    }),
];

fn last_log(files: &mut Files) -> &mut Vec<u8> {
    files.iter_mut().rfind(|(name, _)| is_log(name)).unwrap().1
}

fn first_log(files: &Files) -> (String, Vec<u8>) {
    let (name, bytes) = files.iter().find(|(name, _)| is_log(name)).unwrap();
    (name.clone(), bytes.clone())
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "log")
}

fn is_index(name: &str) -> bool {
    let kinds = ["index", "timeindex", "txnindex"];
    Path::new(name).extension().is_some_and(|extension| kinds.iter().any(|kind| extension == *kind))
}

/// The name, size, times and bytes of everything below a folder.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let state = fs::symlink_metadata(&path).unwrap();
            let bytes = if state.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if state.is_dir() {
                folders.push(path.clone());
            }
            let times = (state.mtime(), state.mtime_nsec(), state.ctime(), state.ctime_nsec());
            found.insert(path, (state.len(), times.0, times.1, times.2, times.3, bytes));
        }
    }
    found
}

fn options() -> WriterOptions {
    let config = LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() };
    WriterOptions { config, clock: || 1_700_000_100_000, ..WriterOptions::default() }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Compares the plan with the files before the open and after the close, independently of the crate.
fn check(plan: &RecoveryPlan, before: &Files, after: &Files, path: &Path) {
    let mut expected = before.clone();
    if !before.keys().any(|name| is_log(name)) {
        for kind in ["log", "index", "timeindex"] {
            expected.insert(format!("{:020}.{kind}", plan.log_start_offset), Vec::new());
        }
    }
    for change in &plan.file_changes {
        let bytes = expected.remove(&name_of(&change.file)).unwrap();
        assert_eq!(change.new_file.is_some(), change.reason == FileChangeReason::Committed);
        if let Some(new_file) = &change.new_file {
            // an empty file is replaced without a change in the plan
            assert!(expected.insert(name_of(new_file), bytes).is_none_or(|existing| existing.is_empty()));
        }
    }
    for cut in &plan.cuts {
        let name = name_of(&cut.file);
        let bytes = if expected.contains_key(&name) { &expected[&name] } else { &before[&name] };
        assert_eq!(bytes.len() as u64, cut.end_position);
        let cut_bytes = bytes[cut.start_position as usize..].to_vec();
        match &cut.quarantine {
            Some(kept) => {
                let kept = fs::read(kept).unwrap();
                assert!(
                    cut_bytes.starts_with(&kept) && cut_bytes[kept.len()..].iter().all(|byte| *byte == 0)
                );
                assert!(kept.iter().any(|byte| *byte != 0));
            }
            None => assert!(cut_bytes.iter().all(|byte| *byte == 0)),
        }
        assert!(cut.end_position > cut.start_position || cut.start_position == 0);
        assert!(cut.end_offset.is_none_or(|end| end > cut.start_offset));
        if cut.start_position == 0 && !plan.segments.contains(&cut.start_offset) {
            expected.retain(|name, _| name.split('.').next() != Some(&name_of(&cut.file)[..20]));
        } else if let Some(bytes) = expected.get_mut(&name) {
            bytes.truncate(cut.start_position as usize);
        }
    }
    let mut rebuilt: BTreeMap<_, _> =
        plan.rebuilt_indexes.iter().map(|index| (name_of(&index.file), index.reason)).collect();
    assert_eq!(rebuilt.len(), plan.rebuilt_indexes.len());
    assert_eq!(plan.splits, []);
    let logs = |files: &Files| -> Files {
        files
            .iter()
            .filter(|(name, _)| !is_index(name) && (is_log(name) || name.contains(".log.")))
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect()
    };
    assert_eq!(logs(&expected), logs(after));
    let bases: Vec<_> =
        after.keys().filter(|name| is_log(name)).map(|name| name[..20].parse().unwrap()).collect();
    assert_eq!(plan.segments, Vec::<i64>::from_iter(bases));
    for (name, bytes) in after.iter().filter(|(name, _)| is_index(name)) {
        let existing = expected.get(name);
        match rebuilt.remove(name) {
            None => assert_eq!(existing, Some(bytes), "{name}"),
            Some(RebuildReason::Missing) => assert_eq!(existing, None, "{name}"),
            Some(RebuildReason::Untrimmed) => {
                assert!(
                    existing
                        .is_some_and(|existing| existing.len() > bytes.len() && existing.starts_with(bytes)),
                    "{name}"
                );
            }
            Some(_) => assert!(existing.is_some_and(|existing| !existing.starts_with(bytes)), "{name}"),
        }
    }
    assert!(rebuilt.is_empty());
    let epochs = "leader-epoch-checkpoint";
    let is_empty = |files: &Files| files.get(epochs).is_none_or(Vec::is_empty);
    let is_same = before.get(epochs) == after.get(epochs) || is_empty(before) && is_empty(after);
    assert_eq!(plan.rewrites_leader_epochs, !is_same);
    assert_eq!(plan.path, path);
}

/// Plans, opens and closes; returns whether the log could be opened, and whether the plan was empty.
fn plan_and_open(path: &Path) -> Option<bool> {
    let before = snapshot(path.parent().unwrap());
    let planned = LogWriter::plan_recovery(path, &options());
    assert_eq!(snapshot(path.parent().unwrap()), before);
    let existing = files(path);
    let mut writer = match (planned.as_ref(), LogWriter::open(path, &options())) {
        (Ok(_), Ok(writer)) => writer,
        (Err(planned), Err(opened)) => {
            assert_eq!((planned.code(), planned.to_string()), (opened.code(), opened.to_string()));
            return None;
        }
        (planned, opened) => panic!("planned {planned:?}, opened {opened:?}"),
    };
    let plan = planned.unwrap();
    assert_eq!(writer.recovery(), Some(&plan).filter(|plan| !plan.is_clean()));
    assert_eq!(
        (writer.log_start_offset(), writer.log_end_offset()),
        (plan.log_start_offset, plan.log_end_offset)
    );
    writer.close().unwrap();
    check(&plan, &existing, &files(path), writer.path());
    let again = LogWriter::plan_recovery(path, &options()).unwrap();
    assert!(again.is_clean() && again.closed_cleanly, "{again:?}");
    assert_eq!((again.log_end_offset, again.segments), (plan.log_end_offset, plan.segments.clone()));
    Some(plan.is_clean())
}

#[test]
fn a_plan_lists_the_changes_of_the_next_open_of_a_brokers_log() {
    let mut outcomes = BTreeMap::<_, [usize; 3]>::new();
    for (number, partition) in golden::intact().into_iter().enumerate() {
        for (damage, apply) in DAMAGES.into_iter().skip(number % step(3)).step_by(step(3)) {
            let folder = folder();
            let mut existing = files(&partition.dir);
            apply(&mut existing);
            let path = folder.path().join(&partition.name);
            fs::create_dir(&path).unwrap();
            for (name, bytes) in &existing {
                fs::write(path.join(name), bytes).unwrap();
            }
            let outcome = plan_and_open(&path);
            outcomes.entry(damage).or_default()[outcome.map_or(0, |is_clean| 1 + usize::from(is_clean))] += 1;
        }
    }
    for (damage, [refused, recovered, clean]) in &outcomes {
        println!("{damage}: {refused} refused, {recovered} recovered, {clean} clean");
        // each kind of damage is recovered from in some log
        assert!(if *damage == "none" { *clean > 0 } else { *recovered > 0 }, "{damage}");
    }
}

#[test]
fn a_plan_lists_the_changes_of_the_next_open_after_a_crash() {
    for (damage, apply) in DAMAGES {
        for is_closed in [false, true] {
            let folder = folder();
            let path = folder.path().join("orders-0");
            let mut writer = LogWriter::open(&path, &options()).unwrap();
            for number in 0..40_u8 {
                let record =
                    cordwood::record::NewRecord { value: Some(&[number; 900]), ..Default::default() };
                writer.append(&record).unwrap();
                if number % 16 == 15 {
                    writer.roll().unwrap();
                }
            }
            if is_closed {
                writer.close().unwrap();
            }
            drop(writer);
            let mut existing = files(&path);
            apply(&mut existing);
            let copied = folder.path().join("copies");
            fs::create_dir(&copied).unwrap();
            let copied = crate::support::reading::write(&copied, "orders-0", &existing);
            let outcome = plan_and_open(&copied);
            if damage == "none" {
                assert_eq!(outcome, Some(is_closed));
            }
        }
    }
}

#[test]
fn the_plan_for_a_new_log_is_empty() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let missing = LogWriter::plan_recovery(&path, &options()).unwrap_err();
    assert_eq!(missing.code(), "log_not_found");
    fs::create_dir(&path).unwrap();
    assert_eq!(plan_and_open(&path), Some(true));
}

#[test]
fn segments_after_a_torn_write_are_cut_and_kept() {
    let folder = folder();
    let path = copy(Path::new("../golden/01-plain/orders-0"), folder.path(), "orders-0");
    // the last two segments were never synced
    fs::remove_file(path.join("leader-epoch-checkpoint")).unwrap();
    let torn = path.join("00000000000000000807.log");
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() - 3]).unwrap();
    let mut durable = 900_i64.to_be_bytes().to_vec();
    durable
        .extend(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &durable).to_be_bytes()[4..].iter());
    fs::write(path.join(".cordwood.durable"), &durable).unwrap();
    let plan = LogWriter::plan_recovery(&path, &options()).unwrap();
    let cuts: Vec<_> =
        plan.cuts.iter().map(|cut| (name_of(&cut.file), cut.start_position, cut.start_offset)).collect();
    let last_batch_start = cuts[0].1;
    assert_eq!(cuts[0].0, "00000000000000000807.log");
    assert!(last_batch_start > 0 && plan.log_end_offset == cuts[0].2);
    assert_eq!(cuts[1], ("00000000000000001217.log".to_owned(), 0, 1217));
    assert_eq!(plan.cuts[1].end_offset, Some(1500));
    assert_eq!(plan_and_open(&path), Some(false));
}
