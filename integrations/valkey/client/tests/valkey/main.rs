// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stock Valkey server, or Redis 7.0, with the module, and clients over TCP and SMT.
//! `integrations/valkey/test` says where servers, module and certificates are.

mod cluster;
mod commands;
mod connection;
mod fleet;
mod hostile;
mod killed;
mod one_socket;
mod redis_7;
mod reload;
mod replica;
mod server;
mod side_by_side;
mod tunnel;
mod users;
