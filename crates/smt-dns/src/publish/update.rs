// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A name server that takes dynamic updates (RFC 2136), signed by TSIG.
//!
//! 1. One message takes the records of each name away and adds the new one: nobody finds none.
//! 2. It goes by TCP, since it is longer than a datagram.
//! 3. The answer counts only if it is signed and answers this message.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Publication;
use super::tsig::TsigKey;
use crate::error::PublishError;
use crate::limits::{UPDATE_ANSWER_LEN_MAX, UPDATE_TIME};
use crate::watch::wall_now;

/// The zone of a name server, and the key that may change it.
#[derive(Debug)]
pub struct DynamicUpdate {
    server: SocketAddr,
    zone: Name,
    key: TsigKey,
}

impl DynamicUpdate {
    /// Updates of this zone at its primary name server (port 53, as a rule).
    ///
    /// # Errors
    /// The zone is no DNS name.
    pub fn new(server: SocketAddr, zone: &str, key: TsigKey) -> Result<Self, PublishError> {
        let mut name = Name::from_ascii(zone)
            .map_err(|_| PublishError::Name(format!("{zone:?} is no name of a zone")))?;
        name.set_fqdn(true);
        Ok(Self { server, zone: name, key })
    }

    /// Puts the records in place of those that are there.
    ///
    /// # Errors
    /// The server did not answer, or refused.
    pub(super) async fn publish(&self, publication: &Publication) -> Result<(), PublishError> {
        let mut changes = Vec::new();
        for name in self.names(publication)? {
            changes.push(all_of(&name));
            changes.push(record(name, publication.ttl, publication));
        }
        self.send(changes).await
    }

    /// Takes these records away, and no others.
    ///
    /// # Errors
    /// The server did not answer, or refused.
    pub(super) async fn withdraw(&self, publication: &Publication) -> Result<(), PublishError> {
        let names = self.names(publication)?.into_iter();
        let changes = names.map(|name| {
            let mut this = record(name, 0, publication);
            this.dns_class = DNSClass::NONE;
            this
        });
        self.send(changes.collect()).await
    }

    /// The names of the records that are in the zone, at least one.
    fn names(&self, publication: &Publication) -> Result<Vec<Name>, PublishError> {
        let servers = publication.servers.iter();
        let names = servers.filter_map(|server| server.dns_name().ok());
        let names: Vec<Name> = names.filter(|name| self.zone.zone_of(name)).collect();
        match names.is_empty() {
            true => Err(PublishError::Name(format!(
                "none of the tickets' names is in the zone {}",
                self.zone
            ))),
            false => Ok(names),
        }
    }

    async fn send(&self, changes: Vec<Record>) -> Result<(), PublishError> {
        let now = wall_now().as_secs();
        let mut message = message(&self.zone, changes).map_err(|why| self.refused(why))?;
        let mac = self.key.sign(&mut message, now);
        let mac = mac.map_err(|why| self.refused(why))?;
        let id = message.id;
        let request = message.to_vec().map_err(|error| self.refused(error.to_string()))?;
        let answer = within(UPDATE_TIME, exchange(self.server, &request)).await;
        let answer =
            answer.map_err(|error| PublishError::NoAnswer { server: self.server, error })?;
        self.judge(&answer, id, &mac).map_err(|why| self.refused(why))
    }

    fn judge(&self, answer: &[u8], id: u16, mac: &[u8]) -> Result<(), String> {
        let read = Message::from_vec(answer).map_err(|_| "its answer is malformed".to_owned())?;
        if read.id != id || read.message_type != MessageType::Response {
            return Err("its answer is to something else".to_owned());
        }
        // An answer that says why the request was not believed cannot be signed.
        let code = read.metadata.response_code;
        let verified = self.key.verify(answer, mac, wall_now().as_secs());
        match code {
            ResponseCode::NoError => verified,
            code => {
                Err(code.to_string()
                    + &verified.err().map_or(String::new(), |why| format!(" ({why})")))
            }
        }
    }

    fn refused(&self, reason: String) -> PublishError {
        PublishError::Refused { server: self.server, reason }
    }
}

/// RFC 2136 §2.5.2: all records of a name that are of this type.
fn all_of(name: &Name) -> Record {
    let mut all = Record::update0(name.clone(), 0, RecordType::SVCB);
    all.dns_class = DNSClass::ANY;
    all.into_record_of_rdata()
}

fn record(name: Name, ttl: u32, publication: &Publication) -> Record {
    Record::from_rdata(name, ttl, RData::SVCB(publication.record.to_svcb()))
}

fn message(zone: &Name, changes: Vec<Record>) -> Result<Message, String> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| "the system gives no random bytes".to_owned())?;
    let mut message = Message::new(u16::from_be_bytes(id), MessageType::Query, OpCode::Update);
    // The section of questions names the zone, and that of authorities has the changes.
    message.add_query(Query::query(zone.clone(), RecordType::SOA));
    message.add_authorities(changes);
    Ok(message)
}

async fn exchange(server: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(request.len());
    let length = length.map_err(|_| io::Error::other("the update has more than 65,535 bytes"))?;
    let mut stream = TcpStream::connect(server).await?;
    let framed = [&length.to_be_bytes(), request].concat();
    stream.write_all(&framed).await?;
    let length = usize::from(stream.read_u16().await?);
    if length > UPDATE_ANSWER_LEN_MAX {
        return Err(io::Error::other("the answer is longer than one to an update"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

async fn within<T>(time: Duration, done: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let over = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
    tokio::time::timeout(time, done).await.unwrap_or_else(over)
}

#[cfg(test)]
mod tests;
