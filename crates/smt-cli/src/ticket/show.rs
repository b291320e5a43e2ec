// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt ticket show`: what a ticket says, for people or as JSON.

use std::io::Write;

use clap::Args;
use serde_json::json;
use smt::{Group, Ticket};
use smt_dns::wall_now;

use super::source::{Found, Source};
use crate::failure::Failure;
use crate::fingerprint::hex;
use crate::standard_output::standard_output;

/// Tell what a ticket says: names, algorithms, time and demands
///
/// Nothing is verified; smt ticket verify does that. A ticket that is over, or is soon, is warned
/// of.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let found = arguments.source.read()?;
    let now = wall_now().as_secs();
    let mut output = standard_output();
    match arguments.json {
        true => writeln!(output, "{}", object(&found, now))?,
        false => write!(output, "{}", text(&found, now))?,
    }
    let validity = found.ticket.validity();
    let life = validity.end() - validity.start();
    if now.saturating_add(life / 4) > *validity.end() {
        tracing::warn!(
            "the ticket {}: a server renews its own after half of its life; does it still publish?",
            expiry(&found.ticket, now)
        );
    }
    Ok(())
}

fn text(found: &Found, now: u64) -> String {
    let ticket = &found.ticket;
    let names: Vec<&str> = ticket.names().collect();
    let suites: Vec<String> = ticket.suites().iter().map(ToString::to_string).collect();
    let validity = ticket.validity();
    let chain = match &found.chain {
        Some(chain) => format!(
            "{} certificates, {} bytes",
            chain.len(),
            chain.iter().map(Vec::len).sum::<usize>()
        ),
        None => "not with the ticket".to_owned(),
    };
    let ttl = found.ttl.map_or(String::new(), |ttl| format!("ttl          {ttl} s\n"));
    format!(
        "names        {}\n\
         group        {}\n\
         suites       {}\n\
         valid        {} to {} (seconds since 1970)\n\
         expiry       {}\n\
         demands      {}\n\
         size         {} bytes\n\
         chain        {chain}\n\
         chain hash   {}\n\
         ticket hash  {}\n\
         {ttl}",
        names.join(" "),
        group(ticket.group()),
        suites.join(" "),
        validity.start(),
        validity.end(),
        expiry(ticket, now),
        demands(ticket),
        ticket.as_bytes().len(),
        hex(&ticket.chain_hash()),
        hex(&ticket.hash()),
    )
}

fn object(found: &Found, now: u64) -> serde_json::Value {
    let ticket = &found.ticket;
    let suites: Vec<String> = ticket.suites().iter().map(ToString::to_string).collect();
    json!({
        "schema": SCHEMA,
        "kind": "ticket",
        "names": ticket.names().collect::<Vec<_>>(),
        "group": group(ticket.group()),
        "suites": suites,
        "not_before_s": ticket.validity().start(),
        "not_after_s": ticket.validity().end(),
        "seconds_left": ticket.validity().end().saturating_sub(now),
        "requires_forward_secrecy": ticket.requires_forward_secrecy(),
        "requires_client_certificate": ticket.requires_client_certificate(),
        "bytes": ticket.as_bytes().len(),
        "certificates": found.chain.as_ref().map(Vec::len),
        "chain_sha256": hex(&ticket.chain_hash()),
        "ticket_sha256": hex(&ticket.hash()),
        "ttl_s": found.ttl,
    })
}

fn expiry(ticket: &Ticket, now: u64) -> String {
    let validity = ticket.validity();
    match (now.checked_sub(*validity.start()), validity.end().checked_sub(now)) {
        (None, _) => format!("begins in {} s", validity.start() - now),
        (_, Some(left)) => format!("ends in {left} s"),
        (_, None) => format!("is over since {} s", now - validity.end()),
    }
}

fn demands(ticket: &Ticket) -> &'static str {
    match (ticket.requires_forward_secrecy(), ticket.requires_client_certificate()) {
        (false, false) => "nothing",
        (true, false) => "forward secrecy",
        (false, true) => "a client certificate",
        (true, true) => "forward secrecy, a client certificate",
    }
}

const fn group(group: Group) -> &'static str {
    match group {
        Group::P256 => "P-256",
        Group::X25519 => "X25519",
        Group::X25519MlKem768 => "X25519MLKEM768",
    }
}

/// Version of the JSON object: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;
