// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of a group on the loopback, and addresses of its replicas.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use smt_mesh::{Certificates, Member, Place};
use smt_trusted_process::{InitError, NewGroup};

/// The first port of a group's replicas, below those of sockets without a port of their own.
const FIRST_PORT: u16 = 20_000;

/// An address of the loopback, which is all of 127.0.0.0/8, for this group of this process.
fn group_address(process: u32, group: u32) -> Ipv4Addr {
    let [_, _, high, low] = process.to_be_bytes();
    // 127.0.0.0 is left to others, and so are 0 and 255 at the end.
    Ipv4Addr::new(127, high | 0x80, low, (group % 254) as u8 + 1)
}

/// The member that speaks for all clients.
pub(crate) const CLIENTS: u32 = 1;

/// The places of all members, with their files in a directory that ends with this value.
#[derive(Debug)]
pub struct Places {
    directory: PathBuf,
    addresses: Vec<String>,
}

/// Why a group has no places.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacesError {
    /// Keys and certificates cannot be made.
    #[error(transparent)]
    Keys(#[from] InitError),
}

impl Places {
    /// Makes keys and certificates, and gives each replica an address.
    ///
    /// # Errors
    /// [`PlacesError`]
    pub fn make(replicas: u32) -> Result<Self, PlacesError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-loopback-{}-{count}", std::process::id());
        // Replicas know all addresses before any of them listens: each group has an address of its
        // own, and ports that the system gives to nobody who asks for any.
        let ip = group_address(std::process::id(), count);
        let ports = FIRST_PORT..;
        let addresses = ports.take(replicas as usize).map(|it| format!("{ip}:{it}")).collect();
        let own = Self { directory: std::env::temp_dir().join(name), addresses };
        let group = NewGroup::create(&own.directory)?;
        for number in 0..replicas {
            group.member(Member::Replica(number), "replica")?;
        }
        group.member(Member::Client(CLIENTS), "client")?;
        Ok(own)
    }

    /// The place of a replica.
    #[must_use]
    pub fn replica(&self, number: u32) -> Place {
        self.place(Member::Replica(number))
    }

    /// The place of the member that speaks for all clients.
    #[must_use]
    pub fn clients(&self) -> Place {
        self.place(Member::Client(CLIENTS))
    }

    fn place(&self, own: Member) -> Place {
        let file = |end: &str| self.directory.join(format!("{}.{end}", own.name()));
        Place {
            own,
            certificates: Certificates {
                authority: self.directory.join("authority.pem"),
                certificate: file("pem"),
                key: file("key"),
            },
            addresses: self.addresses.clone(),
            clients: BTreeSet::from([CLIENTS]),
            boot: None,
            packet_max: None,
            // One member speaks for all clients.
            client_bytes: 128 << 20,
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
