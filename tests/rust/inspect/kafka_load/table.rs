//! Every field of the oracle's `open`, for every partition of the corpus.
//!
//! Not compared: `read` (what reading returns), `log` (the broker's log) and the words of an exception's
//! message. The bytes of files are compared by their checksums, which `tests/vectors/kafka_load.jsonl.gz` has
//! from the directories that Kafka left.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use cordwood::config::{LogConfig, PropertySource, StatedSettings};
use cordwood::inspect::kafka_load::{KafkaLoad, LoadOptions, LoadedLog};
use serde_json::{Value, json};

use crate::support::golden;

struct Case {
    name: String,
    dir: std::path::PathBuf,
    settings: Value,
    log_start_offset: Option<i64>,
    open: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let open = |expected: &Path| {
        let lines = golden::lines(&expected.join("open.jsonl"));
        if lines.is_empty() { golden::lines(&expected.join("open.jsonl.gz")) } else { lines }
    };
    let mut cases: Vec<_> = golden::intact()
        .into_iter()
        .map(|partition| Case {
            name: partition.case,
            open: open(&partition.expected),
            settings: settings_of(partition.manifest, &partition.name),
            dir: partition.dir,
            log_start_offset: partition.log_start_offset,
        })
        .collect();
    cases.extend(golden::damaged().into_iter().map(|damaged| Case {
        name: damaged.case,
        dir: damaged.dir,
        open: open(&damaged.expected),
        settings: settings_of(damaged.from.manifest, &damaged.from.name),
        log_start_offset: log_start_offset_in(&damaged.recipe).or(damaged.from.log_start_offset),
    }));
    cases
}

/// The log start offset with which a damaged case is opened.
fn log_start_offset_in(recipe: &[Value]) -> Option<i64> {
    recipe.iter().find(|step| step["do"] == "open with log start offset")?["offset"].as_i64()
}

/// The settings of a partition's topic. A case with several topics has them by topic, and none for Kafka's
/// own.
fn settings_of(manifest: &Value, dir: &str) -> Value {
    let settings = &manifest["settings"];
    let is_by_topic = settings.as_object().unwrap().values().any(Value::is_object);
    let topic = dir.split('-').next().unwrap();
    if is_by_topic { settings.get(topic).cloned().unwrap_or_else(|| json!({})) } else { settings.clone() }
}

fn config(settings: &Value) -> LogConfig {
    let settings = settings.as_object().unwrap();
    // below 1 MiB the manifest has the name that a broker's file has; old releases had other settings
    let name = |name: &String| {
        if name == "segment.bytes" { "internal.segment.bytes".to_owned() } else { name.clone() }
    };
    let settings = settings.iter().filter(|(name, _)| *name != "message.format.version");
    let settings = settings.map(|(key, value)| (name(key), golden::text(value))).collect();
    let config = LogConfig::from_properties(&settings, Some(PropertySource::Topic)).unwrap();
    // Kafka ran with its defaults for the others
    LogConfig { stated: StatedSettings::ALL, ..config }
}

fn plan(case: &Case, clean: bool, recovery_point: i64) -> KafkaLoad {
    let options = LoadOptions {
        clean: Some(clean),
        recovery_point: Some(recovery_point),
        log_start_offset: Some(case.log_start_offset.unwrap_or(0)),
        config: Some(Cow::Owned(config(&case.settings))),
        ..LoadOptions::default()
    };
    KafkaLoad::plan(&case.dir, &options).unwrap()
}

/// The plan as the oracle writes it.
fn as_open(load: &KafkaLoad) -> Value {
    let listed = |size: fn(&cordwood::inspect::kafka_load::LoadedFile) -> Option<u64>| {
        let lines = load.files.iter().filter_map(|file| Some(format!("{} {}", file.name, size(file)?)));
        lines.collect::<Vec<_>>()
    };
    let mut line = json!({
        "clean": load.closed_cleanly,
        "ok": load.log.is_some(),
        "filesBefore": listed(|file| file.old_size),
        "filesAfter": listed(if load.log.is_some() { |file| file.closed_size } else { |file| file.new_size }),
    });
    if let Some(failure) = &load.failure {
        line["error"] = failure.kind.class().into();
    }
    if let Some(log) = &load.log {
        add_log(&mut line, load, log);
    }
    line
}

fn add_log(line: &mut Value, load: &KafkaLoad, log: &LoadedLog) {
    let is_log = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "log");
    let before: u64 =
        load.files.iter().filter(|file| is_log(&file.name)).filter_map(|file| file.old_size).sum();
    let after: u64 = log.segments.iter().map(|segment| segment.size).sum();
    line["logStartOffset"] = log.log_start_offset.into();
    line["logEndOffset"] = log.log_end_offset.into();
    line["recoveryPoint"] = log.recovery_point.into();
    line["lastStableOffset"] = log.last_stable_offset.into();
    line["bytesBefore"] = before.into();
    line["bytesAfter"] = after.into();
    line["bytesCut"] = (before as i64 - after as i64).into();
    let segment = |segment: &cordwood::inspect::kafka_load::LoadedSegment| {
        json!({
            "base": segment.base_offset,
            "size": segment.size,
            "offsetEntries": segment.offset_entries,
            "timeEntries": segment.time_entries,
            "largestTimestamp": segment.largest_timestamp,
        })
    };
    line["segments"] = log.segments.iter().map(segment).collect();
    let epoch = |(epoch, start): &(i32, i64)| json!({"epoch": epoch, "startOffset": start});
    line["epochs"] = log.leader_epochs.iter().map(epoch).collect();
    let mut producers = log.producers.clone();
    producers.sort_by_key(|producer| producer.producer_id);
    let producer = |producer: &cordwood::state::producers::ProducerEntry| {
        let batch = |batch: &cordwood::state::producers::SequenceRange| {
            json!({
                "firstSequence": (i64::from(batch.last_sequence) - i64::from(batch.offset_delta)) & 0x7fff_ffff,
                "lastSequence": batch.last_sequence,
                "firstOffset": batch.last_offset - i64::from(batch.offset_delta),
                "lastOffset": batch.last_offset,
                "timestamp": batch.timestamp,
            })
        };
        json!({
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "lastTimestamp": producer.last_timestamp,
            "currentTxnFirstOffset": producer.open_transaction,
            "batches": producer.batches().map(batch).collect::<Value>(),
        })
    };
    line["producers"] = producers.iter().map(producer).collect();
}

/// The same fields of the oracle's line.
fn expected(line: &Value) -> Value {
    let mut line = line.clone();
    let fields = line.as_object_mut().unwrap();
    for not_compared in ["type", "read", "log"] {
        fields.remove(not_compared);
    }
    if let Some(error) = fields.get_mut("error") {
        *error = error["class"].clone();
    }
    line
}

fn differences(name: &str, found: &Value, expected: &Value) -> Vec<String> {
    let (found, expected) = (found.as_object().unwrap(), expected.as_object().unwrap());
    let names: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    names
        .into_iter()
        .filter(|field| found.get(*field) != expected.get(*field))
        .map(|field| {
            let (found, expected) = (found.get(field), expected.get(field));
            format!("{name}: {field}:\n   found    {found:?}\n   expected {expected:?}")
        })
        .collect()
}

#[test]
fn the_plan_has_every_field_of_what_kafka_does() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let lines = case.open.iter().filter(|line| line["read"]["isolation"] != "TXN_COMMITTED");
        for (number, line) in lines.enumerate() {
            let clean = line["clean"].as_bool().unwrap();
            // of three lines, the second is of an unclean shutdown with another recovery point
            let has_point = case.name == "damaged/flip-record-first-segment" && number == 1;
            let recovery_point = if has_point { 369 } else { 0 };
            let load = plan(&case, clean, recovery_point);
            let name = format!("{} {}", case.name, if clean { "clean" } else { "unclean" });
            wrong.extend(differences(&name, &as_open(&load), &expected(line)));
            compared += 1;
        }
    }
    assert!(compared > 220, "{compared}");
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// The checksums of the files of a directory that Kafka left.
fn checksums() -> BTreeMap<(String, String, String), Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/kafka_load.jsonl.gz");
    let lines = golden::lines(&path);
    let key =
        |line: &Value| (golden::text(&line["case"]), golden::text(&line["dir"]), golden::text(&line["open"]));
    lines.into_iter().map(|line| (key(&line), line["files"].clone())).collect()
}

#[test]
fn files_that_kafka_writes_have_the_same_bytes() {
    let checksums = checksums();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in cases() {
        for (mode, clean, recovery_point) in
            [("clean", true, 0), ("unclean", false, 0), ("from369", false, 369)]
        {
            let dir = case.dir.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(files) = checksums.get(&(case.name.clone(), dir, mode.to_owned())) else { continue };
            for file in plan(&case, clean, recovery_point).files {
                let Some(crc32c) = file.crc32c else { continue };
                let expected = &files[&file.name][1];
                if !expected.is_null() {
                    compared += 1;
                    if expected.as_u64() != Some(u64::from(crc32c)) {
                        wrong.push(format!("{} {mode}: {}", case.name, file.name));
                    }
                }
            }
        }
    }
    assert!(compared > 3000, "{compared}");
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
}
