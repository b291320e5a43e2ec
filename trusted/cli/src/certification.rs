// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A manufacturer that certifies a device from afar, and the device's side of it.

use std::fs;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use clap::Args;
use data_encoding::HEXLOWER;
use smt_bootstrap::{
    Applicant, ApplicantKeys, ApplicantReaction, Application, Authorities, Certification,
    CertificationRandomness, Certified, Certifier, Manufacturer, UnixTime, endorsement_kind,
    public_key, tls,
};
use smt_device::tpm::{EndorsementKind, QuotingKey, TpmError, Transport, endorsement_certificate};
use smt_device::{RunError, Store, StoreError, confinement};

use crate::bootstrap::{connect, hex, listen, random, read_key, take_first, wrong};
use crate::command_error::CommandError;
use crate::device::DevicePlace;

#[derive(Args)]
pub(crate) struct CertifyRemote {
    /// The manufacturer's directory
    manufacturer: PathBuf,
    /// Where the device waits
    address: String,
    /// The device's number
    #[arg(long)]
    device: u32,
    /// Certificates, in PEM, of authorities that certify TPMs; each is trusted; more files may be
    #[arg(long, required = true)]
    authority: Vec<PathBuf>,
    /// Certificates, in PEM, between those and TPMs; more files may be
    #[arg(long)]
    intermediate: Vec<PathBuf>,
    /// Lists, in PEM, of certificates that authorities have withdrawn; more files may be
    #[arg(long)]
    withdrawn: Vec<PathBuf>,
    /// Takes one TPM alone: the digest of its endorsement key, as this command prints it
    #[arg(long)]
    endorsement: Option<String>,
}

/// The manufacturer that a device waits for.
#[derive(Args)]
pub(crate) struct Manufacturers {
    /// Where to wait
    #[arg(long)]
    listen: String,
    /// The manufacturer's public key
    #[arg(long)]
    manufacturer: String,
    /// The certificate of the TPM's endorsement key, in DER, if the TPM itself has none
    #[arg(long)]
    endorsement_certificate: Option<PathBuf>,
}

impl CertifyRemote {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let seed = read_key(&self.manufacturer)?;
        let certification = Certification {
            device: self.device,
            authorities: self.authorities()?,
            endorsement_digest: self.endorsement.as_deref().map(hex).transpose()?,
            now: UnixTime::now(),
        };
        let certified = certify(&seed, &self.address, certification)?;
        let Certified { endorsement_digest, quoted, .. } = certified;
        let mut out = io::stdout().lock();
        writeln!(out, "device {} is certified", self.device)?;
        writeln!(out, "endorsement {}", HEXLOWER.encode(&endorsement_digest))?;
        writeln!(out, "registers {}", HEXLOWER.encode(&quoted.registers))?;
        Ok(writeln!(out, "resets {}", quoted.resets)?)
    }

    fn authorities(&self) -> Result<Authorities, CommandError> {
        let mut authorities = Authorities::default();
        for path in &self.authority {
            authorities.add_roots(&read(path)?).map_err(|error| wrong(path, &error))?;
        }
        for path in &self.intermediate {
            authorities.add_between(&read(path)?).map_err(|error| wrong(path, &error))?;
        }
        for path in &self.withdrawn {
            authorities.add_withdrawn(&read(path)?).map_err(|error| wrong(path, &error))?;
        }
        Ok(authorities)
    }
}

/// The manufacturer's side of a connection.
fn certify(
    seed: &[u8; 32],
    address: &str,
    certification: Certification,
) -> Result<Certified, CommandError> {
    let manufacturer = Manufacturer::new(seed);
    let mut connection = tls::connect(connect(address)?, seed)?;
    let random = CertificationRandomness { nonce: *random()?, secret: random()? };
    let (mut certifier, hello) =
        Certifier::begin(&manufacturer, certification, connection.binding, random);
    let mut next = Some(hello);
    while let Some(message) = next {
        connection.send(&message.encode())?;
        next = certifier.take(&connection.receive()?)?;
    }
    certifier.certified().ok_or_else(|| CommandError::Request("nothing was done".to_owned()))
}

/// The device's side: waits for its manufacturer, and stores the certificate.
pub(crate) fn wait_for_manufacturer(
    place: &DevicePlace,
    manufacturers: &Manufacturers,
) -> Result<(), CommandError> {
    let manufacturer = hex(&manufacturers.manufacturer)?;
    let listener = listen(&manufacturers.listen)?;
    let certificate = manufacturers.endorsement_certificate.as_deref();
    let certificate = certificate.map(read_certificate).transpose()?;
    let Some(mut tpm) = place.prepare()? else {
        return Err(CommandError::Request("a manufacturer far away wants a TPM: --tpm".to_owned()));
    };
    confinement::hide().map_err(RunError::Confinement)?;
    let store = Store::open(&place.directory, Some(&mut tpm))?;
    let mut applying = Applying::new(&store, tpm, manufacturer, certificate)?;
    eprintln!("smt-device: waits for its manufacturer at {}", listener.local_addr()?);
    take_first(&listener, |socket| applying.take(socket))?;
    eprintln!("smt-device: has its certificate");
    Ok(())
}

/// A device that waits for its manufacturer.
struct Applying<'a> {
    store: &'a Store,
    tpm: Transport,
    manufacturer: [u8; 32],
    kind: EndorsementKind,
    endorsement_certificate: Vec<u8>,
    quoting_key: Vec<u8>,
}

impl<'a> Applying<'a> {
    fn new(
        store: &'a Store,
        mut tpm: Transport,
        manufacturer: [u8; 32],
        certificate: Option<(EndorsementKind, Vec<u8>)>,
    ) -> Result<Self, CommandError> {
        let certificate = match certificate {
            Some(certificate) => Some(certificate),
            None => endorsement_certificate(&mut tpm).map_err(StoreError::from)?,
        };
        let (kind, endorsement_certificate) = certificate.ok_or_else(|| {
            let text = "the TPM has no certificate of an endorsement key at 0x01c00002 or \
                        0x01c0000a: give --endorsement-certificate";
            CommandError::Request(text.to_owned())
        })?;
        let quoting_key = quoting_key(&mut tpm).map_err(StoreError::from)?;
        Ok(Self { store, tpm, manufacturer, kind, endorsement_certificate, quoting_key })
    }

    /// One connection.
    fn take(&mut self, socket: TcpStream) -> Result<(), CommandError> {
        // A key of this connection alone.
        let seed = random()?;
        let mut connection = tls::accept(socket, &seed, &self.manufacturer)?;
        let application = Application {
            device: self.store.device().0,
            hardware_seed: self.store.hardware_seed(),
            quoting_key: self.quoting_key.clone(),
            endorsement_certificate: self.endorsement_certificate.clone(),
        };
        let keys = ApplicantKeys { own: public_key(&seed), manufacturer: self.manufacturer };
        let mut applicant = Applicant::begin(application, connection.binding, keys)?;
        loop {
            let message = connection.receive()?;
            let (kind, tpm) = (self.kind, &mut self.tpm);
            match applicant
                .take(&message, |credential, data| kind.activate(tpm, credential, data))?
            {
                ApplicantReaction::Reply(reply) => connection.send(&reply.encode())?,
                ApplicantReaction::Store(certificate, reply) => {
                    self.store.write_certificate(&certificate.encode())?;
                    return Ok(connection.send(&reply.encode())?);
                }
            }
        }
    }
}

fn quoting_key(tpm: &mut Transport) -> Result<Vec<u8>, TpmError> {
    let key = QuotingKey::create(tpm)?;
    let public = key.public_area().to_vec();
    key.let_go(tpm)?;
    Ok(public)
}

fn read_certificate(path: &Path) -> Result<(EndorsementKind, Vec<u8>), CommandError> {
    let certificate = read(path)?;
    let kind = endorsement_kind(&certificate).map_err(|error| wrong(path, &error))?;
    Ok((kind, certificate))
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|error| wrong(path, &error))
}
