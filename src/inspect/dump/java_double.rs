//! Floating-point numbers as Java prints them.

/// The text of `Double.toString` since JDK 19: the shortest decimal that rounds to the number, of at least two digits, and of
/// those the closest one.
pub(super) fn java_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let size = number.abs();
    if size.is_infinite() {
        return format!("{sign}Infinity");
    }
    // the shortest decimal has one digit for some numbers, such as 4.9E-324, to which a decimal of two digits is closer
    let mut scientific = format!("{size:e}");
    if !scientific.contains('.') {
        scientific = format!("{size:.1e}");
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        _ if size == 0.0 => format!("{sign}0.0"),
        exponent @ 0..7 => {
            let (integral, rest) = with_zeros(fraction, exponent.unsigned_abs() as usize);
            format!("{sign}{whole}{integral}.{rest}")
        }
        exponent @ -3..0 => {
            let zeros = "0".repeat((exponent.unsigned_abs() as usize).saturating_sub(1));
            let fraction = if fraction == "0" { "" } else { fraction };
            format!("{sign}0.{zeros}{whole}{fraction}")
        }
        exponent => format!("{sign}{whole}.{fraction}E{exponent}"),
    }
}

/// The first `count` digits, with zeros after them if there are fewer, and the other digits, at least one.
fn with_zeros(digits: &str, count: usize) -> (String, &str) {
    let (first, rest) = digits.split_at_checked(count).unwrap_or((digits, ""));
    (format!("{first:0<count$}"), if rest.is_empty() { "0" } else { rest })
}

#[cfg(test)]
mod tests {
    use super::java_double;

    #[test]
    fn numbers_are_printed_as_by_java() {
        // the right sides are results of `Double.toString` in JDK 21
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (123_456.789, "123456.789"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.0012, "0.0012"),
            (0.1, "0.1"),
            (0.5, "0.5"),
            (9.99e-4, "9.99E-4"),
            (2e23, "2.0E23"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (5e-324, "4.9E-324"),
            (1e-323, "9.9E-324"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(java_double(number), text);
        }
    }

    #[test]
    fn the_text_is_the_number_again() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let number = f64::from_bits(bits);
            if number.is_finite() {
                assert_eq!(java_double(number).parse::<f64>().unwrap().to_bits(), bits, "{number:e}");
            }
        }
    }
}
