// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs of firmware: their replay, what is wrong with them, and what a vendor accepts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use sha2::{Digest, Sha256};
use smt_bootstrap::{
    AcceptError, AcceptSyntaxError, AcceptedEvents, EVENT_LOG_LEN_MAX, EventKind, EventLog,
    EventLogError,
};
use smt_test_machine::Firmware;

const LOADER: [u8; 32] = [2; 32];
const ACCEPTED: &str = "
# version, loader, settings
0 EV_S_CRTM_VERSION 0101010101010101010101010101010101010101010101010101010101010101
4 EV_EFI_BOOT_SERVICES_APPLICATION 0202020202020202020202020202020202020202020202020202020202020202
4 EV_EFI_BOOT_SERVICES_APPLICATION 2222222222222222222222222222222222222222222222222222222222222222
7 0x00000004 0303030303030303030303030303030303030303030303030303030303030303
";

fn extended(register: [u8; 32], digests: &[[u8; 32]]) -> [u8; 32] {
    digests.iter().fold(register, |before, it| Sha256::digest([before, *it].concat()).into())
}

fn parsed(firmware: &Firmware) -> EventLog {
    EventLog::parse(&firmware.log).unwrap()
}

#[test]
fn a_log_is_replayed_to_the_registers_that_it_extended() {
    let mut firmware = Firmware::boot(LOADER);
    firmware.measure(4, 0xd, [5; 32], b"another one");
    // A register that no quote is over.
    firmware.measure(14, 0xd, [6; 32], b"");
    let registers = parsed(&firmware).registers();
    assert_eq!(registers[0], extended([0; 32], &[[1; 32]]));
    assert_eq!(registers[4], extended([0; 32], &[LOADER, [5; 32]]));
    assert_eq!(registers[7], extended([0; 32], &[[3; 32]]));
    assert_eq!(
        [registers[1], registers[2], registers[3], registers[5], registers[6]],
        [[0; 32]; 5]
    );
    let quoted: [u8; 32] = Sha256::digest(registers.concat()).into();
    parsed(&firmware).leads_to(&quoted).unwrap();
    assert_eq!(parsed(&firmware).leads_to(&[0; 32]), Err(EventLogError::OtherRegisters));
}

#[test]
fn an_event_of_no_action_extends_nothing_but_says_where_register_0_began() {
    let mut firmware = Firmware::boot(LOADER);
    let before = parsed(&firmware).registers();
    firmware.measure(4, 3, [9; 32], b"nothing");
    assert_eq!(parsed(&firmware).registers(), before);
    firmware.measure(0, 3, [0; 32], b"StartupLocality\0\x03");
    let mut begin = [0; 32];
    begin[31] = 3;
    let after = parsed(&firmware).registers();
    assert_eq!(after[0], extended(begin, &[[1; 32]]));
    assert_eq!(after[1..], before[1..]);
}

#[test]
fn a_log_with_another_digest_order_or_length_leads_to_other_registers() {
    let mut firmware = Firmware::boot(LOADER);
    firmware.measure(4, 0xd, [5; 32], b"");
    let quoted: [u8; 32] = Sha256::digest(parsed(&firmware).registers().concat()).into();
    let mut swapped = Firmware::boot([5; 32]);
    swapped.measure(4, 0xd, LOADER, b"");
    let mut longer = firmware.clone();
    longer.measure(4, 0xd, [5; 32], b"");
    for other in [Firmware::new(), Firmware::boot(LOADER), swapped, longer] {
        assert_eq!(parsed(&other).leads_to(&quoted), Err(EventLogError::OtherRegisters));
    }
}

#[test]
fn a_log_that_is_cut_is_refused_or_leads_to_other_registers() {
    let firmware = Firmware::boot(LOADER);
    let quoted: [u8; 32] = Sha256::digest(parsed(&firmware).registers().concat()).into();
    let mut whole = 0;
    for length in 0..firmware.log.len() {
        if let Ok(log) = EventLog::parse(&firmware.log[..length]) {
            assert!(log.leads_to(&quoted).is_err(), "{length} bytes");
            whole += 1;
        }
    }
    // Before each of the three events.
    assert_eq!(whole, 3);
    assert_eq!(EventLog::parse(&[]), Err(EventLogError::Missing));
}

#[test]
fn lengths_and_counts_that_lead_nowhere_are_refused() {
    let head = Firmware::new().log.len();
    let log = Firmware::boot(LOADER).log;
    // The length of the first text, its count of algorithms, and the bytes of a vendor.
    for (place, bytes) in [(28, &[0xff; 4][..]), (32 + 24, &[0xff; 4]), (head - 1, &[0xff])] {
        let mut altered = log.clone();
        altered[place..place + bytes.len()].copy_from_slice(bytes);
        assert_eq!(EventLog::parse(&altered), Err(EventLogError::Head), "byte {place}");
    }
    // The next event's count of digests, and the length of its text.
    for (place, error) in
        [(head + 8, EventLogError::Algorithm(1)), (head + 12 + 22 + 34, EventLogError::Cut(1))]
    {
        let mut altered = log.clone();
        altered[place..place + 4].copy_from_slice(&[0xff; 4]);
        assert_eq!(EventLog::parse(&altered), Err(error), "byte {place}");
    }
    let long = [&log[..], &vec![0; EVENT_LOG_LEN_MAX]].concat();
    assert_eq!(EventLog::parse(&long), Err(EventLogError::TooLong));
}

#[test]
fn an_event_has_one_digest_of_sha_256_and_others_that_the_log_names() {
    let head = Firmware::new().log.len();
    let log = Firmware::boot(LOADER).log;
    let with = |place: usize, byte: u8| {
        let mut altered = log.clone();
        altered[place] = byte;
        EventLog::parse(&altered)
    };
    assert_eq!(with(head + 12, 5), Err(EventLogError::Algorithm(1)));
    // One digest alone, of SHA-1; the text's length is then taken from the next one.
    let mut sha_1 = Firmware::new().log;
    sha_1.extend([0_u32, 8, 1].map(u32::to_le_bytes).concat());
    sha_1.extend([4, 0]);
    sha_1.extend([0; 24]);
    assert_eq!(EventLog::parse(&sha_1), Err(EventLogError::NoSha256(1)));
    let mut twice = Firmware::new().log;
    twice.extend([0_u32, 8, 2].map(u32::to_le_bytes).concat());
    for _ in 0..2 {
        twice.extend([0x0b, 0]);
        twice.extend([7; 32]);
    }
    twice.extend([0; 4]);
    assert_eq!(EventLog::parse(&twice), Err(EventLogError::NoSha256(1)));
    // A log of the older form begins with another event.
    assert_eq!(with(4, 8), Err(EventLogError::Head));
    // SHA-256 has 32 bytes, whatever the log says.
    assert_eq!(with(head - 3, 31), Err(EventLogError::Head));
}

#[test]
fn a_log_that_names_more_algorithms_than_a_tpm_has_is_refused() {
    let with = |count: u32| {
        let mut text = b"Spec ID Event03\0".to_vec();
        text.extend([0, 0, 0, 0, 0, 2, 0, 2]);
        text.extend(count.to_le_bytes());
        text.extend((0..count).flat_map(|_| [0x0b, 0, 32, 0]));
        text.push(0);
        let mut log = [0_u32, 3].map(u32::to_le_bytes).concat();
        log.extend([0; 20]);
        log.extend((text.len() as u32).to_le_bytes());
        EventLog::parse(&[log, text].concat()).map(|log| log.events().len())
    };
    assert_eq!(with(16), Ok(0));
    assert_eq!(with(17), Err(EventLogError::Head));
}

/// A stream of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

#[test]
fn no_log_of_random_changes_makes_the_parser_panic_or_grow() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let seed = number("SMT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SMT_SEED={seed}");
    let mut random = Random(seed);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..number("EVENT_LOGS").unwrap_or(50_000) {
        let mut log = Firmware::boot(LOADER).log;
        for _ in 0..1 + random.below(4) {
            let place = random.below(log.len());
            match random.below(5) {
                0 => log[place] ^= 1 << random.below(8),
                1 => log[place] = random.next() as u8,
                2 => log.truncate(place.max(1)),
                3 => log[place..].iter_mut().take(4).for_each(|it| *it = 0xff),
                _ => log.extend_from_within(place..),
            }
        }
        match EventLog::parse(&log) {
            Ok(parsed) => {
                assert!(parsed.events().len() <= log.len() / 50, "more events than bytes for them");
                assert_eq!(parsed.registers().len(), 8);
                taken += 1;
            }
            Err(_) => refused += 1,
        }
    }
    println!("{taken} logs taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}

#[test]
fn a_vendor_accepts_the_events_of_its_list_and_no_others() {
    let accepted: AcceptedEvents = ACCEPTED.parse().unwrap();
    for loader in [LOADER, [0x22; 32]] {
        accepted.judge(&parsed(&Firmware::boot(loader))).unwrap();
    }
    // Another loader; an accepted digest in another register, or of another type.
    let mut moved = Firmware::boot(LOADER);
    moved.measure(5, 0x8000_0003, LOADER, b"");
    let mut renamed = Firmware::boot(LOADER);
    renamed.measure(4, 0xd, LOADER, b"");
    for firmware in [Firmware::boot([8; 32]), moved, renamed] {
        let judged = accepted.judge(&parsed(&firmware));
        assert!(matches!(judged, Err(AcceptError::Event(_))), "{judged:?}");
    }
    // A register that is not looked at may have anything.
    let any: AcceptedEvents = format!("{ACCEPTED}\n5 any").parse().unwrap();
    let mut more = Firmware::boot(LOADER);
    more.measure(5, 0x8000_0003, [8; 32], b"");
    any.judge(&parsed(&more)).unwrap();
    assert!(any.judge(&parsed(&Firmware::boot([8; 32]))).is_err());
}

#[test]
fn a_log_that_lacks_an_event_of_the_list_is_refused() {
    let accepted: AcceptedEvents = ACCEPTED.parse().unwrap();
    let mut without_loader = Firmware::new();
    without_loader.measure(0, 8, [1; 32], b"");
    without_loader.measure(7, 4, [3; 32], b"");
    let judged = accepted.judge(&parsed(&without_loader));
    assert_eq!(judged, Err(AcceptError::Missing(4, EventKind(0x8000_0003))));
    // A machine that measured nothing has registers of zeros, which an empty log leads to.
    let empty = parsed(&Firmware::new());
    let zeros: [u8; 32] = Sha256::digest([0; 256]).into();
    empty.leads_to(&zeros).unwrap();
    assert!(accepted.judge(&empty).is_err());
}

#[test]
fn the_lines_of_a_log_are_a_list_that_accepts_it() {
    let mut firmware = Firmware::boot(LOADER);
    firmware.measure(1, 0x1234, [8; 32], b"a type without a name");
    let log = parsed(&firmware);
    let lines: Vec<String> = log.events().iter().map(ToString::to_string).collect();
    assert!(lines[1].starts_with("4 EV_EFI_BOOT_SERVICES_APPLICATION 0202"), "{lines:?}");
    lines.join("\n").parse::<AcceptedEvents>().unwrap().judge(&log).unwrap();
}

#[test]
fn a_line_that_is_no_event_is_refused_by_its_number() {
    let zeros = "00".repeat(32);
    for line in [
        "8 any".to_owned(),
        "-1 any".to_owned(),
        "4".to_owned(),
        "4 all".to_owned(),
        format!("4 EV_UNKNOWN {zeros}"),
        format!("4 EV_IPL {zeros}00"),
        format!("4 EV_IPL {zeros} more"),
        "4 EV_IPL any".to_owned(),
    ] {
        let parsed = format!("# a remark\n{line}").parse::<AcceptedEvents>();
        assert_eq!(parsed.unwrap_err(), AcceptSyntaxError::Line(2), "{line}");
    }
}

#[test]
fn a_list_without_a_line_is_refused() {
    for text in ["", "\n\n", "# 4 any", "  # remark\n"] {
        assert_eq!(text.parse::<AcceptedEvents>(), Err(AcceptSyntaxError::Empty), "{text:?}");
    }
    "4 any".parse::<AcceptedEvents>().unwrap();
}

#[test]
fn a_register_that_is_not_looked_at_has_no_digests() {
    for text in [format!("{ACCEPTED}\n4 any"), format!("4 any\n{ACCEPTED}")] {
        let parsed = text.parse::<AcceptedEvents>();
        assert_eq!(parsed, Err(AcceptSyntaxError::AnyAndDigests(4)));
    }
}
