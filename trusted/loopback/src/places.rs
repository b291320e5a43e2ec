// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of a group on the loopback, and addresses of its replicas.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use smt_mesh::{Certificates, Member, Place};
use smt_trusted_process::{InitError, NewGroup};

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
    /// There are no ports.
    #[error("the operating system: no port of UDP on the loopback")]
    Ports(#[from] io::Error),
}

impl Places {
    /// Makes keys and certificates, and finds ports that are free.
    ///
    /// # Errors
    /// [`PlacesError`]
    pub fn make(replicas: u32) -> Result<Self, PlacesError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-loopback-{}-{count}", std::process::id());
        // Replicas know all addresses before any of them listens. All sockets are there at once, so
        // that no port comes twice.
        let sockets = (0..replicas).map(|_| UdpSocket::bind("127.0.0.1:0"));
        let sockets: Vec<UdpSocket> = sockets.collect::<Result<_, _>>()?;
        let addresses = sockets.iter().map(|it| Ok(it.local_addr()?.to_string()));
        let addresses = addresses.collect::<io::Result<_>>()?;
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
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
