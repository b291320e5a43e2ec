// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in PSP: two carriers whose devices seal and open them.

mod a_driver_in_any_order;
mod associations_come_and_go;
mod packets_arrive_sealed;
mod pair;
mod threads_share_a_device;
mod wire;
