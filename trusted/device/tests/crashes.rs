// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Crashes at any step of a write, on a disk that loses and tears what was not synced.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod disk;

use disk::{Lie, ModelFiles};
use smt_attestation::DeviceId;
use smt_device::{Store, StoreError};
use smt_device_client::{End, LogId, Sealing, SecretNumber};
use smt_simulation::Random;
use zeroize::Zeroizing;

const CERTIFICATE_LEN: usize = 166;

/// Facts that a device has told to others, which no crash may take back.
#[derive(Default)]
struct Acknowledged {
    is_made: bool,
    epoch: u64,
    secrets: Vec<u32>,
    /// The last certificate that was stored.
    certificate: u8,
    /// The sequence number up to which a log is sealed.
    sealed: u64,
    /// The one that was to be sealed when the device died, or the same.
    sealing: u64,
}

/// A promise that the device has broken.
#[derive(Debug)]
struct Broken(String);

/// One life of a device, until the disk's steps are used up.
fn live(files: &ModelFiles, told: &mut Acknowledged, random: &mut Random) -> Result<(), Broken> {
    match steps(files, told, random) {
        Ok(broken) => broken.map_or(Ok(()), Err),
        Err(StoreError::File(_)) => Ok(()),
        Err(other) => Err(Broken(format!("it does not start: {other}"))),
    }
}

fn end_of_log(sequence: u64) -> (LogId, End) {
    (LogId(7), End { sequence, digest: [sequence as u8; 32] })
}

/// A promise that it breaks, or the error that ends it.
fn steps(
    files: &ModelFiles,
    told: &mut Acknowledged,
    random: &mut Random,
) -> Result<Option<Broken>, StoreError> {
    let mut store = match Store::open_in(Box::new(files.clone()), None) {
        Err(StoreError::Missing(_)) if !told.is_made => {
            Store::create_in(Box::new(files.clone()), DeviceId(1), None)?
        }
        opened => opened?,
    };
    told.is_made = true;
    let mut logs = store.open_logs(None)?;
    let sealed = logs.ends().first().map_or(0, |(_, end)| end.sequence);
    let is_whole = logs.ends().iter().all(|it| *it == end_of_log(sealed));
    if !is_whole || ![told.sealed, told.sealing].contains(&sealed) {
        let lost = format!("log 7 is sealed up to {sealed}, and not to {}", told.sealed);
        return Ok(Some(Broken(lost)));
    }
    (told.sealed, told.sealing) = (sealed, sealed);
    // A device has 63 secrets of groups at most.
    for _ in 0..60 {
        let has = |number| store.secrets().any(|(it, _)| it == SecretNumber(number));
        if !told.secrets.iter().all(|number| has(*number)) {
            return Ok(Some(Broken("a secret is lost".to_owned())));
        }
        // A crash may have come after the write and before the acknowledgement.
        let certificate = store.certificate()?.unwrap_or_default();
        let is_whole = certificate.iter().all(|it| *it == certificate[0]);
        let stored = certificate.first().copied().unwrap_or_default();
        if stored < told.certificate
            || !is_whole
            || ![0, CERTIFICATE_LEN].contains(&certificate.len())
        {
            return Ok(Some(Broken("its certificate is lost or torn".to_owned())));
        }
        if random.chance(30) {
            told.sealing = told.sealed + 1;
            logs.seal(&[end_of_log(told.sealing)])?;
            told.sealed = told.sealing;
        } else if random.chance(10) && stored < u8::MAX {
            store.write_certificate(&[stored + 1; CERTIFICATE_LEN])?;
            told.certificate = stored + 1;
        } else if random.chance(60) || told.secrets.len() > 50 {
            let epoch = store.next_epoch(None)?.0;
            if epoch <= told.epoch {
                return Ok(Some(Broken(format!("epoch {epoch} was there before"))));
            }
            told.epoch = epoch;
        } else {
            let number = told.secrets.last().map_or(1, |last| last + 1);
            // A crash may have come after the write and before the acknowledgement.
            match store.add_secret(SecretNumber(number), Zeroizing::new([number as u8; 32])) {
                Ok(()) | Err(StoreError::SecretExists(_)) => told.secrets.push(number),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

/// Counts of what happened.
#[derive(Debug, Default)]
struct Counts {
    crashes: u32,
    torn: u32,
    epochs: u64,
    sealed: u64,
}

/// Lives and crashes of so many devices, on a disk that does what `lie` says.
fn campaign(seeds: std::ops::Range<u64>, lie: Lie) -> Result<Counts, Broken> {
    let mut counts = Counts::default();
    for seed in seeds {
        let of_seed = |Broken(why)| Broken(format!("SMT_SEED={seed}: {why}"));
        let mut random = Random::new(seed);
        let (files, mut told) = (ModelFiles::new(lie), Acknowledged::default());
        for _ in 0..12 {
            files.crashes_after(random.below(24) as u32);
            live(&files, &mut told, &mut random).map_err(of_seed)?;
            counts.torn += u32::from(files.crash(&mut random));
            counts.crashes += 1;
        }
        // Without a crash it lives.
        files.crashes_after(u32::MAX);
        live(&files, &mut told, &mut random).map_err(of_seed)?;
        counts.epochs += told.epoch;
        counts.sealed += told.sealed;
    }
    Ok(counts)
}

#[test]
fn a_crash_at_any_step_takes_back_nothing_that_was_told_and_the_device_starts_again() {
    let given = std::env::var("SMT_SEED").ok().and_then(|it| it.parse().ok());
    let first: u64 = given.unwrap_or(0);
    let counts = campaign(first..first + 500, Lie::Nothing).unwrap();
    println!("{counts:?}");
    assert!(counts.crashes >= 6_000 && counts.torn > 1_000 && counts.epochs > 5_000, "{counts:?}");
    assert!(counts.sealed > 5_000, "{counts:?}");
}

/// The same as a device that leaves a sync out: the campaign would see it.
#[test]
fn a_disk_that_does_not_sync_breaks_the_promises() {
    for lie in [Lie::OfBytes, Lie::OfNames] {
        let broken = campaign(0..500, lie).unwrap_err();
        println!("{lie:?}: {broken:?}");
    }
}
