//! The writers do the same as Kafka's own classes: `tests/vectors/index_cases.jsonl`.

use std::path::PathBuf;

use cordwood::error::{Error, Result};
use cordwood::fs::Directory;
use cordwood::index::{
    AbortedTransaction, Method, OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter,
};
use serde_json::{Value, json};

const CASES: &str = include_str!("../../vectors/index_cases.jsonl");

enum Writer {
    Offset(OffsetIndexWriter),
    Time(TimeIndexWriter),
    Transaction(TransactionIndexWriter),
}

struct Case {
    json: Value,
    directory: Directory,
    folder: tempfile::TempDir,
}

impl Case {
    fn new(json: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(existing) = json["existing"].as_str() {
            std::fs::write(folder.path().join("index"), bytes(existing)).unwrap();
        }
        Self { json, directory: Directory::open(folder.path(), "").unwrap(), folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn open(&self) -> Result<Writer> {
        let (base, size) =
            (self.json["base_offset"].as_i64().unwrap(), self.json["max_index_size"].as_u64().unwrap());
        let directory = &self.directory;
        Ok(match self.json["kind"].as_str().unwrap() {
            "offset" => Writer::Offset(OffsetIndexWriter::open(directory, "index", base, size)?),
            "time" => Writer::Time(TimeIndexWriter::open(directory, "index", base, size)?),
            _ => Writer::Transaction(TransactionIndexWriter::open(directory, "index", base)?),
        })
    }

    fn length(&self) -> u64 {
        std::fs::metadata(self.path()).map_or(0, |file| file.len())
    }

    fn state(&self, writer: &Writer) -> Value {
        let length = self.length();
        match writer {
            Writer::Offset(index) => json!({
                "entries": index.entries(), "max_entries": index.max_entries(), "is_full": index.is_full(),
                "length": length, "last": [index.last_offset()],
            }),
            Writer::Time(index) => json!({
                "entries": index.entries(), "max_entries": index.max_entries(), "is_full": index.is_full(),
                "length": length, "last": [index.last_entry().timestamp, index.last_entry().offset],
            }),
            Writer::Transaction(index) => json!({"entries": index.entries(), "length": length}),
        }
    }

    fn call(&self, writer: Writer, verb: &str, numbers: &[i64]) -> (Writer, Result<Option<bool>>) {
        let size = |n: usize| u64::try_from(numbers[n]).unwrap();
        let mut writer = writer;
        let done = match (&mut writer, verb) {
            (Writer::Offset(index), "append") => {
                index.append(numbers[0], i32::try_from(numbers[1]).unwrap()).map(|()| None)
            }
            (Writer::Offset(index), "truncate_to") => index.truncate_to(numbers[0]).map(|()| None),
            (Writer::Offset(index), "resize") => index.resize(size(0)).map(Some),
            (Writer::Offset(index), "trim") => index.trim().map(|_| None),
            (Writer::Offset(index), "reset") => index.reset().map(|()| None),
            (Writer::Offset(index), "flush") => index.flush().map(|()| None),
            (Writer::Time(index), "maybe_append") => {
                index.maybe_append(numbers[0], numbers[1], numbers[2] == 1).map(Some)
            }
            (Writer::Time(index), "truncate_to") => index.truncate_to(numbers[0]).map(|()| None),
            (Writer::Time(index), "resize") => index.resize(size(0)).map(Some),
            (Writer::Time(index), "trim") => index.trim().map(|_| None),
            (Writer::Time(index), "reset") => index.reset().map(|()| None),
            (Writer::Time(index), "flush") => index.flush().map(|()| None),
            (Writer::Transaction(index), "append") => index
                .append(AbortedTransaction {
                    producer_id: numbers[0],
                    first_offset: numbers[1],
                    last_offset: numbers[2],
                    last_stable_offset: numbers[3],
                })
                .map(|()| None),
            (Writer::Transaction(index), "truncate_to") => index.truncate_to(numbers[0]).map(|()| None),
            (Writer::Transaction(index), "reset") => index.reset().map(|()| None),
            (Writer::Transaction(index), "flush") => index.flush().map(|()| None),
            (_, "reopen") => {
                close(writer);
                writer = self.open().unwrap();
                Ok(None)
            }
            (_, verb) => panic!("{verb}"),
        };
        (writer, done)
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn close(writer: Writer) {
    match writer {
        Writer::Offset(index) => index.close().unwrap(),
        Writer::Time(index) => index.close().unwrap(),
        Writer::Transaction(index) => drop(index),
    }
}

fn lookup(writer: &Writer, target: i64) -> Value {
    match writer {
        Writer::Offset(index) => {
            let found = index.lookup(target, Method::Warm).unwrap();
            json!([target, found.offset, found.position])
        }
        Writer::Time(index) => {
            let found = index.lookup(target, Method::Warm).unwrap();
            json!([target, found.timestamp, found.offset])
        }
        Writer::Transaction(index) => {
            let (found, complete) = index.collect_aborted(target, target + 5).unwrap();
            json!([target, found.len(), i32::from(complete)])
        }
    }
}

#[test]
fn every_case_has_the_same_result_as_in_kafka() {
    let (mut cases, mut refused, mut changed) = (0, 0, 0);
    for line in CASES.lines() {
        let case = Case::new(serde_json::from_str(line).unwrap());
        let name = case.json["name"].as_str().unwrap();
        cases += 1;
        let mut writer = match case.open() {
            Err(error) => {
                assert!(matches!(error, Error::Config { .. }), "{name}: {error}");
                assert!(case.json["refused"].is_string(), "{name}: {error}");
                continue;
            }
            Ok(writer) => writer,
        };
        assert_eq!(case.state(&writer), case.json["opened"], "{name}, opened");
        for step in case.json["steps"].as_array().unwrap() {
            let call = step["call"].as_array().unwrap();
            let numbers: Vec<_> = call[1..].iter().map(|number| number.as_i64().unwrap()).collect();
            let done;
            (writer, done) = case.call(writer, call[0].as_str().unwrap(), &numbers);
            match done {
                Err(Error::Config { .. }) => {
                    assert!(step["refused"].is_string(), "{name}: {call:?} is refused");
                    refused += 1;
                }
                Err(error) => panic!("{name}: {call:?}: {error}"),
                Ok(done) => {
                    assert!(step["refused"].is_null(), "{name}: {call:?} is not refused");
                    assert_eq!(done, step["changed"].as_bool(), "{name}: {call:?}");
                    changed += 1;
                }
            }
            assert_eq!(case.state(&writer), step["state"], "{name}: after {call:?}");
        }
        for expected in case.json["lookups"].as_array().unwrap() {
            assert_eq!(lookup(&writer, expected[0].as_i64().unwrap()), *expected, "{name}");
        }
        close(writer);
        match case.json["closed"].as_str() {
            Some(closed) => assert_eq!(std::fs::read(case.path()).unwrap(), bytes(closed), "{name}, closed"),
            None => assert!(!case.path().exists(), "{name}"),
        }
    }
    assert!(cases >= 60 && refused > 300 && changed > 300, "{cases} {refused} {changed}");
}
