// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Publishes a server's tickets, and renews them (SPEC §6.9).
//!
//! 1. A ticket is issued, and its key added to the server's *before* anybody can know the ticket.
//! 2. Its record goes to each destination: a zone file, or a name server by dynamic update.
//! 3. After half of the ticket's life the next one follows, and the key of the last stays until
//!    every client's ticket is over: there is no gap.
//! 4. A destination that fails is tried again after a pause, with the same ticket; clients go by
//!    TLS meanwhile.

mod renewal;
pub(crate) mod tsig;
mod update;
mod zone_file;

use std::sync::Arc;

use smt_handshake::{Identity, TicketIssuer, TicketKeys, TicketPlan};
use smt_proto::WallTime;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::PublishError;
use crate::record::TicketRecord;
use crate::server::Server;
use crate::ttl::published_ttl;
use crate::watch::wall_now;
use renewal::RenewalPlan;
pub use tsig::TsigKey;
pub use update::DynamicUpdate;
pub use zone_file::ZoneFile;

/// A place that records go to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Destination {
    /// A file that a zone includes.
    ZoneFile(ZoneFile),
    /// A name server that takes dynamic updates.
    Update(DynamicUpdate),
}

/// The records of a server's ticket: one for each of its names.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) servers: Vec<Server>,
    pub(crate) record: TicketRecord,
    pub(crate) ttl: u32,
}

/// Issues a server's tickets and publishes them.
#[derive(Debug)]
pub struct TicketPublisher {
    plan: TicketPlan,
    port: u16,
    keys: TicketKeys,
    destinations: Vec<Destination>,
    issuer: Arc<Issuer>,
    present: Option<Present>,
}

/// The ticket that is being published.
#[derive(Debug)]
struct Present {
    publication: Publication,
    issued: WallTime,
    /// Destinations that have it not yet, by place.
    missing: Vec<usize>,
}

/// The identity of the tickets, which may be replaced while they are published.
#[derive(Debug)]
struct Issuer {
    issuer: std::sync::Mutex<TicketIssuer>,
    changed: Notify,
}

/// Replaces the identity of a publisher that runs.
#[derive(Clone, Debug)]
pub struct PublisherIdentity {
    plan: TicketPlan,
    issuer: Arc<Issuer>,
}

impl TicketPublisher {
    /// A publisher of tickets for the server at this port. The keys are those of its builder
    /// (`Builder::tickets`). Names of the plan that are IP addresses get no record.
    ///
    /// # Errors
    /// The plan is wrong, or has no DNS name.
    pub fn new(
        identity: &Identity,
        plan: TicketPlan,
        port: u16,
        keys: TicketKeys,
        destinations: Vec<Destination>,
    ) -> Result<Self, PublishError> {
        if servers(&plan, port).is_empty() {
            let text = "the tickets are for no DNS name, and only that has a record".to_owned();
            return Err(PublishError::Name(text));
        }
        Ok(Self {
            issuer: Arc::new(Issuer {
                issuer: std::sync::Mutex::new(issuer(identity, &plan)?),
                changed: Notify::new(),
            }),
            plan,
            port,
            keys,
            destinations,
            present: None,
        })
    }

    /// For a server whose certificate is renewed.
    #[must_use]
    pub fn identity(&self) -> PublisherIdentity {
        PublisherIdentity { plan: self.plan.clone(), issuer: Arc::clone(&self.issuer) }
    }

    /// Issues a ticket at `now`, adds its key, and publishes it everywhere.
    ///
    /// # Errors
    /// The first of the destinations' failures; all were tried. [`Self::publish_missing`] goes on.
    pub async fn publish(&mut self, now: WallTime) -> Result<(), PublishError> {
        let issued = {
            let locked = self.issuer.issuer.lock();
            let issuer = locked.unwrap_or_else(std::sync::PoisonError::into_inner);
            issuer.issue(now)
        };
        let issued = issued.map_err(|failure| PublishError::Issue(failure.to_string()))?;
        let record = TicketRecord::new(issued.ticket, &issued.chain)?;
        // Before it is published: a client may come with it at once.
        self.keys.add(issued.key, now);
        self.present = Some(Present {
            publication: Publication {
                servers: servers(&self.plan, self.port),
                record,
                ttl: published_ttl(self.plan.life),
            },
            issued: now,
            missing: (0..self.destinations.len()).collect(),
        });
        self.publish_missing().await
    }

    /// Publishes the last ticket at the destinations that do not have it yet.
    ///
    /// # Errors
    /// The first of their failures; all were tried.
    pub async fn publish_missing(&mut self) -> Result<(), PublishError> {
        let Some(present) = &mut self.present else {
            return Ok(());
        };
        let mut first = Ok(());
        for place in std::mem::take(&mut present.missing) {
            let done = match &self.destinations[place] {
                Destination::ZoneFile(file) => file.write(&present.publication),
                Destination::Update(update) => update.publish(&present.publication).await,
            };
            if let Err(error) = done {
                present.missing.push(place);
                first = first.and(Err(error));
            }
        }
        first
    }

    /// Takes the last ticket's record away again, for a server that ends.
    ///
    /// # Errors
    /// The first of the destinations' failures; all were tried.
    pub async fn withdraw(&mut self) -> Result<(), PublishError> {
        let Some(present) = self.present.take() else {
            return Ok(());
        };
        let mut first = Ok(());
        for destination in &self.destinations {
            let done = match destination {
                Destination::ZoneFile(file) => file.clear(),
                Destination::Update(update) => update.withdraw(&present.publication).await,
            };
            first = first.and(done);
        }
        first
    }

    /// Publishes and renews until `end`, and then withdraws what is published. Failures go to the
    /// log (target `smt_dns`), the first of a row of failures at level warn.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let began = Instant::now();
        let mut renewal = RenewalPlan::new(self.plan.life);
        let issuer = Arc::clone(&self.issuer);
        tokio::pin!(end);
        loop {
            let is_fresh = renewal.wants_new_ticket(began.elapsed());
            let done = match is_fresh {
                true => self.publish(wall_now()).await,
                false => self.publish_missing().await,
            };
            let now = began.elapsed();
            if is_fresh {
                renewal.issued(now);
            }
            match done {
                Ok(()) => {
                    renewal.published(now);
                    let issued = self.present.as_ref().map(|present| present.issued.as_secs());
                    tracing::info!(issued, life = self.plan.life, "a ticket was published");
                }
                Err(error) if renewal.failed(now) == 1 => {
                    tracing::warn!(%error, "a ticket was not published: clients come by TLS");
                }
                Err(error) => tracing::debug!(%error, "a ticket was not published again"),
            }
            tokio::select! {
                () = &mut end => break,
                () = issuer.changed.notified() => renewal.identity_changed(),
                () = tokio::time::sleep_until(began + renewal.next()) => {}
            }
        }
        if let Err(error) = self.withdraw().await {
            tracing::warn!(%error, "the last ticket is still published: clients with it are refused, and come by TLS");
        }
    }
}

impl PublisherIdentity {
    /// Issues with this identity from now on, and publishes the first such ticket at once.
    ///
    /// # Errors
    /// The identity cannot sign tickets. Then nothing has changed.
    pub fn set(&self, identity: &Identity) -> Result<(), PublishError> {
        let next = issuer(identity, &self.plan)?;
        let locked = self.issuer.issuer.lock();
        *locked.unwrap_or_else(std::sync::PoisonError::into_inner) = next;
        self.issuer.changed.notify_one();
        Ok(())
    }
}

fn issuer(identity: &Identity, plan: &TicketPlan) -> Result<TicketIssuer, PublishError> {
    let issuer = TicketIssuer::new(identity, plan.clone());
    issuer.map_err(|failure| PublishError::Issue(failure.to_string()))
}

fn servers(plan: &TicketPlan, port: u16) -> Vec<Server> {
    let of = |name: &String| Server::new(name, port).ok();
    plan.names.iter().filter_map(of).collect()
}
