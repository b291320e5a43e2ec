// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The layouts of the wire as tables, for those who read packets without this crate: where each
//! field is, how long it is, and which values stand in it (SPEC §3, §5, §6, §8, §12).
//!
//! The tables are the constants by which this crate itself reads and writes. `vectors/smt_wire.h`
//! and `vectors/smt_offsets.json` are made of them by
//! `cargo run -p smt-wire --example make_offsets`.

use crate::limits;
use crate::packet_type::PacketType;
use crate::prefix::{HEADER_WORDS_DATA, HEADER_WORDS_OTHER, Prefix};
use crate::{
    Abort, AbortCode, Ack, AssociationFields, ControlHeader, ControlNumber, Cookie, DataHeader,
    Entry, Grant, Handshake, InnerHeader, KeyExchange, Kind, MemberHeader, PartWindow, Resend,
    Reset, TO_THE_END, Unavailable,
};

/// A field of a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field {
    /// In upper case, such as `SESSION`.
    pub name: &'static str,
    /// Bytes before it, from the first byte of its header.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// A header, or an entry of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Table {
    /// In upper case, such as `DATA`.
    pub name: &'static str,
    /// Bytes of its fixed part.
    pub len: usize,
    /// Its fields, ascending. Those of the prefix stand in the prefix's table alone.
    pub fields: &'static [Field],
}

/// A named number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Value {
    /// In upper case, such as `KIND_REQUEST`.
    pub name: &'static str,
    /// The number.
    pub value: u64,
}

/// Headers and entries of lists, in the specification's order.
pub const TABLES: [Table; 16] = [
    table("PREFIX", Prefix::LEN, crate::prefix::field::FIELDS),
    table("DATA", DataHeader::LEN, crate::data::field::FIELDS),
    table("CONTROL", ControlHeader::LEN, crate::control::field::FIELDS),
    table("INNER", InnerHeader::LEN, crate::inner_header::field::FIELDS),
    table("MEMBER", MemberHeader::LEN, crate::bundle::field::FIELDS),
    table("HANDSHAKE", Handshake::HEADER_LEN, crate::handshake::field::FIELDS),
    table("COOKIE", Cookie::HEADER_LEN, crate::cookie::field::FIELDS),
    table("GRANT", Grant::LEN, crate::entry::grant::FIELDS),
    table("RESEND", Resend::LEN, crate::entry::resend::FIELDS),
    table("ACK", Ack::LEN, crate::entry::ack::FIELDS),
    table("PART_WINDOW", PartWindow::LEN, crate::entry::part_window::FIELDS),
    table("ABORT", Abort::LEN, crate::entry::abort::FIELDS),
    table("ASSOCIATION", AssociationFields::LEN, crate::entry::association::FIELDS),
    table("CLOSE", crate::body::CLOSE_LEN, crate::body::close::FIELDS),
    table("RESET", Reset::LEN, crate::reset::field::FIELDS),
    table("UNAVAILABLE", Unavailable::LEN, crate::unavailable::field::FIELDS),
];

const fn table(name: &'static str, len: usize, fields: &'static [Field]) -> Table {
    Table { name, len, fields }
}

/// Every type of packet (SPEC §3.2).
pub const TYPES: [PacketType; 33] = PacketType::ALL;

/// Every parameter's tag (SPEC §6.3).
pub const PARAMS: &[Value] = crate::params::tag::TAGS;

/// Values that stand in fields.
pub const VALUES: [Value; 26] = [
    value("FLAG_RETRANSMIT", Prefix::RETRANSMIT as u64),
    value("HEADER_WORDS_DATA", HEADER_WORDS_DATA as u64),
    value("HEADER_WORDS_OTHER", HEADER_WORDS_OTHER as u64),
    value("FLAG_FAILURE", crate::kind_fields::FAILURE as u64),
    value("FLAG_NOT_RUN", crate::kind_fields::NOT_RUN as u64),
    value("FLAG_METADATA", crate::kind_fields::METADATA as u64),
    value("FLAG_REPLY_IN_PARTS", crate::kind_fields::REPLY_IN_PARTS as u64),
    value("FLAG_MORE", crate::kind_fields::MORE as u64),
    value("KIND_REQUEST", Kind::Request as u64),
    value("KIND_REPLY", Kind::Reply as u64),
    value("KIND_ONE_WAY", Kind::OneWay as u64),
    value("KIND_BUNDLE", Kind::Bundle as u64),
    value("KIND_PART", Kind::Part as u64),
    value("KEY_EXCHANGE_TLS13", KeyExchange::Tls13 as u64),
    value("KEY_EXCHANGE_REGISTERED", KeyExchange::Registered as u64),
    value("KEY_EXCHANGE_TICKET", KeyExchange::Ticket as u64),
    value("KEY_EXCHANGE_PLAINTEXT", KeyExchange::Plaintext as u64),
    value("ABORT_SHUTTING_DOWN", AbortCode::ShuttingDown as u64),
    value("ABORT_DROPPED", AbortCode::Dropped as u64),
    value("ABORT_TOO_LARGE", AbortCode::TooLarge as u64),
    value("ABORT_REPLY_TOO_LARGE", AbortCode::ReplyTooLarge as u64),
    value("ABORT_OVERLOADED", AbortCode::Overloaded as u64),
    value("RESEND_TO_THE_END", TO_THE_END as u64),
    value("CONTROL_COUNTER_BITS", ControlNumber::COUNTER_BITS as u64),
    value("VERSION", limits::VERSION as u64),
    value("PLAINTEXT_VERSION", limits::PLAINTEXT_VERSION as u64),
];

/// This crate's limits, ranges by their two ends.
pub const LIMITS: [Value; 32] = [
    value("RECORD_HEADER_LEN", limits::RECORD_HEADER_LEN as u64),
    value("TAG_LEN", limits::TAG_LEN as u64),
    value("RESET_TOKEN_LEN", limits::RESET_TOKEN_LEN as u64),
    value("ASSOCIATION_KEY_LEN", limits::ASSOCIATION_KEY_LEN as u64),
    value("LIST_MAX", limits::LIST_MAX as u64),
    value("COOKIE_MAX", limits::COOKIE_MAX as u64),
    value("FLIGHTS_MAX", limits::FLIGHTS_MAX as u64),
    value("FLIGHT_LEN_MAX", limits::FLIGHT_LEN_MAX as u64),
    value("RECORD_OVERHEAD", limits::RECORD_OVERHEAD as u64),
    value("RECORD_SIZE_MIN", *limits::RECORD_SIZE.start() as u64),
    value("RECORD_SIZE_MAX", *limits::RECORD_SIZE.end() as u64),
    value("FIRST_RECORD_SIZE_MAX", limits::FIRST_RECORD_SIZE_MAX as u64),
    value("INDEX_BITS_MIN", *limits::INDEX_BITS.start() as u64),
    value("INDEX_BITS_MAX", *limits::INDEX_BITS.end() as u64),
    value("WINDOW_MIN", *limits::WINDOW.start() as u64),
    value("WINDOW_MAX", *limits::WINDOW.end() as u64),
    value("DATAGRAM_LIMIT_MIN", limits::DATAGRAM_LIMIT_MIN as u64),
    value("STRIPES_LOG2_MAX", limits::STRIPES_LOG2_MAX as u64),
    value("PSP_VERSIONS_MAX", limits::PSP_VERSIONS_MAX as u64),
    value("KEY_NAME_MAX", limits::KEY_NAME_MAX as u64),
    value("BUNDLE_RECORDS_MAX", limits::BUNDLE_RECORDS_MAX as u64),
    value("FAILURE_TEXT_MAX", limits::FAILURE_TEXT_MAX as u64),
    value("METADATA_MAX", limits::METADATA_MAX as u64),
    value("METADATA_ENTRIES_MAX", limits::METADATA_ENTRIES_MAX as u64),
    value("PART_PREFIX_LEN", crate::PART_PREFIX_LEN as u64),
    value("PART_OVERHEAD", limits::PART_OVERHEAD as u64),
    value("PART_WINDOW_MIN", *limits::PART_WINDOW.start() as u64),
    value("PART_WINDOW_MAX", *limits::PART_WINDOW.end() as u64),
    value("SHARDS_MAX", crate::Shard::COUNT_MAX as u64),
    value("SHARD_DESTINATION_OFFSET", crate::Shard::DESTINATION_OFFSET as u64),
    value("SHARD_SOURCE_OFFSET", crate::Shard::SOURCE_OFFSET as u64),
    value("FIRST_CONTROL_TYPE", crate::Shard::FIRST_CONTROL as u64),
];

const fn value(name: &'static str, value: u64) -> Value {
    Value { name, value }
}

/// Constants that name fields, and the table of them: `NAME = 12..20;`, or `NAME = 8;` for one
/// byte.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $start:literal $(.. $end:literal)?;)*) => {
        $($crate::layout::fields!(@constant $(#[$doc])* $name $start $($end)?);)*

        /// The fields above, for [`crate::layout`].
        pub(crate) const FIELDS: &[$crate::layout::Field] =
            &[$($crate::layout::fields!(@field $name $start $($end)?)),*];
    };
    (@constant $(#[$doc:meta])* $name:ident $at:literal) => {
        $(#[$doc])*
        pub(super) const $name: usize = $at;
    };
    (@constant $(#[$doc:meta])* $name:ident $start:literal $end:literal) => {
        $(#[$doc])*
        pub(super) const $name: ::core::ops::Range<usize> = $start..$end;
    };
    (@field $name:ident $at:literal) => {
        $crate::layout::Field { name: stringify!($name), offset: $at, size: 1 }
    };
    (@field $name:ident $start:literal $end:literal) => {
        $crate::layout::Field { name: stringify!($name), offset: $start, size: $end - $start }
    };
}
pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_limit_stands_in_a_table() {
        let names: BTreeSet<&str> = LIMITS.iter().chain(&VALUES).map(|value| value.name).collect();
        let mut count = 0;
        for line in include_str!("limits.rs").lines() {
            let Some(rest) = line.strip_prefix("pub const ") else {
                continue;
            };
            let name = rest.split(':').next().unwrap();
            let min = std::format!("{name}_MIN");
            assert!(names.contains(name) || names.contains(min.as_str()), "{name}");
            count += 1;
        }
        assert!(count > 15, "only {count} limits were found");
    }

    #[test]
    fn fields_of_a_table_ascend_and_do_not_overlap() {
        for table in TABLES {
            let mut end = 0;
            for field in table.fields {
                assert!(field.offset >= end, "{} {}", table.name, field.name);
                end = field.offset + field.size;
            }
            assert_eq!(end, table.len, "{}", table.name);
        }
    }
}
