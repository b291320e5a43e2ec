// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where TLS takes what is not determined by its inputs: key shares, randomness, the date.
//!
//! By default from aws-lc and the host. A simulator gives its own, so that a run repeats from its
//! seed; nothing else should.

use std::sync::Arc;

use rustls::crypto::{SecureRandom, SupportedKxGroup};
use rustls::time_provider::TimeProvider;

/// Replacements for the host's randomness and clock in a [`crate::TlsProvider`].
#[derive(Clone, Debug)]
pub struct EntropySources {
    /// Key exchange groups, preferred first; they make the ephemeral keys.
    pub groups: Vec<&'static dyn SupportedKxGroup>,
    /// Hello randoms and everything else that TLS draws.
    pub random: &'static dyn SecureRandom,
    /// The date by which certificates are judged.
    pub time: Arc<dyn TimeProvider>,
}
