//! Values as Java writes them.

use std::fmt::Write;

/// As `Double.toString` writes a number: the fewest digits that identify it, with an exponent outside [10⁻³,
/// 10⁷).
///
/// JDK 18 and older write more digits than necessary for a few numbers (JDK-4511638).
pub(crate) fn write_double(out: &mut String, number: f64) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else if number == 0.0 || (1e-3..1e7).contains(&number.abs()) {
        // Debug always has a digit after the point
        _ = write!(out, "{number:?}");
    } else {
        let mut text = format!("{number:e}");
        if !text.contains('.') {
            // of the numbers with two digits, the nearest
            text = format!("{number:.1e}");
        }
        out.push_str(&text.replace('e', "E"));
    }
}

#[cfg(test)]
mod tests {
    use super::write_double;

    fn java_double(number: f64) -> String {
        let mut out = String::new();
        write_double(&mut out, number);
        out
    }

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
            (0.000_999, "9.99E-4"),
            (9_999_999.5, "9999999.5"),
            (1_048_576.0, "1048576.0"),
            (-1.5e300, "-1.5E300"),
            (0.0012, "0.0012"),
            (0.1, "0.1"),
            (0.5, "0.5"),
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
