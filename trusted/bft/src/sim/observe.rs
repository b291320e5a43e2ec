// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For models of small sizes: all of a replica's state as a digest, and the parts that
//! properties are about.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_device_client::DeviceError;
use smt_replica::sim::{client_key, node_key};
use smt_replica::{Counter, Digest, Group, Options, SigningKey};

use crate::client::Client;
use crate::message::Batch;
use crate::replica::Replica;
use crate::sim::group::identity;

/// The parts of a replica that a model looks at.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The hash of all of its state. Two replicas with the same do the same on the same inputs.
    pub fingerprint: Digest,
    /// How far it has come with each stream, by device and epoch.
    pub streams: BTreeMap<(u32, u64), Progress>,
    /// The batches that it has executed, by place.
    pub executed: Vec<Batch>,
    /// The view in whose log it has found its last batches decided.
    pub decided: u64,
    /// The beginning of each view that it knows: the batches of its log, as far as they are kept.
    pub views: BTreeMap<u64, Vec<Option<Batch>>>,
    /// Whether it knows a view of which a later epoch is a member.
    pub has_admitted: bool,
    /// The view below which it says nothing more.
    pub promised: u64,
    /// The view that it has entered.
    pub entered: u64,
}

/// How far a replica has come with a stream.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The counter up to which it has taken statements.
    pub taken: u64,
    /// The counter up to which statements are here. Some may wait for what they refer to.
    pub held: u64,
    /// It follows the sender no further.
    pub is_faulty: bool,
}

/// The group of a model: all that waits is late after `timeout` ticks.
#[must_use]
pub fn group(replicas: u32, timeout: u32) -> Group {
    let group = crate::sim::group::group(replicas);
    Group { options: Options { timeout, batch: 1, ..group.options }, ..group }
}

/// The secret of that group, which all its devices have.
#[must_use]
pub fn secret() -> GroupSecret {
    smt_replica::sim::secret()
}

/// The key with which a replica's host signs replies, a liar's too.
#[must_use]
pub fn host_key(replica: u32) -> SigningKey {
    node_key(replica)
}

/// A correct replica in the first epoch.
///
/// # Errors
/// Those of [`Replica::new`].
pub fn replica(group: &Arc<Group>, own: u32) -> Result<Replica<Counter>, DeviceError> {
    let start = Start { device: DeviceId(own), epoch: Epoch(1), nonce: [0; 16] };
    Replica::new(group.clone(), identity(start), Counter::default())
}

/// A client that has made no request yet.
#[must_use]
pub fn client(group: &Arc<Group>, number: u32) -> Client {
    Client::new(group.clone(), number, client_key(number), 0)
}

/// The state that a replica gives to others, as a message.
#[must_use]
pub fn state(replica: &Replica<Counter>) -> Option<Vec<u8>> {
    replica.state_for_others().map(|it| it.encode())
}

/// Looks at a replica.
#[must_use]
pub fn observe(replica: &Replica<Counter>) -> Observed {
    let track = replica.own_track();
    let progress = |stream: &crate::track::Stream| {
        let taken = stream.track.counter;
        let held = taken + stream.waits_in_a_row();
        Progress { taken, held, is_faulty: stream.track.is_faulty }
    };
    let views = replica.views.iter().map(|(number, view)| {
        let places = 1..=view.opening.start;
        (*number, places.map(|place| view.batch(place).cloned()).collect())
    });
    Observed {
        fingerprint: fingerprint(replica),
        streams: replica.streams.iter().map(|(key, it)| (*key, progress(it))).collect(),
        executed: replica.history.iter().map(|it| it.1.clone()).collect(),
        decided: replica.decided.0,
        views: views.collect(),
        has_admitted: replica.views.values().any(|it| it.opening.epochs != replica.group.epochs),
        promised: track.promised,
        entered: replica.metrics.view,
    }
}

fn fingerprint(it: &Replica<Counter>) -> Digest {
    let mut all = Written(Sha256::new());
    let peers = (0..it.group.replicas).map(|peer| it.device.position(DeviceId(peer)));
    let peers: Vec<_> = peers.collect();
    let own = (it.own, it.start, peers, it.metrics, it.decided);
    // Writing to a hash does not fail.
    let _ = write!(all, "{own:?}{:?}{:?}{:?}", it.streams, it.views, it.ledger);
    let _ = write!(
        all,
        "{:?}{:?}{:?}",
        it.pending.state(),
        it.ballots,
        (it.attempts, it.waited, &it.voted)
    );
    let _ = write!(all, "{:?}", it.history);
    all.0.finalize().into()
}

struct Written(Sha256);

impl Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
