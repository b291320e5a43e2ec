// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-valkey-cli`: commands to a Valkey server over SMT. With a command it prints its reply; else
//! it reads a command from each line of standard input. With `--batch` all lines leave in one
//! message.

use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use redis::Value;
use smt_valkey::{Credentials, Form, Stream, reply_length, reply_text, words};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug, Parser)]
#[command(version, about = "Commands to a Valkey server over SMT", disable_help_flag = true)]
struct Arguments {
    /// Host of the server.
    #[arg(short = 'h', long = "host", default_value = "127.0.0.1")]
    host: String,
    /// Port of the server.
    #[arg(short, long, default_value_t = 6380)]
    port: u16,
    #[command(flatten)]
    credentials: Credentials,
    /// Password, of the user by `--user` or of the default one.
    #[arg(short = 'a', long)]
    pass: Option<String>,
    /// User of the password.
    #[arg(long, requires = "pass")]
    user: Option<String>,
    /// Database.
    #[arg(short = 'n', long)]
    db: Option<u32>,
    /// Protocol 3.
    #[arg(short = '3')]
    resp3: bool,
    /// Prints replies as bytes, also on a terminal.
    #[arg(long, conflicts_with = "no_raw")]
    raw: bool,
    /// Prints replies with their types, also into a pipe.
    #[arg(long)]
    no_raw: bool,
    /// Sends all lines of standard input in one message.
    #[arg(long)]
    batch: bool,
    /// Prints this help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Arguments {
    fn form(&self) -> Form {
        let is_raw = self.raw || !(self.no_raw || std::io::stdout().is_terminal());
        if is_raw { Form::Raw } else { Form::Typed }
    }

    /// The commands before the first one of the user.
    fn greetings(&self) -> Vec<Vec<Vec<u8>>> {
        let command = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut greetings = Vec::new();
        if let Some(pass) = &self.pass {
            let user = self.user.as_deref().unwrap_or("default");
            greetings.push(command(&["AUTH", user, pass]));
        }
        if self.resp3 {
            greetings.push(command(&["HELLO", "3"]));
        }
        if let Some(db) = self.db {
            greetings.push(command(&["SELECT", &db.to_string()]));
        }
        greetings
    }
}

/// A connection, and how its replies are printed.
struct Conversation {
    stream: Stream,
    unread: Vec<u8>,
    form: Form,
    has_failed: bool,
}

impl Conversation {
    /// Sends commands as one message, and prints their replies if they are wanted.
    async fn ask(
        &mut self,
        commands: &[Vec<Vec<u8>>],
        is_shown: bool,
    ) -> Result<(), Box<dyn Error>> {
        for command in commands {
            let mut packed = redis::Cmd::new();
            for word in command {
                packed.arg(word);
            }
            self.stream.write_all(&packed.get_packed_command()).await?;
        }
        self.stream.flush().await?;
        for command in commands {
            let mut reply = self.next().await?;
            // A subscriber is told until it ends itself; so is one who monitors.
            let is_endless = is_endless(&command[0]);
            loop {
                let is_error = matches!(reply, Value::ServerError(_));
                self.has_failed |= is_error;
                if is_shown || is_error {
                    std::io::stdout().write_all(&reply_text(&reply, self.form))?;
                    std::io::stdout().flush()?;
                }
                if !is_endless || is_error {
                    break;
                }
                reply = self.next().await?;
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Value, Box<dyn Error>> {
        loop {
            let length = reply_length(&self.unread).map_err(|_| "peer: that is no reply")?;
            if let Some(length) = length {
                let bytes: Vec<u8> = self.unread.drain(..length).collect();
                return Ok(redis::parse_redis_value(&bytes)?);
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err("peer: the server has closed the connection".into());
            }
        }
    }
}

fn is_endless(command: &[u8]) -> bool {
    [&b"subscribe"[..], b"psubscribe", b"ssubscribe", b"monitor"]
        .iter()
        .any(|name| command.eq_ignore_ascii_case(name))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome =
        runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(converse(&arguments)));
    match outcome {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("smt-valkey-cli: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a command has failed.
async fn converse(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let address = (arguments.host.as_str(), arguments.port);
    let mut conversation = Conversation {
        stream: arguments.credentials.options()?.stream(address).await?,
        unread: Vec::new(),
        form: arguments.form(),
        has_failed: false,
    };
    conversation.ask(&arguments.greetings(), false).await?;
    if conversation.has_failed {
        return Ok(true);
    }
    if !arguments.command.is_empty() {
        let words = arguments.command.iter();
        let command = words.map(|word| word.clone().into_bytes()).collect();
        conversation.ask(&[command], true).await?;
        return Ok(conversation.has_failed);
    }
    let mut batch = Vec::new();
    for line in std::io::stdin().lock().split(b'\n') {
        let command = words(&line?).map_err(|_| "caller: quotes are not balanced")?;
        if command.is_empty() {
            continue;
        }
        batch.push(command);
        if !arguments.batch {
            conversation.ask(&std::mem::take(&mut batch), true).await?;
        }
    }
    conversation.ask(&batch, true).await?;
    Ok(conversation.has_failed)
}
