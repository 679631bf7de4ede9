//! Values as Java writes them.

use std::fmt::Write;

/// As `Double.toString` writes a number: the fewest digits that identify it, with an exponent outside [10⁻³, 10⁷).
///
/// JDK 18 and older write more digits than necessary for a few numbers (JDK-4511638).
pub(super) fn write_double(out: &mut String, number: f64) {
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

    #[test]
    fn doubles_as_jdk_19_writes_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e7, "1.0E7"),
            (9_999_999.5, "9999999.5"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (1_048_576.0, "1048576.0"),
            (-1.5e300, "-1.5E300"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = String::new();
            write_double(&mut out, number);
            assert_eq!(out, text);
        }
    }
}
