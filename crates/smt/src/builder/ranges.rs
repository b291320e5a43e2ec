// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges of an endpoint's choices. A value out of its range is refused when the endpoint is
//! opened, by the name of the option.

use std::time::Duration;

use smt_proto::TransportConfig;

use crate::error::OpenError;

/// Refuses a choice that is out of its range.
pub(super) fn check(config: &TransportConfig) -> Result<(), OpenError> {
    let checks = [sizes(config), memory(config), times(config)];
    let failed = checks.iter().flatten().find(|(holds, _)| !holds);
    match failed {
        Some((_, text)) => Err(OpenError::Options(text)),
        None => Ok(()),
    }
}

/// The same for the time to connect.
pub(super) fn check_connect_deadline(deadline: Duration) -> Result<(), OpenError> {
    match (Duration::from_millis(1)..=Duration::from_secs(3_600)).contains(&deadline) {
        true => Ok(()),
        false => Err(OpenError::Options("`connect_deadline` must be 1 ms to an hour")),
    }
}

/// Whether a range holds, and what to say if not.
type Check = (bool, &'static str);

fn sizes(config: &TransportConfig) -> Vec<Check> {
    vec![
        ((8..=17).contains(&config.index_bits), "`index_bits` must be 8 to 17"),
        ((64..=16_384).contains(&config.record_size), "`record_size` must be 64 to 16,384"),
        (
            (64..=1_142).contains(&config.first_record_size),
            "`first_record_size` must be 64 to 1,142",
        ),
        (
            config.first_record_size <= config.record_size,
            "`first_record_size` must be at most `record_size`",
        ),
        (
            config.window.is_power_of_two() && (64..=65_536).contains(&config.window),
            "`window` must be a power of two, 64 to 65,536",
        ),
        (config.stripes_log2 <= 8, "`stripes_log2` must be at most 8"),
        (
            (1_200..=65_507).contains(&config.datagram_limit),
            "`datagram_limit` must be 1,200 to 65,507",
        ),
        ((1..=65_507).contains(&config.batch_max), "`batch_max` must be 1 to 65,507"),
        (config.unscheduled >= 1_164, "`unscheduled` must be at least 1,164, a whole first record"),
        ((1..=1 << 30).contains(&config.message_limit), "`message_limit` must be 1 B to 1 GiB"),
        (
            config.part_window == 0 || (4_096..=1 << 30).contains(&config.part_window),
            "`part_window` must be 4,096 to 2^30, or 0 for no calls in parts",
        ),
    ]
}

fn memory(config: &TransportConfig) -> Vec<Check> {
    vec![
        (config.memory_max >= MEMORY_MIN, "`memory_max` must be at least 64 KiB"),
        (
            config.memory_max as u64 >= u64::from(config.message_limit),
            "`memory_max` must be at least `message_limit`: the largest message has to fit",
        ),
        (
            config.incoming_max >= config.unscheduled,
            "`incoming_max` must be at least `unscheduled`",
        ),
        (config.sessions_max > 0, "`sessions_max` must not be 0"),
        (
            config.incast_calls > 0,
            "`incast_calls` must not be 0: every reply would be held to its first record",
        ),
    ]
}

fn times(config: &TransportConfig) -> Vec<Check> {
    let (millisecond, hour) = (Duration::from_millis(1), Duration::from_secs(3_600));
    vec![
        (
            (millisecond..=hour).contains(&config.resend_interval),
            "`resend_interval` must be 1 ms to an hour",
        ),
        (
            (Duration::from_millis(100)..=hour).contains(&config.silence_max),
            "`silence_max` must be 100 ms to an hour: a peer that only pauses would be taken for dead",
        ),
        (
            config.silence_max > config.resend_interval,
            "`silence_max` must be longer than `resend_interval`: nobody would be asked before the peer is given up",
        ),
        (config.idle_life >= Duration::from_millis(100), "`idle_life` must be at least 100 ms"),
    ]
}

/// The least memory for messages.
const MEMORY_MIN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with which a choice is refused.
    fn refused(change: impl FnOnce(&mut TransportConfig)) -> String {
        let mut config = TransportConfig::default();
        change(&mut config);
        check(&config).expect_err("it was accepted").to_string()
    }

    #[test]
    fn the_defaults_are_in_range() {
        check(&TransportConfig::default()).unwrap();
    }

    #[test]
    fn a_choice_out_of_range_is_refused_by_its_name() {
        let refusals = [
            ("index_bits", refused(|config| config.index_bits = 7)),
            ("record_size", refused(|config| config.record_size = 16_385)),
            ("first_record_size", refused(|config| config.first_record_size = 1_143)),
            ("first_record_size", refused(|config| config.record_size = 64)),
            ("window", refused(|config| config.window = 100)),
            ("stripes_log2", refused(|config| config.stripes_log2 = 9)),
            ("datagram_limit", refused(|config| config.datagram_limit = 65_508)),
            ("batch_max", refused(|config| config.batch_max = 0)),
            ("unscheduled", refused(|config| config.unscheduled = 1_000)),
            ("message_limit", refused(|config| config.message_limit = 0)),
            ("message_limit", refused(|config| config.message_limit = u32::MAX)),
            ("part_window", refused(|config| config.part_window = 4_095)),
            ("memory_max", refused(|config| config.memory_max = 1_000)),
            ("memory_max", refused(|config| config.memory_max = (64 << 20) - 1)),
            ("incoming_max", refused(|config| config.incoming_max = 0)),
            ("sessions_max", refused(|config| config.sessions_max = 0)),
            ("incast_calls", refused(|config| config.incast_calls = 0)),
            ("resend_interval", refused(|config| config.resend_interval = Duration::ZERO)),
            ("silence_max", refused(|config| config.silence_max = Duration::ZERO)),
            ("silence_max", refused(|config| config.resend_interval = Duration::from_secs(2))),
            ("idle_life", refused(|config| config.idle_life = Duration::ZERO)),
        ];
        for (name, text) in refusals {
            assert!(text.contains(&format!("`{name}` must")), "{name}: {text}");
            assert!(text.starts_with("caller: "), "{text}");
        }
    }

    #[test]
    fn an_attempt_to_connect_has_some_time_and_not_for_ever() {
        for deadline in [Duration::ZERO, Duration::MAX] {
            assert!(check_connect_deadline(deadline).is_err());
        }
        check_connect_deadline(Duration::from_secs(5)).unwrap();
    }
}
