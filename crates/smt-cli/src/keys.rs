// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keys`: certificates for servers and clients, and the text of a certificate.
//!
//! 1. `ca` makes an authority: `ca.pem`, which peers get, and `ca.key`, which stays.
//! 2. `server` and `client` make keys and certificates that the authority signs.
//! 3. `raw` makes a key pair that needs no authority.
//! 4. `crl` makes a list of certificates that count no more.
//! 5. `show` tells what certificates say, and when they expire.
//!
//! Nothing is overwritten without --force, and private keys are for their owner alone (mode 0600).

mod crl;
mod key_files;
mod show;

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use smt::SpiffeId;
use smt::pki::limits::CERTIFICATE_DAYS_MAX;
use smt::pki::{
    CertificateAuthority, CertificatePlan, CertificateText, DAYS_DEFAULT, IssuedCertificate,
    KeyKind, RawKey, SubjectName, Validity,
};

use crate::failure::{Doing, Failure};
use crate::private_key::Passphrase;
use crate::standard_output::standard_output;
use crate::usage;
use key_files::KeyFiles;

/// Make keys and certificates, and show what they say
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an authority: ca.pem and ca.key
    Ca {
        /// The directory to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Name of the authority; by default a name that no other authority has
        #[arg(long)]
        name: Option<String>,
        /// Days that it is valid
        #[arg(long, default_value_t = 10 * DAYS_DEFAULT, value_parser = days, allow_negative_numbers = true)]
        days: u32,
        /// The kind of its key
        #[arg(long, value_name = "KIND", default_value = KeyKind::default().name(), value_parser = key_kinds())]
        key_kind: KeyKind,
        /// Overwrite what is there
        #[arg(long)]
        force: bool,
    },
    /// Make a server's key and certificate: NAME.pem and NAME.key
    Server {
        /// Names by which clients call the server: DNS names, IP addresses, URIs; the first names
        /// the files
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        leaf: Leaf,
    },
    /// Make a client's key and certificate: NAME.pem and NAME.key
    Client {
        /// Name of the client
        name: String,
        #[command(flatten)]
        leaf: Leaf,
    },
    /// Make a key pair without a certificate: NAME.pem, the public key, and NAME.key
    ///
    /// Both files are used as those of a certificate: --cert and --key show the public key alone
    /// (RFC 7250), and --pin and --client-pin accept peers by it. No authority is needed; a server
    /// with such a key has no tickets, and clients show keys where the server wants them.
    Raw {
        /// Names the files
        name: String,
        /// The directory to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The kind of the key
        #[arg(long, value_name = "KIND", default_value = KeyKind::default().name(), value_parser = key_kinds())]
        key_kind: KeyKind,
        /// Overwrite what is there
        #[arg(long)]
        force: bool,
    },
    Crl(crl::Arguments),
    Show(show::Arguments),
}

#[derive(Args, Debug)]
struct Leaf {
    /// The directory with the authority's ca.pem and ca.key
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    #[command(flatten)]
    passphrase: Passphrase,
    /// A URI that it proves beside its names, e.g. a SPIFFE ID; a certificate with two proves no
    /// SPIFFE ID
    #[arg(long, value_name = "URI", value_parser = uri)]
    uri: Vec<SubjectName>,
    /// The directory to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Days that it is valid
    #[arg(long, default_value_t = DAYS_DEFAULT, value_parser = days, allow_negative_numbers = true)]
    days: u32,
    /// The kind of its key; with ml-dsa-* and such an authority no quantum computer forges it
    #[arg(long, value_name = "KIND", default_value = KeyKind::default().name(), value_parser = key_kinds())]
    key_kind: KeyKind,
    /// Overwrite what is there
    #[arg(long)]
    force: bool,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Ca { out, name, days, key_kind, force } => {
            let files = KeyFiles::plan(out, "ca", *force)?;
            let validity = Validity::days(*days)?;
            let name = name.clone().unwrap_or_else(authority_name);
            let authority = CertificateAuthority::new(&name, validity, *key_kind)?;
            let certificate = authority.certificate_pem();
            tell(&files.write(certificate, &authority.key_pem())?)
        }
        Command::Server { names, leaf } => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            issue(leaf, names[0], CertificatePlan::server(&names)?)
        }
        Command::Client { name, leaf } => issue(leaf, name, CertificatePlan::client(name)?),
        Command::Raw { name, out, key_kind, force } => {
            let files = KeyFiles::plan(out, &file_name(name), *force)?;
            let key = RawKey::new(*key_kind)?;
            tell(&files.write(&key.public_key_pem, &key.key_pem)?)
        }
        Command::Crl(arguments) => crl::run(arguments),
        Command::Show(arguments) => show::run(arguments),
    }
}

fn issue(leaf: &Leaf, name: &str, mut plan: CertificatePlan) -> Result<(), Failure> {
    let (ca, out) = (fs::canonicalize(&leaf.ca), fs::canonicalize(&leaf.out));
    if file_name(name) == "ca" && ca.is_ok() && ca.ok() == out.ok() {
        return Err(Failure::new(
            "the files of this name are the authority's own; choose another directory or name",
        ));
    }
    let files = KeyFiles::plan(&leaf.out, &file_name(name), leaf.force)?;
    plan.validity = Validity::days(leaf.days)?;
    plan.names.extend(leaf.uri.iter().cloned());
    plan.key_kind = leaf.key_kind;
    let authority = load_authority(&leaf.ca, &leaf.passphrase)?;
    warn_of_authority(authority.certificate_pem(), leaf.key_kind);
    let IssuedCertificate { certificate_pem, key_pem } = authority.issue(&plan)?;
    tell(&files.write(&certificate_pem, &key_pem)?)
}

/// Warns of an authority that is weaker than the key that it signs.
fn warn_of_authority(certificate: &str, key_kind: KeyKind) {
    let texts = CertificateText::from_pem(certificate.as_bytes()).unwrap_or_default();
    let Some(own) = texts.first().map(|text| &text.key_kind) else {
        return;
    };
    if key_kind.name().starts_with("ml-dsa") && !own.starts_with("ML-DSA") {
        tracing::warn!(
            "the authority's key is {own}, which is no post-quantum one: a quantum computer could forge its \
             certificates, whatever key they have; make an authority with --key-kind {}",
            key_kind.name()
        );
    }
}

/// Kinds of keys by their names; a value parser for clap.
fn key_kinds() -> impl TypedValueParser<Value = KeyKind> {
    let names = PossibleValuesParser::new(KeyKind::ALL.map(KeyKind::name));
    names.map(|name| {
        let named = KeyKind::ALL.into_iter().find(|kind| kind.name() == name);
        named.expect("a name that clap has found among them")
    })
}

fn days(text: &str) -> Result<u32, String> {
    let days = text.parse().ok();
    days.filter(|days| (1..=CERTIFICATE_DAYS_MAX).contains(days))
        .ok_or_else(|| format!("give 1 to {CERTIFICATE_DAYS_MAX} days"))
}

/// A URI of a certificate; a value parser for clap. A SPIFFE ID that is none is found here, and not
/// by a peer.
fn uri(text: &str) -> Result<SubjectName, String> {
    if text.starts_with("spiffe:") {
        SpiffeId::parse(text).map_err(usage::without_fault)?;
    }
    match SubjectName::parse(text) {
        Ok(name @ SubjectName::Uri(_)) => Ok(name),
        _ => Err("give a URI, e.g. spiffe://prod.example/db".to_owned()),
    }
}

/// A name that no other authority has. If two authorities had one name, peers of the wrong one
/// would be told of a bad signature, which sounds like damage, and not of an unknown issuer.
fn authority_name() -> String {
    let random = RandomState::new().hash_one(()) as u32;
    format!("smt authority {random:08x}")
}

fn load_authority(ca: &Path, passphrase: &Passphrase) -> Result<CertificateAuthority, Failure> {
    let path = ca.join("ca.pem");
    let certificate = fs::read_to_string(&path);
    let certificate = certificate.doing(format!("reading the authority's {}", path.display()))?;
    let key = passphrase.key(&ca.join("ca.key"))?;
    Ok(CertificateAuthority::from_pem_and_key(&certificate, &key)?)
}

/// Paths go to standard output: they are what the subcommand was called for.
fn tell(paths: &[PathBuf]) -> Result<(), Failure> {
    let mut output = standard_output();
    for path in paths {
        writeln!(output, "{}", path.display())?;
    }
    Ok(())
}

/// A name as a file name: `*.db.example` and URIs have letters that file names had better not have.
fn file_name(name: &str) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let text: String =
        name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    // Neither hidden nor a directory.
    text.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    mod file_name {
        use super::super::file_name;

        #[test]
        fn letters_that_mean_something_to_shells_are_replaced() {
            for (name, file) in [
                ("db7.example", "db7.example"),
                ("*.example", "_.example"),
                ("::1", "__1"),
                ("spiffe://a/b", "spiffe___a_b"),
                ("../up", "_up"),
            ] {
                assert_eq!(file_name(name), file);
            }
        }
    }
}
