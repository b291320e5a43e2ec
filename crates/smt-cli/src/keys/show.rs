// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keys show`: the text of certificates, and how long they are still valid.
//!
//! 1. Files are read one after the other, of a directory those that are named like certificates.
//! 2. Each certificate is told, for people or as JSON. One that expires soon is warned of.
//! 3. A file that cannot be shown does not hide the others: it is the failure at the end. With
//!    --check-days a certificate that expires before is one too.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use smt::CredentialError;
use smt::pki::CertificateText;
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};
use crate::moment::wall_time;

/// Tell what certificates say, and when they expire
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// PEM files, and directories, of which all .pem, .crt and .cer files are shown
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fail with exit code 1 if a certificate is not valid for so many days more
    #[arg(long, value_name = "N")]
    check_days: Option<u32>,
    /// One JSON object per line and certificate
    #[arg(long)]
    json: bool,
}

/// Shows all of them.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut shown = Shown {
        now_s: wall_time().as_secs() as i64,
        days_min: arguments.check_days.unwrap_or(DAYS_WARNED).into(),
        is_json: arguments.json,
        has_paths: arguments.paths.len() > 1 || arguments.paths.iter().any(|path| path.is_dir()),
        count: 0,
        expiring: Vec::new(),
    };
    let mut failures = Vec::new();
    for path in &arguments.paths {
        if let Err(failure) = shown.path(path) {
            failures.push(failure);
        }
    }
    if let Some(last) = failures.pop() {
        failures.iter().for_each(|failure| tracing::error!("{}", failure.text()));
        return Err(last);
    }
    shown.finish(arguments.check_days)
}

/// The state over all files.
struct Shown {
    now_s: i64,
    /// Certificates with fewer days are told apart.
    days_min: i64,
    is_json: bool,
    /// Certificates are told with their file.
    has_paths: bool,
    count: usize,
    expiring: Vec<String>,
}

impl Shown {
    fn path(&mut self, path: &Path) -> Result<(), Failure> {
        if !path.is_dir() {
            let certificates = read(path)?.doing(path.display())?;
            return self.certificates(path, &certificates);
        }
        let before = self.count;
        for file in files(path)? {
            match read(&file)? {
                Ok(certificates) => self.certificates(&file, &certificates)?,
                // A private key, for example.
                Err(CredentialError::Missing { .. }) => {}
                Err(error) => return Err(error).doing(file.display()),
            }
        }
        if self.count == before {
            let shown = path.display();
            return Err(Failure::new(format!(
                "no file in {shown} that ends with .pem, .crt or .cer has a certificate"
            )));
        }
        Ok(())
    }

    fn certificates(&mut self, path: &Path, all: &[CertificateText]) -> Result<(), Failure> {
        let mut output = std::io::stdout().lock();
        for (place, certificate) in all.iter().enumerate() {
            let days = certificate.days_left(self.now_s);
            if days < self.days_min {
                let (shown, subject) = (path.display(), &certificate.subject);
                self.expiring.push(format!("{shown} ({subject}) {}", expiry(days)));
            }
            if self.is_json {
                writeln!(output, "{}", object(path, place, certificate, days))?;
            } else {
                if self.count > 0 {
                    writeln!(output)?;
                }
                if self.has_paths {
                    writeln!(output, "file         {}", path.display())?;
                }
                writeln!(output, "{certificate}\nexpiry       {}", expiry(days))?;
            }
            self.count += 1;
        }
        Ok(())
    }

    fn finish(self, check_days: Option<u32>) -> Result<(), Failure> {
        let Some(days) = check_days else {
            self.expiring.iter().for_each(|line| tracing::warn!("{line}; renew it"));
            return Ok(());
        };
        if self.expiring.is_empty() {
            return Ok(());
        }
        Err(Failure::finding(format!(
            "{} of {} certificates are not valid for {days} days more: {}",
            self.expiring.len(),
            self.count,
            self.expiring.join(", ")
        )))
    }
}

fn read(path: &Path) -> Result<Result<Vec<CertificateText>, CredentialError>, Failure> {
    // It may hold a private key too.
    let pem = Zeroizing::new(fs::read(path).doing(format!("reading {}", path.display()))?);
    Ok(CertificateText::from_pem(&pem))
}

/// The files of a directory that are named like certificates, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let doing = || format!("reading {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).doing(doing())? {
        let path = entry.doing(doing())?.path();
        let is_named = path
            .extension()
            .is_some_and(|extension| ["pem", "crt", "cer"].iter().any(|known| extension == *known));
        if is_named && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// When a certificate expires that has so many whole days left.
fn expiry(days: i64) -> String {
    match days {
        ..=-3 => format!("expired {} days ago", -days - 1),
        -2 => "expired 1 day ago".to_owned(),
        -1 => "expired less than a day ago".to_owned(),
        0 => "expires in less than a day".to_owned(),
        1 => "expires in 1 day".to_owned(),
        _ => format!("expires in {days} days"),
    }
}

fn object(path: &Path, place: usize, text: &CertificateText, days: i64) -> serde_json::Value {
    json!({
        "schema": SCHEMA,
        "kind": "certificate",
        "file": path.display().to_string(),
        "place": place,
        "subject": text.subject,
        "issuer": text.issuer,
        "names": text.names,
        "spiffe_id": text.spiffe_id,
        "not_before_s": text.not_before_s,
        "not_after_s": text.not_after_s,
        "days_left": days,
        "is_authority": text.is_authority,
        "purposes": text.purposes,
        "unknown_critical": text.unknown_critical,
        "key": text.key_kind,
        "fingerprint_sha256": text.fingerprint,
    })
}

/// Version of the JSON lines: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;
/// Certificates that are valid for fewer days are warned of: time enough to renew them.
const DAYS_WARNED: u32 = 30;

#[cfg(test)]
mod tests {
    mod expiry {
        use super::super::expiry;

        #[test]
        fn days_are_rounded_down_to_whole_ones() {
            for (days, text) in [
                (364, "expires in 364 days"),
                (1, "expires in 1 day"),
                (0, "expires in less than a day"),
                (-1, "expired less than a day ago"),
                (-2, "expired 1 day ago"),
                (-2_490, "expired 2489 days ago"),
            ] {
                assert_eq!(expiry(days), text);
            }
        }
    }
}
