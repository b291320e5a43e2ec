// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keys show`: the text of certificates, revocation lists and public keys, and how long they
//! are good.
//!
//! 1. Files are read one after the other, of a directory those that are named like certificates
//!    or lists.
//! 2. Each certificate, list and public key is told, for people or as JSON. One that expires soon
//!    is warned of.
//! 3. A file that cannot be shown does not hide the others: it is the failure at the end. With
//!    --check-days a certificate that expires before is one too, and a list that is due.

mod object;

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use smt::CredentialError;
use smt::pki::{CertificateText, PublicKeyText, RevocationListText};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};
use crate::moment::wall_time;
use crate::standard_output::standard_output;
use crate::time_span::counted;

/// Tell what certificates, revocation lists and public keys say, and when they expire
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// PEM files, and directories, of which all .pem, .crt, .cer and .crl files are shown
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fail with exit code 1 if a certificate is not valid for so many days more, or two thirds of
    /// a revocation list's time are over
    #[arg(long, value_name = "N")]
    check_days: Option<u32>,
    /// One JSON object per line and certificate, list or key
    #[arg(long)]
    json: bool,
}

/// Shows all of them.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut shown = Shown {
        now_s: wall_time().as_secs() as i64,
        check_days: arguments.check_days.map(i64::from),
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
    /// Certificates with fewer days are told apart. Lists live for days, and are judged by their
    /// own time.
    check_days: Option<i64>,
    is_json: bool,
    /// Certificates are told with their file.
    has_paths: bool,
    count: usize,
    expiring: Vec<String>,
}

impl Shown {
    fn path(&mut self, path: &Path) -> Result<(), Failure> {
        if !path.is_dir() {
            let content = read(path)?.doing(path.display())?;
            return self.content(path, &content);
        }
        let before = self.count;
        let mut failed = None;
        for file in files(path)? {
            match read(&file)? {
                Ok(content) => self.content(&file, &content)?,
                // A private key, for example.
                Err(CredentialError::Missing { .. }) => {}
                Err(error) => {
                    let failure = Failure::from(error).and_text(format!(" ({})", file.display()));
                    if let Some(before) = failed.replace(failure) {
                        tracing::error!("{}", before.text());
                    }
                }
            }
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        if self.count == before {
            let shown = path.display();
            return Err(Failure::new(format!(
                "no file in {shown} that ends with .pem, .crt, .cer or .crl has a certificate, a list or a public key"
            )));
        }
        Ok(())
    }

    fn content(&mut self, path: &Path, content: &Content) -> Result<(), Failure> {
        for (place, certificate) in content.certificates.iter().enumerate() {
            let days = certificate.days_left(self.now_s);
            let is_soon = days < self.check_days.unwrap_or(DAYS_WARNED);
            self.note(is_soon, path, &certificate.subject, days);
            self.show(
                path,
                certificate,
                &object::certificate(path, place, certificate, days),
                Some(days),
            )?;
        }
        for (place, list) in content.lists.iter().enumerate() {
            let days = list.days_left(self.now_s);
            let is_soon = list.is_due(self.now_s);
            self.note(is_soon, path, &format!("revocation list of {}", list.issuer), days);
            self.show(path, list, &object::list(path, place, list, days), Some(days))?;
        }
        for (place, key) in content.keys.iter().enumerate() {
            self.show(path, key, &object::key(path, place, key), None)?;
        }
        Ok(())
    }

    /// Notes what is not good for long.
    fn note(&mut self, is_soon: bool, path: &Path, name: &str, days: i64) {
        if is_soon {
            self.expiring.push(format!("{} ({name}) {}", path.display(), expiry(days)));
        }
    }

    /// Shows a certificate or a list, which is good for so many days more, or a key.
    fn show(
        &mut self,
        path: &Path,
        text: &dyn Display,
        object: &serde_json::Value,
        days: Option<i64>,
    ) -> Result<(), Failure> {
        let mut output = standard_output();
        if self.is_json {
            writeln!(output, "{object}")?;
        } else {
            if self.count > 0 {
                writeln!(output)?;
            }
            if self.has_paths {
                writeln!(output, "file         {}", path.display())?;
            }
            writeln!(output, "{text}")?;
            if let Some(days) = days {
                writeln!(output, "expiry       {}", expiry(days))?;
            }
        }
        self.count += 1;
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
            "{} of {} certificates and lists are to be renewed ({days} days were asked for): {}",
            self.expiring.len(),
            self.count,
            self.expiring.join(", ")
        )))
    }
}

/// The certificates, lists and public keys of a file.
struct Content {
    certificates: Vec<CertificateText>,
    lists: Vec<RevocationListText>,
    keys: Vec<PublicKeyText>,
}

/// The content of a file; `Missing` if it has none.
fn read(path: &Path) -> Result<Result<Content, CredentialError>, Failure> {
    // It may hold a private key too.
    let bytes = Zeroizing::new(fs::read(path).doing(format!("reading {}", path.display()))?);
    Ok(content(&bytes))
}

fn content(bytes: &[u8]) -> Result<Content, CredentialError> {
    let certificates = CertificateText::from_pem(bytes);
    let lists = match RevocationListText::from_bytes(bytes) {
        Err(CredentialError::Missing { .. }) => Vec::new(),
        lists => lists?,
    };
    match certificates {
        Ok(certificates) => Ok(Content { certificates, lists, keys: Vec::new() }),
        Err(error @ CredentialError::Missing { .. }) => {
            let keys = PublicKeyText::from_pem(bytes).or_else(|error| match lists.is_empty() {
                true => Err(error),
                // A list in DER is no PEM.
                false => Ok(Vec::new()),
            })?;
            match lists.is_empty() && keys.is_empty() {
                true => Err(error),
                false => Ok(Content { certificates: Vec::new(), lists, keys }),
            }
        }
        Err(error) => Err(error),
    }
}

/// The files of a directory that are named like certificates, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let doing = || format!("reading {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).doing(doing())? {
        let path = entry.doing(doing())?.path();
        let is_named = path.extension().is_some_and(|extension| {
            ["pem", "crt", "cer", "crl"].iter().any(|known| extension == *known)
        });
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
        ..=-2 => format!("expired {} ago", counted(-days - 1, "day")),
        -1 => "expired less than a day ago".to_owned(),
        0 => "expires in less than a day".to_owned(),
        _ => format!("expires in {}", counted(days, "day")),
    }
}

/// Certificates that are valid for fewer days are warned of: time enough to renew them.
const DAYS_WARNED: i64 = 30;

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
