// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes tickets: a fresh key pair, signed by the server's certificate.

use rustls::sign::CertifiedKey;
use smt_proto::WallTime;
use smt_record::Suite;

use super::format::{Requirements, TICKET_LIFE_MAX, Ticket, TicketContent, chain_hash};
use super::keys::TicketKey;
use super::share::StaticKey;
use super::signature::{Context, sign};
use crate::failure::{caller, environment};
use crate::identity::Identity;
use crate::peer_certificate::PeerCertificate;
use crate::tls::algorithms::Group;
use crate::tls::verify::Form;
use smt_proto::key_exchange::HandshakeFailure;

/// The contents of a server's tickets.
#[derive(Clone, Debug)]
pub struct TicketPlan {
    /// The group of the share. [`Group::X25519MlKem768`] is safe against quantum computers to come,
    /// and makes tickets and first flights some 1.2 KB longer.
    pub group: Group,
    /// The suites that the server takes, preferred first; one to three.
    pub suites: Vec<Suite>,
    /// The server's names, as its clients call it: DNS names or IP addresses, each in the
    /// certificate.
    pub names: Vec<String>,
    /// How long a ticket is good, in seconds: 1 to 3,600.
    pub life: u64,
    /// Whether every session must have forward secrecy, which costs an ephemeral share on both
    /// sides.
    pub requires_forward_secrecy: bool,
    /// Whether clients must show a certificate.
    pub requires_client_certificate: bool,
    /// Whether clients may send early data: requests that they mark as idempotent, in their first
    /// flight. A flight that is repeated is found out; early data has no forward secrecy.
    pub takes_early_data: bool,
}

impl TicketPlan {
    /// Tickets for an hour with the default algorithms, for these names.
    #[must_use]
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self {
            group: Group::X25519MlKem768,
            suites: vec![Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305],
            names: names.into_iter().map(Into::into).collect(),
            life: TICKET_LIFE_MAX,
            requires_forward_secrecy: false,
            requires_client_certificate: false,
            takes_early_data: false,
        }
    }
}

/// Makes a server's tickets.
pub struct TicketIssuer {
    certified: CertifiedKey,
    plan: TicketPlan,
}

/// A ticket, the chain that it was signed by, and the key that answers it.
#[derive(Debug)]
pub struct IssuedTicket {
    /// To be published.
    pub ticket: Ticket,
    /// Certificates in DER, leaf first; to be published with it.
    pub chain: Vec<Vec<u8>>,
    /// For the server that answers; it cannot be copied.
    pub key: TicketKey,
}

impl TicketIssuer {
    /// An issuer with the certificate and key of a server.
    ///
    /// # Errors
    /// The plan names no suite or name, its life is out of range, or the identity has no
    /// certificate: the caller's fault.
    pub fn new(identity: &Identity, plan: TicketPlan) -> Result<Self, HandshakeFailure> {
        let is_life_good = (1..=TICKET_LIFE_MAX).contains(&plan.life);
        let wrong = [
            (plan.suites.is_empty(), "no suite"),
            (plan.suites.len() > Suite::ALL.len(), "a suite twice"),
            (plan.names.is_empty(), "no name"),
            (!is_life_good, "a life outside 1 to 3,600 seconds"),
            (
                identity.form() == Form::RawPublicKey,
                "a public key alone, and tickets are signed by certificates",
            ),
        ];
        if let Some((_, what)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(caller(format!("the plan of the tickets has {what}")));
        }
        Ok(Self { certified: identity.certified(), plan })
    }

    /// A ticket that is good from `now` on, with a fresh key. It ends with the certificate that
    /// signs it, if that ends before.
    ///
    /// # Errors
    /// The system gives no random bytes, or the certificate's key cannot sign.
    pub fn issue(&self, now: WallTime) -> Result<IssuedTicket, HandshakeFailure> {
        let plan = &self.plan;
        let key = StaticKey::generate(plan.group)
            .map_err(|_| environment("the system makes no key for a ticket".to_owned()))?;
        let mut id = [0; 16];
        aws_lc_rs::rand::fill(&mut id)
            .map_err(|_| environment("the system gives no random bytes".to_owned()))?;
        let chain = &self.certified.cert;
        let content = TicketContent {
            group: plan.group,
            suites: plan.suites.clone(),
            id,
            not_before: now.as_secs(),
            not_after: self.end(now),
            requires: Requirements {
                forward_secrecy: plan.requires_forward_secrecy,
                client_certificate: plan.requires_client_certificate,
            },
            takes_early_data: plan.takes_early_data,
            share: key.share().to_vec(),
            names: plan.names.clone(),
            chain_hash: chain_hash(chain),
        };
        let too_long = || caller("the tickets' names are too long".to_owned());
        let signed = content.bytes().ok_or_else(too_long)?;
        let signature = sign(&self.certified, Context::Ticket, &signed).map_err(environment)?;
        let ticket = Ticket::signed(content, signature).ok_or_else(too_long)?;
        Ok(IssuedTicket {
            chain: chain.iter().map(|der| der.to_vec()).collect(),
            key: TicketKey::new(ticket.clone(), key),
            ticket,
        })
    }

    /// The last second of a ticket. A certificate that has ended already is that of a server whose
    /// clients do not look at its dates.
    fn end(&self, now: WallTime) -> u64 {
        let end = now.as_secs().saturating_add(self.plan.life);
        let leaf = self.certified.cert.first();
        let expires = leaf.and_then(|leaf| PeerCertificate::expiry(leaf)).filter(|end| *end > now);
        expires.map_or(end, |expires| end.min(expires.as_secs() - 1))
    }
}

/// No key.
impl std::fmt::Debug for TicketIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketIssuer").field("plan", &self.plan).finish_non_exhaustive()
    }
}
