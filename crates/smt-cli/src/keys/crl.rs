// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keys crl`: the list of an authority's certificates that count no more.
//!
//! 1. The list that is there is read, if the authority has signed it.
//! 2. Certificates are added and taken out, by their files or their serial numbers.
//! 3. The next list takes its place, with its mode.

use std::path::PathBuf;

use clap::Args;
use smt::Pem;
use smt::pki::{CertificateAuthority, CertificateSerial, RevokedCertificates, Validity};

use super::{days, key_files, load_authority, tell};
use crate::failure::{Doing, Failure};
use crate::private_key::Passphrase;
use crate::standard_error;
use crate::time_span::counted;

/// Make a revocation list: the certificates of the authority that count no more
///
/// A list that is there already is added to. Servers and clients that were given the list (--crl)
/// let nobody in once its days are over, so make it again before.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Certificates that are revoked (PEM), beside those in the list; none renews the list
    #[arg(value_name = "FILE")]
    revoked: Vec<PathBuf>,
    /// A certificate that is revoked, whose file is gone: its serial number, which `smt keys show`
    /// and the access log of `smt serve` tell; may be given several times
    #[arg(long, value_name = "HEX")]
    serial: Vec<CertificateSerial>,
    /// The directory with the authority's ca.pem and ca.key
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,
    #[command(flatten)]
    passphrase: Passphrase,
    /// The list: it is read if it is there, and written
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A certificate that counts again, and is taken out of the list; may be given several times
    #[arg(long, value_name = "FILE")]
    remove: Vec<PathBuf>,
    /// The same by its serial number
    #[arg(long, value_name = "HEX")]
    remove_serial: Vec<CertificateSerial>,
    /// Days until the next list is there
    #[arg(long, default_value_t = DAYS_DEFAULT, value_parser = days, allow_negative_numbers = true)]
    days: u32,
}

/// Writes the next list.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { ca, passphrase, out, days, .. } = arguments;
    let authority = load_authority(ca, passphrase)?;
    let revoked = arguments.revoked(&authority)?;
    let text = authority.revocation_list(&revoked, Validity::days(*days)?)?;
    key_files::replace(out, text.as_bytes(), 0o644)?;
    let count = revoked.count();
    let due = counted(*days, "day");
    standard_error::tell(format_args!("{count} revoked; the next list is due in {due}"));
    tell(std::slice::from_ref(out))
}

impl Arguments {
    /// The certificates in the list that is there, if one is, with those that come and without
    /// those that go.
    fn revoked(&self, authority: &CertificateAuthority) -> Result<RevokedCertificates, Failure> {
        let list = &self.out;
        // An empty file is a place for a list.
        let is_there = list.try_exists().doing(list.display())?
            && list.metadata().doing(list.display())?.len() > 0;
        let mut all = match is_there {
            true => authority.revoked_in(&Pem::read(list)?)?,
            false => RevokedCertificates::default(),
        };
        for path in &self.revoked {
            authority.revoke(&Pem::read(path)?, &mut all)?;
        }
        for serial in &self.serial {
            authority.revoke_serial(serial.clone(), &mut all)?;
        }
        let not_there = |what: String| {
            let list = list.display();
            Failure::new(format!("{what} is not in {list}: nothing was written"))
        };
        for path in &self.remove {
            if !authority.restore(&Pem::read(path)?, &mut all)? {
                return Err(not_there(path.display().to_string()));
            }
        }
        for serial in &self.remove_serial {
            if !all.restore_serial(serial) {
                return Err(not_there(format!("serial number {serial}")));
            }
        }
        Ok(all)
    }
}

/// A week with time left to find out why the next list is missing.
const DAYS_DEFAULT: u32 = 14;
