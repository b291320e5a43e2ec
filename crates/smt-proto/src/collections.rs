// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data structures that know nothing of the protocol.

pub(crate) mod address_token_buckets;
pub(crate) mod byte_ranges;
pub(crate) mod id_map;
pub(crate) mod step_count;
pub(crate) mod token_bucket;
