//! Where a log may be begun: what is refused makes no folder.

use std::fs;
use std::path::Path;

use cordwood::config::LogConfig;
use cordwood::error::Error;
use cordwood::fs::{Directory, Lock};
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::reading::folder;

const FOREIGN: [&str; 7] =
    ["plain", "t\u{e4}-0", "t-0.00ff-delete", "t-0.00ff-future", "t-0.00ff-stray", "t-x", "t-99999999999"];

fn open(path: &Path) -> Result<LogWriter, Error> {
    LogWriter::open(path, &WriterOptions::default())
}

#[test]
fn a_name_that_kafka_does_not_take_is_refused_in_its_data_directory_and_nowhere_else() {
    for is_brokers in [true, false] {
        let data = folder();
        fs::write(data.path().join(".lock"), "").unwrap();
        if is_brokers {
            fs::write(data.path().join("meta.properties"), "version=1\n").unwrap();
        }
        for name in FOREIGN {
            for is_there in [false, true] {
                let path = data.path().join(name);
                if is_there && is_brokers {
                    fs::create_dir(&path).unwrap();
                }
                if is_brokers {
                    let error = open(&path).unwrap_err();
                    assert_eq!(error.code(), "config");
                    assert!(error.to_string().contains(name), "{error}");
                    assert_eq!(path.exists(), is_there);
                } else {
                    open(&path).unwrap().close().unwrap();
                }
            }
        }
        open(&data.path().join("orders.v2-0")).unwrap();
    }
}

#[test]
fn no_folder_is_made_beside_a_running_broker_nor_under_settings_that_cannot_be() {
    let data = folder();
    fs::write(data.path().join("meta.properties"), "version=1\n").unwrap();
    let broker = Lock::exclusive(&Directory::open(data.path(), "").unwrap(), ".lock").unwrap();
    let path = data.path().join("orders-0");
    assert_eq!(open(&path).unwrap_err().code(), "locked");
    assert!(!path.exists());
    drop(broker);
    let config = LogConfig { segment_bytes: 1, ..LogConfig::default() };
    let refused = LogWriter::open(&path, &WriterOptions { config, ..WriterOptions::default() });
    assert_eq!(refused.unwrap_err().code(), "config");
    assert!(!path.exists());
    open(&path).unwrap();
}

#[test]
fn a_link_to_a_partition_is_that_partition() {
    let (data, links) = (folder(), folder());
    fs::write(data.path().join("meta.properties"), "version=1\n").unwrap();
    let link = links.path().join("mine");
    open(&data.path().join("orders-0")).unwrap();
    std::os::unix::fs::symlink(data.path().join("orders-0"), &link).unwrap();
    let mut writer = open(&link).unwrap();
    assert_eq!(writer.path(), fs::canonicalize(data.path()).unwrap().join("orders-0"));
    writer.append(&NewRecord { value: Some(b"v"), ..NewRecord::default() }).unwrap();
    writer.close().unwrap();
    let checkpoint = fs::read_to_string(data.path().join("recovery-point-offset-checkpoint")).unwrap();
    assert_eq!(checkpoint, "0\n1\norders 0 1\n");
}

#[test]
fn a_data_directory_itself_is_no_place_for_a_log() {
    for mark in
        ["meta.properties", ".lock", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
    {
        let data = folder();
        fs::write(data.path().join(mark), "").unwrap();
        let refused = open(data.path()).unwrap_err();
        assert_eq!(refused.code(), "config");
        assert!(LogWriter::plan_recovery(data.path(), &WriterOptions::default()).is_err());
        let left: Vec<_> =
            fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [mark]);
    }
}
