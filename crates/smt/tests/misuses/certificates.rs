// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates that cannot be made or read.

use std::time::{Duration, SystemTime};

use smt::pki::{
    CertificateAuthority, CertificatePlan, CertificateText, KeyKind, SubjectName, Validity,
};

use crate::misuse::{Misuse, failed, misuse};

pub(crate) fn table() -> Vec<Misuse> {
    vec![
        misuse("a server without a name", None, "at least one name", |_| {
            failed(CertificatePlan::server(&[]))
        }),
        misuse("a name with a space", None, "\"my server\"", |_| {
            failed(CertificatePlan::server(&["my server"]))
        }),
        misuse("an empty name", None, "is no DNS name", |_| failed(SubjectName::parse(""))),
        misuse("a name with its port", None, "localhost:17379", |_| {
            failed(CertificatePlan::server(&["localhost:17379"]))
        }),
        misuse("valid for no day", None, "1 to ", |_| failed(Validity::days(0))),
        misuse("valid for ever", None, "1 to ", |_| failed(Validity::days(u32::MAX))),
        misuse("an end before its beginning", None, "valid for", |_| {
            let now = SystemTime::now();
            failed(Validity::between(now, now - Duration::from_secs(1)))
        }),
        misuse("a server's certificate as authority", None, "not that of an authority", |by| {
            let plan = CertificatePlan::server(&["localhost"]).unwrap();
            let leaf = by.authority.authority().issue(&plan).unwrap();
            failed(CertificateAuthority::from_pem(&leaf.certificate_pem, &leaf.key_pem))
        }),
        misuse("longer than the authority", None, "ask for at most that", |_| {
            let days = Validity::days(2).unwrap();
            let authority = CertificateAuthority::new("brief", days, KeyKind::default()).unwrap();
            let mut plan = CertificatePlan::server(&["localhost"]).unwrap();
            plan.validity = Validity::days(9).unwrap();
            failed(authority.issue(&plan))
        }),
        misuse("the text of what is no certificate", None, "cannot be used", |_| {
            failed(CertificateText::from_der(b"no certificate"))
        }),
    ]
}
