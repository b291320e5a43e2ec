// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions of one member with all others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use smt::blocking::Endpoint;
use smt::{Address, Bytes, ClientAuth, Failure, Incoming, Peer, Session, TlsClient};

use crate::link::{Link, Traffic};
use crate::member::{Certificates, Member, SessionError, credentials};

/// Packets that wait at most, each as long as a message may be. Beyond them sessions hold messages,
/// whose bytes are bounded, and then peers are held back.
const WAITING_MAX: usize = 16;

/// Bytes that wait for a replica at most: two states of the longest length.
const WAITING_BYTES_MAX: usize = 128 << 20;

/// A member's place in its group.
#[derive(Clone, Debug)]
pub struct Place {
    /// The member.
    pub own: Member,
    /// Its certificate.
    pub certificates: Certificates,
    /// The addresses of all replicas; a replica listens at its own.
    pub addresses: Vec<String>,
    /// The clients that replicas serve.
    pub clients: BTreeSet<u32>,
    /// The file of a replica's boot number, by which peers notice a restart at once.
    pub boot: Option<PathBuf>,
    /// The longest packet that is taken, if shorter than SMT takes anyway. Links make none above
    /// 1 MiB, but for a single message that is longer.
    pub packet_max: Option<u32>,
    /// Bytes that wait for a client at most, in each of its sessions: older messages are dropped,
    /// but for one that is longer by itself. A client has eight sessions, and may read none.
    pub client_bytes: usize,
}

/// Something that has come.
#[derive(Debug)]
pub enum Arrival {
    /// A packet of a member: see [`messages`].
    Packet(Member, Bytes),
    /// Nothing in that time.
    Nothing,
    /// The end was asked for, or the endpoint has closed.
    End,
}

enum Input {
    Packet(Member, Session, Bytes),
    End,
}

/// A handle to ask for the end, by another thread.
#[derive(Clone, Debug)]
pub struct Closer(SyncSender<Input>);

impl Closer {
    /// The next arrival but those that wait is [`Arrival::End`].
    pub fn end(&self) {
        // The owner of the mesh may have ended by itself.
        let _ = self.0.send(Input::End);
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packet(member, _, bytes) => write!(f, "{} bytes of {member:?}", bytes.len()),
            Self::End => write!(f, "end"),
        }
    }
}

/// Sessions of a client in which it has its replies: those in which it spoke last. A client has
/// several processes.
const SESSIONS_MAX: usize = 8;

/// A session in which a client spoke.
struct ClientLink {
    session: Session,
    link: Link,
}

/// The sessions of one member with all others.
pub struct Mesh {
    endpoint: Endpoint,
    replicas: BTreeMap<u32, Link>,
    /// The sessions of each client, the one in which it spoke last behind the others.
    clients: BTreeMap<u32, Vec<ClientLink>>,
    /// The clients for which something was pushed and not sent.
    unsent: BTreeSet<u32>,
    client_bytes: usize,
    inputs: Receiver<Input>,
    sender: SyncSender<Input>,
    traffic: Arc<Traffic>,
}

impl Mesh {
    /// Opens an endpoint, which takes messages from now on.
    ///
    /// # Errors
    /// [`SessionError`]
    pub fn open(place: &Place) -> Result<Self, SessionError> {
        let traffic = Arc::new(Traffic::default());
        let endpoint = match place.own {
            Member::Replica(own) => open_replica(place, own, traffic.clone())?,
            Member::Client(_) => open_client(place)?,
        };
        let mut replicas = BTreeMap::new();
        for (number, address) in (0..).zip(&place.addresses) {
            if place.own == Member::Replica(number) {
                continue;
            }
            let address = Address::from(address.as_str()).named(Member::Replica(number).name());
            let client = endpoint.client(address)?;
            let send = move |packet, deadline| client.send(packet).deadline(deadline).wait();
            replicas.insert(number, Link::start(WAITING_BYTES_MAX, traffic.clone(), send));
        }
        let (sender, inputs) = sync_channel(WAITING_MAX);
        let (own, accepted, counts) = (endpoint.clone(), sender.clone(), traffic.clone());
        let is_client = matches!(place.own, Member::Client(_));
        std::thread::spawn(move || accept(&own, &accepted, &counts, is_client));
        let (clients, unsent) = (BTreeMap::new(), BTreeSet::new());
        let client_bytes = place.client_bytes;
        Ok(Self { endpoint, replicas, clients, unsent, client_bytes, inputs, sender, traffic })
    }

    /// This side's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    /// The counts since the mesh was opened.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// A handle to ask for the end.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer(self.sender.clone())
    }

    /// Sends what there is to send, and waits for the next packet.
    pub fn next(&mut self, wait: Duration) -> Arrival {
        self.flush();
        match self.inputs.recv_timeout(wait) {
            Ok(Input::Packet(member, session, packet)) => {
                if let Member::Client(number) = member {
                    self.remember(number, session);
                }
                Arrival::Packet(member, packet)
            }
            Err(RecvTimeoutError::Timeout) => Arrival::Nothing,
            Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => Arrival::End,
        }
    }

    /// Sends to one replica, with the next [`Mesh::next`].
    pub fn to_replica(&mut self, number: u32, message: Vec<u8>) {
        if let Some(link) = self.replicas.get_mut(&number) {
            link.push(message);
        }
    }

    /// Sends to all other replicas, with the next [`Mesh::next`].
    pub fn to_replicas(&mut self, message: &[u8]) {
        self.replicas.values_mut().for_each(|link| link.push(message.to_vec()));
    }

    /// Sends to a client with the next [`Mesh::next`], in the sessions in which it spoke last: it
    /// may have several processes, each of which knows its own replies. A session that has ended is
    /// left until the client speaks in it again, and a client that has not spoken gets nothing.
    pub fn to_client(&mut self, number: u32, message: Vec<u8>) {
        let links = self.clients.get_mut(&number).into_iter().flatten();
        for it in links.filter(|it| !it.link.has_failed()) {
            it.link.push(message.clone());
        }
        self.unsent.insert(number);
    }

    /// Closes the endpoint; messages on their way have until `limit`.
    pub fn close(&mut self, limit: Duration) {
        self.flush();
        self.endpoint.close(limit);
    }

    /// Sends what there is to send. [`Mesh::next`] does so before it waits.
    pub fn flush(&mut self) {
        self.replicas.values_mut().for_each(Link::flush);
        while let Some(client) = self.unsent.pop_first() {
            let links = self.clients.get_mut(&client).into_iter().flatten();
            links.for_each(|it| it.link.flush());
        }
    }

    fn remember(&mut self, number: u32, session: Session) {
        let links = self.clients.entry(number).or_default();
        links.retain(|it| !it.link.has_failed());
        if let Some(known) = links.iter().position(|it| it.session == session) {
            links[known..].rotate_left(1);
            return;
        }
        let own = session.clone();
        let send = move |packet, deadline| own.send_blocking(packet).deadline(deadline).wait();
        let link = Link::start(self.client_bytes, self.traffic.clone(), send);
        links.push(ClientLink { session, link });
        if links.len() > SESSIONS_MAX {
            links.remove(0);
        }
    }
}

fn open_replica(place: &Place, own: u32, traffic: Arc<Traffic>) -> Result<Endpoint, SessionError> {
    let (identity, trust) = credentials(&place.certificates, place.own)?;
    let (count, clients) = (place.addresses.len(), place.clients.clone());
    let is_member = move |peer: &Peer| match Member::of(peer) {
        Some(Member::Replica(number)) if (number as usize) < count => Ok(()),
        Some(Member::Client(number)) if clients.contains(&number) => Ok(()),
        _ => {
            traffic.refused.fetch_add(1, Ordering::Relaxed);
            Err(Failure::refusal(403, "only members of the group are served"))
        }
    };
    let client = TlsClient::new(trust.clone()).identity(identity.clone());
    let mut builder = smt::server(identity).client_auth(ClientAuth::Required(trust));
    if let Some(boot) = &place.boot {
        builder = builder.state_file(boot);
    }
    if let Some(bytes) = place.packet_max {
        builder = builder.message_limit(bytes);
    }
    let address = place.addresses.get(own as usize).map_or("", String::as_str);
    Ok(builder.authorize(is_member).with_client(client).open_blocking(address)?)
}

fn open_client(place: &Place) -> Result<Endpoint, SessionError> {
    let (identity, trust) = credentials(&place.certificates, place.own)?;
    let mut builder = smt::client(trust).identity(identity);
    if let Some(bytes) = place.packet_max {
        builder = builder.message_limit(bytes);
    }
    Ok(builder.open_blocking("[::]:0")?)
}

/// Takes messages from all sessions.
fn accept(endpoint: &Endpoint, inputs: &SyncSender<Input>, traffic: &Traffic, is_client: bool) {
    while let Some(incoming) = endpoint.accept() {
        // A request would wait for a reply that never comes: it is dropped, and its caller told.
        let Incoming::Message(message) = incoming else {
            continue;
        };
        let Some(member) = Member::of(message.peer()) else {
            continue;
        };
        // Clients have sessions with replicas alone.
        if is_client && matches!(member, Member::Client(_)) {
            continue;
        }
        traffic.received.fetch_add(1, Ordering::Relaxed);
        let session = message.session().clone();
        if inputs.send(Input::Packet(member, session, message.into_body())).is_err() {
            return;
        }
    }
    // The end of the endpoint is the end of its owner.
    let _ = inputs.send(Input::End);
}

/// The messages of a packet; nothing after one that is cut off.
pub fn messages(packet: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = packet;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (message, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = after;
        Some(message)
    })
}
