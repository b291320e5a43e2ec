// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts with which an endpoint and all its shards begin: choices, credentials, boot number and
//! reset key.
//!
//! Shards only read it, and hardly that: an endpoint has a copy of the choices, and asks for the
//! rest when a session begins.

use std::sync::Arc;

use smt_carrier::{Carrier, Sealing};
use smt_handshake::HmacTokens;
use smt_proto::key_exchange::{KeyExchangeProvider, TokenMac};
use smt_proto::{Config, Endpoint};
use smt_record::KeyLog;
use smt_wire::Shard;

use super::role::Role;
use super::{Builder, ranges};
use crate::clock::{Clock, WallTimeTold};
use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::state_file::{BOOTS, StateFile};
use crate::state_lock::StateLock;

/// The parts from which endpoints are made.
pub(crate) struct EndpointParts {
    config: Config,
    provider: Arc<dyn KeyExchangeProvider>,
    /// Those of the provider that may be replaced; all shards share them.
    pub(crate) credentials: Credentials,
    mac: Arc<dyn TokenMac>,
    key_log: Option<Arc<dyn KeyLog>>,
    pub(crate) clock: Clock,
    pub(crate) has_dscp: bool,
    /// Every shard holds it as long as it lives.
    pub(crate) state_lock: Option<Arc<StateLock>>,
}

impl<R: Role> Builder<R> {
    /// Takes the next boot number: once for all shards.
    pub(crate) fn endpoint_parts(&self) -> Result<EndpointParts, OpenError> {
        ranges::check(&self.config)?;
        ranges::check_connect_deadline(self.connect_deadline)?;
        let exchanges = self.role.key_exchanges()?;
        // Last: what is refused takes no boot number.
        let state_file = match &self.state_file {
            Some(path) => StateFile::next(path)?,
            None => StateFile::ephemeral()?,
        };
        let mut config = Config::from(self.config.clone());
        config.accept = R::ACCEPTS;
        config.version = R::VERSION;
        config.boot = state_file.boot;
        config.boots = BOOTS;
        config.durable_boot = state_file.is_durable;
        Ok(EndpointParts {
            config,
            provider: exchanges.provider,
            credentials: exchanges.credentials,
            mac: Arc::new(HmacTokens::new(*state_file.seed)),
            key_log: self.key_log.clone(),
            clock: Clock::new(),
            has_dscp: self.has_dscp,
            state_lock: state_file.lock.map(Arc::new),
        })
    }
}

impl EndpointParts {
    /// One shard's endpoint, which knows the wall time, the carrier's abilities and how much it can
    /// hold.
    pub(crate) fn endpoint(
        &self,
        shard: Shard,
        carrier: &dyn Carrier,
        receive_buffer_bytes: Option<usize>,
    ) -> OpenedEndpoint {
        let mut config = self.config.clone();
        config.shard = shard;
        if let Some(bytes) = receive_buffer_bytes {
            // The kernel counts a packet's buffers too, up to twice its bytes.
            let third = u32::try_from(bytes / 3).unwrap_or(u32::MAX);
            config.incoming_max = config.incoming_max.min(third.max(config.unscheduled));
        }
        let mut endpoint = Endpoint::new(config, Arc::clone(&self.provider), Arc::clone(&self.mac));
        let capabilities = carrier.capabilities();
        let has_priorities = capabilities.priorities && self.has_dscp;
        endpoint.set_capabilities(capabilities.with_priorities(has_priorities));
        if capabilities.seals == Sealing::WholeRecords
            && let Some(store) = carrier.keys()
        {
            endpoint.set_key_store(store);
        }
        if capabilities.seals_packets
            && let Some(associations) = carrier.associations()
        {
            endpoint.set_associations(associations);
        }
        if let Some(log) = &self.key_log {
            endpoint.set_key_log(Arc::clone(log));
        }
        let mut wall_time_told = WallTimeTold::default();
        wall_time_told.tell(self.clock.now(), &mut endpoint);
        OpenedEndpoint { endpoint, wall_time_told }
    }
}

/// An endpoint, and when it was told the wall time.
pub(crate) struct OpenedEndpoint {
    pub(crate) endpoint: Endpoint,
    pub(crate) wall_time_told: WallTimeTold,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use smt_carrier::Path;
    use smt_handshake::PlaintextProvider;
    use smt_io::MemoryCarrier;
    use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure};
    use smt_proto::{Time, WallTime};

    use super::*;

    /// Keeps the wall times that attempts are told.
    #[derive(Default)]
    struct Told(Mutex<Vec<Option<WallTime>>>);

    impl Told {
        fn last(&self) -> Option<WallTime> {
            self.0.lock().unwrap().last().copied().flatten()
        }
    }

    impl KeyExchangeProvider for Told {
        fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
            self.0.lock().unwrap().push(request.wall);
            PlaintextProvider.client(request)
        }

        fn server(
            &self,
            params: &[u8],
            wall: Option<WallTime>,
        ) -> Result<Attempt, HandshakeFailure> {
            self.0.lock().unwrap().push(wall);
            PlaintextProvider.server(params, wall)
        }
    }

    #[test]
    fn an_endpoint_knows_the_wall_time_when_it_is_opened_and_goes_on_with_the_hosts_clock() {
        let told = Arc::new(Told::default());
        let trust = crate::pki::EphemeralCa::new().unwrap().trust().unwrap();
        let mut parts = crate::client(trust).endpoint_parts().unwrap();
        parts.provider = Arc::<Told>::clone(&told);
        let host = || Clock::wall_time().unwrap();
        let before = host();
        let OpenedEndpoint { mut endpoint, mut wall_time_told } =
            parts.endpoint(Shard::default(), &MemoryCarrier::pair().0, None);
        let wall_at = |endpoint: &mut Endpoint, now: Time| {
            let path = Path::to(([127, 0, 0, 1], 1).into());
            let deadline = Duration::from_secs(5);
            endpoint.connect(now, path, "server", deadline).unwrap();
            told.last().expect("it was told")
        };
        let opened = parts.clock.now();
        assert!((before..=host()).contains(&wall_at(&mut endpoint, opened)));
        // The endpoint reckons on, far from the host's clock, until it is told again.
        let later = opened + Duration::from_secs(3_600);
        assert!(wall_at(&mut endpoint, later).as_secs() >= before.as_secs() + 3_600);
        wall_time_told.tell(later, &mut endpoint);
        assert!((before..=host()).contains(&wall_at(&mut endpoint, later)));
    }
}
