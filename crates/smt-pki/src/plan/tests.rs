// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;

mod parse {
    use super::*;

    #[test]
    fn the_kind_follows_from_the_looks() {
        let dns = SubjectName::parse("localhost").unwrap();
        assert_eq!(dns, SubjectName::Dns("localhost".to_owned()));
        let ip = SubjectName::parse("127.0.0.1").unwrap();
        assert_eq!(ip, SubjectName::Ip("127.0.0.1".parse().unwrap()));
        let uri = SubjectName::parse("spiffe://a/b").unwrap();
        assert_eq!(uri, SubjectName::Uri("spiffe://a/b".to_owned()));
    }

    #[test]
    fn what_is_no_name_is_refused_by_name() {
        for name in ["", "a b", "a..b", "*", "ü.example", "://x", "spiffe://a b"] {
            let error = SubjectName::parse(name).unwrap_err();
            assert_eq!(error.to_string(), format!("{name:?} is no DNS name, IP address or URI"));
        }
    }
}

mod validity {
    use super::*;

    #[test]
    fn days_out_of_range_are_refused() {
        for days in [0, CERTIFICATE_DAYS_MAX + 1, u32::MAX] {
            assert!(matches!(Validity::days(days), Err(MakeCertificateError::BadValidity)));
        }
        Validity::days(CERTIFICATE_DAYS_MAX).unwrap();
    }

    #[test]
    fn times_out_of_range_or_order_are_refused() {
        let epoch = SystemTime::UNIX_EPOCH;
        let second = Duration::from_secs(1);
        for (from, to) in [
            (epoch, epoch),
            (epoch + second, epoch),
            (epoch - second, epoch + second),
            (epoch - Duration::from_nanos(1), epoch + second),
            (epoch, epoch + Duration::from_secs(1 << 40)),
        ] {
            assert!(matches!(Validity::between(from, to), Err(MakeCertificateError::BadValidity)));
        }
    }
}
