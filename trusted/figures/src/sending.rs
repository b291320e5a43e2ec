// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures 8 and 9: a message over SMT, by its size, trusted, untrusted, and attested only.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use smt::blocking::{Client, Server};
use smt::{KeyEnds, RegisteredKey, Suite};
use smt_a2m::OwnDevice;
use smt_attestation::{
    ATTESTATION_LEN, Algorithm, Attestation, DeviceId, Epoch, Group, GroupSecret, Member,
    SigningKey, Start, StreamId,
};
use smt_device_client::{Device, SecretNumber};
use smt_report::{Axis, Line, Plot, Table};

use crate::systems::{EMULATED, busy_wait};
use crate::times::{Times, told};
use crate::{Failure, Report};

/// Messages one at a time, which the receiver's kernel takes in order.
const IN_ORDER: StreamId = StreamId(3);
/// Messages that it checks, for they arrive out of order, or does not look at.
const CHECKED: StreamId = StreamId(4);
/// Sizes of messages: 128 B to 32 KB, as in the paper.
const LENGTHS: [usize; 9] = [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768];
/// Calls at a time where the rate is measured.
const TOGETHER: usize = 16;

/// The work on a message besides sending it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Untrusted,
    AttestOnly,
    Trusted,
    /// Attested and checked, with a busy wait of so many microseconds before each.
    Emulated(&'static str, u64),
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::AttestOnly => "attest only",
            Self::Trusted => "trusted",
            Self::Emulated(name, _) => name,
        }
    }

    fn wait(self) {
        if let Self::Emulated(_, microseconds) = self {
            busy_wait(microseconds);
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Untrusted => 0,
            Self::AttestOnly => 1,
            Self::Trusted => 2,
            Self::Emulated(_, microseconds) => microseconds as u8,
        }
    }
}

/// Measures both figures.
pub(crate) fn figures_8_and_9(report: &mut Report<'_>, less: usize) -> Result<(), Failure> {
    let fpga = EMULATED[0];
    let kinds = [Kind::Untrusted, Kind::AttestOnly, Kind::Trusted, Kind::Emulated(fpga.0, fpga.1)];
    let pair = Pair::start()?;
    let mut latencies = kinds.map(|kind| (kind, Vec::new()));
    let mut rates = kinds.map(|kind| (kind, Vec::new()));
    for length in LENGTHS {
        for (kind, points) in &mut latencies {
            let times = pair.one_at_a_time(*kind, length, (2000 / less).max(50))?;
            points.push((length as f64, times));
        }
        for (kind, points) in &mut rates {
            let rate = pair.together(*kind, length, (4000 / less).max(64))?;
            points.push((length as f64, rate));
        }
    }
    let text = "A call over SMT in this process, between two endpoints over UDP on the loopback, \
                whose reply is empty, in microseconds (median). \"Attest only\" is not checked by \
                the receiver; \"trusted\" is taken by the receiver's kernel before its reply. The \
                kernel is the library. (The paper, one way on RDMA hardware: untrusted 5 to 19, \
                trusted 3 to 20 times that.)";
    figure(report, ("figure-9", "Figure 9: latency of a message by size", text, "us"), &latencies)?;
    let text = "Calls in a second, 16 at a time. They arrive out of order, so the receiver's kernel \
                checks what is trusted and does not take it. (The paper's Figure 8.)";
    figure(report, ("figure-8", "Figure 8: rate of messages by size", text, "calls/s"), &rates)
}

type Series = (Kind, Vec<(f64, f64)>);

fn figure(
    report: &mut Report<'_>,
    (file, heading, text, unit): (&str, &str, &str, &str),
    series: &[Series],
) -> Result<(), Failure> {
    report.section(heading, text);
    let row = |place: usize| {
        let length = series[0].1[place].0;
        (format!("{length} B"), series.iter().map(|it| told(it.1[place].1)).collect())
    };
    report.table(&Table {
        corner: "size".to_owned(),
        columns: series.iter().map(|it| it.0.name().to_owned()).collect(),
        rows: (0..LENGTHS.len()).map(row).collect(),
    });
    let values: Vec<f64> = series.iter().flat_map(|it| &it.1).map(|it| it.1).collect();
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let line = |(color, (kind, points)): (usize, &Series)| Line {
        name: kind.name().to_owned(),
        color,
        points: points.clone(),
    };
    let plot = Plot {
        title: heading.to_owned(),
        x: Axis::logarithmic_over("bytes", &LENGTHS.map(|it| it as f64)),
        y: Axis::logarithmic(unit, least, most),
        lines: series.iter().enumerate().map(line).collect(),
    };
    report.picture(file, &plot.svg(), series.len())
}

/// Two endpoints with a device each.
struct Pair {
    client: Client,
    server: Server,
    sender: Mutex<OwnDevice>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.server.close(Duration::from_secs(1));
    }
}

fn device(number: u32) -> Result<OwnDevice, Failure> {
    let own = Start { device: DeviceId(number), epoch: Epoch(1), nonce: [0; 16] };
    let mut device = OwnDevice::start(own, SigningKey::new(&[number as u8; 32]));
    device
        .add_secret(SecretNumber(1), GroupSecret::new([9; 32]))
        .map_err(|it| format!("{it:?}"))?;
    let members = [1, 2].map(|it| Member { device: DeviceId(it), epoch: Epoch(1) });
    let algorithm = Algorithm::HmacSha256;
    for stream in [IN_ORDER, CHECKED] {
        let group = Group { stream, algorithm, quorum: 1, members: &members };
        device.open(SecretNumber(1), &group)?;
    }
    Ok(device)
}

fn key(own: &str, peer: &str) -> Result<RegisteredKey, Failure> {
    let ends = KeyEnds { own, peer };
    Ok(RegisteredKey::from_secret(b"figures", ends, Suite::Aes128Gcm, &[5; 32])?)
}

impl Pair {
    fn start() -> Result<Self, Failure> {
        let server =
            smt::server_by_keys([key("server", "client")?]).bind_blocking("127.0.0.1:0")?;
        let client = smt::client_by_key(key("client", "server")?);
        let client = client.connect_blocking(server.local_address())?;
        let (taking, receiver) = (server.clone(), Arc::new(Mutex::new(device(2)?)));
        std::thread::spawn(move || {
            while let Some(request) = taking.accept_request() {
                let body = request.body().clone();
                let mut receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                // The reply says whether the message was taken.
                let _ = request.reply(vec![u8::from(is_taken(&mut receiver, &body))]);
            }
        });
        Ok(Self { client, server, sender: Mutex::new(device(1)?) })
    }

    /// A message of a kind as it travels: the kind, the message, and its attestation if it has one.
    fn body(&self, kind: Kind, stream: StreamId, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::with_capacity(1 + message.len() + ATTESTATION_LEN);
        body.push(kind.number());
        body.extend_from_slice(message);
        if kind != Kind::Untrusted {
            kind.wait();
            let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
            body.extend(sender.attest(stream, message)?.0);
        }
        Ok(body)
    }

    fn one_at_a_time(&self, kind: Kind, length: usize, count: usize) -> Result<f64, Failure> {
        let message = vec![7; length];
        // A counter that the receiver does not take would be a gap.
        let stream = if kind == Kind::AttestOnly { CHECKED } else { IN_ORDER };
        let mut times = Times::of_batches(1);
        for _ in 0..count {
            let reply = times.time(|| -> Result<_, Failure> {
                let body = self.body(kind, stream, &message)?;
                Ok(self.client.call(body).wait()?)
            })?;
            expect_taken(&reply)?;
        }
        Ok(times.below(0.5))
    }

    /// Calls in a second.
    fn together(&self, kind: Kind, length: usize, count: usize) -> Result<f64, Failure> {
        let message = vec![7; length];
        let begin = Instant::now();
        let threads = |_| -> Result<(), Failure> {
            for _ in 0..count / TOGETHER {
                expect_taken(&self.client.call(self.body(kind, CHECKED, &message)?).wait()?)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| -> Result<(), Failure> {
            let work = |number| scope.spawn(move || threads(number).map_err(|it| it.to_string()));
            let workers: Vec<_> = (0..TOGETHER).map(work).collect();
            for worker in workers {
                worker.join().map_err(|_| "a thread has failed")??;
            }
            Ok(())
        })?;
        Ok((count / TOGETHER * TOGETHER) as f64 / begin.elapsed().as_secs_f64())
    }
}

/// Whether the reply says that the message was taken.
fn expect_taken(reply: &[u8]) -> Result<(), Failure> {
    if reply == [1] { Ok(()) } else { Err("a message was not taken".into()) }
}

/// The receiver's part: it takes what is trusted, one at a time, and checks calls of several
/// threads, which arrive out of order.
fn is_taken(receiver: &mut OwnDevice, body: &[u8]) -> bool {
    let Some((kind, rest)) = body.split_first() else {
        return false;
    };
    if *kind < 2 {
        return true;
    }
    if *kind > 2 {
        busy_wait(u64::from(*kind));
    }
    let Some((message, attestation)) = rest.split_last_chunk::<ATTESTATION_LEN>() else {
        return false;
    };
    let attestation = Attestation(*attestation);
    match attestation.claim().map(|header| header.stream) {
        Some(IN_ORDER) => receiver.accept(IN_ORDER, &attestation, message).is_ok(),
        _ => receiver.check(CHECKED, &attestation, message).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_message_out_of_order_is_taken_where_calls_are_together_alone() {
        let pair = Pair::start().unwrap();
        let mut receiver = device(2).unwrap();
        for (stream, is_taken_first) in [(IN_ORDER, false), (CHECKED, true)] {
            let first = pair.body(Kind::Trusted, stream, b"first").unwrap();
            let second = pair.body(Kind::Trusted, stream, b"second").unwrap();
            assert_eq!(is_taken(&mut receiver, &second), is_taken_first);
            assert!(is_taken(&mut receiver, &first));
            let mut changed = second;
            changed[1] ^= 1;
            assert!(!is_taken(&mut receiver, &changed));
        }
    }

    #[test]
    fn each_kind_is_measured_after_each_other() {
        let pair = Pair::start().unwrap();
        for kind in [Kind::AttestOnly, Kind::Trusted, Kind::Untrusted, Kind::Emulated("3 us", 3)] {
            pair.together(kind, 128, 2 * TOGETHER).unwrap();
            pair.one_at_a_time(kind, 128, 3).unwrap();
        }
    }

    #[test]
    fn a_reply_that_says_no_fails_the_measurement() {
        assert!(expect_taken(&[1]).is_ok());
        assert!(expect_taken(&[0]).is_err());
        assert!(expect_taken(&[]).is_err());
    }
}
