//! One record of a v2 batch, decoded in one of two ways.
//!
//! [`short`] reads the records that nearly all batches consist of: every length and delta has at most three
//! bytes. It checks once that the bytes before the key are there, and then only where the key, the value and
//! the record end. For every other record, and for every record with an error, it returns `None`, and
//! [`checked`] decodes it again, checking each byte. So there is one place for errors, and `short` needs
//! none.

use super::record_ref::{Headers, take_sized};
use super::record_span::{ByteSpan, HeaderSpan};
use super::varint;
use crate::error::Malformed;

/// The fields of a record, with the deltas as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordFields {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: ByteSpan,
    pub(crate) value: ByteSpan,
    pub(crate) headers: HeaderSpan,
    /// The position after the record.
    pub(crate) end: usize,
}

/// The record at a position of the payload.
///
/// # Errors
/// [`Malformed`] if it breaks the format.
#[inline]
pub(crate) fn decode(payload: &[u8], at: usize) -> Result<RecordFields, Malformed> {
    match short(payload, at) {
        Some(fields) => Ok(fields),
        None => checked(payload, at),
    }
}

/// Bytes from the start of a record in which [`short`] reads length, attributes, deltas and the key's length:
/// 3 + 1 + 3 + 3 + 3.
const HEAD: usize = 16;
/// Bytes from the end of a key in which it reads the value's length.
const LENGTH: usize = 4;

/// `None` if the record must be decoded by [`checked`].
#[expect(
    clippy::inline_always,
    reason = "a call that returns the fields through memory takes as long as the decoding"
)]
#[inline(always)]
pub(super) fn short(payload: &[u8], at: usize) -> Option<RecordFields> {
    let head = payload.get(at..)?.first_chunk::<HEAD>()?;
    let (length, body) = varint::short(head, 0)?;
    let (timestamp_delta, next) = varint::short(head, body + 1)?;
    let (offset_delta, next) = varint::short(head, next)?;
    let (key_length, next) = varint::short(head, next)?;
    let end = at + body + usize::try_from(varint::unzigzag32(length)).ok()?;
    let key = ByteSpan::new(at + next, varint::unzigzag32(key_length))?;
    let key_end = at + next + key.len();
    let (value_length, next) = varint::short(payload.get(key_end..)?.first_chunk::<LENGTH>()?, 0)?;
    let value = ByteSpan::new(key_end + next, varint::unzigzag32(value_length))?;
    let value_end = key_end + next + value.len();
    // the parts follow one another, so if the last one ends at the end of the record, all are inside it
    let headers = match payload.get(value_end)? {
        0 if value_end + 1 == end => HeaderSpan::default(),
        0 => return None,
        _ => headers(payload.get(value_end..end)?, end)?,
    };
    Some(RecordFields {
        timestamp_delta: varint::unzigzag64(u64::from(timestamp_delta)),
        offset_delta: varint::unzigzag32(offset_delta),
        key,
        value,
        headers,
        end,
    })
}

/// The headers of a record that ends at `end`, with their count; out of line, because most records have none.
#[inline(never)]
fn headers(bytes: &[u8], end: usize) -> Option<HeaderSpan> {
    let mut rest = bytes;
    let headers = Headers::take(&mut rest).ok().filter(|_| rest.is_empty())?;
    Some(HeaderSpan::ending_at(end, &headers))
}

/// The deltas of a record.
#[cfg(any(feature = "inspect", feature = "plan"))]
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordDeltas {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    /// The position after the record.
    pub(super) end: usize,
}

/// The deltas of the record at a position of the payload; `None` if it breaks the format before or in them.
#[cfg(any(feature = "inspect", feature = "plan"))]
#[inline]
pub(super) fn deltas(payload: &[u8], at: usize) -> Option<RecordDeltas> {
    let mut rest = payload.get(at..)?;
    let length = usize::try_from(varint::read_i32(&mut rest).ok()?).ok()?;
    let end = payload.len() - rest.len() + length;
    rest = rest.get(1..length)?;
    let timestamp_delta = varint::read_i64(&mut rest).ok()?;
    let offset_delta = varint::read_i32(&mut rest).ok()?;
    Some(RecordDeltas { timestamp_delta, offset_delta, end })
}

/// [`decode`] for a record that [`short`] does not decode.
#[inline(never)]
pub(super) fn checked(payload: &[u8], at: usize) -> Result<RecordFields, Malformed> {
    let mut rest = payload.get(at..).unwrap_or_default();
    let body = take_sized(&mut rest)?
        .ok_or_else(|| Malformed::new("the length of a record", "a negative length"))?;
    let end = payload.len() - rest.len();
    let Some((_attributes, mut body)) = body.split_first() else {
        return Err(Malformed::new("a record", "an empty record"));
    };
    let timestamp_delta = varint::read_i64(&mut body)?;
    let offset_delta = varint::read_i32(&mut body)?;
    let key = take_sized(&mut body)?;
    let key = ByteSpan::ending_at(end - body.len(), key);
    let value = take_sized(&mut body)?;
    let value = ByteSpan::ending_at(end - body.len(), value);
    let headers = Headers::take(&mut body)?;
    if !body.is_empty() {
        return Err(Malformed::new(
            "the end of the record after its headers",
            format!("{} bytes more", body.len()),
        ));
    }
    let headers = HeaderSpan::ending_at(end, &headers);
    Ok(RecordFields { timestamp_delta, offset_delta, key, value, headers, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record with these fields; `length` replaces the right one.
    fn encoded(
        fields: (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>),
        headers: &[u8],
        length: Option<i64>,
    ) -> Vec<u8> {
        let (timestamp_delta, offset_delta, key, value) = fields;
        let mut body = vec![0];
        varint::write(&mut body, timestamp_delta);
        varint::write(&mut body, offset_delta);
        for bytes in [key, value] {
            varint::write(&mut body, bytes.as_ref().map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap()));
            body.extend(bytes.unwrap_or_default());
        }
        body.extend_from_slice(headers);
        let mut record = Vec::new();
        varint::write(&mut record, length.unwrap_or(i64::try_from(body.len()).unwrap()));
        record.extend(body);
        record
    }

    fn payloads() -> impl Strategy<Value = Vec<u8>> {
        let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300));
        let deltas = prop_oneof![
            -70i64..70,
            -9000i64..9000,
            -1_100_000i64..1_100_000,
            any::<i32>().prop_map(i64::from)
        ];
        let headers = prop_oneof![
            8 => Just(vec![0]),
            1 => Just(vec![2, 2, b'a', 1]),
            1 => Just(vec![4, 2, b'a', 4, 1, 2, 0, 0]),
            1 => proptest::collection::vec(any::<u8>(), 0..8),
        ];
        let length = prop_oneof![9 => Just(None), 1 => (-3i64..400).prop_map(Some)];
        let record =
            ((any::<i64>().prop_map(|delta| delta >> 30), deltas, bytes(), bytes()), headers, length)
                .prop_map(|(fields, headers, length)| encoded(fields, &headers, length));
        let flip = proptest::option::weighted(0.5, (any::<proptest::sample::Index>(), any::<u8>()));
        (record, proptest::collection::vec(any::<u8>(), 0..20), flip).prop_map(|(mut bytes, after, flip)| {
            bytes.extend(after);
            if let Some((at, byte)) = flip {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(20_000))]

        /// [`short`] is the fast twin of [`checked`].
        #[test]
        fn a_record_decoded_with_one_check_is_the_record_decoded_byte_by_byte(
            payload in payloads(),
            at in prop_oneof![9 => Just(0usize), 1 => 0usize..20],
        ) {
            if let Some(fields) = short(&payload, at) {
                let mut naive = checked(&payload, at).unwrap();
                // a null and empty headers have no position
                for (span, fast) in [(&mut naive.key, fields.key), (&mut naive.value, fields.value)] {
                    prop_assert_eq!(span.of(&payload), fast.of(&payload));
                    *span = fast;
                }
                prop_assert_eq!(
                    naive.headers.of(&payload).collect::<Vec<_>>(),
                    fields.headers.of(&payload).collect::<Vec<_>>()
                );
                naive.headers = fields.headers;
                prop_assert_eq!(fields, naive);
            }
        }
    }

    #[test]
    fn ordinary_records_are_decoded_with_one_check() {
        let value = |length: usize| Some(vec![7; length]);
        for (timestamp, offset, key, size) in
            [(0, 0, None, 20), (5, 1, value(8), 0), (9000, 70, value(200), 110), (-8, 9000, value(0), 9000)]
        {
            let mut record = encoded((timestamp, offset, key.clone(), value(size)), &[0], None);
            record.extend([0; HEAD]);
            let fields = short(&record, 0).unwrap();
            assert_eq!((fields.timestamp_delta, i64::from(fields.offset_delta)), (timestamp, offset));
            assert_eq!(fields.key.of(&record), key.as_deref());
            assert_eq!(fields.value.len(), size);
            assert_eq!(fields.end, record.len() - HEAD);
        }
    }
}
