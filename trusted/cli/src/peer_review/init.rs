// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review init`: the files of a new group.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use data_encoding::HEXLOWER;
use smt_mesh::Member;
use smt_trusted_process::{InitError, NewGroup};

use crate::peer_review::config::NODES_MAX;

/// Makes configuration, keys and certificates of a new group in a new directory
///
/// Each node gets the files that begin with its name, group.toml and authority.pem. authority.key
/// stays with the operator, who renews certificates by it. Node 0 is the source of the stream, and
/// the children of node k are the nodes k·d + 1 to k·d + d, where d is the degree.
#[derive(Args)]
pub(crate) struct InitArguments {
    /// The directory
    directory: PathBuf,
    /// Address and port of each node: at least two more than may lie, and nine at most
    #[arg(long = "node", value_name = "ADDRESS", required = true)]
    nodes: Vec<String>,
    /// How many of a node's witnesses may lie: each node has one witness more than that
    #[arg(long, default_value_t = 1)]
    faults: u32,
    /// The children of a node in the tree
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    degree: u32,
}

impl InitArguments {
    pub(crate) fn run(self) -> Result<(), InitError> {
        let (count, least) = (self.nodes.len(), self.faults.saturating_add(2) as usize);
        if count < least || count > NODES_MAX {
            let why = format!("{count} nodes are not {least} to {NODES_MAX}");
            return Err(InitError::Argument("--node", why));
        }
        let group = NewGroup::create(&self.directory)?;
        let (faults, degree) = (self.faults, self.degree);
        let mut text = format!("stream = 1\nfaults = {faults}\ndegree = {degree}\n");
        for (number, address) in (0..).zip(&self.nodes) {
            let key = HEXLOWER.encode(&group.member(Member::Replica(number), "node")?);
            let _ = write!(text, "\n[[nodes]]\naddress = {address:?}\nkey = \"{key}\"\n");
        }
        group.write("group.toml", text.as_bytes(), 0o644)
    }
}
