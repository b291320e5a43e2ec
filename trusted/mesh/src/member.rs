// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of a group, and their certificates.

use std::path::PathBuf;

use smt::{Identity, Peer, Trust};

/// A member of a group, as its certificate names it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Member {
    /// The certificate has the name `replica-N`.
    Replica(u32),
    /// The certificate has the name `client-N`.
    Client(u32),
}

impl Member {
    /// The peer of a session, if its certificate names a member.
    #[must_use]
    pub fn of(peer: &Peer) -> Option<Self> {
        let names = &peer.certificate()?.dns_names;
        names.iter().find_map(|name| Self::parse(name))
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let number = |text: &str| {
            let number = text.parse::<u32>().ok()?;
            // One member has one name.
            (number.to_string() == text).then_some(number)
        };
        match name.split_once('-')? {
            ("replica", rest) => number(rest).map(Self::Replica),
            ("client", rest) => number(rest).map(Self::Client),
            _ => None,
        }
    }

    /// The name in its certificate.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Replica(number) => format!("replica-{number}"),
            Self::Client(number) => format!("client-{number}"),
        }
    }
}

/// The files with which a member proves its identity in sessions.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The certificate of the group's authority.
    pub authority: PathBuf,
    /// The member's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a member cannot take part in sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A certificate or key cannot be used.
    #[error("your files: {0}")]
    Credential(smt::CredentialError),
    /// The certificate is not that of this member.
    #[error("your files: the certificate has not the name {0}")]
    Name(String),
    /// The endpoint cannot be opened.
    #[error("the endpoint cannot be opened: {0}")]
    Open(smt::OpenError),
}

impl From<smt::CredentialError> for SessionError {
    fn from(error: smt::CredentialError) -> Self {
        Self::Credential(error)
    }
}

impl From<smt::OpenError> for SessionError {
    fn from(error: smt::OpenError) -> Self {
        Self::Open(error)
    }
}

/// Reads a member's certificate, and the authority of its group.
pub(crate) fn credentials(
    files: &Certificates,
    own: Member,
) -> Result<(Identity, Trust), SessionError> {
    let identity = Identity::from_pem_files(&files.certificate, &files.key)?;
    let leaf = identity.certificates().next();
    let names = leaf.map(smt::PeerCertificate::from_der).transpose()?.map(|it| it.dns_names);
    if !names.is_some_and(|names| names.contains(&own.name())) {
        return Err(SessionError::Name(own.name()));
    }
    Ok((identity, Trust::roots_from_pem_files(&[&files.authority])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_one_name() {
        assert_eq!(Member::parse("replica-2"), Some(Member::Replica(2)));
        assert_eq!(Member::parse("client-10"), Some(Member::Client(10)));
        for name in ["replica-02", "replica-", "replica-+1", "node-1", "replica"] {
            assert_eq!(Member::parse(name), None, "{name}");
        }
    }
}
