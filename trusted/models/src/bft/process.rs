// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A correct replica over restarts of its device, and over kills with a log.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use smt_attestation::{DeviceId, Epoch, SigningKey, Start};
use smt_attestor::OutlivingDevice;
use smt_bft::sim::observe;
use smt_bft::{Batch, Identity, Message, Metrics, Output, Replica};
use smt_journal::ModelDisk;
use smt_replica::{Counter, Group, Logged, Node, OwnDevice};

/// The most ticks of a timeout: they double with each view that is wanted in vain.
const TICKS_MAX: u32 = 512;

/// A replica that runs, or that its log did not give back.
enum Running {
    WithoutLog(Box<Replica<Counter>>),
    WithLog(Box<Logged<Replica<Counter>, ModelDisk>>, OutlivingDevice),
    Refused,
}

/// A correct replica, with all that it has executed in any epoch of its device.
pub struct Process {
    group: Arc<Group>,
    own: u32,
    epoch: u64,
    running: Running,
    executed: BTreeMap<u64, Batch>,
    /// The view in whose log it had found its last batches decided before its device restarted.
    decided: u64,
    /// It has executed two batches at one place, before a restart and after it.
    contradicts: bool,
    /// After a kill it is not what it was.
    differs: bool,
    /// Up to where `executed` has what was executed in this epoch, and how much that was.
    looked_at: (u64, usize),
    outputs: Vec<Output>,
}

/// The parts of a correct replica that properties look at.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// As its device is in the epoch of now.
    pub replica: observe::Observed,
    /// Its numbers.
    pub metrics: Metrics,
    /// All that it has executed in any epoch, by place. It skips what is in a state that it takes.
    pub executed: BTreeMap<u64, Batch>,
    /// The latest view, in any epoch, in whose log it has found its last batches decided.
    pub decided: u64,
    /// Whether it has executed two batches at one place.
    pub contradicts: bool,
    /// Whether it was another one after a kill.
    pub differs: bool,
    /// The epoch of its device.
    pub epoch: u64,
}

impl Process {
    /// A replica of a new group. One with a log has a device that outlives it.
    pub(super) fn new(group: &Arc<Group>, own: u32, has_log: bool) -> Option<Self> {
        let mut process = Self {
            group: group.clone(),
            own,
            epoch: 1,
            running: Running::Refused,
            executed: BTreeMap::new(),
            decided: 0,
            contradicts: false,
            differs: false,
            looked_at: (0, 0),
            outputs: Vec::new(),
        };
        process.start(has_log);
        (!matches!(process.running, Running::Refused)).then_some(process)
    }

    fn start(&mut self, has_log: bool) {
        let (device, epoch) = (DeviceId(self.own), Epoch(self.epoch));
        // A liar cannot know the nonce of a start: that of a first one plays no part.
        let nonce = [epoch.0 as u8 - 1; 16];
        let start = Start { device, epoch, nonce };
        if has_log {
            let key = SigningKey::new(&[5; 32]);
            let device = OutlivingDevice::start(start, observe::secret(), key);
            self.open(device, ModelDisk::default());
            return;
        }
        let device = OwnDevice::Library { secret: observe::secret(), start, signing_key: None };
        let replica = Replica::new(self.group.clone(), self.identity(device), Counter::default());
        self.running = replica.map_or(Running::Refused, |it| Running::WithoutLog(Box::new(it)));
        self.work();
    }

    fn identity(&self, device: OwnDevice) -> Identity {
        Identity { device, reply_key: observe::host_key(self.own) }
    }

    /// Has the replica from its log.
    fn open(&mut self, device: OutlivingDevice, disk: ModelDisk) {
        let identity = self.identity(device.own_device());
        let opened = Replica::open(self.group.clone(), identity, Counter::default(), disk);
        self.running = match opened {
            Ok(logged) => Running::WithLog(Box::new(logged), device),
            Err(_) => Running::Refused,
        };
        self.differs |= matches!(self.running, Running::Refused);
        self.work();
    }

    /// The device is started again, and all that the replica had is lost.
    pub(super) fn restart(&mut self) {
        self.decided = self.observe().decided;
        let has_log = matches!(self.running, Running::WithLog(..));
        self.epoch += 1;
        self.looked_at = (0, 0);
        self.start(has_log);
    }

    /// The replica is killed, and its log gives it back.
    pub(super) fn kill(&mut self) {
        self.look_now();
        let Running::WithLog(logged, device) =
            std::mem::replace(&mut self.running, Running::Refused)
        else {
            return;
        };
        let before = Node::snapshot(logged.node());
        self.open(device, logged.into_disk().crashed(|| true));
        self.differs |= self.replica().map(Node::snapshot) != Some(before);
    }

    /// The replica, if it runs.
    fn replica(&self) -> Option<&Replica<Counter>> {
        match &self.running {
            Running::WithoutLog(replica) => Some(replica),
            Running::WithLog(logged, _) => Some(logged.node()),
            Running::Refused => None,
        }
    }

    /// Its inputs are durable, and have their consequences.
    fn work(&mut self) {
        let outputs = match &mut self.running {
            Running::WithoutLog(replica) => replica.outputs(),
            Running::WithLog(logged, _) => logged.commit().unwrap_or_else(|_| {
                self.differs = true;
                Vec::new()
            }),
            Running::Refused => Vec::new(),
        };
        self.outputs.extend(outputs);
    }

    /// Notes what it has executed since the last time: in a row up to `before`, and what came after
    /// a state was taken, if one was.
    fn look(&mut self, before: u64) {
        let Some(replica) = self.replica() else {
            return;
        };
        let to = replica.metrics().executed;
        if to == self.looked_at.0 {
            return;
        }
        let history = observe::observe(replica).executed;
        let (from, known) = self.looked_at;
        let in_a_row = (before - from) as usize;
        let new: Vec<Batch> = history.iter().skip(known).cloned().collect();
        let after = new.len().saturating_sub(in_a_row) as u64;
        let places = (from + 1..=before).chain(to + 1 - after..=to);
        for (place, batch) in places.zip(new) {
            let before = self.executed.insert(place, batch.clone());
            self.contradicts |= before.is_some_and(|it| it != batch);
        }
        self.looked_at = (to, history.len());
    }

    /// Notes all that it has executed.
    fn look_now(&mut self) {
        let executed = self.metrics().executed;
        self.look(executed);
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        let before = self.metrics();
        match &mut self.running {
            Running::WithoutLog(replica) => replica.receive(bytes),
            Running::WithLog(logged, _) => logged.receive(bytes),
            Running::Refused => {}
        }
        self.work();
        // It executes nothing before it takes a state, and the rest after it.
        if self.metrics().states != before.states {
            self.look(before.executed);
        }
    }

    pub(super) fn tick(&mut self) {
        match &mut self.running {
            Running::WithoutLog(replica) => replica.tick(),
            Running::WithLog(logged, _) => logged.tick(),
            Running::Refused => {}
        }
        self.work();
    }

    /// Time passes until it says something, if it waits for anything.
    pub(super) fn time_out(&mut self) {
        let is_statement = |it: &Output| match it {
            Output::Nodes(bytes) => {
                matches!(Message::decode(bytes), Some(Message::Statement(_)))
            }
            _ => false,
        };
        for _ in 0..TICKS_MAX {
            if self.replica().is_none_or(Node::is_idle) {
                return;
            }
            let before = self.outputs.len();
            self.tick();
            if self.outputs.iter().skip(before).any(is_statement) {
                return;
            }
        }
    }

    /// All that is to be sent, in order.
    pub(super) fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The state that it gives to anybody who asks, by its checkpoint and view.
    pub(super) fn state(&self) -> Option<((u64, u64), Vec<u8>)> {
        let replica = self.replica()?;
        let bytes = observe::state(replica)?;
        match Message::decode(&bytes)? {
            Message::State(it) => Some(((replica.metrics().stable, it.opening.view), bytes)),
            _ => None,
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.replica().map(Replica::metrics).unwrap_or_default()
    }

    /// All that it has executed, by place.
    pub(super) fn executed(&mut self) -> &BTreeMap<u64, Batch> {
        self.look_now();
        &self.executed
    }

    pub(super) fn observe(&mut self) -> Observed {
        self.look_now();
        let mut replica = self.replica().map(observe::observe).unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(replica.fingerprint);
        let decided = replica.decided.max(self.decided);
        // Two logs that give the same may end at different places.
        let length = match &self.running {
            Running::WithLog(logged, _) => logged.log_length(),
            Running::WithoutLog(_) | Running::Refused => 0,
        };
        let flags = (self.epoch, length, decided, self.contradicts, self.differs);
        let executed = self.executed.iter().map(|(place, batch)| {
            let digests: Vec<_> = batch.iter().map(smt_replica::Request::digest).collect();
            (*place, digests)
        });
        hash.update(format!("{flags:?}{:?}", executed.collect::<Vec<_>>()));
        replica.fingerprint = hash.finalize().into();
        let (executed, metrics) = (self.executed.clone(), self.metrics());
        let (contradicts, differs, epoch) = (self.contradicts, self.differs, self.epoch);
        Observed { replica, metrics, executed, decided, contradicts, differs, epoch }
    }
}
