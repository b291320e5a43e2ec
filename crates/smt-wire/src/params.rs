// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters by which the two sides describe themselves in flights 1 and 2 (SPEC §6.3).
//!
//! 1. `parse` walks `tag, length, value` in ascending order; unknown tags are passed over.
//! 2. Mandatory ones must all have been there.
//! 3. `check` compares every value with its range, and with the others it depends on.
//!
//! Not here: whether an answer fits an offer, and the hash over both sides' bytes.

use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::SessionIndex;
use crate::limits::{
    DATAGRAM_LIMIT_MIN, FIRST_RECORD_SIZE_MAX, INDEX_BITS, KEY_NAME_MAX, PART_WINDOW,
    PSP_VERSIONS_MAX, RECORD_OVERHEAD, RECORD_SIZE, STRIPES_LOG2_MAX, WINDOW,
};
use crate::list::{Entry, List};
use crate::params_error::ParamsError;

/// TLS cipher suites by their numbers (0 alone in the plaintext measurement version).
pub type Suites<'a> = List<'a, u16>;

/// How the session's secrets come about.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyExchange {
    /// TLS 1.3, whose bytes follow the parameters.
    Tls13 = 0,
    /// Keys that the application registered on both sides.
    Registered = 1,
    /// A share that the server has published ahead (SPEC §6.7).
    Ticket = 2,
    /// No key exchange: only in the plaintext measurement version, to be refused in any other (SPEC
    /// §14).
    Plaintext = 0xF1,
}

/// One side's parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Params<'a> {
    /// Client: all it speaks. Server: the one chosen.
    pub versions: &'a [u8],
    /// The server echoes the client's.
    pub key_exchange: KeyExchange,
    /// Own session index, the source index of the packet; not 0.
    pub index: SessionIndex,
    /// All that the side accepts, at least one.
    pub suites: Suites<'a>,
    /// Index bits of the records that the side sends, 8..=17.
    pub index_bits: u8,
    /// N in bytes, 64..=16,384. Client: proposed. Server: chosen.
    pub record_size: u16,
    /// N0 in bytes, from 64 to 1,142 and to N. Client: proposed. Server: chosen.
    pub first_record_size: u16,
    /// W, ids per stripe that the side accepts at first, 64..=65,536.
    pub window: u32,
    /// Largest padded length less 40 that the side accepts, in bytes.
    pub message_limit: u32,
    /// Bytes of a record stream that the side accepts without a grant, at least N0 + 22.
    pub unscheduled: u32,
    /// Largest UDP payload that the side accepts, in bytes, at least 1,200.
    pub datagram_limit: u16,
    /// k, the binary logarithm of the number of stripes, 0..=8. Client: at most. Server: chosen.
    pub stripes: u8,
    /// Which registered key, at most 32 bytes. With registered keys only, and then mandatory.
    pub key_name: Option<&'a [u8]>,
    /// Fresh for this attempt. Mandatory with registered keys.
    pub random: Option<&'a [u8; 32]>,
    /// Whether the side accepts bundles (SPEC §5.7).
    pub takes_bundles: bool,
    /// Bytes of parts of a call that the side accepts at first, 4,096..=2^30, if it accepts any
    /// (SPEC §5.9).
    pub part_window: Option<u32>,
    /// Versions of PSP by which the side seals and opens packets, instead of records (SPEC §15.4).
    /// Client: all that it would. Server: the one chosen.
    pub psp_versions: Option<&'a [u8]>,
}

impl Params<'_> {
    /// Most bytes that `emit` writes: 17 tags and lengths, the fixed values, and those of most
    /// bytes: 255 versions, 127 suites, a name, 16 versions of PSP.
    pub const LEN_MAX: usize = 17 * 2
        + (1 + 8 + 1 + 2 + 2 + 4 + 4 + 4 + 2 + 1 + 32 + 4)
        + 255
        + 254
        + KEY_NAME_MAX
        + PSP_VERSIONS_MAX;

    /// Writes the parameters to the front of `out`; returns their length. Ranges are not
    /// compared; see [`Params::check`].
    ///
    /// # Panics
    /// If there are more than 255 versions or 127 suites, more than 16 versions of PSP, the key's
    /// name is longer than 32 bytes, or `out` is too short ([`Params::LEN_MAX`] always suffices).
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let mut writer = Writer { out, end: 0 };
        writer.put(tag::VERSIONS, self.versions);
        writer.put(tag::KEY_EXCHANGE, &[self.key_exchange as u8]);
        writer.put(tag::INDEX, &self.index.0.to_be_bytes());
        writer.put_suites(self.suites);
        writer.put(tag::INDEX_BITS, &[self.index_bits]);
        writer.put(tag::RECORD_SIZE, &self.record_size.to_be_bytes());
        writer.put(tag::FIRST_RECORD_SIZE, &self.first_record_size.to_be_bytes());
        writer.put(tag::WINDOW, &self.window.to_be_bytes());
        writer.put(tag::MESSAGE_LIMIT, &self.message_limit.to_be_bytes());
        writer.put(tag::UNSCHEDULED, &self.unscheduled.to_be_bytes());
        writer.put(tag::DATAGRAM_LIMIT, &self.datagram_limit.to_be_bytes());
        writer.put(tag::STRIPES, &[self.stripes]);
        if let Some(name) = self.key_name {
            assert!(name.len() <= KEY_NAME_MAX, "a key's name has at most 32 bytes");
            writer.put(tag::KEY_NAME, name);
        }
        if let Some(random) = self.random {
            writer.put(tag::RANDOM, random);
        }
        if self.takes_bundles {
            writer.put(tag::BUNDLES, &[]);
        }
        if let Some(window) = self.part_window {
            writer.put(tag::PART_WINDOW, &window.to_be_bytes());
        }
        if let Some(versions) = self.psp_versions {
            assert!(versions.len() <= PSP_VERSIONS_MAX, "a side names at most 16 versions of PSP");
            writer.put(tag::PSP_VERSIONS, versions);
        }
        writer.end
    }

    /// Compares every value with the range that the specification gives it.
    ///
    /// # Errors
    /// The first value that is out of range, in the order of tags.
    pub fn check(&self) -> Result<(), ParamsError> {
        let registered = self.key_exchange == KeyExchange::Registered;
        if self.versions.is_empty() {
            return Err(ParamsError::Length(tag::VERSIONS));
        }
        in_range(tag::INDEX, self.index.0, self.index.0 != 0)?;
        if self.suites.is_empty() {
            return Err(ParamsError::Length(tag::SUITES));
        }
        let (rest, first) = (self.record_size, self.first_record_size);
        let first_max = rest.min(FIRST_RECORD_SIZE_MAX);
        let first_record = u32::from(first) + RECORD_OVERHEAD as u32;
        in_range(tag::INDEX_BITS, self.index_bits, INDEX_BITS.contains(&self.index_bits))?;
        in_range(tag::RECORD_SIZE, rest, RECORD_SIZE.contains(&rest))?;
        in_range(
            tag::FIRST_RECORD_SIZE,
            first,
            (*RECORD_SIZE.start()..=first_max).contains(&first),
        )?;
        in_range(tag::WINDOW, self.window, WINDOW.contains(&self.window))?;
        in_range(tag::UNSCHEDULED, self.unscheduled, self.unscheduled >= first_record)?;
        in_range(
            tag::DATAGRAM_LIMIT,
            self.datagram_limit,
            self.datagram_limit >= DATAGRAM_LIMIT_MIN,
        )?;
        in_range(tag::STRIPES, self.stripes, self.stripes <= STRIPES_LOG2_MAX)?;
        if let Some(window) = self.part_window {
            in_range(tag::PART_WINDOW, window, PART_WINDOW.contains(&window))?;
        }
        if self
            .psp_versions
            .is_some_and(|versions| !(1..=PSP_VERSIONS_MAX).contains(&versions.len()))
        {
            return Err(ParamsError::Length(tag::PSP_VERSIONS));
        }
        if self.key_name.is_some_and(|name| name.len() > KEY_NAME_MAX) {
            return Err(ParamsError::Length(tag::KEY_NAME));
        }
        if registered && self.key_name.is_none() {
            return Err(ParamsError::Missing(tag::KEY_NAME));
        }
        if registered && self.random.is_none() {
            return Err(ParamsError::Missing(tag::RANDOM));
        }
        Ok(())
    }
}

impl<'a> Params<'a> {
    /// Parses the params part of a flight, all of it.
    ///
    /// # Errors
    /// Names the parameter; an error of the attempt.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParamsError> {
        let values = Values::parse(bytes)?;
        let versions = values.required(tag::VERSIONS)?;
        let key_exchange = match values.fixed::<1>(tag::KEY_EXCHANGE)? {
            [0] => KeyExchange::Tls13,
            [1] => KeyExchange::Registered,
            [2] => KeyExchange::Ticket,
            [0xF1] => KeyExchange::Plaintext,
            [other] => {
                return Err(ParamsError::Range {
                    tag: tag::KEY_EXCHANGE,
                    value: u64::from(*other),
                });
            }
        };
        let params = Self {
            versions,
            key_exchange,
            index: SessionIndex(values.u64(tag::INDEX)?),
            suites: List::from_bytes(values.required(tag::SUITES)?)
                .ok_or(ParamsError::Length(tag::SUITES))?,
            index_bits: values.u8(tag::INDEX_BITS)?,
            record_size: values.u16(tag::RECORD_SIZE)?,
            first_record_size: values.u16(tag::FIRST_RECORD_SIZE)?,
            window: values.u32(tag::WINDOW)?,
            message_limit: values.u32(tag::MESSAGE_LIMIT)?,
            unscheduled: values.u32(tag::UNSCHEDULED)?,
            datagram_limit: values.u16(tag::DATAGRAM_LIMIT)?,
            stripes: values.u8(tag::STRIPES)?,
            key_name: values.value(tag::KEY_NAME),
            random: match values.value(tag::RANDOM) {
                Some(_) => Some(values.fixed(tag::RANDOM)?),
                None => None,
            },
            takes_bundles: match values.value(tag::BUNDLES) {
                Some(_) => values.fixed(tag::BUNDLES).map(|[]| true)?,
                None => false,
            },
            part_window: match values.value(tag::PART_WINDOW) {
                Some(_) => Some(values.u32(tag::PART_WINDOW)?),
                None => None,
            },
            psp_versions: values.value(tag::PSP_VERSIONS),
        };
        params.check().map(|()| params)
    }
}

impl Entry for u16 {
    const LEN: usize = 2;

    fn read(bytes: &[u8]) -> Self {
        u16_at(bytes, 0..2)
    }

    fn write(&self, out: &mut [u8]) {
        put(out, 0..2, &self.to_be_bytes());
    }
}

/// Values by tag. Place 0 is that of an unknown tag, and is never asked for.
struct Values<'a>([Option<&'a [u8]>; tag::PSP_VERSIONS as usize + 1]);

impl<'a> Values<'a> {
    fn parse(mut bytes: &'a [u8]) -> Result<Self, ParamsError> {
        let mut values = [None; tag::PSP_VERSIONS as usize + 1];
        let mut last = None;
        while let Some((&tag, rest)) = bytes.split_first() {
            if last >= Some(tag) {
                return Err(ParamsError::Order(tag));
            }
            let (&length, rest) = rest.split_first().ok_or(ParamsError::Length(tag))?;
            let value = rest.split_at_checked(usize::from(length));
            let (value, rest) = value.ok_or(ParamsError::Length(tag))?;
            if let Some(place) = values.get_mut(usize::from(tag)) {
                *place = Some(value);
            }
            (last, bytes) = (Some(tag), rest);
        }
        Ok(Self(values))
    }

    fn value(&self, tag: u8) -> Option<&'a [u8]> {
        self.0[usize::from(tag)]
    }

    fn required(&self, tag: u8) -> Result<&'a [u8], ParamsError> {
        self.value(tag).ok_or(ParamsError::Missing(tag))
    }

    fn fixed<const N: usize>(&self, tag: u8) -> Result<&'a [u8; N], ParamsError> {
        self.required(tag)?.try_into().map_err(|_| ParamsError::Length(tag))
    }

    fn u8(&self, tag: u8) -> Result<u8, ParamsError> {
        self.fixed::<1>(tag).map(|value| value[0])
    }

    fn u16(&self, tag: u8) -> Result<u16, ParamsError> {
        self.fixed::<2>(tag).map(|value| u16_at(value, 0..2))
    }

    fn u32(&self, tag: u8) -> Result<u32, ParamsError> {
        self.fixed::<4>(tag).map(|value| u32_at(value, 0..4))
    }

    fn u64(&self, tag: u8) -> Result<u64, ParamsError> {
        self.fixed::<8>(tag).map(|value| u64_at(value, 0..8))
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl Writer<'_> {
    fn put(&mut self, tag: u8, value: &[u8]) {
        let start = self.head(tag, value.len());
        put(self.out, start..self.end, value);
    }

    fn put_suites(&mut self, suites: Suites<'_>) {
        let start = self.head(tag::SUITES, suites.bytes_len());
        suites.write(&mut self.out[start..self.end]);
    }

    /// Writes tag and length; `end` moves past the value, whose start is returned.
    fn head(&mut self, tag: u8, length: usize) -> usize {
        let length_byte = u8::try_from(length).expect("a parameter has at most 255 bytes");
        let start = self.end + 2;
        put(self.out, self.end..start, &[tag, length_byte]);
        self.end = start + length;
        start
    }
}

fn in_range(tag: u8, value: impl Into<u64>, inside: bool) -> Result<(), ParamsError> {
    if inside { Ok(()) } else { Err(ParamsError::Range { tag, value: value.into() }) }
}

/// A parameter's name in the specification.
pub(crate) const fn name(tag: u8) -> &'static str {
    match tag {
        tag::VERSIONS => "versions",
        tag::KEY_EXCHANGE => "key exchange",
        tag::INDEX => "index",
        tag::SUITES => "suites",
        tag::INDEX_BITS => "index bits",
        tag::RECORD_SIZE => "record size",
        tag::FIRST_RECORD_SIZE => "first record size",
        tag::WINDOW => "window",
        tag::MESSAGE_LIMIT => "message limit",
        tag::UNSCHEDULED => "unscheduled",
        tag::DATAGRAM_LIMIT => "datagram limit",
        tag::STRIPES => "stripes",
        tag::KEY_NAME => "key name",
        tag::RANDOM => "random",
        tag::BUNDLES => "bundles",
        tag::PART_WINDOW => "part window",
        tag::PSP_VERSIONS => "PSP versions",
        _ => "unknown",
    }
}

/// The tags, and the table of them for [`crate::layout`].
macro_rules! tags {
    ($($name:ident = $tag:literal;)*) => {
        $(pub(super) const $name: u8 = $tag;)*

        pub(crate) const TAGS: &[crate::layout::Value] =
            &[$(crate::layout::Value { name: stringify!($name), value: $tag }),*];
    };
}

pub(crate) mod tag {
    tags! {
        VERSIONS = 1;
        KEY_EXCHANGE = 2;
        INDEX = 3;
        SUITES = 4;
        INDEX_BITS = 5;
        RECORD_SIZE = 6;
        FIRST_RECORD_SIZE = 7;
        WINDOW = 8;
        MESSAGE_LIMIT = 9;
        UNSCHEDULED = 10;
        DATAGRAM_LIMIT = 11;
        STRIPES = 12;
        KEY_NAME = 13;
        RANDOM = 14;
        BUNDLES = 15;
        PART_WINDOW = 17;
        PSP_VERSIONS = 18;
    }
}

#[cfg(test)]
mod tests;
