// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every entry of an endpoint under a name of its own, so that the object holds the core and
//! nothing else.
//!
//! `ci/core-checks` measures stack frames and counts panicking calls in it. The object is never
//! run: an allocator and a panic handler come from a kernel that links it.
#![cfg(target_os = "none")]
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::alloc::{GlobalAlloc, Layout};
use core::net::SocketAddr;
use core::panic::PanicInfo;
use core::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Path, Transmit};
use smt_proto::key_exchange::{KeyExchangeProvider, TokenMac};
use smt_proto::{
    CloseCode, Config, ConnectId, Endpoint, Event, Refused, RpcId, Time, TimerReason,
    TransmitBuffer,
};
use smt_record::{
    CryptoProvider, HashProvider, ImportedIdentity, ImportedKey, SessionSecrets, Suite,
};
use smt_wire::{AbortCode, SessionIndex};

#[unsafe(no_mangle)]
pub fn core_new(
    config: Config,
    provider: Arc<dyn KeyExchangeProvider>,
    mac: Arc<dyn TokenMac>,
    crypto: CryptoProvider,
) -> Box<Endpoint> {
    Box::new(Endpoint::with_crypto(config, provider, mac, crypto))
}

#[unsafe(no_mangle)]
pub fn core_handle_arrival(endpoint: &mut Endpoint, now: Time, arrival: Arrival<'_>) {
    endpoint.handle_arrival(now, arrival);
}

#[unsafe(no_mangle)]
pub fn core_handle_unreachable(endpoint: &mut Endpoint, now: Time, remote: SocketAddr) {
    endpoint.handle_unreachable(now, remote);
}

#[unsafe(no_mangle)]
pub fn core_handle_timeout(endpoint: &mut Endpoint, now: Time) {
    endpoint.handle_timeout(now);
}

#[unsafe(no_mangle)]
pub fn core_poll_timeout(endpoint: &Endpoint) -> Option<(Time, TimerReason)> {
    endpoint.poll_timeout()
}

#[unsafe(no_mangle)]
pub fn core_poll_transmit(
    endpoint: &mut Endpoint,
    now: Time,
    buffer: &mut TransmitBuffer,
) -> Option<Transmit> {
    endpoint.poll_transmit(now, buffer)
}

#[unsafe(no_mangle)]
pub fn core_poll_event(endpoint: &mut Endpoint) -> Option<Event> {
    endpoint.poll_event()
}

#[unsafe(no_mangle)]
pub fn core_connect(
    endpoint: &mut Endpoint,
    now: Time,
    path: Path,
    server_name: &str,
) -> Option<ConnectId> {
    endpoint.connect(now, path, server_name, Duration::from_secs(5)).ok()
}

#[unsafe(no_mangle)]
pub fn core_call(
    endpoint: &mut Endpoint,
    now: Time,
    session: SessionIndex,
    body: Bytes,
) -> Option<RpcId> {
    endpoint.call(now, session, body, None).ok()
}

#[unsafe(no_mangle)]
pub fn core_send_one_way(
    endpoint: &mut Endpoint,
    now: Time,
    session: SessionIndex,
    body: Bytes,
) -> Option<RpcId> {
    endpoint.send_one_way(now, session, body, None).ok()
}

#[unsafe(no_mangle)]
pub fn core_reply(
    endpoint: &mut Endpoint,
    now: Time,
    rpc: RpcId,
    body: Bytes,
) -> Result<(), Refused> {
    endpoint.reply(now, rpc, body)
}

#[unsafe(no_mangle)]
pub fn core_abort(endpoint: &mut Endpoint, now: Time, rpc: RpcId, code: AbortCode) -> bool {
    endpoint.abort(now, rpc, code).is_ok()
}

#[unsafe(no_mangle)]
pub fn core_cancel(endpoint: &mut Endpoint, now: Time, rpc: RpcId) -> bool {
    endpoint.cancel(now, rpc)
}

#[unsafe(no_mangle)]
pub fn core_close(endpoint: &mut Endpoint, session: SessionIndex, code: CloseCode) {
    endpoint.close(session, code);
}

#[unsafe(no_mangle)]
pub fn core_drain(endpoint: &mut Endpoint, now: Time) {
    endpoint.drain(now);
}

#[unsafe(no_mangle)]
pub fn core_free(endpoint: Box<Endpoint>) {
    drop(endpoint);
}

#[unsafe(no_mangle)]
pub fn core_imported_secrets(
    hash: &dyn HashProvider,
    suite: Suite,
    secret: &[u8],
    (name, client, server): (String, String, String),
) -> SessionSecrets {
    let identity = ImportedIdentity {
        key_name: name.as_bytes(),
        client: client.as_bytes(),
        server: server.as_bytes(),
    };
    let parameters = smt_record::parameter_hash(hash, client.as_bytes(), server.as_bytes());
    ImportedKey::new(hash, suite, secret, &identity).session_secrets(hash, &parameters)
}

/// The allocator of a kernel that links the object.
struct Linked;

unsafe extern "C" {
    fn linked_alloc(size: usize, align: usize) -> *mut u8;
    fn linked_free(memory: *mut u8, size: usize, align: usize);
    safe fn linked_panic() -> !;
}

// SAFETY: the object is never run. A kernel that links it gives both functions the contract of
// `GlobalAlloc`.
unsafe impl GlobalAlloc for Linked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { linked_alloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { linked_free(memory, layout.size(), layout.align()) }
    }
}

#[global_allocator]
static MEMORY: Linked = Linked;

#[panic_handler]
#[inline(never)]
fn panic(_: &PanicInfo<'_>) -> ! {
    linked_panic()
}
