//! Directories in which a log may be created. A refused open creates no folder.

use std::fs;
use std::path::Path;

use cordwood::config::LogConfig;
use cordwood::error::Error;
use cordwood::fs::{Directory, Lock};
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::reading::folder;

const NAMES_REFUSED_BY_KAFKA: [&str; 7] =
    ["plain", "t\u{e4}-0", "t-0.00ff-delete", "t-0.00ff-future", "t-0.00ff-stray", "t-x", "t-99999999999"];

fn open(path: &Path) -> Result<LogWriter, Error> {
    LogWriter::open(path, &WriterOptions::default())
}

#[test]
fn a_name_that_kafka_does_not_accept_is_refused_only_in_a_kafka_data_directory() {
    for is_brokers in [true, false] {
        let data = folder();
        fs::write(data.path().join(".lock"), "").unwrap();
        if is_brokers {
            fs::write(data.path().join("meta.properties"), "version=1\n").unwrap();
        }
        for name in NAMES_REFUSED_BY_KAFKA {
            for exists in [false, true] {
                let path = data.path().join(name);
                if exists && is_brokers {
                    fs::create_dir(&path).unwrap();
                }
                if is_brokers {
                    let error = open(&path).unwrap_err();
                    assert_eq!(error.code(), "config");
                    assert!(error.to_string().contains(name), "{error}");
                    assert_eq!(path.exists(), exists);
                } else {
                    open(&path).unwrap().close().unwrap();
                }
            }
        }
        open(&data.path().join("orders.v2-0")).unwrap();
    }
}

#[test]
fn no_folder_is_created_in_the_data_directory_of_a_running_broker_or_with_invalid_settings() {
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
fn a_link_to_a_partition_is_resolved() {
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
fn a_data_directory_is_refused_as_a_partition_directory() {
    for marker in
        ["meta.properties", ".lock", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
    {
        let data = folder();
        fs::write(data.path().join(marker), "").unwrap();
        let refused = open(data.path()).unwrap_err();
        assert_eq!(refused.code(), "config");
        assert!(LogWriter::plan_recovery(data.path(), &WriterOptions::default()).is_err());
        let left: Vec<_> =
            fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [marker]);
    }
}
