// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions between the members of a group: replicas that speak with each other and with clients.
//!
//! Every session is authenticated from both sides, and a certificate has the one name of its member
//! ([`Member`]). Messages of the group's protocol are one-way messages of SMT, several in one. Some
//! may be lost, when a peer does not take them or has gone: protocols ask again.
#![forbid(unsafe_code)]

mod link;
mod member;
mod mesh;

pub use link::Traffic;
pub use member::{Certificates, Member, SessionError};
pub use mesh::{Arrival, Closer, Mesh, Place, messages};
