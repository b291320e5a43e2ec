// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The service of a device process for its hosts.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smt_attestation::{
    ATTESTATION_LEN, Attestation, DeviceId, Misuse, Progress, Refusal, StreamId, verify_signature,
};
use smt_device_client::{
    Claimed, Client, Device, DeviceError, Fault, Hello, MESSAGE_LEN_MAX, Reader, SecretNumber,
    SharedMemory, Wake, Writer,
};

use crate::process::{
    Directory, STREAM, command, connect, fails, open, open_group, start, succeeds,
};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

/// A new device without a TPM.
fn device(directory: &Directory, number: &str) -> String {
    let path = directory.path(number);
    succeeds(&["init", &path, "--number", number], "");
    path
}

#[test]
fn a_device_attests_checks_and_signs_for_its_host() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut client = connect(&path);
    assert!(matches!(client.attest(STREAM, b"a"), Err(DeviceError::UnknownStream(STREAM))));
    assert!(matches!(open(&mut client, SecretNumber(9)), Err(DeviceError::UnknownSecret(_))));
    open(&mut client, SecretNumber(0)).unwrap();
    let attestation = client.attest(STREAM, b"message").unwrap();
    assert_eq!(client.check(STREAM, &attestation, b"message").unwrap().counter, 1);
    let other = client.check(STREAM, &attestation, b"other!!").unwrap_err();
    assert!(matches!(other, DeviceError::Refused(Refusal::Mac)));
    assert_eq!(other.fault(), Fault::Message);
    let signature = client.sign(STREAM, 1, b"message").unwrap();
    let header = attestation.header_bytes();
    assert!(verify_signature(&client.public_key(), &header, b"message", &signature));
    assert_eq!(client.reissue(STREAM, 1).unwrap(), attestation);
    assert_eq!(client.sent(STREAM).unwrap(), Some(1));
    assert_eq!(client.sent(StreamId(2)).unwrap(), None);
    let forgotten = client.sign(STREAM, 2, b"message");
    assert!(matches!(forgotten, Err(DeviceError::Misuse(Misuse::Forgotten))));
}

#[test]
fn messages_of_all_lengths_pass_the_rings() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut client = connect(&path);
    open(&mut client, SecretNumber(0)).unwrap();
    for length in [0, 1, 7, 8, 9, 4096, 100_000, MESSAGE_LEN_MAX] {
        let message = vec![length as u8; length];
        let attestation = client.attest(STREAM, &message).unwrap();
        client.check(STREAM, &attestation, &message).unwrap();
    }
    let long = vec![0; MESSAGE_LEN_MAX + 1];
    assert!(matches!(client.attest(STREAM, &long), Err(DeviceError::TooLong(_))));
    assert!(matches!(client.sign(STREAM, 1, &long), Err(DeviceError::TooLong(_))));
    // The connection goes on, also after a batch in which one was too long.
    let batch = client.attest_all(STREAM, &[b"a", &long, b"b"]);
    assert!(matches!(batch, Err(DeviceError::TooLong(_))));
    assert_eq!(client.attest(STREAM, b"c").unwrap().claim().unwrap().counter, 10);
}

#[test]
fn a_batch_has_its_counters_in_order() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut client = connect(&path);
    open(&mut client, SecretNumber(0)).unwrap();
    // More than the rings take at once.
    let messages: Vec<Vec<u8>> = (0..20_000_u32).map(|it| it.to_be_bytes().repeat(16)).collect();
    let messages: Vec<&[u8]> = messages.iter().map(|it| &it[..]).collect();
    let attestations = client.attest_all(STREAM, &messages).unwrap();
    for (counter, attestation) in (1..).zip(&attestations) {
        assert_eq!(attestation.claim().unwrap().counter, counter);
    }
    let last = attestations.len() - 1;
    client.check(STREAM, &attestations[last], messages[last]).unwrap();
}

#[test]
fn a_batch_of_checks_says_of_each_message_whether_it_was_attested() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut client = connect(&path);
    open(&mut client, SecretNumber(0)).unwrap();
    let attestation = client.attest(STREAM, b"said").unwrap();
    let long = vec![0; MESSAGE_LEN_MAX + 1];
    let messages: [&[u8]; 4] = [b"said", b"not said", &long, b"said"];
    let all = messages.map(|message| Claimed { attestation, message });
    let checked = client.check_all(STREAM, &all).unwrap();
    assert!(matches!(
        checked[..],
        [Ok(_), Err(DeviceError::Refused(_)), Err(DeviceError::PeerTooLong(_)), Ok(_)]
    ));
    // One check has the same limit, and its error is the peer's fault.
    let one = client.check(STREAM, &attestation, &long).unwrap_err();
    let taken = client.accept(STREAM, &attestation, &long).unwrap_err();
    for error in [one, taken] {
        assert!(matches!(error, DeviceError::PeerTooLong(_)), "{error}");
        assert_eq!(error.fault(), Fault::Message);
    }
    // The connection goes on.
    client.check(STREAM, &attestation, b"said").unwrap();
}

#[test]
fn two_devices_of_a_group_take_each_others_messages_in_order() {
    let directory = Directory::new();
    let paths = [device(&directory, "1"), device(&directory, "2")];
    for path in &paths {
        succeeds(&["add-secret", path, "5"], SECRET);
    }
    let _processes = paths.each_ref().map(|path| start(path, &[]));
    let [mut one, mut two] = paths.each_ref().map(|path| connect(path));
    open_group(&mut one, &[1, 2]).unwrap();
    open_group(&mut two, &[1, 2]).unwrap();
    let first = one.attest(STREAM, b"first").unwrap();
    let second = one.attest(STREAM, b"second").unwrap();
    let gap = two.accept(STREAM, &second, b"second");
    assert!(matches!(gap, Err(DeviceError::Refused(Refusal::Gap { expected: 1 }))));
    two.accept(STREAM, &first, b"first").unwrap();
    two.accept(STREAM, &second, b"second").unwrap();
    let again = two.accept(STREAM, &second, b"second");
    assert!(matches!(again, Err(DeviceError::Refused(Refusal::Duplicate))));
    let position = two.position(STREAM, DeviceId(1)).unwrap().unwrap();
    assert_eq!(position.progress, Progress::Taken(2));
    assert_eq!(two.position(STREAM, DeviceId(3)).unwrap(), None);
}

#[test]
fn hosts_have_connections_of_their_own_and_one_counter() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut first = connect(&path);
    open(&mut first, SecretNumber(0)).unwrap();
    let counters = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = connect(&path);
                    let counter = |it: Attestation| it.claim().unwrap().counter;
                    let attested = (0..500).map(|_| counter(client.attest(STREAM, b"x").unwrap()));
                    attested.collect::<Vec<_>>()
                })
            })
            .collect();
        hosts.into_iter().flat_map(|host| host.join().unwrap()).collect::<Vec<_>>()
    });
    let mut sorted = counters;
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=2000).collect::<Vec<_>>());
}

#[test]
fn a_full_device_refuses_connections_until_one_ends() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut clients: Vec<Client> = (0..32).map(|_| connect(&path)).collect();
    let socket = Path::new(&path).join("socket");
    let busy = Client::connect(&socket).err().unwrap();
    assert!(matches!(busy, DeviceError::Busy), "{busy}");
    clients.pop();
    // The device learns of the end when it next waits.
    while Client::connect(&socket).is_err() {}
}

/// The device is killed while its host asks, at another instruction in each round.
#[test]
fn a_device_that_is_killed_gives_no_counter_twice() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let mut given: BTreeMap<(u64, u64), [u8; ATTESTATION_LEN]> = BTreeMap::new();
    for round in 0_u32..20 {
        let mut process = start(&path, &[]);
        let mut client = connect(&path);
        open(&mut client, SecretNumber(0)).unwrap();
        let is_going = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_going.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                process.0.kill().unwrap();
            });
            for number in 0_u32.. {
                let message = [round.to_be_bytes(), number.to_be_bytes()].concat();
                match client.attest(STREAM, &message) {
                    Ok(attestation) => {
                        let header = attestation.claim().unwrap();
                        let place = (header.epoch.0, header.counter);
                        assert_eq!(given.insert(place, attestation.0), None);
                    }
                    Err(error) => {
                        assert!(matches!(error, DeviceError::Ended), "{error}");
                        break;
                    }
                }
                is_going.store(number >= round * 50, Ordering::Relaxed);
            }
        });
        process.0.wait().unwrap();
    }
    let epochs: std::collections::BTreeSet<u64> = given.keys().map(|place| place.0).collect();
    assert_eq!(epochs.len(), 20);
}

#[test]
fn a_host_that_takes_no_wake_stops_no_other_one() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let _process = start(&path, &[]);
    let mut client = connect(&path);
    open(&mut client, SecretNumber(0)).unwrap();
    let socket = UnixStream::connect(Path::new(&path).join("socket")).unwrap();
    let (_, file) = Hello::receive(&socket).unwrap();
    let memory = Arc::new(SharedMemory::open(file).unwrap());
    let mut requests = Writer::of_requests(memory.clone());
    let mut answers = Reader::of_answers(memory.clone());
    let wake = Wake::of_host(socket);
    let mut body = Vec::new();
    // More wakes than a socket takes.
    for tag in 0..1000 {
        wake.sleep(&memory, true);
        assert!(requests.push(tag, b"no request").unwrap());
        requests.publish();
        wake.wake(&memory).unwrap();
        while answers.next(&mut body).unwrap().is_none() {
            std::thread::yield_now();
        }
        answers.publish();
    }
    client.attest(STREAM, b"message").unwrap();
}

#[test]
fn a_file_that_is_no_socket_stays_where_it_is() {
    let directory = Directory::new();
    let path = device(&directory, "1");
    let file = directory.path("file");
    std::fs::write(&file, b"something else").unwrap();
    assert!(fails(&["run", &path, "--socket", &file]).contains("cannot listen"));
    assert_eq!(std::fs::read(&file).unwrap(), b"something else");
}

#[test]
fn errors_say_whose_fault_they_are() {
    let directory = Directory::new();
    let missing = directory.path("missing");
    let text = fails(&["run", &missing]);
    assert!(text.contains("your request") && text.contains("smt-trusted device init"), "{text}");
    let text = fails(&["show", &directory.path("socket")]);
    assert!(text.contains("the device") && text.contains("is `smt-trusted device run`"), "{text}");
    let path = device(&directory, "1");
    assert!(fails(&["init", &path, "--number", "1"]).contains("has a device already"));
    let text = fails(&["run", &path, "--user", "nobody-of-this-name"]);
    assert!(text.contains("your request: there is no user"), "{text}");
    let text = fails(&["run", &path, "--tpm", "/dev/null/tpm"]);
    assert!(text.contains("the TPM: no TPM answers"), "{text}");
    let text = fails(&["run", &path, "--tpm", "/dev/null"]);
    assert!(text.contains("made without a TPM"), "{text}");
    let output = command(&["add-secret", &path, "1"], "00\n");
    assert!(!output.status.success());
    let _process = start(&path, &[]);
    assert!(fails(&["run", &path]).contains("another process listens"));
    let elsewhere = directory.path("other-socket");
    assert!(fails(&["run", &path, "--socket", &elsewhere]).contains("another process runs"));
    std::fs::write(Path::new(&path).join("state"), b"altered").unwrap();
    drop(_process);
    assert!(fails(&["run", &path]).contains("the file state is damaged"));
    std::fs::write(Path::new(&path).join("keys"), b"altered").unwrap();
    assert!(fails(&["run", &path]).contains("the file keys is damaged"));
}
