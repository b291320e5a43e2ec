// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One handshake by ticket, of either side (SPEC §6.7).
//!
//! Flow: 1. the client agrees with the ticket's share and sends hello, binder and, sealed, its
//! certificate  2. the server looks the ticket up, checks the binder before it does more, and has
//! the session's secrets  3. its hello and finished give them to the client  4. an empty flight 3
//! carries the client's CONFIRM, which shows that it has them too (SPEC §6.5).

pub(super) mod client;
mod client_proof;
pub(super) mod server;

use smt_proto::key_exchange::HandshakeFailure;
use smt_record::{AwsLc, SessionSecrets, Side, parameter_hash};

use super::schedule::{HandshakeSecret, TranscriptHash};
use crate::failure::{caller, malformed};

/// The parameters of both sides, which enter the session's secrets.
#[derive(Debug, Default)]
struct BothParams {
    client: Vec<u8>,
    server: Vec<u8>,
}

impl BothParams {
    fn session_secrets(&self, secret: &HandshakeSecret, hellos: &TranscriptHash) -> SessionSecrets {
        let hash = parameter_hash(&AwsLc, &self.client, &self.server);
        secret.session_secrets(hellos, &hash)
    }
}

fn out_of_turn(flight: u8, peer: Side) -> HandshakeFailure {
    malformed(format!("flight {flight} of the {peer} is out of turn"))
}

fn not_begun() -> HandshakeFailure {
    caller("the attempt has no parameters of its own yet".to_owned())
}

fn bad_length(peer: Side) -> HandshakeFailure {
    malformed(format!("the {peer}'s flight is cut short, or continues after its end"))
}

fn bad_share(peer: Side) -> HandshakeFailure {
    malformed(format!("the {peer}'s share is none of the ticket's group"))
}
