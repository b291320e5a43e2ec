// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted manufacturer` and `smt-trusted vendor`, and the device's side of both.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use smt_bootstrap::{
    BootstrapError, Configuration, Controller, ControllerKeys, DeviceCertificate, Manufacturer,
    Measurement, Policy, Provisioned, Randomness, Reaction, Vendor, measure, public_key, tls,
};
use smt_device::confinement;
use smt_device::tpm::{Quote, QuotingKey, TpmError, Transport};
use smt_device::{RunError, Store, StoreError};
use smt_device_client::SecretNumber;
use zeroize::Zeroizing;

use crate::certification::CertifyRemote;
use crate::command_error::CommandError;
use crate::device::DevicePlace;
use crate::event_log::{read_accepted, read_log};

#[derive(Subcommand)]
pub(crate) enum ManufacturerCommand {
    /// Makes a manufacturer's key in a new directory
    Init {
        /// The directory
        directory: PathBuf,
    },
    /// Certifies a device that the manufacturer has in its hands
    Certify {
        /// The manufacturer's directory
        manufacturer: PathBuf,
        #[command(flatten)]
        place: DevicePlace,
    },
    /// Certifies a device that waits for this manufacturer, by its TPM's endorsement key
    CertifyRemote(CertifyRemote),
}

#[derive(Subcommand)]
pub(crate) enum VendorCommand {
    /// Makes a vendor's key in a new directory
    Init {
        /// The directory
        directory: PathBuf,
    },
    /// Verifies a device that waits for this vendor, and gives it the secrets of its groups: lines
    /// of number and 64 hex digits on standard input
    Provision(Provision),
}

#[derive(Args)]
pub(crate) struct Provision {
    /// The vendor's directory
    vendor: PathBuf,
    /// Where the device waits
    address: String,
    /// The manufacturer's public key
    #[arg(long)]
    manufacturer: String,
    /// A program that is taken, as `smt-trusted device measure` prints it; more than one may be
    #[arg(long, required = true)]
    program: Vec<String>,
    /// The device's number
    #[arg(long)]
    device: u32,
    /// A device that is refused, though certified; more than one may be
    #[arg(long)]
    revoked: Vec<u32>,
    /// Refuses devices without a TPM
    #[arg(long)]
    tpm: bool,
    /// Refuses devices whose host has booted something else than this digest of its registers
    #[arg(long)]
    registers: Option<String>,
    /// Refuses devices whose host has booted with other events than the lines of this file, which
    /// are `REGISTER TYPE DIGEST`, or `REGISTER any`
    #[arg(long)]
    events: Option<PathBuf>,
}

/// The vendor that a device waits for.
#[derive(Args)]
pub(crate) struct Vendors {
    /// Where to wait
    #[arg(long)]
    listen: String,
    /// The vendor's public key
    #[arg(long)]
    vendor: String,
    /// The log of events that the host's firmware keeps:
    /// /sys/kernel/security/tpm0/binary_bios_measurements
    #[arg(long)]
    event_log: Option<PathBuf>,
}

impl ManufacturerCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init { directory } => print_key(&*make_key(&directory)?)?,
            Self::Certify { manufacturer, place } => {
                let manufacturer = Manufacturer::new(&*read_key(&manufacturer)?);
                let mut tpm = place.prepare()?;
                let store = Store::open(&place.directory, tpm.as_mut())?;
                let quoting_key = tpm.as_mut().map(quoting_key).transpose()?;
                let hardware_key = public_key(&store.hardware_seed());
                let device = store.device().0;
                let certificate = manufacturer.certify(device, hardware_key, quoting_key);
                store.write_certificate(&certificate.encode())?;
            }
            Self::CertifyRemote(command) => command.run()?,
        }
        Ok(())
    }
}

impl VendorCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init { directory } => Ok(print_key(&*make_key(&directory)?)?),
            Self::Provision(command) => command.run(),
        }
    }
}

impl Provision {
    fn run(self) -> Result<(), CommandError> {
        let seed = read_key(&self.vendor)?;
        let policy = Policy {
            manufacturer: hex(&self.manufacturer)?,
            programs: self.program.iter().map(|it| hex(it)).collect::<Result<_, _>>()?,
            revoked: self.revoked,
            needs_quote: self.tpm,
            registers: self.registers.as_deref().map(hex).transpose()?,
            events: self.events.as_deref().map(read_accepted).transpose()?,
            vendor_key: public_key(&seed),
        };
        let configuration = read_secrets(self.device)?;
        let Provisioned { message_key, quoted } =
            provision(&seed, &self.address, policy, &configuration)?;
        let mut out = io::stdout().lock();
        writeln!(out, "device {} has the secrets of its groups", self.device)?;
        if let Some(quoted) = quoted {
            writeln!(out, "registers {}", HEXLOWER.encode(&quoted.registers))?;
            writeln!(out, "resets {}", quoted.resets)?;
        }
        Ok(writeln!(out, "public key {}", HEXLOWER.encode(&message_key))?)
    }
}

/// The vendor's side of a connection.
fn provision(
    seed: &[u8; 32],
    address: &str,
    policy: Policy,
    configuration: &Configuration,
) -> Result<Provisioned, CommandError> {
    let mut connection = tls::connect(connect(address)?, seed)?;
    let mut image_nonce = [0; 24];
    getrandom::fill(&mut image_nonce).map_err(io::Error::from)?;
    let randomness = Randomness { nonce: *random()?, key: random()?, image_nonce };
    let (mut vendor, hello) = Vendor::begin(policy, connection.binding, randomness, configuration);
    let mut next = Some(hello);
    while let Some(message) = next {
        connection.send(&message.encode())?;
        next = vendor.take(&connection.receive()?)?;
    }
    vendor.provisioned().ok_or_else(|| CommandError::Request("nothing was done".to_owned()))
}

/// The device's side: waits for its vendor, and stores what it sends. A stranger is sent
/// away, and so is a vendor whose connection breaks; it may come again.
pub(crate) fn wait_for_vendor(place: &DevicePlace, vendors: &Vendors) -> Result<(), CommandError> {
    let vendor_key = hex(&vendors.vendor)?;
    let measurement = own_measurement()?;
    let listener = listen(&vendors.listen)?;
    // Root alone reads the log, and root is what `prepare` gives up.
    let event_log = vendors.event_log.as_deref().map(read_log).transpose()?.unwrap_or_default();
    let mut tpm = place.prepare()?;
    confinement::hide().map_err(RunError::Confinement)?;
    let mut store = Store::open(&place.directory, tpm.as_mut())?;
    let certificate = read_certificate(&store, &place.directory)?;
    eprintln!("smt-device: waits for its vendor at {}", listener.local_addr()?);
    let groups = take_first(&listener, |socket| {
        let (store, tpm, event_log) = (&mut store, tpm.as_mut(), &event_log);
        let mut waiting = Waiting { store, tpm, vendor_key, measurement, event_log };
        waiting.take(socket, &certificate)
    })?;
    eprintln!("smt-device: has the secrets of {groups} groups");
    Ok(())
}

/// Takes connections until one does what it came for. A stranger is sent away.
pub(crate) fn take_first<T>(
    listener: &TcpListener,
    mut take: impl FnMut(TcpStream) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    loop {
        let (socket, _) = listener.accept().map_err(RunError::Serve)?;
        match take(socket) {
            Err(CommandError::Bootstrap(error)) if is_of_peer(&error) => {
                eprintln!("smt-device: a connection was refused: {error}");
            }
            other => return other,
        }
    }
}

pub(crate) fn listen(address: &str) -> Result<TcpListener, CommandError> {
    TcpListener::bind(address)
        .map_err(|error| CommandError::Request(format!("no way to listen at {address}: {error}")))
}

pub(crate) fn connect(address: &str) -> Result<TcpStream, CommandError> {
    TcpStream::connect(address)
        .map_err(|error| CommandError::Request(format!("no device waits at {address}: {error}")))
}

/// Whether another peer may do better. A fault of the device itself ends the command.
fn is_of_peer(error: &BootstrapError) -> bool {
    !matches!(error, BootstrapError::Tpm(_))
}

/// A device that waits for its vendor.
struct Waiting<'a> {
    store: &'a mut Store,
    tpm: Option<&'a mut Transport>,
    vendor_key: [u8; 32],
    measurement: Measurement,
    event_log: &'a [u8],
}

impl Waiting<'_> {
    /// One connection; the number of groups whose secrets it brought.
    fn take(
        &mut self,
        socket: TcpStream,
        certificate: &DeviceCertificate,
    ) -> Result<usize, CommandError> {
        // A key of this connection alone.
        let seed = random()?;
        let mut connection = tls::accept(socket, &seed, &self.vendor_key)?;
        let keys = ControllerKeys::new(
            certificate.clone(),
            self.measurement,
            [&self.store.hardware_seed(), &seed],
            [self.vendor_key, self.store.signing_key().public_key()],
        )
        .with_event_log(self.event_log.to_vec());
        let mut controller = Controller::begin(keys, connection.binding)?;
        loop {
            let message = connection.receive()?;
            let tpm = self.tpm.as_deref_mut();
            match controller.take(&message, |data| tpm.map(|it| quote(it, data)).transpose())? {
                Reaction::Reply(reply) => connection.send(&reply.encode())?,
                Reaction::Store(configuration, reply) => {
                    let number = |(number, secret): &(u32, [u8; 32])| {
                        (SecretNumber(*number), Zeroizing::new(*secret))
                    };
                    let secrets: Vec<_> = configuration.secrets.iter().map(number).collect();
                    self.store.add_secrets(&secrets)?;
                    connection.send(&reply.encode())?;
                    return Ok(secrets.len());
                }
            }
        }
    }
}

fn quote(tpm: &mut Transport, data: &[u8; 32]) -> Result<Quote, TpmError> {
    let key = QuotingKey::create(tpm)?;
    let quote = key.quote(tpm, data);
    key.let_go(tpm)?;
    quote
}

fn quoting_key(tpm: &mut Transport) -> Result<[u8; 64], StoreError> {
    let key = QuotingKey::create(tpm)?;
    let point = key.point();
    key.let_go(tpm)?;
    Ok(point)
}

/// A file that the request names, and what is wrong with it.
pub(crate) fn wrong(path: &Path, why: &dyn Display) -> CommandError {
    CommandError::Request(format!("{}: {why}", path.display()))
}

/// The measurement of this program.
pub(crate) fn own_measurement() -> io::Result<Measurement> {
    measure(Path::new("/proc/self/exe"))
}

fn read_certificate(store: &Store, directory: &Path) -> Result<DeviceCertificate, CommandError> {
    let bytes = store.certificate()?.ok_or_else(|| {
        let directory = directory.display();
        CommandError::Request(format!(
            "{directory} has no certificate: `smt-trusted manufacturer certify` makes one"
        ))
    })?;
    Ok(DeviceCertificate::decode(&bytes)?)
}

fn print_key(seed: &[u8; 32]) -> io::Result<()> {
    writeln!(io::stdout().lock(), "public key {}", HEXLOWER.encode(&public_key(seed)))
}

fn make_key(directory: &Path) -> Result<Zeroizing<[u8; 32]>, CommandError> {
    let seed = random()?;
    fs::create_dir_all(directory)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(directory.join("key"));
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CommandError::Request(format!("{} has a key already", directory.display()))
        }
        _ => error.into(),
    })?;
    file.write_all(&*seed)?;
    file.sync_all()?;
    Ok(seed)
}

pub(crate) fn read_key(directory: &Path) -> Result<Zeroizing<[u8; 32]>, CommandError> {
    let wrong = || CommandError::Request(format!("{} has no key", directory.display()));
    let path = directory.join("key");
    let metadata = fs::metadata(&path).map_err(|_| wrong())?;
    if metadata.mode() & 0o077 != 0 {
        let path = path.display();
        let text = format!("others may read {path}: `chmod 600 {path}`");
        return Err(CommandError::Request(text));
    }
    let bytes = Zeroizing::new(fs::read(path).map_err(|_| wrong())?);
    <[u8; 32]>::try_from(&bytes[..]).map(Zeroizing::new).map_err(|_| wrong())
}

pub(crate) fn hex(text: &str) -> Result<[u8; 32], CommandError> {
    let mut bytes = [0; 32];
    let is_hex = text.len() == 64 && HEXLOWER.decode_mut(text.as_bytes(), &mut bytes) == Ok(32);
    let wrong = || CommandError::Request(format!("{text} is not 64 hex digits in lower case"));
    is_hex.then_some(bytes).ok_or_else(wrong)
}

/// Secrets of one device's groups.
const SECRETS_MAX: usize = 1024;

/// Number and secret of each line, for a configuration that wipes them.
fn read_secrets(device: u32) -> Result<Configuration, CommandError> {
    let wrong = || CommandError::Request("each line has a number and 64 hex digits".to_owned());
    // Room for all, for none is copied when it grows.
    let mut configuration = Configuration { device, secrets: Vec::with_capacity(SECRETS_MAX) };
    for line in io::stdin().lock().lines() {
        let line = Zeroizing::new(line?);
        let (number, secret) = line.trim().split_once(' ').ok_or_else(wrong)?;
        let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
        if configuration.secrets.len() == SECRETS_MAX {
            return Err(CommandError::Request("more than 1,024 secrets".to_owned()));
        }
        configuration.secrets.push((number, hex(secret).map_err(|_| wrong())?));
    }
    Ok(configuration)
}

/// Random bytes of the operating system.
pub(crate) fn random() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)?;
    Ok(bytes)
}
