//! Logs whose records hold whole logs, cut at any byte: what is left is the whole batches before the cut.

use super::batches::{BatchV2, Built, Codec, MessageSet, Rec};

/// Where a record holds a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Key,
    Value,
    Header,
}

/// A log whose third batch has a record that holds a log.
#[derive(Debug, Clone, Copy)]
pub struct NestedLog {
    /// The format of the outer batch.
    pub magic: u8,
    pub codec: Codec,
    pub field: Field,
    /// The format of the batches in the record.
    pub inner_magic: u8,
    /// The offset of the first of them.
    pub inner_base: i64,
}

/// The offset of the first batch after those before the log in a record.
pub const NEXT_OFFSET: i64 = 3;

impl NestedLog {
    /// Each format, codec and place; the log in the record has offsets below, inside and above those of the
    /// log.
    pub fn all() -> Vec<Self> {
        let outers = [0, 1, 2].into_iter().flat_map(|magic| {
            let codecs: &[Codec] = match magic {
                2 => &[Codec::None, Codec::SnappyXerial, Codec::Gzip, Codec::Zstd],
                _ => &[Codec::None, Codec::SnappyXerial, Codec::Gzip],
            };
            let fields: &[Field] = match magic {
                2 => &[Field::Value, Field::Key, Field::Header],
                _ => &[Field::Value, Field::Key],
            };
            codecs.iter().flat_map(move |codec| fields.iter().map(move |field| (magic, *codec, *field)))
        });
        outers
            .flat_map(|(magic, codec, field)| {
                [0, 1, 2].into_iter().flat_map(move |inner_magic| {
                    [0, NEXT_OFFSET, 1000].map(|inner_base| Self {
                        magic,
                        codec,
                        field,
                        inner_magic,
                        inner_base,
                    })
                })
            })
            .collect()
    }

    /// Two batches, the one with the log in it, and one more.
    pub fn batches(&self) -> Vec<Built> {
        let mut built = self.plain(0);
        built.extend(self.plain(NEXT_OFFSET - 1));
        let nested = self.nested();
        let record = Rec::at(50);
        let record = match self.field {
            Field::Value => record.value(nested),
            Field::Key => record.key(nested).value(b"v"),
            Field::Header => record.value(b"v").header("log", Some(&nested)),
        };
        built.extend(match self.magic {
            2 => vec![BatchV2::new(NEXT_OFFSET).codec(self.codec).record(record).build()],
            0 => MessageSet::v0(NEXT_OFFSET).codec(self.codec).record(record).build(),
            _ => MessageSet::v1(NEXT_OFFSET).codec(self.codec).record(record).build(),
        });
        built.extend(self.plain(NEXT_OFFSET + 1));
        built
    }

    /// The position at which the batch with the log begins.
    pub fn outer_position(built: &[Built]) -> usize {
        built.iter().take_while(|batch| batch.base_offset < NEXT_OFFSET).map(|batch| batch.bytes.len()).sum()
    }

    /// Records up to the one with the log, or one record after it.
    fn plain(&self, base: i64) -> Vec<Built> {
        let count = if base == 0 { NEXT_OFFSET - 1 } else { 1 };
        let records = (0..count).map(|n| Rec::at(10 + base + n).value(b"plain"));
        match self.magic {
            2 => vec![BatchV2::new(base).records(records).build()],
            0 => MessageSet::v0(base).records(records).build(),
            _ => MessageSet::v1(base).records(records).build(),
        }
    }

    /// Four whole batches. Their values are incompressible, so that some codecs leave them as they are.
    fn nested(&self) -> Vec<u8> {
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::new();
        for offset in self.inner_base..self.inner_base + 4 {
            let value: Vec<u8> = (0..30)
                .map(|_| {
                    noise = noise.wrapping_mul(0xd129_0d3d_4a5c_2b7b).wrapping_add(1);
                    (noise >> 56) as u8
                })
                .collect();
            let record = Rec::at(70).value(value);
            let built = match self.inner_magic {
                2 => vec![BatchV2::new(offset).record(record).build()],
                0 => MessageSet::v0(offset).record(record).build(),
                _ => MessageSet::v1(offset).record(record).build(),
            };
            bytes.extend(built.into_iter().flat_map(|built| built.bytes));
        }
        bytes
    }
}

/// The offsets of the records of the batches of which every byte is in the file.
pub fn whole_offsets(built: &[Built], file: &[u8]) -> Vec<i64> {
    let mut at = 0;
    built
        .iter()
        .take_while(|batch| {
            let is_whole = file.get(at..).is_some_and(|rest| rest.starts_with(&batch.bytes));
            at += batch.bytes.len();
            is_whole
        })
        .flat_map(|batch| batch.base_offset..batch.next_offset())
        .collect()
}
