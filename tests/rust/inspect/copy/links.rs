//! Copies that share files with their source.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cordwood::inspect::copy::CopyOptions;
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};

use super::support::{copied, files, of_offsets, open, same_files};
use crate::support::golden::intact;
use crate::support::reading::folder;

fn inode(directory: &Path, base_offset: i64) -> u64 {
    fs::metadata(directory.join(format!("{base_offset:020}.log"))).unwrap().ino()
}

/// A writer appends to the last segment, and a copy of sealed segments ends with one.
#[test]
fn the_last_segment_of_a_copy_is_no_link_and_appends_do_not_change_the_source() {
    let folder = folder();
    let partition = intact().into_iter().find(|partition| partition.case == "01-small").unwrap();
    let source = same_files(&partition.dir, &folder.path().join("source-0"));
    let bases: Vec<_> = open(&source).segments().iter().map(|segment| segment.base_offset()).collect();
    let before = files(&source);
    for (number, end) in bases.iter().enumerate().skip(1) {
        let to = folder.path().join(format!("copy-{number}"));
        let options = CopyOptions { hard_links: true, ..of_offsets(None, Some(*end)) };
        let report = copied(&source, &to, &options).unwrap();
        assert_eq!(report.segments, bases[..number]);
        assert_eq!(report.linked, number as u64 - 1, "to {end}");
        for base_offset in &bases[..number] {
            let is_linked = inode(&source, *base_offset) == inode(&to, *base_offset);
            assert_eq!(
                is_linked,
                *base_offset != bases[number - 1],
                "segment {base_offset} of a copy to {end}"
            );
        }
        let mut writer = LogWriter::open(&to, &WriterOptions::default()).unwrap();
        let record =
            NewRecord { timestamp: 1_700_000_000_000, key: None, value: Some(b"of the copy"), headers: &[] };
        writer.append(&record).unwrap();
        writer.close().unwrap();
        assert!(files(&source) == before, "to {end}");
        assert_eq!(open(&to).log_end_offset().unwrap(), end + 1);
    }
}
