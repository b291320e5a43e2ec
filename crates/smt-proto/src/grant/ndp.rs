// SPDX-License-Identifier: Apache-2.0 OR MIT
//! NDP's receiver (SPEC §9.10): pulls at the pace of this host's link, and packets that the network
//! has trimmed to their headers.

pub(crate) mod pacer;
pub(crate) mod pull;
pub(crate) mod trimmed;
