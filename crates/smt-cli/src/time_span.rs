// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times as people write them: `20us`, `5ms`, `1.5s`, `10m`.

use std::time::Duration;

/// Understands a time; a value parser for clap.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is a number with its unit, such as 20us, 5ms or 1s".to_owned();
    let unit_at =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "that is too long a time".to_owned())
}

/// The same for a time in which something is to be done.
pub(crate) fn parse_nonzero(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("nothing is done in no time".to_owned()),
        time => Ok(time),
    }
}

/// A count of a unit, in words: `1 day`, `3 days`.
pub(crate) fn counted(count: impl Into<i64>, unit: &str) -> String {
    let count = count.into();
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// With three significant digits and the unit that suits.
pub(crate) fn display(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us >= 1e6 {
        return digits(us / 1e6, "s");
    }
    if us >= 1e3 {
        return digits(us / 1e3, "ms");
    }
    digits(us, "us")
}

fn digits(value: f64, unit: &str) -> String {
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    mod parse {
        use super::super::parse;
        use std::time::Duration;

        #[test]
        fn numbers_and_units_are_understood() {
            for (text, ns) in [
                ("20us", 20_000),
                ("5ms", 5_000_000),
                ("1s", 1_000_000_000),
                ("1.5s", 1_500_000_000),
                ("2m", 120_000_000_000),
                ("7ns", 7),
            ] {
                assert_eq!(parse(text), Ok(Duration::from_nanos(ns)), "{text}");
            }
        }

        #[test]
        fn anything_else_is_refused() {
            for text in ["", "5", "s", "-1s", "1 s", "1.2.3s", "1d", "99999999999999999999h"] {
                assert!(parse(text).is_err(), "{text}");
            }
        }
    }

    mod display {
        use super::super::display;
        use std::time::Duration;

        #[test]
        fn has_the_unit_that_suits() {
            for (ns, text) in [
                (850, "0.85 us"),
                (23_456, "23.5 us"),
                (1_234_567, "1.23 ms"),
                (2_500_000_000, "2.50 s"),
            ] {
                assert_eq!(display(Duration::from_nanos(ns)), text);
            }
        }
    }
}
