// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of an endpoint: what bounds it (`accounting`), and what is used again instead of
//! allocated.

pub(crate) mod accounting;
pub(crate) mod buffer_pool;
pub(crate) mod cipher_cache;
pub(crate) mod object_pool;
pub(crate) mod small_bodies;
