//! The data directory's checkpoint of log start offsets. Kafka: `OffsetCheckpointFile`, `CheckpointFile`.
//!
//! ```text
//! 0                    format version
//! 2                    number of lines that follow
//! cities 1 31          topic, partition, offset
//! rivers 0 7
//! ```

/// The name of the file, beside the partition directories.
pub(super) const LOG_START_OFFSETS: &str = "log-start-offset-checkpoint";

/// More than any data directory needs; what is larger is no checkpoint.
pub(super) const MOST_BYTES: u64 = 16 << 20;

/// The offset that the checkpoint gives a partition, or `None` where it has no line for it.
///
/// # Errors
/// Says what is wrong with the text.
pub(super) fn offset_of(text: &[u8], topic: &str, partition: i32) -> Result<Option<i64>, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    match lines.next() {
        // Kafka takes an empty file for an empty list
        None => return Ok(None),
        Some("0") => {}
        Some(version) => return Err(format!("expected version 0, found {version:?}")),
    }
    let Some(count) = lines.next() else { return Ok(None) };
    let mut found = None;
    let mut read = 0;
    for line in lines {
        let fields: Vec<_> = line.split_whitespace().collect();
        let &[name, number, offset] = fields.as_slice() else {
            return Err(format!("expected a topic, a partition and an offset, found {line:?}"));
        };
        let number: i32 = number.parse().map_err(|_| format!("expected a partition, found {number:?}"))?;
        let offset: i64 = offset.parse().map_err(|_| format!("expected an offset, found {offset:?}"))?;
        if name == topic && number == partition {
            found = Some(offset);
        }
        read += 1;
    }
    if count.parse() == Ok(read) { Ok(found) } else { Err(format!("expected {count} lines, found {read}")) }
}

#[cfg(test)]
mod tests {
    use super::offset_of;

    #[test]
    fn the_line_of_the_partition_counts_and_a_broken_file_is_named() {
        let text = b"0\n2\ncities 1 31\nrivers 0 7\n";
        assert_eq!(offset_of(text, "cities", 1), Ok(Some(31)));
        assert_eq!(offset_of(text, "cities", 0), Ok(None));
        assert_eq!(offset_of(b"", "cities", 0), Ok(None));
        for broken in
            [&b"1\n0\n"[..], b"0\n3\ncities 1 31\n", b"0\n1\ncities 1\n", b"0\n1\ncities 1 x\n", b"\xff"]
        {
            assert!(offset_of(broken, "cities", 1).is_err());
        }
    }
}
