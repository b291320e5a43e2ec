// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a new group.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use data_encoding::HEXLOWER;
use smt_mesh::Member;
use smt_trusted_process::{InitError, NewGroup, refuse_count};

use crate::error::ProgramError;

/// Makes configuration, keys and certificates of a new group in a new directory
///
/// Each member gets the files that begin with its name, group.toml and authority.pem; nodes also
/// group.secret. authority.key stays with the operator, who renews certificates by it.
#[derive(Args)]
pub struct InitArguments {
    /// The directory
    directory: PathBuf,
    /// Address and port of each node: 3, 5, 7 or 9 of them
    #[arg(long = "node", value_name = "ADDRESS", required = true)]
    nodes: Vec<String>,
    /// How many clients the group has, numbered from 1
    #[arg(long, default_value_t = 1)]
    clients: u32,
}

impl InitArguments {
    /// Makes the files.
    ///
    /// # Errors
    /// [`ProgramError::Init`]
    pub fn run(self) -> Result<(), ProgramError> {
        if let Some(why) = refuse_count(self.nodes.len(), "nodes") {
            return Err(InitError::Count(why).into());
        }
        let group = NewGroup::create(&self.directory)?.with_secret()?;
        let mut text = "stream = 1\n".to_owned();
        if self.clients == 0 {
            text += "clients = []\n";
        }
        for (number, address) in (0..).zip(&self.nodes) {
            let key = HEXLOWER.encode(&group.member(Member::Replica(number), "node")?);
            let _ = write!(text, "\n[[nodes]]\naddress = {address:?}\nkey = \"{key}\"\n");
        }
        text += &group.clients(self.clients)?;
        Ok(group.write("group.toml", text.as_bytes(), 0o644)?)
    }
}
