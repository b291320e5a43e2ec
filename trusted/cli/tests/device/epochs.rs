// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Epochs by a TPM: what a host gains that copies files, or stands between device and TPM.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use smt_device::tpm::{Counter, QuotingKey, StorageKey, TpmError, Transport};
use smt_device_client::{Device, SecretNumber};

use crate::process::{
    Directory, Process, STREAM, Tpm, connect, fails, left_out, open, start, succeeds,
};

/// Copies all files of a directory.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// A device with a TPM of its own. Each command has a TPM process of its own, with the same state.
struct Host {
    directory: Directory,
}

impl Host {
    /// Nothing if there is no swtpm.
    fn new() -> Option<Self> {
        let host = Self { directory: Directory::new() };
        let tpm = host.tpm()?;
        succeeds(&["init", &host.device(), "--number", "1", "--tpm", &tpm.socket], "");
        Some(host)
    }

    fn tpm(&self) -> Option<Tpm> {
        Tpm::start(&self.directory.0.join("tpm"))
    }

    fn device(&self) -> String {
        self.directory.path("device")
    }

    /// The epoch of a start.
    fn run(&self, device: &str) -> u64 {
        let tpm = self.tpm().unwrap();
        let _process = start(device, &["--tpm", &tpm.socket]);
        connect(device).own().epoch.0
    }

    fn refused(&self, device: &str) -> String {
        let tpm = self.tpm().unwrap();
        fails(&["run", device, "--tpm", &tpm.socket])
    }
}

#[test]
fn each_start_is_a_new_epoch_of_the_tpm() {
    let Some(host) = Host::new() else {
        return;
    };
    let first = host.run(&host.device());
    assert_eq!(host.run(&host.device()), first + 1);
    assert_eq!(host.run(&host.device()), first + 2);
}

#[test]
fn restored_files_are_refused() {
    let Some(host) = Host::new() else {
        return;
    };
    let (device, saved) = (host.directory.0.join("device"), host.directory.0.join("saved"));
    host.run(&host.device());
    copy(&device, &saved);
    host.run(&host.device());
    copy(&saved, &device);
    let text = host.refused(&host.device());
    assert!(text.contains("they were restored or are a copy"), "{text}");
}

#[test]
fn a_copy_that_starts_ends_its_original() {
    let Some(host) = Host::new() else {
        return;
    };
    let clone = host.directory.path("clone");
    let first = host.run(&host.device());
    copy(&host.directory.0.join("device"), Path::new(&clone));
    // The copy takes the next epoch, and the original can never start again.
    assert_eq!(host.run(&clone), first + 1);
    let text = host.refused(&host.device());
    assert!(text.contains("they were restored or are a copy"), "{text}");
    assert_eq!(host.run(&clone), first + 2);
}

#[test]
fn a_copy_on_another_host_is_refused_by_its_tpm() {
    let (Some(one), Some(two)) = (Host::new(), Host::new()) else {
        return;
    };
    copy(&one.directory.0.join("device"), &two.directory.0.join("device"));
    let text = two.refused(&two.device());
    assert!(text.contains("not the TPM that the device was made with"), "{text}");
}

#[test]
fn a_tpm_without_the_counter_is_refused() {
    let Some(host) = Host::new() else {
        return;
    };
    let tpm = host.tpm().unwrap();
    let undefined = std::process::Command::new("tpm2_nvundefine")
        .args(["-C", "o", "-T", &format!("swtpm:path={}", tpm.socket), "0x1815300"])
        .output();
    drop(tpm);
    if !undefined.is_ok_and(|output| output.status.success()) {
        left_out("tpm2_nvundefine", "tpm2-tools");
        return;
    }
    let text = host.refused(&host.device());
    assert!(text.contains("the TPM refuses TPM2_NV_Read"), "{text}");
}

/// The documents say so: a counter that is restored is no counter.
#[test]
fn restoring_the_tpms_own_state_too_succeeds() {
    let Some(host) = Host::new() else {
        return;
    };
    let saved = host.directory.0.join("saved");
    copy(&host.directory.0.join("device"), &saved.join("device"));
    copy(&host.directory.0.join("tpm"), &saved.join("tpm"));
    let epoch = host.run(&host.device());
    copy(&saved.join("device"), &host.directory.0.join("device"));
    copy(&saved.join("tpm"), &host.directory.0.join("tpm"));
    assert_eq!(host.run(&host.device()), epoch);
}

/// The trick of a process between device and TPM.
#[derive(Clone, Copy)]
enum Trick {
    /// It changes a bit.
    Change(usize),
    /// It closes the connection instead of answering, though the TPM has done its work.
    Lose,
    /// It closes the connection before the TPM gets the command.
    Hold,
}

/// Stands between device and TPM, and plays a trick at the n-th exchange.
fn between(tpm: &str, listener: &UnixListener, place: usize, trick: Trick) {
    let (mut host, _) = listener.accept().unwrap();
    let mut tpm = UnixStream::connect(tpm).unwrap();
    let mut buffer = [0; 4096];
    for number in 0.. {
        let Some(length) = message(&mut host, &mut buffer) else {
            return;
        };
        if number == place && matches!(trick, Trick::Hold) {
            return;
        }
        tpm.write_all(&buffer[..length]).unwrap();
        let Some(length) = message(&mut tpm, &mut buffer) else {
            return;
        };
        match trick {
            Trick::Lose if number == place => return,
            Trick::Change(bit) if number == place => {
                // Not the header: its size would only stop the exchange.
                let bit = 10 * 8 + bit % ((length - 10).max(1) * 8);
                buffer[bit / 8] ^= 1 << (bit % 8);
            }
            _ => {}
        }
        if host.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

/// Reads a command or a response: its third to sixth byte are its size.
fn message(from: &mut UnixStream, buffer: &mut [u8; 4096]) -> Option<usize> {
    from.read_exact(&mut buffer[..10]).ok()?;
    let size = u32::from_be_bytes(buffer[2..6].try_into().unwrap()) as usize;
    from.read_exact(&mut buffer[10..size]).ok()?;
    Some(size)
}

/// The epoch of a start with a trick, or nothing if the device refused.
fn run_with(host: &Host, place: usize, trick: Trick) -> Option<u64> {
    let tpm = host.tpm().unwrap();
    let path = host.directory.path("between");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let forward = std::thread::spawn(move || between(&tpm.socket, &listener, place, trick));
    let directory = host.device();
    let device = std::process::Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
        .args(["device", "run", &directory, "--tpm", &path])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut process = Process(device);
    let mut stderr = std::io::BufReader::new(process.0.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    let epoch = line.contains("serves at").then(|| connect(&directory).own().epoch.0);
    drop(process);
    forward.join().unwrap();
    epoch
}

/// The 17 exchanges of a start with its TPM, and one more.
const EXCHANGES: usize = 18;

#[test]
fn changed_answers_of_the_tpm_give_no_epoch_twice() {
    let Some(host) = Host::new() else {
        return;
    };
    let mut epochs = vec![host.run(&host.device())];
    let mut refused = 0;
    for place in 0..EXCHANGES {
        for bit in [3, 130, 401] {
            match run_with(&host, place, Trick::Change(bit)) {
                Some(epoch) => epochs.push(epoch),
                None => refused += 1,
            }
        }
    }
    assert!(refused > EXCHANGES, "changes were not noticed");
    // The device is not stopped for ever by any of that.
    epochs.push(host.run(&host.device()));
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
}

/// A crash of either side between any two steps of a start: of file, counter and answer.
#[test]
fn a_start_that_was_broken_off_at_any_step_is_cured_by_the_next_one() {
    let Some(host) = Host::new() else {
        return;
    };
    let mut last = host.run(&host.device());
    let mut broken = 0;
    for place in 0..EXCHANGES {
        for trick in [Trick::Hold, Trick::Lose] {
            broken += usize::from(run_with(&host, place, trick).is_none());
            let epoch = host.run(&host.device());
            assert!(epoch > last);
            last = epoch;
        }
    }
    assert!(broken > EXCHANGES, "starts were not broken off");
}

#[test]
fn a_value_that_another_one_has_raised_is_no_epoch() {
    let directory = Directory::new();
    let Some(tpm) = Tpm::start(&directory.0.join("tpm")) else {
        return;
    };
    let mut tpm = Transport::open(&tpm.socket).unwrap();
    let key = StorageKey::create(&mut tpm).unwrap();
    // A TPM forgets zeros at the end of a secret.
    for secret in [[1; 32], [0; 32]] {
        let counter = Counter::define(&mut tpm, &secret).unwrap();
        let value = counter.begin(&mut tpm, &key).unwrap();
        assert_eq!(counter.increment_from(&mut tpm, &key, value).unwrap(), Some(value + 1));
        // Both copies have read the same value, and both were told that they had raised it.
        assert_eq!(counter.increment_from(&mut tpm, &key, value).unwrap(), None);
        let wrong = Counter { index: counter.index, secret: &[9; 32] };
        assert!(matches!(wrong.value(&mut tpm, &key), Err(TpmError::Refused { .. })));
    }
}

#[test]
fn a_device_with_a_tpm_attests() {
    let Some(host) = Host::new() else {
        return;
    };
    let tpm = host.tpm().unwrap();
    let _process = start(&host.device(), &["--tpm", &tpm.socket]);
    let mut client = connect(&host.device());
    open(&mut client, SecretNumber(0)).unwrap();
    assert_eq!(client.attest(STREAM, b"a").unwrap().claim().unwrap().epoch, client.own().epoch);
}

#[test]
fn a_quote_is_taken_over_its_own_data_and_by_its_own_key_alone() {
    let directory = Directory::new();
    let tpms = ["one", "two"].map(|name| Tpm::start(&directory.0.join(name)));
    let [Some(one), Some(two)] = &tpms else {
        return;
    };
    let quote = |tpm: &Tpm, data: &[u8; 32]| {
        let mut tpm = Transport::open(&tpm.socket).unwrap();
        let key = QuotingKey::create(&mut tpm).unwrap();
        let quote = key.quote(&mut tpm, data).unwrap();
        let point = key.point();
        key.let_go(&mut tpm).unwrap();
        (point, quote)
    };
    let (point, genuine) = quote(one, &[1; 32]);
    assert!(genuine.verify(&point, &[1; 32]).is_some());
    assert_eq!(genuine.verify(&point, &[2; 32]), None);
    let (other, foreign) = quote(two, &[1; 32]);
    assert_ne!(point, other);
    assert_eq!(foreign.verify(&point, &[1; 32]), None);
    for bit in 0..8 * genuine.statement.len() {
        let mut changed = genuine.clone();
        changed.statement[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(changed.verify(&point, &[1; 32]), None);
    }
}
