// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether any client can be let in by the authorities and revocation lists of a server.
//!
//! 1. An authority counts if its certificate may sign others. The own issuer of a certificate may
//!    be itself: then a client shows that certificate.
//! 2. With revocation lists, it also needs one of its own.
//! 3. One that does not count is warned of. If none counts the files are taken as a mistake.

use std::path::Path;

use smt::pki::CertificateText;

use super::startup_checks::read_again;
use crate::failure::Failure;

/// Warnings about authorities by which nobody is let in, a line each. `issuers` are the authorities
/// of the revocation lists, if there are some.
///
/// # Errors
/// No authority counts, or a file cannot be read.
pub(super) fn client_warnings(
    authorities: &Path,
    issuers: Option<&[&str]>,
) -> Result<Vec<String>, Failure> {
    let pem = read_again(authorities)?;
    // Trust was made of it: public keys alone, for example, have no authority.
    let certificates = pem.and_then(|pem| CertificateText::from_pem(&pem).ok()).unwrap_or_default();
    let defects = certificates.iter().filter_map(|certificate| defect(certificate, issuers));
    let warnings: Vec<String> = defects.collect();
    let shown = authorities.display();
    if !warnings.is_empty() && warnings.len() == certificates.len() {
        return Err(Failure::new(format!(
            "no client could be let in by --client-ca {shown}: {}",
            warnings.join("; ")
        )));
    }
    let line = |warning| format!("--client-ca {shown}: {warning}");
    Ok(warnings.into_iter().map(line).collect())
}

/// Why no client is let in by this certificate; with the issuers of the lists, if there are some.
fn defect(certificate: &CertificateText, issuers: Option<&[&str]>) -> Option<String> {
    let CertificateText { subject, issuer, .. } = certificate;
    if !certificate.is_authority && subject != issuer {
        return Some(format!(
            "the certificate of {subject} is no authority's, but signed by {issuer}; give that one's, or let this client in by --client-pin"
        ));
    }
    let issuers = issuers.filter(|issuers| !issuers.contains(&subject.as_str()))?;
    let given = issuers.join(", ");
    Some(format!(
        "no --crl is a list of {subject}, so a certificate that it has signed is not accepted; the lists given are of {given}"
    ))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd as _;

    use smt::pki::{CertificateAuthority, CertificatePlan, KeyKind, RevokedCertificates, Validity};

    use std::fs;
    use std::path::PathBuf;

    use super::super::startup_checks::ReadLists;
    use super::*;
    use crate::scratch::Scratch;

    /// The authorities `one` and `other`: their certificates, their lists and a client of each.
    struct Fixture {
        scratch: Scratch,
        authorities: [String; 2],
        clients: [String; 2],
        lists: [PathBuf; 2],
    }

    impl Fixture {
        fn new() -> Self {
            let scratch = Scratch::new().unwrap();
            let days = || Validity::days(800).unwrap();
            let of = ["one", "other"].map(|name| {
                let authority = CertificateAuthority::new(name, days(), KeyKind::default());
                let authority = authority.unwrap();
                let client = authority.issue(&CertificatePlan::client("alice").unwrap()).unwrap();
                let list = authority.revocation_list(&RevokedCertificates::default(), days());
                let path = scratch.path().join(format!("{name}.crl"));
                fs::write(&path, list.unwrap()).unwrap();
                (authority.certificate_pem().to_owned(), client.certificate_pem, path)
            });
            let [(one, alice, list), (other, of_other, other_list)] = of;
            Self {
                scratch,
                authorities: [one, other],
                clients: [alice, of_other],
                lists: [list, other_list],
            }
        }

        fn told(&self, authorities: &[&String], lists: &[PathBuf]) -> Result<String, String> {
            let path = self.scratch.path().join("ca.pem");
            let text: Vec<&str> = authorities.iter().map(|text| text.as_str()).collect();
            fs::write(&path, text.concat()).unwrap();
            let lists = ReadLists::of(lists).unwrap();
            let told = client_warnings(&path, lists.issuers().as_deref());
            let told = told.map(|lines| lines.join("\n"));
            told.map_err(|failure| failure.text().to_string())
        }
    }

    #[test]
    fn authorities_with_their_lists_or_without_any_are_right() {
        let fixture = Fixture::new();
        let [one, other] = &fixture.authorities;
        assert_eq!(fixture.told(&[one], &[]).unwrap(), "");
        assert_eq!(fixture.told(&[one, other], &fixture.lists).unwrap(), "");
    }

    #[test]
    fn a_list_of_another_authority_lets_nobody_in_and_is_refused() {
        let fixture = Fixture::new();
        let ([one, other], [_, list]) = (&fixture.authorities, &fixture.lists);
        let error = fixture.told(&[one], std::slice::from_ref(list)).unwrap_err();
        for words in ["no client could be let in", "a list of CN=one", "are of CN=other"] {
            assert!(error.contains(words), "{error}");
        }
        let warning = fixture.told(&[one, other], std::slice::from_ref(list)).unwrap();
        assert!(warning.contains("no --crl is a list of CN=one"), "{warning}");
        assert_eq!(warning.lines().count(), 1, "{warning}");
    }

    /// Its certificates are taken before, by the one who reads them.
    #[test]
    fn a_pipe_is_not_read() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"what follows").unwrap();
        drop(writer);
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        assert!(matches!(client_warnings(&path, None), Ok(warnings) if warnings.is_empty()));
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "what follows");
    }

    #[test]
    fn a_client_s_certificate_in_the_place_of_an_authority_s_is_refused() {
        let fixture = Fixture::new();
        let ([one, _], [alice, _]) = (&fixture.authorities, &fixture.clients);
        let error = fixture.told(&[alice], &[]).unwrap_err();
        for words in ["CN=alice is no authority's, but signed by CN=one", "--client-pin"] {
            assert!(error.contains(words), "{error}");
        }
        let warning = fixture.told(&[one, alice], &[]).unwrap();
        assert!(warning.contains("CN=alice is no authority's"), "{warning}");
    }
}
