// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted transform call`: a request to a protocol of which only its nodes know the meaning.

use std::io::{self, Write};

use clap::Args;
use data_encoding::HEXLOWER_PERMISSIVE;
use smt_transform_process::ClientArguments;

use crate::command_error::CommandError;

/// Makes a request, and prints the answer that f + 1 nodes endorse
#[derive(Args)]
pub(crate) struct CallArguments {
    #[command(flatten)]
    client: ClientArguments,
    /// Operation and answer are texts, and not bytes in hexadecimal
    #[arg(long)]
    text: bool,
    /// The operation
    operation: String,
}

impl CallArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let operation = match self.text {
            true => self.operation.into_bytes(),
            false => HEXLOWER_PERMISSIVE.decode(self.operation.as_bytes()).map_err(|_| {
                let text = "the operation is not in hexadecimal; --text is for a text".to_owned();
                CommandError::Request(text)
            })?,
        };
        let answer = self.client.call(operation)?;
        let shown = match self.text {
            true => answer.escape_ascii().to_string(),
            false => HEXLOWER_PERMISSIVE.encode(&answer),
        };
        Ok(writeln!(io::stdout().lock(), "{shown}")?)
    }
}
