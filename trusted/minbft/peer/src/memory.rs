// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A group in memory: replicas of either system, clients, and bytes between them.

use std::collections::{BTreeMap, VecDeque};

use smt_bft::{Client, Output};
use smt_device_client::DeviceError;
use smt_loopback::{Machine, Sender};

use crate::keys::GroupKeys;

/// The receiver of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Receiver {
    Replica(u32),
    Client(u32),
}

/// Bytes on their way.
struct Flight {
    from: Sender,
    to: Receiver,
    bytes: Vec<u8>,
}

/// The choice of the message that was sent first.
pub const IN_ORDER: fn(usize) -> usize = |_| 0;

/// A group whose members are in one thread.
pub struct Memory<M> {
    replicas: Vec<Option<M>>,
    clients: Vec<Client>,
    flights: VecDeque<Flight>,
    /// The answers of each client's requests, by number.
    answers: Vec<BTreeMap<u64, Vec<u8>>>,
}

impl<M: Machine<Error = DeviceError>> Memory<M> {
    /// A group of replicas that have just started.
    pub fn new(keys: &GroupKeys, replicas: Vec<M>) -> Self {
        let count = keys.group.clients.len();
        Self {
            replicas: replicas.into_iter().map(Some).collect(),
            clients: keys.group.clients.keys().map(|it| keys.client(*it)).collect(),
            flights: VecDeque::new(),
            answers: vec![BTreeMap::new(); count],
        }
    }

    /// A replica that runs.
    #[must_use]
    pub fn replica(&self, number: u32) -> Option<&M> {
        self.replicas.get(number as usize)?.as_ref()
    }

    /// The answers of a client's requests, by number.
    #[must_use]
    pub fn answers(&self, client: u32) -> Option<&BTreeMap<u64, Vec<u8>>> {
        self.answers.get(client as usize)
    }

    /// Stops a replica. All that is on the way to it is lost.
    pub fn stop(&mut self, number: u32) -> Option<M> {
        self.replicas.get_mut(number as usize)?.take()
    }

    /// Begins a client's next request. Its bytes arrive at once: the caller decides in which
    /// order requests arrive.
    ///
    /// # Errors
    /// Those of [`Machine::outputs`].
    pub fn submit(&mut self, client: u32, operation: Vec<u8>) -> Result<(), DeviceError> {
        let Some(it) = self.clients.get_mut(client as usize) else {
            return Ok(());
        };
        it.submit([0; 16], operation);
        let before = self.flights.len();
        self.send_of_client(client);
        for flight in self.flights.split_off(before) {
            self.deliver(flight)?;
        }
        Ok(())
    }

    /// Whether a client waits for an answer.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.clients.iter().any(Client::is_waiting)
    }

    /// A tick of all members. Their messages are on the way then.
    ///
    /// # Errors
    /// Those of [`Machine::outputs`].
    pub fn tick(&mut self) -> Result<(), DeviceError> {
        for number in 0..self.replicas.len() as u32 {
            if let Some(replica) = &mut self.replicas[number as usize] {
                replica.tick();
            }
            self.send_of_replica(number)?;
        }
        for number in 0..self.clients.len() as u32 {
            self.clients[number as usize].tick();
            self.send_of_client(number);
        }
        Ok(())
    }

    /// Delivers one message, which `choose` picks of so many. False if there is none.
    ///
    /// # Errors
    /// Those of [`Machine::outputs`].
    pub fn step(&mut self, choose: &mut dyn FnMut(usize) -> usize) -> Result<bool, DeviceError> {
        if self.flights.is_empty() {
            return Ok(false);
        }
        let chosen = choose(self.flights.len());
        let Some(flight) = self.flights.remove(chosen) else {
            return Ok(false);
        };
        self.deliver(flight)?;
        Ok(true)
    }

    /// Delivers all, and all that follows from it.
    ///
    /// # Errors
    /// Those of [`Machine::outputs`].
    pub fn settle(&mut self, choose: &mut dyn FnMut(usize) -> usize) -> Result<(), DeviceError> {
        while self.step(choose)? {}
        Ok(())
    }

    fn deliver(&mut self, flight: Flight) -> Result<(), DeviceError> {
        match flight.to {
            Receiver::Replica(number) => {
                if let Some(Some(replica)) = self.replicas.get_mut(number as usize) {
                    replica.receive(flight.from, &flight.bytes);
                }
                self.send_of_replica(number)
            }
            Receiver::Client(number) => {
                let Some(client) = self.clients.get_mut(number as usize) else {
                    return Ok(());
                };
                let completion = client.receive(&flight.bytes);
                if let Some(Ok(answer)) = completion.map(|it| it.result) {
                    let answers = &mut self.answers[number as usize];
                    answers.insert(answers.len() as u64 + 1, answer);
                }
                self.send_of_client(number);
                Ok(())
            }
        }
    }

    fn send_of_replica(&mut self, number: u32) -> Result<(), DeviceError> {
        if let Some(Some(replica)) = self.replicas.get_mut(number as usize) {
            let outputs = replica.outputs()?;
            self.send(Sender::Replica(number), outputs);
        }
        Ok(())
    }

    fn send_of_client(&mut self, number: u32) {
        if let Some(client) = self.clients.get_mut(number as usize) {
            let outputs = client.outputs();
            self.send(Sender::Client, outputs);
        }
    }

    fn send(&mut self, from: Sender, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Node(to, bytes) => {
                    self.flights.push_back(Flight { from, to: Receiver::Replica(to), bytes });
                }
                Output::Nodes(bytes) => {
                    let all =
                        (0..self.replicas.len() as u32).filter(|it| from != Sender::Replica(*it));
                    self.flights.extend(all.map(|to| Flight {
                        from,
                        to: Receiver::Replica(to),
                        bytes: bytes.clone(),
                    }));
                }
                Output::Client(to, bytes) => {
                    self.flights.push_back(Flight { from, to: Receiver::Client(to), bytes });
                }
            }
        }
    }
}
