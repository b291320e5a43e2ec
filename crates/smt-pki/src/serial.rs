// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serial numbers of certificates, by which revocation lists name them.

use std::fmt;
use std::str::FromStr;

/// The serial number of a certificate: a number of at most 20 bytes, which its authority gives it
/// (RFC 5280 §4.1.2.2). As text it is in hexadecimal.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CertificateSerial {
    /// Without zeros in front; zero is one byte.
    bytes: Vec<u8>,
}

/// A text is not the serial number of a certificate.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error(
    "a serial number is in hexadecimal, at most {SERIAL_LEN_MAX} bytes, as `smt keys show` and \
    `openssl x509 -serial` tell it"
)]
pub struct BadSerial;

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for BadSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl CertificateSerial {
    /// A serial number from the content of its INTEGER in DER; `None` if it is negative, which
    /// RFC 5280 forbids, or too long.
    pub(crate) fn from_der_integer(content: &[u8]) -> Option<Self> {
        let is_negative = content.first().is_none_or(|first| first & 0x80 != 0);
        if is_negative { None } else { Self::from_magnitude(content) }
    }

    fn from_magnitude(bytes: &[u8]) -> Option<Self> {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let zeros = zeros.min(bytes.len().checked_sub(1)?);
        let bytes = bytes[zeros..].to_vec();
        (bytes.len() <= SERIAL_LEN_MAX).then_some(Self { bytes })
    }

    /// The bytes of the number, the most significant first.
    pub(crate) fn magnitude(&self) -> &[u8] {
        &self.bytes
    }
}

impl FromStr for CertificateSerial {
    type Err = BadSerial;

    /// Reads hexadecimal in either case, with colons between bytes or without.
    fn from_str(text: &str) -> Result<Self, BadSerial> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
        let digits: Option<Vec<u8>> = digits.iter().map(digit).collect();
        let digits = digits.ok_or(BadSerial)?;
        let bytes = digits.rchunks(2).rev().map(|byte| match byte {
            [high, low] => high << 4 | low,
            one => one[0],
        });
        Self::from_magnitude(&bytes.collect::<Vec<u8>>()).ok_or(BadSerial)
    }
}

impl fmt::Display for CertificateSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// RFC 5280 §4.1.2.2, without the zero that keeps a number from being negative.
const SERIAL_LEN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_number_are_one_serial() {
        let serial: CertificateSerial = "0AbC".parse().unwrap();
        for text in ["abc", "0a:bc", "0A:BC", "00000abc"] {
            assert_eq!(text.parse(), Ok(serial.clone()), "{text}");
        }
        assert_eq!(serial.to_string(), "0abc");
        let largest = "ff".repeat(SERIAL_LEN_MAX);
        assert_eq!(largest.parse::<CertificateSerial>().unwrap().to_string(), largest);
        assert_eq!("0".parse::<CertificateSerial>().unwrap().to_string(), "00");
    }

    #[test]
    fn a_text_that_is_no_serial_is_refused() {
        let long = "01".repeat(SERIAL_LEN_MAX + 1);
        for text in ["", ":", "0x12", "12 34", "-1", "alice.pem", &long] {
            assert_eq!(text.parse::<CertificateSerial>(), Err(BadSerial), "{text}");
        }
    }

    #[test]
    fn a_number_of_a_certificate_is_not_negative() {
        let of = |content: &[u8]| CertificateSerial::from_der_integer(content);
        assert_eq!(of(&[0, 0x80]).unwrap().to_string(), "80");
        assert_eq!(of(&[0]).unwrap().to_string(), "00");
        for content in [&[][..], &[0x80], &[1; SERIAL_LEN_MAX + 1]] {
            assert_eq!(of(content), None);
        }
    }
}
