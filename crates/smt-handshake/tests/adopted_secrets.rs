// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A secret that is registered more than once, also in several processes, never gives the same
//! session keys twice (SPEC §7.2): each side's fresh random sees to it alone.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use harness::{Side, run};
use smt_handshake::{KeyEnds, RegisteredKey, RegisteredProvider, TlsTrafficKey};
use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};
use smt_record::{SessionSecrets, Suite};

const CLIENT: KeyEnds<'static> = KeyEnds { own: "client", peer: "server" };

const SERVER: KeyEnds<'static> = KeyEnds { own: "server", peer: "client" };

/// A way to register one secret.
type Register = fn(KeyEnds<'_>) -> RegisteredKey;

/// All ways, each with the same secret whenever it is called.
const WAYS: [Register; 2] = [from_secret, from_tls_keys];

fn from_secret(ends: KeyEnds<'_>) -> RegisteredKey {
    RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[5; 32]).unwrap()
}

fn from_tls_keys(ends: KeyEnds<'_>) -> RegisteredKey {
    let [client, server] =
        [(&[1; 16], &[2; 12]), (&[3; 16], &[4; 12])].map(|(key, iv)| TlsTrafficKey { key, iv });
    RegisteredKey::from_tls_keys(b"k", ends, Suite::Aes128Gcm, client, server).unwrap()
}

/// A client and a server of a process that registers the secret by itself.
fn process(register: Register) -> (RegisteredProvider, RegisteredProvider) {
    (
        RegisteredProvider::client(register(CLIENT)),
        RegisteredProvider::server(vec![register(SERVER)]).unwrap(),
    )
}

/// A provider whose attempts all have the same random.
struct SameRandom<'a>(&'a RegisteredProvider);

impl KeyExchangeProvider for SameRandom<'_> {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        self.0.client(request).map(same_random)
    }

    fn server(&self, params: &[u8], wall: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        self.0.server(params, wall).map(same_random)
    }
}

fn same_random(mut attempt: Attempt) -> Attempt {
    attempt.key.as_mut().expect("it names a key").random = [9; 32];
    attempt
}

fn secrets(client: &dyn KeyExchangeProvider, server: &dyn KeyExchangeProvider) -> SessionSecrets {
    let (at_client, at_server) = run(client, server).both();
    assert_eq!(at_client.secrets, at_server.secrets);
    at_client.secrets
}

/// Not one of the five secrets of a session is any of another's.
#[track_caller]
fn assert_nothing_in_common(sessions: &[SessionSecrets]) {
    let all: Vec<_> = sessions
        .iter()
        .flat_map(|session| [&session.client, &session.server])
        .flat_map(|direction| [&direction.data, &direction.control])
        .collect();
    assert_eq!(all.len(), 4 * sessions.len());
    for (place, secret) in all.iter().enumerate() {
        assert!(!all[..place].contains(secret), "secret {place}");
    }
    for (place, session) in sessions.iter().enumerate() {
        let before = &sessions[..place];
        assert!(before.iter().all(|other| other.exporter != session.exporter));
    }
}

#[test]
fn processes_that_register_one_secret_share_no_session_keys() {
    for register in WAYS {
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let (client, server) = process(register);
            sessions.push(secrets(&client, &server));
            sessions.push(secrets(&client, &server));
        }
        // Across the processes too.
        let (client, _) = process(register);
        let (_, server) = process(register);
        sessions.push(secrets(&client, &server));
        assert_nothing_in_common(&sessions);
    }
}

#[test]
fn a_fresh_random_of_one_side_suffices() {
    for register in WAYS {
        let (client, server) = process(register);
        let by_server = || secrets(&SameRandom(&client), &server);
        let by_client = || secrets(&client, &SameRandom(&server));
        assert_nothing_in_common(&[by_server(), by_server(), by_client(), by_client()]);
    }
}

/// All that the tests above compare would be equal but for the randoms.
#[test]
fn sessions_of_one_secret_differ_by_the_randoms_alone() {
    for register in WAYS {
        let (one, other) = (process(register), process(register));
        let of = |(client, server): &(RegisteredProvider, RegisteredProvider)| {
            secrets(&SameRandom(client), &SameRandom(server))
        };
        assert_eq!(of(&one), of(&other));
        let client_params = Side::client(&one.0).params;
        let again = Side::client(&one.0).params;
        let changed = client_params.iter().zip(&again).filter(|(a, b)| a != b);
        assert!((1..=32).contains(&changed.count()));
        assert_eq!(client_params.len(), again.len());
    }
}
