// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events for C. Each lends its texts until the next event; bodies are given away.

use std::ffi::c_void;
use std::ptr;

use smt_transport::polled::{Event, PeerIdentity, RpcId, SessionIndex};
use smt_transport::{Bytes, OneWayOutcome};

use crate::clients::Distrusted;
use crate::endpoint::EndpointForC;
use crate::peer::{LentPeer, PeerForC};

/// An `smt_slice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) data: *const u8,
    pub(crate) length: usize,
}

impl Slice {
    /// These bytes, for as long as they live.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() }
    }

    const fn empty() -> Self {
        Self { data: ptr::null(), length: 0 }
    }
}

/// An `smt_rpc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RpcForC {
    pub(crate) session: u64,
    pub(crate) id: u64,
}

impl RpcForC {
    pub(crate) const NONE: Self = Self { session: 0, id: 0 };

    pub(crate) const fn to_rpc(self) -> RpcId {
        RpcId { session: SessionIndex(self.session), id: smt_transport::polled::MessageId(self.id) }
    }
}

impl From<RpcId> for RpcForC {
    fn from(rpc: RpcId) -> Self {
        Self { session: rpc.session.0, id: rpc.id.0 }
    }
}

impl From<SessionIndex> for RpcForC {
    fn from(session: SessionIndex) -> Self {
        Self { session: session.0, id: 0 }
    }
}

/// An `smt_body`.
pub(crate) struct BodyForC {
    _bytes: Bytes,
}

/// An `smt_event`.
#[repr(C)]
pub(crate) struct EventForC {
    kind: u32,
    delivered: u32,
    rpc: RpcForC,
    data: *mut c_void,
    body: *mut BodyForC,
    bytes: Slice,
    peer: *const PeerForC,
    text: Slice,
}

impl EventForC {
    fn new(kind: u32, rpc: impl Into<RpcForC>) -> Self {
        Self {
            kind,
            delivered: 0,
            rpc: rpc.into(),
            data: ptr::null_mut(),
            body: ptr::null_mut(),
            bytes: Slice::empty(),
            peer: ptr::null(),
            text: Slice::empty(),
        }
    }

    fn with_body(mut self, body: Bytes) -> Self {
        // The bytes stay where they are when their handle moves.
        self.bytes = Slice::of(&body);
        self.body = Box::into_raw(Box::new(BodyForC { _bytes: body }));
        self
    }
}

/// The texts and addresses that the last event has lent.
#[derive(Default)]
pub(crate) struct Lent {
    peer: Option<Box<LentPeer>>,
    text: String,
}

impl Lent {
    fn peer(&mut self, peer: LentPeer) -> *const PeerForC {
        ptr::from_ref(self.peer.insert(Box::new(peer)).for_c())
    }

    fn text(&mut self, text: String) -> Slice {
        self.text = text;
        Slice::of(self.text.as_bytes())
    }

    fn distrusted(&mut self, refused: Distrusted) -> EventForC {
        EventForC { text: self.text(refused.why), ..EventForC::new(DISTRUSTED, refused.session) }
    }

    /// The event for C, which may point into `self` until the next one.
    fn event(&mut self, event: Event, local_port: u16) -> EventForC {
        match event {
            Event::Accepted { session, path, peer } => {
                let peer = LentPeer::new(path.remote, (path.local, local_port), peer);
                EventForC { peer: self.peer(peer), ..EventForC::new(ACCEPTED, session) }
            }
            Event::ClientRefused { path, reason } => {
                let nobody = PeerIdentity::default();
                let peer = LentPeer::new(path.remote, (path.local, local_port), nobody);
                EventForC {
                    peer: self.peer(peer),
                    text: self.text(reason.into()),
                    ..EventForC::new(REFUSED, SessionIndex(0))
                }
            }
            Event::Request { rpc, body, .. } => EventForC::new(REQUEST, rpc).with_body(body),
            Event::OneWay { rpc, body, .. } => EventForC::new(ONE_WAY, rpc).with_body(body),
            Event::Cancelled(rpc) => EventForC::new(CANCELLED, rpc),
            Event::OneWayDone { rpc, outcome } => EventForC {
                delivered: u32::from(outcome == OneWayOutcome::Delivered),
                ..EventForC::new(SENT, rpc)
            },
            Event::Unblocked(session) => EventForC::new(UNBLOCKED, session),
            Event::SessionEnded { session, end } => EventForC {
                text: self.text(end.to_string()),
                ..EventForC::new(SESSION_ENDED, session)
            },
            // Events of calls and connects, which a server alone does not make.
            _ => EventForC::new(OTHER, SessionIndex(0)),
        }
    }
}

/// Fills `event` and returns 1, or returns 0 if there is none.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed; `event` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_next_event(
    endpoint: *mut EndpointForC,
    event: *mut EventForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    let Some(next) = endpoint.next_event() else {
        return 0;
    };
    let mut next = endpoint.lent.event(next, endpoint.port);
    next.data = endpoint.data.of(next.rpc.session);
    if next.kind == SESSION_ENDED {
        endpoint.data.set(next.rpc.session, ptr::null_mut());
    }
    // SAFETY: the caller gives memory for an event, which need not hold one yet.
    unsafe { event.write(next) };
    1
}

/// Fills `event` with a session whose client would not be let in any more and returns 1, or returns
/// 0 if there is none.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed; `event` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_next_distrusted(
    endpoint: *mut EndpointForC,
    event: *mut EventForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    let Some(next) = endpoint.clients.next_refused() else {
        return 0;
    };
    let mut next = endpoint.lent.distrusted(next);
    next.data = endpoint.data.of(next.rpc.session);
    // SAFETY: the caller gives memory for an event, which need not hold one yet.
    unsafe { event.write(next) };
    1
}

/// Frees a body.
///
/// # Safety
/// `body` is null, or came with an event and was not freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_body_free(body: *mut BodyForC) {
    if !body.is_null() {
        // SAFETY: an event has given the box away, and the caller gives it back once.
        drop(unsafe { Box::from_raw(body) });
    }
}

const OTHER: u32 = 0;
const ACCEPTED: u32 = 1;
const REFUSED: u32 = 2;
const REQUEST: u32 = 3;
const ONE_WAY: u32 = 4;
const CANCELLED: u32 = 5;
const SENT: u32 = 6;
const UNBLOCKED: u32 = 7;
const SESSION_ENDED: u32 = 8;
const DISTRUSTED: u32 = 9;
