// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review verify`: evidence for whoever was not there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use smt_peer_review::{Evidence, Proof, Unproven};
use smt_trusted_process::ConfigError;

use crate::peer_review::config::GroupConfig;

/// Verifies evidence against a node, by the public keys of the group alone
#[derive(Args)]
pub(crate) struct VerifyArguments {
    /// The group's file
    #[arg(long, value_name = "FILE")]
    group: PathBuf,
    /// A file `evidence-N` of a node's directory
    evidence: PathBuf,
}

/// Why evidence proves nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    /// The group's file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file cannot be read.
    #[error("your files: {} cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The file is none of evidence.
    #[error("your files: {} is no evidence, or was cut off", .0.display())]
    Malformed(PathBuf),
    /// It proves nothing.
    #[error("this proves nothing against node {node}: {why}")]
    Unproven { node: u32, why: Unproven },
    /// Standard output failed.
    #[error("the operating system: standard output failed")]
    Output(#[from] io::Error),
}

impl VerifyArguments {
    pub(crate) fn run(self) -> Result<(), VerifyError> {
        let group = GroupConfig::read(&self.group)?;
        let bytes = read(&self.evidence, group.evidence_max)
            .map_err(|error| VerifyError::Read(self.evidence.clone(), error))?;
        let evidence = Evidence::decode(&bytes).ok_or(VerifyError::Malformed(self.evidence))?;
        let node = evidence.accused();
        let proof = evidence.verify(&group.group, &group.tree);
        let proof = proof.map_err(|why| VerifyError::Unproven { node, why })?;
        let mut out = io::stdout().lock();
        match proof {
            Proof::Faulty(index, fault) => {
                writeln!(out, "node {node} is proved faulty by entry {index} of its log: {fault}")?;
            }
            Proof::Forked(index) => {
                writeln!(out, "node {node} is proved faulty: it has two logs at entry {index}")?;
            }
        }
        Ok(())
    }
}

/// Longer files are cut off, and no evidence then.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
