// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes as people write them: `64`, `64K`, `1M`. K is 1,024 bytes.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    /// Bytes of the longest message that an endpoint can be told to accept.
    pub(crate) const MESSAGE_MAX: u32 = 1 << 30;

    /// A message's bytes; clap refuses what is too large.
    pub(crate) fn parse_message(text: &str) -> Result<u32, String> {
        let Self(bytes) = text.parse()?;
        let length = u32::try_from(bytes).ok();
        let length = length.filter(|length| *length <= Self::MESSAGE_MAX);
        length.ok_or_else(|| "a message has at most 1G".to_owned())
    }

    /// The same as a size.
    #[cfg(feature = "perf")]
    pub(crate) fn of_message(text: &str) -> Result<Self, String> {
        Self::parse_message(text).map(|bytes| Self(bytes.into()))
    }

    /// The limit of messages' lengths that is given to an endpoint.
    pub(crate) fn parse_message_limit(text: &str) -> Result<u32, String> {
        match Self::parse_message(text)? {
            0 => Err("messages of 0 bytes alone are of no use".to_owned()),
            limit => Ok(limit),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit {
            "" | "B" => 0,
            "K" | "KB" | "KiB" | "k" => 10,
            "M" | "MB" | "MiB" => 20,
            "G" | "GB" | "GiB" => 30,
            _ => return Err("a size is a number of bytes, such as 64, 64K or 64M".to_owned()),
        };
        let number: u64 = number
            .parse()
            .map_err(|_| "a size begins with a whole number, such as 64 or 64K".to_owned())?;
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| "that is more bytes than can be counted".to_owned())
    }
}

/// As short as it can be said without rounding.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GB"), (20, "MB"), (10, "KB")];
        let unit = units.iter().find(|(shift, _)| self.0 > 0 && self.0.trailing_zeros() >= *shift);
        let text = match unit {
            Some((shift, unit)) => format!("{} {unit}", self.0 >> shift),
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod from_str {
        use super::*;

        #[test]
        fn numbers_and_units_are_understood() {
            for (text, bytes) in [
                ("0", 0),
                ("64", 64),
                ("1K", 1_024),
                ("64KB", 65_536),
                ("2MiB", 2 << 20),
                ("1G", 1 << 30),
            ] {
                assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            }
        }

        #[test]
        fn anything_else_is_refused() {
            for text in [
                "",
                "K",
                "-1",
                "1.5K",
                "1T",
                "64 K",
                "99999999999999999999",
                "18446744073709551615K",
            ] {
                assert!(text.parse::<Size>().is_err(), "{text}");
            }
        }
    }

    mod parse_message {
        use super::*;

        #[test]
        fn ends_at_1g() {
            assert_eq!(Size::parse_message("1G"), Ok(1 << 30));
            assert!(Size::parse_message("1025M").is_err());
            assert!(Size::parse_message("4G").is_err());
            assert_eq!(Size::parse_message("0"), Ok(0));
            assert!(Size::parse_message_limit("0").is_err());
        }
    }

    mod display {
        use super::*;

        #[test]
        fn is_never_rounded() {
            for (bytes, text) in
                [(0, "0 B"), (64, "64 B"), (1_024, "1 KB"), (1_025, "1025 B"), (3 << 20, "3 MB")]
            {
                assert_eq!(Size(bytes).to_string(), text);
            }
        }
    }
}
