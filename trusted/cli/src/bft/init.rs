// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft init`: the files of a new group.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use data_encoding::HEXLOWER;
use smt_mesh::Member;
use smt_trusted_process::{InitError, NewGroup, refuse_count};

use crate::service::ServiceName;

/// Makes configuration, keys and certificates of a new group in a new directory
///
/// Each member gets the files that begin with its name, group.toml and authority.pem; replicas also
/// group.secret. authority.key stays with the operator, who renews certificates by it.
#[derive(Args)]
pub(crate) struct InitArguments {
    /// The directory
    directory: PathBuf,
    /// Address and port of each replica: 3, 5, 7 or 9 of them
    #[arg(long = "replica", value_name = "ADDRESS", required = true)]
    replicas: Vec<String>,
    /// How many clients the group has, numbered from 1
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// The service that is replicated
    #[arg(long, default_value = "key-value")]
    service: ServiceName,
}

impl InitArguments {
    pub(crate) fn run(self) -> Result<(), InitError> {
        if let Some(why) = refuse_count(self.replicas.len(), "replicas") {
            return Err(InitError::Count(why));
        }
        let group = NewGroup::create(&self.directory)?.with_secret()?;
        let service = self.service.name();
        let mut text = format!("stream = 1\nservice = \"{service}\"\n");
        for (number, address) in (0..).zip(&self.replicas) {
            let key = group.member(Member::Replica(number), "replica")?;
            let key = HEXLOWER.encode(&key);
            let _ = write!(text, "\n[[replicas]]\naddress = {address:?}\nreply_key = \"{key}\"\n");
        }
        text += &group.clients(self.clients)?;
        if self.clients == 0 {
            text = format!("clients = []\n{text}");
        }
        group.write("group.toml", text.as_bytes(), 0o644)
    }
}
