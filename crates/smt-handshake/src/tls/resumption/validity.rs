// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a certificate's validity (RFC 5280 §4.1.2.5). The handshake has judged the
//! certificate before; this only tells how long it may be relied on without showing it again.

use crate::der::{Elements, SEQUENCE, first};

/// The last second, since 1970, in which a certificate in DER is valid; `None` if it cannot be
/// read.
pub(super) fn end(certificate: &[u8]) -> Option<u64> {
    let to_be_signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    // After the signature's algorithm and the issuer.
    let mut sequences = Elements(to_be_signed).filter(|(tag, _)| *tag == SEQUENCE);
    let (_, validity) = sequences.nth(2)?;
    let (tag, text) = Elements(validity).nth(1)?;
    let text = text.strip_suffix(b"Z")?;
    match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            let century = if year < 50 { 2_000 } else { 1_900 };
            seconds(century + year, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            seconds(number(year)?, rest)
        }
        _ => None,
    }
}

/// Seconds since 1970 of a year and the ten digits of month, day, hour, minute and second.
fn seconds(year: u64, rest: &[u8]) -> Option<u64> {
    let rest: &[u8; 10] = rest.try_into().ok()?;
    let mut pairs = rest.chunks(2).map(number);
    let mut pair = || pairs.next().flatten();
    let (month, day) = (pair()?, pair()?);
    let (hour, minute, second) = (pair()?, pair()?, pair()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at their end.
    let (year, month) = match month {
        ..=2 => (year.checked_sub(1)?, month + 9),
        _ => (year, month - 3),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(DAYS_TO_1970)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        Some(sum * 10 + u64::from(digit))
    })
}

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// From 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    use smt_pki::{CertificateAuthority, KeyKind, Validity};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn dates_count_in_seconds_since_1970() {
        let of = |year, rest: &str| seconds(year, rest.as_bytes());
        assert_eq!(of(1970, "0101000000"), Some(0));
        assert_eq!(of(2000, "0229123456"), Some(951_827_696));
        assert_eq!(of(2038, "0119031408"), Some(1 << 31));
        assert_eq!(of(2100, "0301000000"), Some(4_107_542_400));
        assert_eq!(of(9999, "1231235959"), Some(253_402_300_799));
        for wrong in [
            "0001000000",
            "1301000000",
            "0100000000",
            "01010000",
            "01010000a0",
        ] {
            assert_eq!(of(2000, wrong), None, "{wrong}");
        }
        assert_eq!(of(1969, "1231235959"), None);
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms() {
        // From 2050 on, RFC 5280 wants the long form.
        for end_of in [1_900_000_000, 2_600_000_000] {
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            let validity = Validity::between(at(1_000_000_000), at(end_of)).unwrap();
            let authority = CertificateAuthority::new("r", validity, KeyKind::EcdsaP256).unwrap();
            let pem = authority.certificate_pem();
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            assert_eq!(end(&der), Some(end_of));
            for length in 0..der.len() {
                assert_eq!(end(&der[..length]), None, "{length}");
            }
        }
    }
}
