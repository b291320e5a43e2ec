// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device: queues, contexts and one engine, turned step by step.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use thiserror::Error;

use crate::completion::Completion;
use crate::context_memory::ContextLimits;
use crate::counters::Counters;
use crate::descriptor::ContextId;
use crate::engine::Engine;
use crate::esp::{Association, EspTableError, RemovedAssociation};
use crate::executor::Executor;
use crate::host_memory::{CountedMemory, DmaFault, HostMemory};
use crate::receive::rss::Rss;
use crate::receive::{ReceiveConfig, ReceiveSide};
use crate::transmit_queue::{Ring, TransmitQueue};

/// The configuration of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct NicConfig {
    /// The bounds of the contexts' memory.
    pub contexts: ContextLimits,
    /// The IP protocol number of SMT.
    pub smt_protocol: u8,
    /// Whether the device counts the sequence field of SMT as that of TCP. Devices differ.
    pub counts_smt_sequence: bool,
    /// The receive side.
    pub receive: ReceiveConfig,
    /// Associations of ESP for packets in.
    pub associations_max: usize,
}

impl Default for NicConfig {
    /// 4,096 contexts, 256 of them cached; protocol 253, which is for experiments (RFC 3692); the
    /// sequence field as it is; queues by ports, 16 merges a queue, 4,096 receive contexts; 1,024
    /// associations of ESP.
    fn default() -> Self {
        Self {
            contexts: ContextLimits { contexts_max: 4_096, cached_max: 256 },
            smt_protocol: 253,
            counts_smt_sequence: false,
            receive: ReceiveConfig { rss: Rss::default(), merges_max: 16, contexts_max: 4_096 },
            associations_max: 1_024,
        }
    }
}

/// A device with one engine; two engines are a pair.
#[derive(Clone, Debug)]
pub struct Nic<E: Engine> {
    queues: Vec<TransmitQueue>,
    /// The queue of each class that took its last step.
    served: BTreeMap<u8, u16>,
    executor: Executor<E>,
    pub(crate) receive: ReceiveSide,
}

/// The step that a queue has taken.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Step {
    /// There was nothing to do.
    Idle,
    /// A descriptor was fetched.
    Fetched,
    /// A descriptor was executed, and this is its completion.
    Executed(Completion),
    /// The completion ring is full: the host has to read first.
    Blocked,
}

/// A queue that cannot go on.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum QueueError {
    /// There is no such queue.
    #[error("the device has no queue {0}")]
    UnknownQueue(u16),
    /// Its ring is at an address where the host has no memory: it stands until the device is reset.
    #[error("queue {queue} stands until the device is reset: {fault}")]
    Stopped {
        /// The queue.
        queue: u16,
        /// The access that failed.
        fault: DmaFault,
    },
}

impl<E: Engine> Nic<E> {
    /// A device without queues.
    #[must_use]
    pub fn new(config: NicConfig, engine: E) -> Self {
        Self {
            queues: Vec::new(),
            served: BTreeMap::new(),
            executor: Executor::new(config, engine),
            receive: ReceiveSide::new(config.receive, config.smt_protocol, config.associations_max),
        }
    }

    /// Adds a transmit queue of the lowest class with its completion ring, and returns its number.
    ///
    /// # Panics
    /// At queue 65,536.
    pub fn add_queue(&mut self, descriptors: Ring, completions: Ring) -> u16 {
        self.add_queue_of_class(0, descriptors, completions)
    }

    /// Adds a transmit queue whose segments leave before those of lower classes
    /// ([`Self::next_queue`]).
    ///
    /// # Panics
    /// At queue 65,536.
    pub fn add_queue_of_class(&mut self, class: u8, descriptors: Ring, completions: Ring) -> u16 {
        let number = u16::try_from(self.queues.len()).expect("a device has 65,536 queues at most");
        self.queues.push(TransmitQueue::new(class, descriptors, completions));
        number
    }

    /// The queue whose turn it is: one of the highest class that has something to do, in strict
    /// priority as between the classes of IEEE 802.1Q; queues of one class take turns, whatever
    /// other classes send between. A queue whose completions were not read holds up no other.
    ///
    /// A segment that has begun leaves whole. A caller who steps queues in other orders has a
    /// device that gives no class precedence.
    #[must_use]
    pub fn next_queue(&self) -> Option<u16> {
        let able = || (0..).zip(&self.queues).filter(|(_, queue)| queue.can_go_on());
        let class = able().map(|(_, queue)| queue.class).max()?;
        let numbers = || able().filter(|(_, queue)| queue.class == class).map(|(number, _)| number);
        let served = self.served.get(&class);
        let behind = numbers().find(|number| served.is_some_and(|served| number > served));
        behind.or_else(|| numbers().next())
    }

    /// The register of a queue by which the host says how many descriptors it has written in all.
    pub fn host_has_written(&mut self, queue: u16, descriptors: u64) {
        if let Some(queue) = self.queues.get_mut(usize::from(queue)) {
            queue.host_has_written(descriptors);
        }
    }

    /// The register of a queue by which the host says how many completions it has read in all.
    pub fn host_has_read(&mut self, queue: u16, completions: u64) {
        if let Some(queue) = self.queues.get_mut(usize::from(queue)) {
            queue.completions.host_has_read(completions);
        }
    }

    /// Forgets all contexts, associations of ESP and queues, as after a reset by the host.
    /// Descriptors that were fetched are lost, and have no completion. The counters go on, and the
    /// keys of PSP stay: no SPI is given twice under them, and packets under associations that
    /// peers were told are opened.
    pub fn reset(&mut self) {
        self.executor.contexts.clear();
        self.executor.receive_contexts.clear();
        self.queues.clear();
        self.served.clear();
        self.receive.clear();
    }

    /// Adds a receive queue: a ring of buffers and one of completions ([`crate::receive::queue`]).
    /// Returns its number.
    ///
    /// # Panics
    /// At queue 65,536.
    pub fn add_receive_queue(&mut self, buffers: Ring, completions: Ring) -> u16 {
        self.receive.add_queue(buffers, completions)
    }

    /// Adds an association of ESP for packets in: its packets are opened from now on.
    ///
    /// # Errors
    /// [`EspTableError`]. Without room, which is counted, the association stays with the host's
    /// software, and its packets go up as they came.
    pub fn add_association(&mut self, association: &Association<'_>) -> Result<(), EspTableError> {
        let added = self.receive.openers.associations.add(association);
        let is_refused = added == Err(EspTableError::NoRoom);
        self.executor.counters.contexts_refused += u64::from(is_refused);
        added
    }

    /// Removes an association of ESP for packets in. Its packets go up as they came from now on.
    pub fn remove_association(&mut self, spi: u32) -> Option<RemovedAssociation> {
        self.receive.openers.associations.remove(spi)
    }

    /// The registers of a receive queue by which the host says how many buffers it has posted, and
    /// how many completions it has read, in all.
    pub fn host_has_posted(&mut self, queue: u16, buffers: u64, completions_read: u64) {
        if let Some(queue) = self.receive.queue_mut(queue) {
            queue.host_has_read(completions_read);
            queue.host_has_posted(buffers);
        }
    }

    /// Takes a packet from the wire, from its IP header on. Returns the receive queue that it is
    /// for; `None` if the device has none.
    pub fn receive<M: HostMemory>(&mut self, packet: &[u8], memory: &mut M) -> Option<u16> {
        let contexts = &mut self.executor.receive_contexts;
        let counters = &mut self.executor.counters;
        self.receive.receive(packet, contexts, &mut CountedMemory { memory, counters })
    }

    /// Hands over the merged packets of a receive queue, as when its interrupt is due.
    pub fn flush<M: HostMemory>(&mut self, queue: u16, memory: &mut M) {
        let contexts = &mut self.executor.receive_contexts;
        let counters = &mut self.executor.counters;
        self.receive.flush(queue, contexts, &mut CountedMemory { memory, counters });
    }

    /// The work that was done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.executor.counters
    }

    /// How many contexts there are.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.executor.contexts.len()
    }

    /// How many receive contexts there are.
    #[must_use]
    pub fn receive_contexts(&self) -> usize {
        self.executor.receive_contexts.len()
    }

    /// A context, for watchers: looking is no use of it.
    #[must_use]
    pub fn context(&self, id: ContextId) -> Option<&E::Context> {
        self.executor.contexts.peek(id)
    }

    /// Whether a queue has something to fetch or to execute.
    #[must_use]
    pub fn has_work(&self, queue: u16) -> bool {
        let queue = self.queues.get(usize::from(queue));
        queue.is_some_and(TransmitQueue::has_work)
    }

    /// Takes one step of one queue. Packets go to `wire`, from their IP header on.
    ///
    /// # Errors
    /// There is no such queue, or one of its rings is where the host has no memory.
    pub fn step<M: HostMemory>(
        &mut self,
        queue: u16,
        memory: &mut M,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<Step, QueueError> {
        let stopped = |fault| QueueError::Stopped { queue, fault };
        let number = usize::from(queue);
        let of = self.queues.get_mut(number).ok_or(QueueError::UnknownQueue(queue))?;
        if !of.has_work() {
            return Ok(Step::Idle);
        }
        self.served.insert(of.class, queue);
        if !of.has_fetched() {
            self.executor.counters.descriptors += 1;
            let fetched = of.fetch(&mut self.executor.counted(memory));
            return fetched.map(|()| Step::Fetched).map_err(|fault| {
                of.stop();
                stopped(fault)
            });
        }
        if !of.completions.has_room() {
            return Ok(Step::Blocked);
        }
        let Some(descriptor) = of.take_fetched() else {
            return Ok(Step::Idle);
        };
        let outcome = self.executor.execute(descriptor, memory, wire);
        let completion = outcome.completion(queue);
        let written = of.completions.write(completion, &mut self.executor.counted(memory));
        written.map_err(|fault| {
            of.stop();
            stopped(fault)
        })?;
        Ok(Step::Executed(completion))
    }
}
