// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain init`: the files of a new group.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use data_encoding::HEXLOWER;
use smt_mesh::Member;
use smt_trusted_process::{InitError, NewGroup, refuse_count};

use crate::chain::config::{refuse_endpoint, refuse_prefix};
use crate::service::ServiceName;

/// Makes configuration, keys and certificates of a new group in a new directory
///
/// Each member gets the files that begin with its name, group.toml and authority.pem; nodes also
/// group.secret. authority.key stays with the operator, who renews certificates by it.
#[derive(Args)]
pub(crate) struct InitArguments {
    /// The directory
    directory: PathBuf,
    /// Address and port of each node: 3, 5, 7 or 9 of them
    #[arg(long = "node", value_name = "ADDRESS", required = true)]
    nodes: Vec<String>,
    /// How many clients the group has, numbered from 1
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// The service that is replicated
    #[arg(long, default_value = "key-value")]
    service: ServiceName,
    /// Where etcd is, for nodes to agree on configurations; several for its members
    #[arg(long = "etcd", value_name = "URL", default_value = "http://127.0.0.1:2379")]
    endpoints: Vec<String>,
    /// The beginning of the group's keys in etcd; by default one that no other group has
    #[arg(long)]
    etcd_prefix: Option<String>,
}

impl InitArguments {
    pub(crate) fn run(self) -> Result<(), InitError> {
        if let Some(why) = refuse_count(self.nodes.len(), "nodes") {
            return Err(InitError::Count(why));
        }
        if let Some(why) = self.endpoints.iter().find_map(|it| refuse_endpoint(it)) {
            return Err(InitError::Argument("--etcd", why));
        }
        let prefix = self.etcd_prefix.map_or_else(new_prefix, Ok)?;
        if let Some(why) = refuse_prefix(&prefix) {
            return Err(InitError::Argument("--etcd-prefix", why));
        }
        let group = NewGroup::create(&self.directory)?.with_secret()?;
        let mut text = format!("stream = 1\nservice = \"{}\"\n", self.service.name());
        if self.clients == 0 {
            text += "clients = []\n";
        }
        let endpoints = &self.endpoints;
        let _ = write!(text, "\n[etcd]\nendpoints = {endpoints:?}\nprefix = {prefix:?}\n");
        for (number, address) in (0..).zip(&self.nodes) {
            let key = HEXLOWER.encode(&group.member(Member::Replica(number), "node")?);
            let _ = write!(text, "\n[[nodes]]\naddress = {address:?}\nreply_key = \"{key}\"\n");
        }
        text += &group.clients(self.clients)?;
        group.write("group.toml", text.as_bytes(), 0o644)
    }
}

fn new_prefix() -> Result<String, InitError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(InitError::Random)?;
    Ok(format!("smt-chain/{}", HEXLOWER.encode(&bytes)))
}
