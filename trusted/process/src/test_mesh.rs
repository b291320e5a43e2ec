// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions of one member, for tests.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_mesh::{Certificates, Member, Mesh, Place};

use crate::new_group::NewGroup;

/// A member with sessions, of a group that has files under this name for a moment.
pub(crate) fn mesh(name: &str) -> Mesh {
    let directory = std::env::temp_dir().join(format!("smt-{name}-{}", std::process::id()));
    let group = NewGroup::create(&directory).unwrap();
    let own = Member::Replica(0);
    group.member(own, "node").unwrap();
    let file = |name: &str| directory.join(name);
    let mesh = Mesh::open(&Place {
        own,
        certificates: Certificates {
            authority: file("authority.pem"),
            certificate: file("node-0.pem"),
            key: file("node-0.key"),
        },
        addresses: vec!["127.0.0.1:0".to_owned()],
        clients: [].into(),
        boot: None,
        packet_max: None,
        client_bytes: 1 << 20,
    });
    std::fs::remove_dir_all(&directory).unwrap();
    mesh.unwrap()
}
