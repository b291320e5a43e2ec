// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings at the start of a server: what its clients would refuse, and what is dangerous.
//!
//! A server with such a certificate starts nevertheless: clients that pin the certificate look
//! neither at its dates nor at its purposes.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use smt::Pem;
use smt::pki::{CertificateText, RevocationListText};

use super::client_checks::client_warnings;
use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::moment::wall_time;
use crate::time_span::counted;

/// Warnings about a server's certificate, and about the authorities and the revocation lists of its
/// clients, a line each.
///
/// # Errors
/// No client could be let in, or a file cannot be read.
pub(super) fn warnings(credentials: &ServerCredentials) -> Result<Vec<String>, Failure> {
    let lists = ReadLists::of(credentials.revocation_lists())?;
    let mut warnings = certificate_warnings(&credentials.cert)?;
    if let Some(authorities) = credentials.client_authorities().filter(|_| lists.are_all) {
        warnings.extend(client_warnings(authorities, lists.issuers().as_deref())?);
    }
    warnings.extend(lists.warnings());
    Ok(warnings)
}

/// The content of a file that was read before; `None` if it is a pipe, which cannot be read again.
pub(super) fn read_again(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let is_file = path.metadata().is_ok_and(|facts| facts.is_file());
    let read = is_file.then(|| fs::read(path)).transpose();
    read.doing(format!("reading {}", path.display()))
}

/// Revocation lists, each with its file.
pub(super) struct ReadLists<'a> {
    lists: Vec<(&'a Path, RevocationListText)>,
    /// Whether they are all that the server has: none came by a pipe.
    are_all: bool,
}

/// Warnings about a certificate file, a line each.
fn certificate_warnings(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = path.display();
    let Some(pem) = read_again(path)? else {
        return Ok(Vec::new());
    };
    if Pem::text(&shown.to_string(), &pem).public_keys()?.is_some() {
        // A public key alone has neither dates nor purposes.
        return Ok(Vec::new());
    }
    let certificates = CertificateText::from_pem(&pem).doing(shown.to_string())?;
    let now = wall_time().as_secs() as i64;
    let defects = certificates.first().map(|leaf| defects(leaf, now));
    let line = |defect| {
        format!(
            "the certificate in {shown} {defect}: only clients that pin it accept this server; give one made by `smt keys server`"
        )
    };
    Ok(defects.into_iter().flatten().map(line).collect())
}

impl<'a> ReadLists<'a> {
    /// The lists of these files.
    pub(super) fn of(paths: &'a [PathBuf]) -> Result<Self, Failure> {
        let (mut lists, mut are_all) = (Vec::new(), true);
        for path in paths {
            let Some(bytes) = read_again(path)? else {
                are_all = false;
                continue;
            };
            let read = RevocationListText::from_bytes(&bytes).doing(path.display())?;
            lists.extend(read.into_iter().map(|list| (path.as_path(), list)));
        }
        Ok(Self { lists, are_all })
    }

    /// The authorities that have made them, if there are some.
    pub(super) fn issuers(&self) -> Option<Vec<&str>> {
        let issuers = self.lists.iter().map(|(_, list)| list.issuer.as_str());
        (!self.lists.is_empty()).then(|| issuers.collect())
    }

    /// Warnings about lists that end soon or have ended, a line each.
    fn warnings(&self) -> Vec<String> {
        let now = wall_time().as_secs() as i64;
        let warning = |(path, list): &(&Path, RevocationListText)| {
            let RevocationListText { issuer, next_update, .. } = list;
            let what = format!("the revocation list of {issuer} in {}", path.display());
            if list.days_left(now) < 0 {
                Some(format!(
                    "{what} has ended ({next_update}): no client of that authority is let in; put its next list there"
                ))
            } else if list.is_due(now) {
                Some(format!(
                    "{what} ends soon ({next_update}): then no client of that authority is let in; put its next list there"
                ))
            } else {
                None
            }
        };
        self.lists.iter().filter_map(warning).collect()
    }
}

/// Reasons for which clients that trust an authority refuse it.
fn defects(leaf: &CertificateText, now: i64) -> Vec<String> {
    let mut defects = Vec::new();
    if leaf.not_after_s < now {
        let days = (now - leaf.not_after_s) / 86_400;
        defects.push(format!("expired {} ago ({})", counted(days, "day"), leaf.not_after));
    }
    if leaf.not_before_s > now {
        let hours = (leaf.not_before_s - now).div_euclid(3_600);
        let from = &leaf.not_before;
        let hours = counted(hours, "hour");
        defects.push(format!("is not valid for another {hours}, from {from} on"));
    }
    if leaf.is_authority {
        defects.push("is that of an authority, not of a server".to_owned());
    }
    let purposes = leaf.purposes.split(", ");
    if !purposes.into_iter().any(|word| matches!(word, "any" | "server")) {
        defects.push(format!("is not made for servers, but for {}", leaf.purposes));
    }
    defects
}

/// The warning about a key file that others may read.
pub(super) fn key_warning(path: &Path) -> Option<String> {
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        let shown = path.display();
        format!(
            "other users may use the private key in {shown} (mode {mode:03o}): do `chmod 600 {shown}`"
        )
    })
}

/// The warning about a server that everybody reaches, and that lets everybody in.
pub(super) fn access_warning(address: IpAddr, is_said: bool) -> Option<String> {
    (!address.is_loopback() && !is_said).then(|| {
        "every host that reaches this server may call it: give --client-ca FILE to let only clients of an authority in, --client-pin FILE for those whose certificates are in it, or --anyone to say that this is meant".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use smt::pki::{CertificateAuthority, KeyKind, RevokedCertificates, Validity};

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_certificate_that_clients_accept_has_no_defect_until_it_expires() {
        let scratch = Scratch::new().unwrap();
        let files = scratch.ephemeral().unwrap();
        let text = |path: &Path| {
            let texts = CertificateText::from_pem(&fs::read(path).unwrap());
            texts.unwrap().remove(0)
        };
        let server = text(&files.server.cert);
        assert!(defects(&server, server.not_after_s).is_empty());
        let early = defects(&server, server.not_before_s - 5 * 3_600);
        assert!(early[0].starts_with("is not valid for another 5 hours, from "), "{early:?}");
        let expired = defects(&server, server.not_after_s + 3 * 86_400);
        assert!(expired[0].starts_with("expired 3 days ago"), "{expired:?}");
        let client = text(&files.client.cert);
        let wrong = defects(&client, client.not_after_s);
        assert_eq!(wrong, ["is not made for servers, but for client"]);
        let authority = text(&files.authority);
        let authority = defects(&authority, authority.not_after_s);
        assert_eq!(authority, ["is that of an authority, not of a server"]);
    }

    #[test]
    fn a_revocation_list_that_ends_soon_or_has_ended_is_told() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("ca.crl");
        let days = Validity::days(800).unwrap();
        let authority = CertificateAuthority::new("test", days, KeyKind::default()).unwrap();
        let now = wall_time().as_secs() as i64;
        let told = |from: i64, to: i64| {
            let at = |days: i64| UNIX_EPOCH + Duration::from_secs((now + days * 86_400) as u64);
            let validity = Validity::between(at(from), at(to)).unwrap();
            let list = authority.revocation_list(&RevokedCertificates::default(), validity);
            fs::write(&path, list.unwrap()).unwrap();
            ReadLists::of(std::slice::from_ref(&path)).unwrap().warnings().join("; ")
        };
        assert_eq!(told(-5, 9), "");
        assert!(told(-10, 4).contains("of CN=test in"), "{}", told(-10, 4));
        assert!(told(-10, 4).contains("ends soon"), "{}", told(-10, 4));
        assert!(told(-20, -1).contains("has ended"), "{}", told(-20, -1));
        let devices = ["/dev/null".into()];
        let device = ReadLists::of(&devices).unwrap();
        assert!(device.warnings().is_empty() && !device.are_all);
    }

    #[test]
    fn a_key_that_others_may_read_is_told() {
        let scratch = Scratch::new().unwrap();
        let key = scratch.ephemeral().unwrap().server.key;
        assert_eq!(key_warning(&key), None);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(key_warning(&key).unwrap().contains("mode 644"));
    }

    #[test]
    fn a_server_beyond_loopback_that_lets_everybody_in_is_told() {
        for (address, is_said, is_told) in [
            ("127.0.0.1", false, false),
            ("::1", false, false),
            ("0.0.0.0", false, true),
            ("192.0.2.1", false, true),
            ("0.0.0.0", true, false),
        ] {
            let warning = access_warning(address.parse().unwrap(), is_said);
            assert_eq!(warning.is_some(), is_told, "{address}");
        }
    }
}
