// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted device`.

use std::io::{self, Write};
use std::os::unix::fs::chown;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use smt_attestation::DeviceId;
use smt_device::confinement::{Account, group};
use smt_device::tpm::Transport;
use smt_device::{RunError, RunOptions, Store, StoreError, run};
use smt_device_client::{Client, Device, SecretNumber};
use zeroize::Zeroizing;

use crate::bootstrap::{self, Vendors};
use crate::certification::{Manufacturers, wait_for_manufacturer};
use crate::command_error::CommandError;
use crate::event_log;

#[derive(Subcommand)]
pub(crate) enum DeviceCommand {
    /// Makes a device with new keys in a directory
    Init {
        #[command(flatten)]
        place: DevicePlace,
        /// The device's number, unique in its groups
        #[arg(long)]
        number: u32,
    },
    /// Gives the device a group's secret, 64 hex digits on standard input
    AddSecret {
        #[command(flatten)]
        place: DevicePlace,
        /// The number by which hosts name the secret, from 1
        secret: u32,
    },
    /// Waits for the device's vendor, proves to it what this is, and stores what it sends
    Provision {
        #[command(flatten)]
        place: DevicePlace,
        #[command(flatten)]
        vendors: Vendors,
    },
    /// Waits for the device's manufacturer, proves its TPM to it, and stores the certificate
    Apply {
        #[command(flatten)]
        place: DevicePlace,
        #[command(flatten)]
        manufacturers: Manufacturers,
    },
    /// Prints the measurement of this program, by which vendors know it
    Measure,
    /// Prints the events of a log of firmware, as the lines by which vendors accept them
    Events {
        /// The log, for example /sys/kernel/security/tpm0/binary_bios_measurements
        log: PathBuf,
    },
    /// Runs the device in its next epoch, until it is killed
    Run {
        #[command(flatten)]
        place: DevicePlace,
        /// Where hosts connect; without it, the file `socket` in the directory
        #[arg(long)]
        socket: Option<PathBuf>,
        /// The group whose members may connect; without it, only the device's own user
        #[arg(long)]
        clients: Option<String>,
        /// Remembers where the logs of `smt-trusted a2m` end, for which it goes on to use its
        /// files and its TPM
        #[arg(long)]
        memory: bool,
    },
    /// Prints number, epoch and public key of a running device
    Show {
        /// Where it listens
        socket: PathBuf,
    },
}

/// A device's directory, and how it is opened.
#[derive(Args)]
pub(crate) struct DevicePlace {
    /// The directory
    pub(crate) directory: PathBuf,
    /// The TPM that counts epochs and seals keys: /dev/tpmrm0, a socket's path, or host:port
    #[arg(long)]
    tpm: Option<String>,
    /// The user that the process becomes, if root starts it: not that of the applications
    #[arg(long)]
    user: Option<String>,
}

impl DeviceCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        match self {
            Self::Init { place, number } => {
                place.give()?;
                let mut tpm = place.prepare()?;
                let store = Store::create(&place.directory, DeviceId(number), tpm.as_mut())?;
                let key = store.signing_key().public_key();
                writeln!(out, "public key {}", HEXLOWER.encode(&key))?;
            }
            Self::AddSecret { place, secret } => {
                let mut tpm = place.prepare()?;
                let bytes = read_secret()?;
                let mut store = Store::open(&place.directory, tpm.as_mut())?;
                store.add_secret(SecretNumber(secret), bytes)?;
            }
            Self::Provision { place, vendors } => bootstrap::wait_for_vendor(&place, &vendors)?,
            Self::Apply { place, manufacturers } => wait_for_manufacturer(&place, &manufacturers)?,
            Self::Measure => {
                writeln!(out, "{}", HEXLOWER.encode(&bootstrap::own_measurement()?))?;
            }
            Self::Events { log } => {
                drop(out);
                event_log::print_events(&log)?;
            }
            Self::Run { place, socket, clients, memory } => {
                let socket = socket.unwrap_or_else(|| place.directory.join("socket"));
                let clients = clients.as_deref().map(group_of).transpose()?;
                let account = place.account()?;
                let DevicePlace { directory, tpm, .. } = place;
                match run(&RunOptions { directory, socket, tpm, account, clients, memory })? {}
            }
            Self::Show { socket } => {
                let client = Client::connect(&socket)?;
                let own = client.own();
                writeln!(out, "device {}", own.device.0)?;
                writeln!(out, "epoch {}", own.epoch.0)?;
                writeln!(out, "public key {}", HEXLOWER.encode(&client.public_key()))?;
            }
        }
        Ok(())
    }
}

impl DevicePlace {
    /// Makes the directory, and gives it to the device's user.
    fn give(&self) -> Result<(), CommandError> {
        if let Some(Account { user, group }) = self.account()? {
            let made = std::fs::create_dir_all(&self.directory);
            made.and_then(|()| chown(&self.directory, Some(user), Some(group)))
                .map_err(StoreError::from)?;
        }
        Ok(())
    }

    /// Opens the TPM, and becomes the device's user, whom the directory belongs to.
    pub(crate) fn prepare(&self) -> Result<Option<Transport>, CommandError> {
        let tpm = self.tpm.as_deref().map(Transport::open).transpose();
        let tpm = tpm.map_err(StoreError::from)?;
        if let Some(account) = self.account()? {
            account.assume().map_err(RunError::Confinement)?;
        }
        Ok(tpm)
    }

    fn account(&self) -> Result<Option<Account>, CommandError> {
        let Some(user) = &self.user else {
            return Ok(None);
        };
        let unknown = |_| CommandError::Request(format!("there is no user {user}"));
        Account::find(user).map(Some).map_err(unknown)
    }
}

fn group_of(name: &str) -> Result<u32, CommandError> {
    group(name).map_err(|_| CommandError::Request(format!("there is no group {name}")))
}

fn read_secret() -> Result<Zeroizing<[u8; 32]>, CommandError> {
    let mut text = Zeroizing::new(String::with_capacity(128));
    io::stdin().read_line(&mut text)?;
    let mut secret = Zeroizing::new([0; 32]);
    let is_secret = text.trim().len() == 64
        && HEXLOWER.decode_mut(text.trim().as_bytes(), &mut *secret) == Ok(32);
    let wrong = || CommandError::Request("a secret has 64 hex digits in lower case".to_owned());
    is_secret.then_some(secret).ok_or_else(wrong)
}
