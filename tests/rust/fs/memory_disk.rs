//! Reading a log from the in-memory disk.

use cordwood::fs::mem::MemoryDisk;
use cordwood::{Log, LogOptions};

#[test]
fn a_log_of_kafka_is_read_from_the_in_memory_disk() {
    let disk = MemoryDisk::default();
    for entry in std::fs::read_dir("../golden/01-plain/orders-0").unwrap() {
        let entry = entry.unwrap();
        disk.put(entry.file_name().to_str().unwrap(), &std::fs::read(entry.path()).unwrap());
    }
    let log = Log::open_in(disk.directory("/data/orders-0"), LogOptions::default()).unwrap();
    assert_eq!(
        (log.topic(), log.partition(), log.log_end_offset().unwrap()),
        (Some("orders"), Some(0), 1500)
    );
    assert_eq!(log.offset_for_time(1_700_000_010_000).unwrap().unwrap().offset, 488);
    assert_eq!(log.warnings(), [""; 0]);
    disk.set_failing_read(Some(0));
    assert!(Log::open_in(disk.directory("/data/orders-0"), LogOptions::default()).is_err());
    assert!(disk.read_has_failed());
}
