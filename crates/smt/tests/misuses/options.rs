// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choices that are out of their ranges, or contradict each other.

use std::time::Duration;

use smt::Fault::Caller;
use smt::KeyLimits;

use crate::bystander::ANY;
use crate::misuse::{Misuse, failed, misuse};

pub(crate) fn table() -> Vec<Misuse> {
    let mut all = sizes();
    all.extend(memory_and_times());
    all.extend(shards());
    all
}

fn sizes() -> Vec<Misuse> {
    vec![
        misuse("no message is accepted", Caller, "`message_limit`", |by| {
            failed(by.server_builder().message_limit(0).bind_blocking(ANY))
        }),
        misuse("messages of 4 GiB", Caller, "`message_limit`", |by| {
            let builder = by.server_builder().message_limit(u32::MAX);
            failed(builder.bind_blocking(ANY))
        }),
        misuse("records of no bytes", Caller, "`record_size`", |by| {
            by.configured(|config| config.record_size = 0)
        }),
        misuse("a first record above a packet", Caller, "`first_record_size`", |by| {
            by.configured(|config| config.first_record_size = 1_400)
        }),
        misuse("a window of 100", Caller, "power of two", |by| {
            by.configured(|config| config.window = 100)
        }),
        misuse("datagrams of 500 bytes", Caller, "1,200 to 65,507", |by| {
            by.configured(|config| config.datagram_limit = 500)
        }),
        misuse("datagrams of 64 KiB", Caller, "`datagram_limit`", |by| {
            by.configured(|config| config.datagram_limit = 65_535)
        }),
        misuse("a batch of nothing", Caller, "`batch_max`", |by| {
            by.configured(|config| config.batch_max = 0)
        }),
        misuse("no unscheduled bytes", Caller, "at least 1,164", |by| {
            by.configured(|config| config.unscheduled = 0)
        }),
        misuse("256 stripes and more", Caller, "`stripes_log2`", |by| {
            by.configured(|config| config.stripes_log2 = 9)
        }),
        misuse("a key for a single record", None, "records per key", |_| {
            crate::misuse::observed(KeyLimits::new(1, 1, 16).unwrap_err().to_string())
        }),
    ]
}

fn memory_and_times() -> Vec<Misuse> {
    vec![
        misuse("no memory", Caller, "`memory_max`", |by| {
            by.configured(|config| config.memory_max = 0)
        }),
        misuse("less memory than a message", Caller, "the largest message has to fit", |by| {
            by.configured(|config| config.memory_max = 1 << 20)
        }),
        misuse("less to come than is unscheduled", Caller, "`incoming_max`", |by| {
            by.configured(|config| config.incoming_max = 1)
        }),
        misuse("no sessions", Caller, "`sessions_max`", |by| {
            by.configured(|config| config.sessions_max = 0)
        }),
        misuse("no calls at a time", Caller, "`incast_calls`", |by| {
            by.configured(|config| config.incast_calls = 0)
        }),
        misuse("questions without a pause", Caller, "`resend_interval`", |by| {
            by.configured(|config| config.resend_interval = Duration::ZERO)
        }),
        misuse("a peer is dead at once", Caller, "`silence_max`", |by| {
            by.configured(|config| config.silence_max = Duration::ZERO)
        }),
        misuse(
            "a peer is dead before it is asked",
            Caller,
            "longer than `resend_interval`",
            |by| by.configured(|config| config.resend_interval = Duration::from_secs(5)),
        ),
        misuse("sessions end at once", Caller, "`idle_life`", |by| {
            by.configured(|config| config.idle_life = Duration::ZERO)
        }),
        misuse("no time to connect", Caller, "`connect_deadline`", |by| {
            let builder = by.client_builder().connect_deadline(Duration::ZERO);
            failed(builder.connect_blocking("localhost:1"))
        }),
        misuse("a day to connect", Caller, "1 ms to an hour", |by| {
            let builder = by.client_builder();
            let builder = builder.connect_deadline(Duration::from_secs(86_400));
            failed(builder.connect_lazy_blocking("localhost:1"))
        }),
    ]
}

fn shards() -> Vec<Misuse> {
    vec![
        misuse("a server of no shards", Caller, "power of two", |by| {
            failed(by.server_builder().bind_shards_blocking(ANY, 0))
        }),
        misuse("a server of three shards", Caller, "power of two", |by| {
            failed(by.server_builder().bind_shards_blocking(ANY, 3))
        }),
        misuse("a client of no shards", Caller, "shards", |by| {
            let server = by.server.local_address();
            failed(by.client_builder().connect_shards_blocking(server, 0))
        }),
        misuse("a server of 65,535 shards", Caller, "power of two", |by| {
            failed(by.server_builder().bind_shards_blocking(ANY, u16::MAX))
        }),
    ]
}
