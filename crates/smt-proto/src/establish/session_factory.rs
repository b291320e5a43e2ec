// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts from which an endpoint makes sessions: key exchange, cipher library, key log and the
//! salt of their hash tables.

use alloc::sync::Arc;

use smt_carrier::Associations;
use smt_record::{
    CryptoProvider, Exporter, KeyLog, KeyLogContext, OpenKeys, SealKeys, SessionSecrets, Side,
};
use smt_wire::KeyExchange;

use crate::collections::id_map::Salt;
use crate::config::Config;
use crate::establish::agreement::{Disagreement, Indices, may_seal_packets};
use crate::establish::association_room::AssociationRoom;
use crate::key_exchange::KeyExchangeProvider;
use crate::time::{Time, WallClock, WallTime};

/// The libraries behind an endpoint, as its owner chose them.
pub(crate) struct CryptoContext {
    pub(crate) provider: Arc<dyn KeyExchangeProvider>,
    pub(crate) library: CryptoProvider,
    pub(crate) key_log: Option<Arc<dyn KeyLog>>,
    pub(crate) table_salt: Salt,
    /// The wall time, if the endpoint's owner has told it.
    pub(crate) wall: Option<WallClock>,
    /// The associations of a carrier that seals whole packets.
    pub(crate) associations: Option<Arc<dyn Associations>>,
}

/// The parts from which a handshake of either side is made.
#[derive(Clone, Copy)]
pub(crate) struct SessionFactory<'a> {
    pub(crate) config: &'a Config,
    pub(crate) crypto: &'a CryptoContext,
}

impl CryptoContext {
    pub(crate) fn new(
        provider: Arc<dyn KeyExchangeProvider>,
        library: CryptoProvider,
        table_salt: Salt,
    ) -> Self {
        Self { provider, library, key_log: None, table_salt, wall: None, associations: None }
    }
}

impl SessionFactory<'_> {
    pub(crate) fn provider(&self) -> &dyn KeyExchangeProvider {
        self.crypto.provider.as_ref()
    }

    /// The wall time at `now`, if it is known.
    pub(crate) fn wall(&self, now: Time) -> Option<WallTime> {
        self.crypto.wall.map(|clock| clock.wall_at(now))
    }

    /// Room for an association of a session after a key exchange of this kind. `None`: its records
    /// are sealed.
    pub(crate) fn association_room(&self, kind: KeyExchange) -> Option<AssociationRoom> {
        let associations = self.crypto.associations.as_ref();
        associations.filter(|_| may_seal_packets(kind)).and_then(AssociationRoom::reserve)
    }

    /// The keys of a side and the exporter, from the session's secrets. Records have no seal of
    /// their own if the sides have agreed on a version of PSP.
    ///
    /// # Errors
    /// Secrets that protect nothing, in an endpoint that is not of the plaintext version (SPEC
    /// §14), or keys in one that is: no configuration of the key exchange can talk an encrypted
    /// endpoint into sending plaintext.
    pub(crate) fn keys(
        &self,
        side: Side,
        indices: Indices,
        secrets: SessionSecrets,
        psp_version: Option<u8>,
    ) -> Result<(SealKeys, OpenKeys, Exporter), Disagreement> {
        let is_plaintext_version = self.config.version == smt_wire::PLAINTEXT_VERSION;
        if secrets.is_plaintext() != is_plaintext_version {
            return Err(Disagreement::Plaintext);
        }
        let log = |index, side| {
            self.crypto.key_log.as_ref().map(|log| KeyLogContext {
                log: Arc::clone(log),
                index,
                side,
            })
        };
        let SessionSecrets { suite, client, server, exporter } = secrets;
        let (own, peer) = if side == Side::Client { (client, server) } else { (server, client) };
        let (limits, library) = (self.config.key_limits, &self.crypto.library);
        let seal_log = log(indices.remote, side);
        let open_log = log(indices.own, side.peer());
        let seal = SealKeys::with_provider(own, suite, limits, seal_log, library.clone());
        let open = OpenKeys::with_provider(peer, suite, limits, open_log, library.clone());
        Ok(match psp_version {
            None => (seal, open, exporter),
            Some(_) => (seal.leave_records_to_packets(), open.leave_records_to_packets(), exporter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_exchange::{Attempt, ClientRequest, HandshakeFailure};
    use crate::time::WallTime;
    use smt_record::Suite;
    use smt_wire::SessionIndex;
    use std::prelude::v1::*;

    /// Is never asked.
    struct NoExchange;

    impl KeyExchangeProvider for NoExchange {
        fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
            unreachable!("no attempt is made")
        }
        fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
            unreachable!("no attempt is made")
        }
    }

    fn is_accepted(version: u8, secrets: SessionSecrets) -> bool {
        let crypto = CryptoContext::new(Arc::new(NoExchange), CryptoProvider::aws_lc(), Salt(0));
        let config = Config { version, ..Config::default() };
        let factory = SessionFactory { config: &config, crypto: &crypto };
        let indices =
            Indices { own: SessionIndex(1), remote: SessionIndex(2), own_reset_token: [0; 16] };
        factory.keys(Side::Client, indices, secrets, None).is_ok()
    }

    fn real() -> SessionSecrets {
        let export = |out: &mut [u8], _: &str, _: &[u8]| {
            out.fill(7);
            Ok::<(), ()>(())
        };
        SessionSecrets::from_exporter(Suite::Aes128Gcm, &[0; 32], export).unwrap()
    }

    // SMT [6.3-7]
    #[test]
    fn an_encrypted_endpoint_takes_no_plaintext_and_the_other_no_keys() {
        assert!(is_accepted(smt_wire::VERSION, real()));
        assert!(!is_accepted(smt_wire::VERSION, SessionSecrets::plaintext()));
        let plaintext_version = smt_wire::PLAINTEXT_VERSION;
        assert!(is_accepted(plaintext_version, SessionSecrets::plaintext()));
        assert!(!is_accepted(plaintext_version, real()));
    }
}
