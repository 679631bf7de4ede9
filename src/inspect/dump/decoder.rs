//! How keys and values are shown.

use std::fmt::Write as _;

use super::text::Text;
use crate::error::{Malformed, Result};
use crate::inspect::internal_topics::write_double;
use crate::record::java_string;

/// How the bytes of a key or a value are shown. Kafka: `org.apache.kafka.tools.api.Decoder`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Decoder {
    /// UTF-8, each malformed part replaced by U+FFFD as Java does.
    #[default]
    String,
    /// The first four bytes, big-endian.
    Integer,
    /// The first eight bytes, big-endian.
    Long,
    /// The first eight bytes, IEEE 754, big-endian, as `Double.toString` of JDK 19 and later prints it. Kafka
    /// 4 has no such class.
    Double,
    /// Hexadecimal digits. Kafka's `DefaultDecoder` prints the identity of a Java array, which is different
    /// in each run.
    Bytes,
}

impl Decoder {
    /// The classes that Kafka had or has, without their packages, each with the short name.
    const NAMES: [(Self, &str, &str); 5] = [
        (Self::String, "String", "StringDecoder"),
        (Self::Integer, "Integer", "IntegerDecoder"),
        (Self::Long, "Long", "LongDecoder"),
        (Self::Double, "Double", "DoubleDecoder"),
        (Self::Bytes, "Bytes", "DefaultDecoder"),
    ];
    /// The packages of the classes: since 3.8, and before.
    const PACKAGES: [&str; 2] = ["org.apache.kafka.tools.api.", "kafka.serializer."];

    /// The decoder with this name: a Kafka class such as `org.apache.kafka.tools.api.LongDecoder` or
    /// `kafka.serializer.LongDecoder`, the class without its package, or a short name: `String`, `Integer`,
    /// `Long`, `Double`, `Bytes`, in any case. `None` for any other.
    pub fn of_name(name: &str) -> Option<Self> {
        let class = Self::PACKAGES.into_iter().find_map(|package| name.strip_prefix(package));
        Self::NAMES.into_iter().find_map(|(decoder, short, full)| {
            let matches = match class {
                Some(class) => class == full,
                None => name.eq_ignore_ascii_case(short) || name == full,
            };
            matches.then_some(decoder)
        })
    }

    /// Writes what the bytes contain.
    ///
    /// # Errors
    /// [`Malformed`] if there are fewer bytes than the number has.
    pub(super) fn write(self, out: &mut Text, bytes: &[u8]) -> Result<(), Malformed> {
        match self {
            Self::String => out.str(&java_string(bytes)),
            Self::Integer => out.int(i32::from_be_bytes(first(bytes)?)),
            Self::Long => out.int(i64::from_be_bytes(first(bytes)?)),
            Self::Double => {
                let mut text = String::new();
                write_double(&mut text, f64::from_be_bytes(first(bytes)?));
                out.str(&text)
            }
            Self::Bytes => {
                let mut digits = String::with_capacity(2 * bytes.len());
                for byte in bytes {
                    // writing to a string does not fail
                    let _ = write!(digits, "{byte:02x}");
                }
                out.str(&digits)
            }
        };
        Ok(())
    }

    /// The text that [`Decoder::write`] writes.
    ///
    /// # Errors
    /// As [`Decoder::write`].
    #[cfg(feature = "arrow")]
    pub(super) fn decode(self, bytes: &[u8]) -> Result<String, Malformed> {
        let mut out = Text::default();
        self.write(&mut out, bytes)?;
        Ok(String::from_utf8_lossy(&out.into_bytes()).into_owned())
    }

    /// Whether [`Decoder::write`] succeeds.
    ///
    /// # Errors
    /// As [`Decoder::write`].
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), Malformed> {
        match self {
            Self::String | Self::Bytes => Ok(()),
            Self::Integer => first::<4>(bytes).map(drop),
            Self::Long | Self::Double => first::<8>(bytes).map(drop),
        }
    }
}

fn first<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    let found = || Malformed::new(format!("{N} bytes or more of a number"), format!("{} bytes", bytes.len()));
    bytes.first_chunk().copied().ok_or_else(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoders_have_the_names_of_kafkas_classes_and_short_ones() {
        for (name, decoder) in [
            ("org.apache.kafka.tools.api.StringDecoder", Some(Decoder::String)),
            ("kafka.serializer.LongDecoder", Some(Decoder::Long)),
            ("kafka.serializer.DefaultDecoder", Some(Decoder::Bytes)),
            ("IntegerDecoder", Some(Decoder::Integer)),
            ("double", Some(Decoder::Double)),
            ("Bytes", Some(Decoder::Bytes)),
            ("kafka.serializer.String", None),
            ("org.example.MyDecoder", None),
            ("", None),
        ] {
            assert_eq!(Decoder::of_name(name), decoder, "{name}");
        }
    }

    #[test]
    fn a_check_fails_where_writing_does() {
        for (_, name, _) in Decoder::NAMES {
            let decoder = Decoder::of_name(name).unwrap();
            for length in 0..10 {
                let bytes = vec![0x41; length];
                assert_eq!(
                    decoder.check(&bytes),
                    decoder.write(&mut Text::default(), &bytes),
                    "{name}, {length} bytes"
                );
            }
        }
    }

    #[test]
    fn numbers_are_the_first_bytes() {
        let written = |decoder: Decoder, bytes: &[u8]| {
            let mut out = Text::default();
            decoder.write(&mut out, bytes).unwrap();
            String::from_utf8(out.into_bytes()).unwrap()
        };
        assert_eq!(written(Decoder::Integer, &[0xff, 0xff, 0xff, 0xfe, 9]), "-2");
        assert_eq!(written(Decoder::Long, &[0, 0, 0, 0, 0, 0, 1, 0]), "256");
        assert_eq!(written(Decoder::Double, &1e7_f64.to_be_bytes()), "1.0E7");
        assert_eq!(written(Decoder::Bytes, &[0, 0xab]), "00ab");
        assert_eq!(written(Decoder::String, b"a\xff"), "a\u{fffd}");
    }
}
