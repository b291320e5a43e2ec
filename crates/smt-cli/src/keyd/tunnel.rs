// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tunnel of this host, as a key daemon sees it: by its control socket.

use std::net::IpAddr;
use std::path::PathBuf;

use smt_esp_io::control::{self, ControlError, Request};
use smt_esp_io::{AgreedAssociation, AssociationCounts, Direction, ModeName, SuiteName};
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The tunnel that gets the keys.
#[derive(Clone, Debug)]
pub(super) struct LocalTunnel {
    pub(super) control: PathBuf,
    pub(super) peer: IpAddr,
    pub(super) mode: ModeName,
}

impl LocalTunnel {
    /// Gives the tunnel an association. One for packets out is in use from the next packet on.
    pub(super) fn add(
        &self,
        direction: Direction,
        spi: u32,
        suite: SuiteName,
        key: Zeroizing<Vec<u8>>,
    ) -> Result<(), ControlError> {
        let association = AgreedAssociation {
            direction,
            spi,
            name: match direction {
                Direction::Out => "default".to_owned(),
                Direction::In => AGREED.to_owned(),
            },
            suite,
            key,
            mode: self.mode,
            peer: self.peer,
        };
        let association = Box::new(association.into());
        control::ask(&self.control, &Request::Add { association }).map(drop)
    }

    /// The associations that the tunnel has.
    pub(super) fn associations(&self) -> Result<Vec<AssociationCounts>, Failure> {
        Ok(control::status(&self.control)?.associations)
    }

    /// Whether the tunnel sends and receives by these two still.
    pub(super) fn has(&self, outbound: u32, inbound: u32) -> Result<bool, Failure> {
        let associations = self.associations()?;
        let has = |direction, spi| {
            associations
                .iter()
                .any(|association| association.direction == direction && association.spi == spi)
        };
        Ok(has(Direction::Out, outbound) && has(Direction::In, inbound))
    }

    /// Removes all agreed associations for packets in but this one.
    pub(super) fn retire_others(&self, inbound: u32) -> Result<(), Failure> {
        for association in self.associations()? {
            let is_old = association.direction == Direction::In
                && association.name == AGREED
                && association.spi != inbound;
            if is_old {
                self.remove_inbound(association.spi)?;
            }
        }
        Ok(())
    }

    /// Removes an association for packets in. One that is gone already, since the tunnel has begun
    /// anew, is as good.
    pub(super) fn remove_inbound(&self, spi: u32) -> Result<(), ControlError> {
        let direction = Direction::In;
        match control::ask(&self.control, &Request::Remove { direction, spi }) {
            Ok(_) | Err(ControlError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The name of associations for packets in that were agreed on. Others were given by hand, and
/// stay.
const AGREED: &str = "agreed";
