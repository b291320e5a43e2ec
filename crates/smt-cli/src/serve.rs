// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt serve`: a server that echoes, hands out files, or runs a command.
//!
//! 1. The endpoint is opened; the first line on standard output says where it listens.
//! 2. Threads take requests and hand them to the [`Handler`].
//! 3. Ctrl-C or SIGTERM: new requests are refused, those in progress are finished, and a summary
//!    goes to standard error. A second one ends all at once.
//! 4. SIGHUP and SIGUSR1 tell that files have changed ([`OperatorSignals`]).
//! 5. Meanwhile tickets are published in DNS, if that is wanted (`publishing`).

mod access_log;
mod caller;
mod client_checks;
mod command;
mod command_pipes;
mod directory;
mod environment;
mod handler;
mod opened_file;
mod operator_signals;
mod program;
#[cfg_attr(not(feature = "dns"), path = "serve/no_publishing.rs")]
mod publishing;
mod startup_checks;
mod tally;
mod worker;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use smt::blocking::Server;
use smt::{Distrusted, Group, KeyLogFile, KeyPairPool, Shards};
use smt_wire::Shard;

use crate::credentials::ServerCredentials;
use crate::exit_code;
use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;
use crate::own_process::LISTENING;
use crate::size::Size;
use crate::sockets::SocketArguments;
use crate::standard_error;
use crate::time_span;
use access_log::AccessLog;
use command::Limits;
use handler::{Handler, HandlerArguments};
use operator_signals::{Files, OperatorSignals};
use publishing::{Publisher, Publishing, TicketArguments};
use tally::Tally;
use worker::Worker;

/// Serve requests: echo them, hand out files, or run a command for each
///
/// On Ctrl-C and SIGTERM new requests are refused, those in progress get 10 seconds to be answered,
/// and the server ends with exit code 0. A second signal kills the commands of --exec and closes
/// all sessions at once; the exit code is then 128 and the signal's number. On SIGHUP the files of
/// --cert, --key, --client-ca, --client-pin and --crl are read again: new clients meet what is in
/// them, sessions of clients that would not be let in any more end as --distrusted says, the others
/// go on, and if the files cannot be used all stays as it was. Docs: docs/SERVE.md.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The address to listen on; port 0 lets the system choose
    #[arg(default_value = "0.0.0.0:17379")]
    address: String,
    #[command(flatten)]
    credentials: ServerCredentials,
    #[command(flatten)]
    handler: HandlerArguments,
    /// Let everybody in, without a certificate: with --exec this, --client-ca or --client-pin has
    /// to be said, and without any of them a server that other hosts reach warns
    #[arg(long, conflicts_with_all = ["client_ca", "client_pin"])]
    anyone: bool,
    /// End live sessions of clients that would not be let in by the files that SIGHUP has read,
    /// since they were revoked, for example: at once, when their requests in progress are answered
    /// (finish), or not (keep)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = DistrustedChoice::End)]
    distrusted: DistrustedChoice,
    /// Kill a command of --exec that runs for longer, and all that it has started; its caller
    /// learns that it may have run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_span::parse_nonzero, requires = "exec")]
    exec_timeout: Duration,
    /// Append a line of JSON for each request to this file; - is standard output, behind its first
    /// line. SIGUSR1 opens the file again by its name, after it was renamed
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Keep a boot number here, so that clients notice a restart at once
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Append the secrets of all sessions to this file: its readers can read the sessions
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// The largest request accepted
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = Size::parse_message_limit)]
    message_limit: u32,
    /// Number of endpoints behind one address, a power of two; they share no lock, so that as many
    /// cores work at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = shards)]
    shards: u16,
    /// Threads that work on requests, for each shard; by default one for --echo, else one per core
    /// over all shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Key pairs of X25519 and of P-256 kept ready for new sessions; 0 makes each when it is needed
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(0..=1024))]
    key_pairs: u16,
    /// End when standard input ends, as with Ctrl-C
    #[arg(long)]
    until_input_ends: bool,
    #[command(flatten)]
    tickets: TicketArguments,
    #[command(flatten)]
    socket: SocketArguments,
}

/// The words of --distrusted.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DistrustedChoice {
    End,
    Finish,
    Keep,
}

impl From<DistrustedChoice> for Distrusted {
    fn from(choice: DistrustedChoice) -> Self {
        match choice {
            DistrustedChoice::End => Self::End,
            DistrustedChoice::Finish => Self::Finish,
            DistrustedChoice::Keep => Self::Keep,
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.check_access()?;
    let limits = Limits { reply: arguments.message_limit, time: arguments.exec_timeout };
    let handler = Handler::new(&arguments.handler, limits)?;
    // Before the address is told: whoever knows it may send signals.
    let signals = OperatorSignals::catch()?;
    let access_log = arguments.access_log.as_deref().map(AccessLog::open);
    let access_log = access_log.transpose()?.map(Arc::new);
    let publishing = arguments.tickets.publishing(&arguments.credentials)?;
    let shards = open(arguments, publishing.as_ref())?;
    arguments.warn(shards[0].local_address().ip())?;
    let closing: Vec<Server> = shards.iter().cloned().collect();
    let interrupt = Interrupt::with_last_act(move || {
        command::kill_all();
        // Callers learn at once.
        closing.iter().for_each(|shard| shard.close(Duration::ZERO));
    })?;
    let interrupt =
        if arguments.until_input_ends { interrupt.or_end_of_input() } else { interrupt };
    let listens = shards[0].local_address();
    let publisher = publishing.map(|publishing| publishing.start(&arguments.credentials, listens));
    let (publisher, ticket_identity) = publisher.transpose()?.unzip();
    signals.serve(Files {
        shards: shards.iter().cloned().collect(),
        credentials: arguments.credentials.clone(),
        access_log: access_log.clone(),
        ticket_identity,
    });
    let began = Instant::now();
    let mut output = std::io::stdout().lock();
    // The process that started this one may read no more than this line, but the line must arrive.
    let listening = writeln!(output, "{LISTENING}{}", shards[0].local_address());
    listening.and_then(|()| output.flush()).doing("telling the address on standard output")?;
    drop(output);
    let _key_pairs = arguments.key_pairs_ahead()?;

    let tallies: Vec<Tally> = shards.iter().map(|_| Tally::default()).collect();
    let is_over = AtomicBool::new(false);
    let workers =
        arguments.workers.map_or_else(|| handler.workers().div_ceil(shards.len()), usize::from);
    std::thread::scope(|scope| {
        for (shard, tally) in shards.iter().zip(&tallies) {
            let worker = Worker {
                server: shard,
                handler: &handler,
                tally,
                access_log: access_log.as_deref(),
                is_over: &is_over,
            };
            for _ in 0..workers {
                scope.spawn(move || worker.work());
            }
        }
        interrupt.wait();
        // Before new clients are refused, so that fewer come by a ticket.
        publisher.into_iter().for_each(Publisher::finish);
        shards.close(GRACE);
        // Handlers that still run now have no caller left to hear from them.
        is_over.store(true, Ordering::Relaxed);
    });
    if let Some(log) = access_log {
        log.finish();
    }
    interrupt.give_way();
    tell_counts(&shards, &tallies, began.elapsed());
    arguments.socket.tell_device_report();
    Ok(())
}

impl Arguments {
    /// Tells what its clients would refuse, and what is dangerous.
    fn warn(&self, address: std::net::IpAddr) -> Result<(), Failure> {
        let is_said = self.anyone || self.credentials.chooses_clients();
        let mut warnings = startup_checks::warnings(&self.credentials)?;
        warnings.extend(startup_checks::key_warning(&self.credentials.key));
        warnings.extend(startup_checks::access_warning(address, is_said));
        warnings.iter().for_each(|line| tracing::warn!("{line}"));
        Ok(())
    }

    /// The key pairs of groups where a server's answer has one: with ML-KEM it encapsulates.
    fn key_pairs_ahead(&self) -> Result<Option<KeyPairPool>, Failure> {
        if self.key_pairs == 0 {
            return Ok(None);
        }
        let pool = KeyPairPool::start([Group::X25519, Group::P256], self.key_pairs.into());
        Ok(Some(pool.doing("starting the thread that makes key pairs")?))
    }

    /// A command is not run for every client unless an option says so.
    fn check_access(&self) -> Result<(), Failure> {
        let is_said = self.anyone || self.credentials.chooses_clients();
        if !self.handler.runs_a_command() || is_said {
            return Ok(());
        }
        Err(Failure::usage(
            "--exec runs a command for each request: give --client-ca FILE to let only clients in that this authority has signed, --client-pin FILE for those whose certificates are in it, or --anyone to let everybody in",
        ))
    }
}

fn tell_counts(shards: &Shards<Server>, tallies: &[Tally], elapsed: Duration) {
    let statistics: Vec<_> = shards.iter().map(Server::statistics).collect();
    tracing::debug!(?statistics, "final counts");
    standard_error::tell(tally::summary(tallies, elapsed, &statistics));
}

fn open(arguments: &Arguments, publishing: Option<&Publishing>) -> Result<Shards<Server>, Failure> {
    let builder = arguments.socket.apply(arguments.credentials.builder()?);
    let builder = builder.message_limit(arguments.message_limit);
    let mut builder = builder.distrusted(arguments.distrusted.into());
    if let Some(publishing) = publishing {
        builder = builder.tickets(publishing.keys());
    }
    if let Some(path) = &arguments.state {
        builder = builder.state_file(path);
    }
    if let Some(path) = &arguments.key_log {
        let log = KeyLogFile::append(path).doing(format!("opening {}", path.display()))?;
        builder = builder.key_log(Arc::new(log));
    }
    builder.bind_shards_blocking(&arguments.address, arguments.shards).map_err(|error| {
        match exit_code::of_open_error(&error) {
            exit_code::NO_SERVER => Failure::from(error).and_exit_code(exit_code::FAILURE),
            _ => error.into(),
        }
    })
}

/// A number of shards (SPEC §6.6).
fn shards(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| Shard::is_count(*number));
    number.ok_or_else(|| format!("give a power of two, at most {}", Shard::COUNT_MAX))
}

/// Time that requests in progress get when the server is told to end.
const GRACE: Duration = Duration::from_secs(10);
