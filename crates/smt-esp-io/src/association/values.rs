// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of an association that have a form of their own in text.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smt_esp::{Addresses, Suite};
use zeroize::Zeroizing;

/// A suite by its name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SuiteName {
    /// AES-GCM with 128 bits (RFC 4106).
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-GCM with 256 bits (RFC 4106).
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    /// AES-CCM with 128 bits and an ICV of 8 bytes (RFC 4309).
    #[serde(rename = "aes-128-ccm-8")]
    Aes128Ccm8,
    /// No encryption, with HMAC-SHA-256-128 (RFC 2410, RFC 4868).
    #[serde(rename = "null-hmac-sha-256")]
    NullHmacSha256,
    /// No protection, for measurements.
    #[cfg(feature = "unstable-clear")]
    #[serde(rename = "clear")]
    Clear,
}

impl FromStr for SuiteName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Aes128Gcm, Self::Aes256Gcm, Self::Aes128Ccm8, Self::NullHmacSha256];
        let found = all.into_iter().find(|suite| suite.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of {}", all.map(Self::name).join(", ")))
    }
}

impl SuiteName {
    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aes128Ccm8 => "aes-128-ccm-8",
            Self::NullHmacSha256 => "null-hmac-sha-256",
            #[cfg(feature = "unstable-clear")]
            Self::Clear => "clear",
        }
    }

    /// Bytes of keying material: the key, and the salt behind it.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        self.suite().key_material_len()
    }

    pub(crate) const fn suite(self) -> Suite {
        match self {
            Self::Aes128Gcm => Suite::Aes128Gcm16,
            Self::Aes256Gcm => Suite::Aes256Gcm16,
            Self::Aes128Ccm8 => Suite::Aes128Ccm8,
            Self::NullHmacSha256 => Suite::NullHmacSha256,
            #[cfg(feature = "unstable-clear")]
            Self::Clear => Suite::Clear,
        }
    }
}

/// Keying material in hexadecimal digits, the salt behind the key; it is never shown.
#[derive(Clone)]
pub(crate) struct KeyText(Zeroizing<Vec<u8>>);

impl KeyText {
    pub(crate) const fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(..)")
    }
}

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::<String>::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes());
        // The library's own words would quote the key.
        let bytes =
            bytes.map_err(|_| D::Error::custom("a key is an even number of hexadecimal digits"))?;
        Ok(Self(Zeroizing::new(bytes)))
    }
}

impl Serialize for KeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = Zeroizing::new(HEXLOWER_PERMISSIVE.encode(&self.0));
        serializer.serialize_str(&digits)
    }
}

/// An address, or a prefix with its length: `10.0.0.0/24`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl Prefix {
    pub(crate) fn addresses(&self) -> Addresses {
        Addresses::prefix(self.address, self.length).unwrap_or_else(|| Addresses::one(self.address))
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.addresses().contains(address)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address, and no prefix such as 10.0.0.0/24");
        let (address, length) = match text.split_once('/') {
            None => (text, None),
            Some((address, length)) => (address, Some(length)),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(bits), str::parse).map_err(|_| wrong())?;
        if length > bits {
            return Err(wrong());
        }
        Ok(Self { address, length })
    }
}

/// A port, or ports from one to another: `443`, `"1024-2048"`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PortRange(RangeInclusive<u16>);

impl PortRange {
    pub(crate) fn range(&self) -> RangeInclusive<u16> {
        self.0.clone()
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("{text:?} is no port, and no range such as 1024-2048")),
        }
    }
}

/// A protocol above IP, by name or number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProtocolName(u8);

impl ProtocolName {
    pub(crate) const fn number(&self) -> u8 {
        self.0
    }
}

impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for ProtocolName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = KNOWN_PROTOCOLS.iter().find(|(name, _)| *name == text);
        let number = known.map(|(_, number)| *number).or_else(|| text.parse().ok());
        number
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no protocol: icmp, tcp, udp, sctp or a number"))
    }
}

const KNOWN_PROTOCOLS: [(&str, u8); 5] =
    [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmpv6", 58), ("sctp", 132)];

/// Text or a number, as text.
struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

macro_rules! as_word {
    ($($type:ty)*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = deserializer.deserialize_any(WordVisitor)?;
                word.parse().map_err(D::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

as_word! { Prefix PortRange ProtocolName }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_longer_than_its_address_is_refused() {
        assert!("10.0.0.1/33".parse::<Prefix>().is_err());
        assert!("::1/129".parse::<Prefix>().is_err());
        assert_eq!("10.0.0.1".parse::<Prefix>().unwrap().to_string(), "10.0.0.1/32");
        assert_eq!("fd00::/8".parse::<Prefix>().unwrap().length, 8);
    }

    #[test]
    fn ports_are_one_or_a_range_that_rises() {
        assert_eq!("443".parse::<PortRange>().unwrap().range(), 443..=443);
        assert_eq!("1-9".parse::<PortRange>().unwrap().range(), 1..=9);
        assert!("9-1".parse::<PortRange>().is_err());
        assert!("http".parse::<PortRange>().is_err());
    }

    #[test]
    fn a_key_is_not_shown() {
        let key: KeyText = serde_json::from_str("\"0xC0ffee\"").unwrap();
        assert_eq!(key.bytes(), [0xC0, 0xFF, 0xEE]);
        assert!(!format!("{key:?}").to_lowercase().contains("c0ffee"));
        let error = serde_json::from_str::<KeyText>("\"c0ffeX\"").unwrap_err();
        assert!(!error.to_string().contains("c0ffe"), "{error}");
    }
}
