// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts that own rings, files, restarts and the way to the TPM.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod hostile;

#[test]
fn a_hostile_host_gets_no_counter_twice_and_no_key() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let seed = number("SMT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let operations = number("HOSTILE_OPERATIONS").unwrap_or(20_000);
    println!("SMT_SEED={seed}");
    let report = hostile::search(operations, seed);
    println!("{report}");
    // Each attack happened, and the device answered honest requests between them.
    assert!(report.attested > operations / 100 && report.accepted > operations / 500, "{report}");
    assert!(report.refused > operations / 50 && report.malformed > operations / 500, "{report}");
    assert!(report.dropped > 10 && report.starts > 5 && report.damaged > 1, "{report}");
    assert!(report.changed > operations / 100, "{report}");
    assert!(report.sealed > operations / 2_000 && report.signed_ends > 0, "{report}");
    if report.has_tpm {
        assert!(report.restored > 1 && report.broken_off > 0, "{report}");
    } else {
        println!("restored files and tricks at the TPM are left out: there is no swtpm");
    }
}

#[test]
fn a_key_is_found_across_two_looks() {
    let key: [u8; 32] = std::array::from_fn(|place| place as u8 * 7 + 1);
    for seen_before in 1..16 {
        let mut sight = hostile::Sight::new(&[key]);
        sight.sees(&[0xee; 100]);
        sight.sees(&key[..seen_before]);
        sight.look();
        sight.sees(&key[seen_before..16]);
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sight.look()));
        assert!(looked.is_err(), "{seen_before} bytes of a half before the look");
    }
}

#[test]
fn a_key_is_found_wherever_the_host_sees_it() {
    let key: [u8; 32] = std::array::from_fn(|place| place as u8 * 7 + 1);
    let is_found = |bytes: &[u8]| {
        let mut sight = hostile::Sight::new(&[key]);
        // In two parts, as it would come in two words or answers.
        let (one, two) = bytes.split_at(bytes.len() / 2);
        sight.sees(one);
        sight.sees(two);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sight.look())).is_err()
    };
    for place in 0..50 {
        for half in [&key[..16], &key[16..]] {
            let mut bytes = vec![0xee; 100];
            bytes[place..place + 16].copy_from_slice(half);
            assert!(is_found(&bytes), "a half at byte {place}");
            bytes[place + 15] ^= 1;
            assert!(!is_found(&bytes), "no half at byte {place}");
        }
    }
}
