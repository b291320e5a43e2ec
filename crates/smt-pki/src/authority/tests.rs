// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::text::CertificateText;

fn authority() -> CertificateAuthority {
    CertificateAuthority::new("test", Validity::days(30).unwrap(), KeyKind::EcdsaP256).unwrap()
}

fn plan(names: &[&str]) -> CertificatePlan {
    CertificatePlan {
        validity: Validity::days(10).unwrap(),
        ..CertificatePlan::server(names).unwrap()
    }
}

mod issue {
    use super::*;

    #[test]
    fn every_kind_of_name_is_in_the_certificate() {
        let names = ["a.example", "*.b.example", "10.0.0.1", "::1", "spiffe://c/d"];
        let issued = authority().issue(&plan(&names)).unwrap();
        let text = &CertificateText::from_pem(issued.certificate_pem.as_bytes()).unwrap()[0];
        assert_eq!(text.names, names);
    }

    #[test]
    fn every_kind_of_key_is_made() {
        let texts = ["ECDSA P-256", "Ed25519", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87"];
        for (kind, text) in KeyKind::ALL.into_iter().zip(texts) {
            let plan = CertificatePlan { key_kind: kind, ..plan(&["a.example"]) };
            let issued = authority().issue(&plan).unwrap();
            let parsed = CertificateText::from_pem(issued.certificate_pem.as_bytes()).unwrap();
            assert_eq!(parsed[0].key_kind, text);
        }
    }

    #[test]
    fn a_leaf_never_outlives_its_authority() {
        let plan =
            CertificatePlan { validity: Validity::days(31).unwrap(), ..plan(&["a.example"]) };
        let error = authority().issue(&plan).unwrap_err();
        assert!(
            matches!(error, MakeCertificateError::OutlivesAuthority { days: 29..=30 }),
            "{error}"
        );
    }

    #[test]
    fn a_server_without_a_name_is_refused() {
        let plan = CertificatePlan { names: Vec::new(), ..plan(&["a.example"]) };
        assert!(matches!(authority().issue(&plan), Err(MakeCertificateError::NoName)));
    }
}

mod from_pem {
    use super::*;

    #[test]
    fn a_loaded_authority_signs_as_the_first_one() {
        for kind in KeyKind::ALL {
            let first =
                CertificateAuthority::new("kept", Validity::days(30).unwrap(), kind).unwrap();
            let loaded =
                CertificateAuthority::from_pem(first.certificate_pem(), &first.key_pem()).unwrap();
            let issued = loaded.issue(&plan(&["a.example"])).unwrap();
            let text = &CertificateText::from_pem(issued.certificate_pem.as_bytes()).unwrap()[0];
            assert_eq!(text.issuer, "CN=kept");
            assert!(loaded.issue(&CertificatePlan::server(&["a.example"]).unwrap()).is_err());
        }
    }

    #[test]
    fn the_key_of_another_authority_is_refused() {
        let error =
            CertificateAuthority::from_pem(authority().certificate_pem(), &authority().key_pem());
        assert!(matches!(
            error.unwrap_err(),
            MakeCertificateError::Credential(CredentialError::KeyMismatch { .. })
        ));
    }

    #[test]
    fn a_leaf_is_no_authority() {
        let leaf = authority().issue(&plan(&["a.example"])).unwrap();
        let error = CertificateAuthority::from_pem(&leaf.certificate_pem, &leaf.key_pem);
        assert!(matches!(error.unwrap_err(), MakeCertificateError::NotAnAuthority));
    }
}

mod debug {
    use super::*;

    #[test]
    fn no_key_is_shown() {
        let authority = authority();
        let issued = authority.issue(&plan(&["a.example"])).unwrap();
        assert!(!format!("{authority:?}{issued:?}").contains("PRIVATE"));
    }
}
