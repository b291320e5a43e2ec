// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configurations that tests share.

use smt_proto::Config;
use smt_record::KeyLimits;

/// Datagrams of an Ethernet frame: records span several of them.
pub fn ethernet() -> Config {
    let mut config = Config::default();
    config.datagram_limit = 1_472;
    config
}

/// Keys that are used up after few records.
pub fn short_lived_keys() -> Config {
    let mut config = ethernet();
    config.key_limits = KeyLimits::new(64, 48, 1 << 20).unwrap();
    config
}
