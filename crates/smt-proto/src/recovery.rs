// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recovery from loss (SPEC §9.3, §9.4, §9.8): when to ask again, how much may be sent again, and
//! how large a datagram may be.

pub(crate) mod jitter;
pub(crate) mod pmtud;
pub(crate) mod retransmit_budget;
pub(crate) mod retry_timer;
pub(crate) mod rto;
