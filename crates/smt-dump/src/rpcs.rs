// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The RPCs of a capture: a row for each, from its first packet to its outcome.
//!
//! 1. A packet's session is found by its handshake (`terms`), and tells the client, the server and
//!    the bit of ids that says which of them called. Without the handshake the server is the one
//!    with the port that is shown.
//! 2. DATA to the callee is the request, DATA to the caller the reply. A message is whole when all
//!    of its bytes have been seen.
//! 3. Rows are told at the end, in the order in which they began; of more than [`ROWS_MAX`] the
//!    oldest leave before.
//!
//! Members of bundles are seen with a key log alone.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use smt_wire::{Body, Control, Data, InnerHeader, Kind, MessageId, SessionIndex};

use crate::row::Fact;
use crate::rpc::{Part, Rpc};
use crate::terms::{Direction, Terms};

/// All RPCs that were not told yet.
#[derive(Default)]
pub(crate) struct Rpcs {
    rows: BTreeMap<u64, Rpc>,
    places: HashMap<Key, u64>,
    next: u64,
}

/// The two ends of a packet's session.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The index in packets to the client; `None` if the handshake was not captured.
    pub(crate) client_session: Option<SessionIndex>,
    /// The index in packets to the server.
    pub(crate) server_session: Option<SessionIndex>,
    /// The logarithm of the number of stripes (SPEC §4.1).
    pub(crate) stripes_log2: u8,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Key {
    ends: Ends,
    id: MessageId,
}

/// A DATA packet and what is known of it.
pub(crate) struct Piece<'a> {
    pub(crate) time: Duration,
    pub(crate) to: Direction,
    pub(crate) data: &'a Data<'a>,
    pub(crate) terms: Terms,
    /// The facts that its records have brought to light, if there is a key log.
    pub(crate) facts: &'a [Fact],
}

impl Ends {
    /// The indexes of both directions, as far as they are known.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionIndex> {
        let both = [self.client_session, self.server_session];
        both.into_iter().flatten()
    }

    /// The side that started the messages of this id, and the other one.
    fn caller_and_callee(&self, id: MessageId) -> (SocketAddr, SocketAddr) {
        match id.0 >> self.stripes_log2 & 1 {
            0 => (self.client, self.server),
            _ => (self.server, self.client),
        }
    }
}

impl Rpcs {
    /// Takes a DATA packet. Gives a row that has to leave.
    pub(crate) fn take_data(&mut self, ends: Ends, piece: &Piece<'_>) -> Option<Rpc> {
        let header = piece.data.header;
        let key = Key { ends, id: header.id };
        let is_bundle = piece.facts.iter().any(|fact| match fact {
            Fact::First(Ok(header)) => header.kind == Kind::Bundle,
            Fact::Bundle(..) => true,
            _ => false,
        });
        let rpc = self.row(key, piece);
        let part = rpc.part_to(piece.to.target);
        let start = header.offset as usize;
        part.take(piece.time, start, start + piece.data.payload.len());
        let stream = piece.terms.geometry.stream_length(header.message_length);
        part.length = header.message_length.saturating_sub(InnerHeader::LEN as u32);
        part.end(piece.time, stream as usize);
        rpc.retransmissions += u32::from(header.retransmit);
        for fact in piece.facts {
            if let Fact::First(Ok(header)) = fact {
                rpc.tell(header.kind, header.true_length, header.failure);
            }
        }
        if is_bundle {
            // Its members are the RPCs.
            self.remove(key);
        }
        for fact in piece.facts {
            if let Fact::Member(header, _) = fact {
                let rpc = self.row(Key { ends, id: header.id }, piece);
                let length = u32::from(header.length);
                let part = rpc.part_to(piece.to.target);
                part.take(piece.time, 0, 1);
                part.end(piece.time, 1);
                rpc.tell(header.kind, length, header.failure);
            }
        }
        (self.rows.len() > ROWS_MAX).then(|| self.oldest()).flatten()
    }

    /// Takes a control packet.
    pub(crate) fn take_control(&mut self, ends: Ends, control: &Control<'_>) {
        let mut each = |id: MessageId, change: &mut dyn FnMut(&mut Rpc)| {
            let place = self.places.get(&Key { ends, id });
            if let Some(rpc) = place.and_then(|place| self.rows.get_mut(place)) {
                change(rpc);
            }
        };
        match control.body {
            Body::Resend(list) => {
                list.iter().for_each(|resend| each(resend.id, &mut |rpc| rpc.resend_requests += 1))
            }
            Body::Ack(list) => {
                let ids = list.iter().flat_map(|ack| ack.ids(ends.stripes_log2));
                ids.for_each(|id| each(id, &mut |rpc| rpc.is_acknowledged = true));
            }
            Body::Cancel(list) => {
                list.iter().for_each(|id| each(id, &mut |rpc| rpc.is_cancelled = true))
            }
            Body::Voided(list) | Body::NeverSeen(list) => {
                list.iter().for_each(|id| each(id, &mut |rpc| rpc.is_void = true))
            }
            Body::Abort(abort) => each(abort.id, &mut |rpc| rpc.abort = Some(abort.code)),
            _ => {}
        }
    }

    /// The row that began first, if there is any.
    pub(crate) fn oldest(&mut self) -> Option<Rpc> {
        let (_, rpc) = self.rows.pop_first()?;
        self.places.remove(&Key { ends: rpc.ends, id: rpc.id });
        Some(rpc)
    }

    fn row(&mut self, key: Key, piece: &Piece<'_>) -> &mut Rpc {
        let place = *self.places.entry(key).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.rows.entry(place).or_insert_with(|| {
            let (caller, callee) = key.ends.caller_and_callee(key.id);
            Rpc {
                ends: key.ends,
                began: piece.time,
                caller,
                callee,
                id: key.id,
                session: piece.to.session,
                kind: None,
                request: Part::default(),
                reply: Part::default(),
                retransmissions: 0,
                resend_requests: 0,
                is_acknowledged: false,
                is_cancelled: false,
                is_void: false,
                abort: None,
                failure: None,
            }
        })
    }

    fn remove(&mut self, key: Key) {
        if let Some(place) = self.places.remove(&key) {
            self.rows.remove(&place);
        }
    }
}

/// RPCs of which rows are kept at most: a capture that is read as it is made has no end.
const ROWS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::Sealed;
    use smt_wire::{Abort, ControlHeader, ControlNumber, DataHeader};

    const CLIENT: SessionIndex = SessionIndex::new(1, 1);
    const SERVER: SessionIndex = SessionIndex::new(2, 2);

    fn ends() -> Ends {
        Ends {
            client: "10.0.0.1:1000".parse().unwrap(),
            server: "10.0.0.2:17379".parse().unwrap(),
            client_session: Some(CLIENT),
            server_session: Some(SERVER),
            stripes_log2: 1,
        }
    }

    /// A message of this id in one packet, at a time in microseconds, to the server or the client.
    fn take(rpcs: &mut Rpcs, id: u64, us: u64, to: SessionIndex) -> Option<Rpc> {
        let target = match to == SERVER {
            true => ends().server,
            false => ends().client,
        };
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session: to,
            id: MessageId(id),
            message_length: 50,
            offset: 0,
        };
        let stream = Terms::usual(Sealed::Records).geometry.stream_length(50) as usize;
        let piece = Piece {
            time: Duration::from_micros(us),
            to: Direction { target, session: to },
            data: &Data { header, payload: &vec![0; stream] },
            terms: Terms::usual(Sealed::Records),
            facts: &[],
        };
        rpcs.take_data(ends(), &piece)
    }

    fn control(rpcs: &mut Rpcs, body: Body<'_>) {
        let header = ControlHeader { epoch: 0, session: CLIENT, number: ControlNumber::default() };
        let control = Control { header, body, aad: &[], sealed: &[] };
        rpcs.take_control(ends(), &control);
    }

    #[test]
    fn the_latency_goes_from_the_request_to_the_end_of_the_reply() {
        let mut rpcs = Rpcs::default();
        assert!(take(&mut rpcs, 4, 1_000, SERVER).is_none());
        take(&mut rpcs, 4, 1_250, CLIENT);
        take(&mut rpcs, 4, 9_000, CLIENT);
        let object = rpcs.oldest().unwrap().object();
        assert_eq!(object["latency_us"], 250.0);
        assert_eq!((&object["request_bytes"], &object["packets"]), (&10.into(), &3.into()));
        assert_eq!(object["outcome"], "replied");
        assert!(rpcs.oldest().is_none());
    }

    #[test]
    fn the_initiator_bit_says_who_called() {
        let mut rpcs = Rpcs::default();
        // Bit 1: there are two stripes.
        take(&mut rpcs, 2, 0, CLIENT);
        take(&mut rpcs, 1, 0, SERVER);
        let callers = [(); 2].map(|()| rpcs.oldest().unwrap().caller);
        assert_eq!(callers, [ends().server, ends().client]);
    }

    #[test]
    fn rpcs_without_a_reply_have_the_outcome_that_control_packets_tell() {
        let outcome = |bodies: &[Body<'_>]| {
            let mut rpcs = Rpcs::default();
            take(&mut rpcs, 4, 0, SERVER);
            bodies.iter().for_each(|body| control(&mut rpcs, *body));
            let rpc = rpcs.oldest().unwrap();
            assert_eq!(rpc.object()["latency_us"], serde_json::Value::Null);
            rpc.to_string()
        };
        let ids = [MessageId(4)];
        let abort = Body::Abort(Abort { id: MessageId(4), code: 5 });
        for (bodies, text) in [
            (&[][..], "  no reply"),
            (&[Body::Cancel((&ids).into())], "  cancelled"),
            (
                &[Body::Cancel((&ids).into()), Body::Voided((&ids).into())],
                "  cancelled, did not run",
            ),
            (&[abort], "  aborted (overloaded)"),
        ] {
            let row = outcome(bodies);
            assert!(row.ends_with(text), "{row}");
        }
        // An RPC that was not seen before stays unseen.
        let mut rpcs = Rpcs::default();
        control(&mut rpcs, abort);
        assert!(rpcs.oldest().is_none(), "control packets begin no row");
    }

    #[test]
    fn a_capture_without_end_takes_no_memory_without_end() {
        let mut rpcs = Rpcs::default();
        let left: Vec<Rpc> =
            (0..ROWS_MAX as u64 + 2).filter_map(|n| take(&mut rpcs, n << 2, n, SERVER)).collect();
        assert_eq!(left.iter().map(|rpc| rpc.id.0).collect::<Vec<_>>(), [0, 4]);
        assert_eq!((rpcs.rows.len(), rpcs.places.len()), (ROWS_MAX, ROWS_MAX));
    }
}
