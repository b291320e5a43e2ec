// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes as people write them: `64`, `8K`, `1M`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Size(pub(crate) u32);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = match text.strip_suffix(['K', 'M']) {
            Some(digits) if text.ends_with('K') => (digits, 1 << 10),
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        };
        let bytes = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
        match bytes {
            Some(bytes @ LEAST..=MOST) => Ok(Self(bytes)),
            _ => Err(format!("give {LEAST} to {MOST} bytes, as 64, 8K or 1M")),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes % (1 << 20) == 0 => write!(f, "{} MB", bytes >> 20),
            bytes if bytes % (1 << 10) == 0 => write!(f, "{} KB", bytes >> 10),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

/// A request says how long its reply is to be.
const LEAST: u32 = 4;
/// The largest message that gRPC takes by default; a larger one is no RPC.
const MOST: u32 = 1 << 22;

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn units_are_powers_of_two() {
        for (text, bytes, shown) in
            [("64", 64, "64 B"), ("8K", 8_192, "8 KB"), ("1M", 1 << 20, "1 MB")]
        {
            assert_eq!(text.parse::<Size>(), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string(), shown);
        }
        assert!("3".parse::<Size>().is_err() && "8G".parse::<Size>().is_err());
    }
}
