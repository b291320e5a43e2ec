// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands to a worker: associations come, are replaced and go between two turns, while packets
//! flow.

use std::io::Read;
use std::sync::mpsc::Sender;

use smt_esp::Statistics;

use super::{Slot, Worker};
use crate::association::{AssociationError, AssociationSpec, Direction};
use crate::statistics::{AssociationCounts, WorkerCounts};

/// A command, and where its answer goes.
pub(crate) enum Command {
    Status(Sender<WorkerStatus>),
    /// Adds an association. One for packets out takes the place of another of its name.
    Add(Box<AssociationSpec>, Sender<Result<(), CommandError>>),
    Remove {
        direction: Direction,
        spi: u32,
        answer: Sender<Result<(), CommandError>>,
    },
    Stop,
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("caller: association.{0}")]
    Association(#[from] AssociationError),
    #[error("caller: no policy has an association named {0:?}")]
    Name(String),
    #[error("caller: there is no association with the SPI {0:#x}")]
    Unknown(u32),
}

/// Counts of a worker and its associations.
pub(crate) struct WorkerStatus {
    pub(crate) associations: Vec<AssociationCounts>,
    pub(crate) database: Statistics,
    pub(crate) counts: WorkerCounts,
}

impl Worker {
    pub(super) fn command_turn(&mut self) {
        // Bytes only wake; the commands are in their queue.
        let mut bytes = [0; 64];
        let _ = (&self.parts.wake).read(&mut bytes);
        while let Ok(command) = self.parts.commands.try_recv() {
            match command {
                Command::Status(answer) => drop(answer.send(self.status())),
                Command::Add(spec, answer) => drop(answer.send(self.add(*spec))),
                Command::Remove { direction, spi, answer } => {
                    drop(answer.send(self.remove(direction, spi)))
                }
                Command::Stop => self.ended = true,
            }
        }
    }

    /// Adds an association.
    pub(crate) fn add(&mut self, spec: AssociationSpec) -> Result<(), CommandError> {
        let (path, now) = (self.parts.path, self.now());
        match spec.direction {
            Direction::In => {
                let association = spec.inbound(path, now)?;
                let added = self.parts.database.add_inbound(association);
                added.map_err(|error| AssociationError {
                    field: "spi",
                    reason: error.to_string(),
                })?;
                self.inbound_specs.push(spec);
            }
            Direction::Out => {
                let association = spec.outbound(path, now)?;
                let slots = &mut self.parts.slots;
                let Some(slot) = slots.iter_mut().find(|slot| slot.name == spec.name) else {
                    return Err(CommandError::Name(spec.name));
                };
                self.parts.database.replace_outbound(slot.id, association);
                slot.spec = Some(spec);
            }
        }
        Ok(())
    }

    fn remove(&mut self, direction: Direction, spi: u32) -> Result<(), CommandError> {
        match direction {
            Direction::In => {
                if self.parts.database.remove_inbound(spi).is_empty() {
                    return Err(CommandError::Unknown(spi));
                }
                self.inbound_specs.retain(|spec| spec.spi != spi);
            }
            Direction::Out => {
                let slots = &mut self.parts.slots;
                let has_spi =
                    |slot: &&mut Slot| slot.spec.as_ref().is_some_and(|spec| spec.spi == spi);
                let slot = slots.iter_mut().find(has_spi).ok_or(CommandError::Unknown(spi))?;
                slot.spec = None;
                self.parts.database.remove_outbound(slot.id);
            }
        }
        Ok(())
    }

    fn status(&self) -> WorkerStatus {
        let database = &self.parts.database;
        let mut associations = Vec::new();
        for slot in &self.parts.slots {
            if let (Some(spec), Some(association)) = (&slot.spec, database.outbound(slot.id)) {
                let mut counts = spec.counts();
                counts.count(association.statistics());
                counts.sequence_number = association.next_number();
                counts.soft_expired = association.is_soft_expired();
                associations.push(counts);
            }
        }
        for spec in &self.inbound_specs {
            let same_spi = database.inbound(spec.spi).iter();
            let mut same = same_spi.filter(|association| association.addresses().1 == spec.peer);
            if let Some(association) = same.next() {
                let mut counts = spec.counts();
                counts.count(association.statistics());
                counts.sequence_number = Some(association.highest_number());
                counts.soft_expired = association.is_soft_expired();
                associations.push(counts);
            }
        }
        WorkerStatus { associations, database: *database.statistics(), counts: self.counts() }
    }
}
