// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client as C sees it: addresses, and the names of its certificate.

use std::net::{IpAddr, SocketAddr};

use smt_transport::PeerCertificate;
use smt_transport::polled::PeerIdentity;

use crate::event::Slice;

/// An `smt_peer`.
#[repr(C)]
pub(crate) struct PeerForC {
    ip: [u8; IP_MAX],
    port: u16,
    local_ip: [u8; IP_MAX],
    local_port: u16,
    common_name: Slice,
    dns_name: Slice,
    certificate: Slice,
}

/// A [`PeerForC`], and all that it points to.
pub(crate) struct LentPeer {
    for_c: PeerForC,
    // The slices point into the heap memory of these, which do not change.
    _common_name: Option<String>,
    _dns_name: Option<String>,
    _certificate: Option<Vec<u8>>,
}

impl LentPeer {
    /// A client at `remote` that has called `local`.
    pub(crate) fn new(
        remote: SocketAddr,
        local: (Option<IpAddr>, u16),
        identity: PeerIdentity,
    ) -> Self {
        let certificate = identity.certificates.into_iter().next();
        // The handshake has read it with success.
        let read = certificate.as_ref();
        let read = read.and_then(|der| PeerCertificate::from_der(der).ok());
        let (common_name, dns_name) = match read {
            Some(read) => (read.common_name, read.dns_names.into_iter().next()),
            None => (None, None),
        };
        let (local_ip, local_port) = local;
        let for_c = PeerForC {
            ip: text_of(Some(remote.ip())),
            port: remote.port(),
            local_ip: text_of(local_ip),
            local_port,
            common_name: Slice::of(common_name.as_deref().unwrap_or_default().as_bytes()),
            dns_name: Slice::of(dns_name.as_deref().unwrap_or_default().as_bytes()),
            certificate: Slice::of(certificate.as_deref().unwrap_or_default()),
        };
        Self { for_c, _common_name: common_name, _dns_name: dns_name, _certificate: certificate }
    }

    /// The struct that C is lent.
    pub(crate) fn for_c(&self) -> &PeerForC {
        &self.for_c
    }
}

/// The address in text that ends with a zero; empty if there is none.
fn text_of(ip: Option<IpAddr>) -> [u8; IP_MAX] {
    let mut text = [0; IP_MAX];
    if let Some(ip) = ip {
        let written = ip.to_canonical().to_string();
        // The longest address has 45 letters.
        let length = written.len().min(IP_MAX - 1);
        text[..length].copy_from_slice(&written.as_bytes()[..length]);
    }
    text
}

/// Bytes of an address in text: `INET6_ADDRSTRLEN`.
const IP_MAX: usize = 46;
