// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The systems that attest: a library, a server process over sockets (the paper's SSL-lib and
//! SSL-server), a device process, and those of the paper that only their latency stands for.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use smt_a2m::OwnDevice;
use smt_attestation::{
    Algorithm, Attestation, DeviceId, Epoch, Group, GroupSecret, Member, SigningKey, Start,
    StreamId,
};
use smt_device_client::{Answer, Client, Device, DeviceError, Request, SecretNumber, answer_to};

use crate::Failure;

/// The microseconds of one attestation that the paper states, in its section 8.
pub(crate) const EMULATED: [(&str, u64); 3] = [
    // "23 us".
    ("FPGA (emulated, 23 us)", 23),
    // "For the AMD latency, we use 30us, representing the lower bound".
    ("SEV (emulated, 30 us)", 30),
    // TNIC is quicker than TEEs "at least by a factor of 2".
    ("SGX (emulated, 46 us)", 46),
];

/// A library as a device.
pub(crate) fn library() -> OwnDevice {
    let own = Start { device: DeviceId(1), epoch: Epoch(1), nonce: [0; 16] };
    let mut library = OwnDevice::start(own, SigningKey::new(&[2; 32]));
    // The first secret of a device that has none yet.
    let _ = library.add_secret(SecretNumber(0), GroupSecret::new([1; 32]));
    library
}

/// Opens a stream of the device alone, unless it is open.
pub(crate) fn open(device: &mut impl Device, stream: StreamId) -> Result<(), DeviceError> {
    if device.sent(stream)?.is_some() {
        return Ok(());
    }
    let members = [Member { device: device.own().device, epoch: Epoch(1) }];
    let algorithm = Algorithm::HmacSha256;
    device.open(SecretNumber(0), &Group { stream, algorithm, quorum: 1, members: &members })
}

/// Works for so long and does nothing.
pub(crate) fn busy_wait(microseconds: u64) {
    let end = Instant::now() + Duration::from_micros(microseconds);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A way to have requests answered, one at a time or in batches.
pub(crate) trait Attestor {
    /// Has a message attested.
    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, Failure>;
    /// Has a message checked.
    fn check(&mut self, stream: StreamId, it: &Attestation, of: &[u8]) -> Result<(), Failure>;
    /// Asks for what needs no MAC: the way alone.
    fn nothing(&mut self, stream: StreamId) -> Result<(), Failure>;
    /// Has the same message attested so often.
    fn attest_many(
        &mut self,
        stream: StreamId,
        of: &[u8],
        count: usize,
    ) -> Result<Vec<Attestation>, Failure>;
    /// Has attestations of the same message checked.
    fn check_many(
        &mut self,
        stream: StreamId,
        all: &[Attestation],
        of: &[u8],
    ) -> Result<(), Failure>;
}

/// The kernel in this process, and a busy wait before each answer if it stands for another system.
pub(crate) struct InProcess {
    pub(crate) device: OwnDevice,
    pub(crate) wait: u64,
}

impl Attestor for InProcess {
    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, Failure> {
        if self.wait > 0 {
            busy_wait(self.wait);
        }
        Ok(self.device.attest(stream, message)?)
    }

    fn check(&mut self, stream: StreamId, it: &Attestation, of: &[u8]) -> Result<(), Failure> {
        if self.wait > 0 {
            busy_wait(self.wait);
        }
        self.device.check(stream, it, of)?;
        Ok(())
    }

    fn nothing(&mut self, stream: StreamId) -> Result<(), Failure> {
        self.device.sent(stream)?;
        Ok(())
    }

    fn attest_many(
        &mut self,
        stream: StreamId,
        of: &[u8],
        count: usize,
    ) -> Result<Vec<Attestation>, Failure> {
        (0..count).map(|_| self.attest(stream, of)).collect()
    }

    fn check_many(
        &mut self,
        stream: StreamId,
        all: &[Attestation],
        of: &[u8],
    ) -> Result<(), Failure> {
        all.iter().try_for_each(|it| self.check(stream, it, of))
    }
}

/// The device process of this machine.
impl Attestor for Client {
    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, Failure> {
        Ok(Device::attest(self, stream, message)?)
    }

    fn check(&mut self, stream: StreamId, it: &Attestation, of: &[u8]) -> Result<(), Failure> {
        Device::check(self, stream, it, of)?;
        Ok(())
    }

    fn nothing(&mut self, stream: StreamId) -> Result<(), Failure> {
        self.sent(stream)?;
        Ok(())
    }

    fn attest_many(
        &mut self,
        stream: StreamId,
        of: &[u8],
        count: usize,
    ) -> Result<Vec<Attestation>, Failure> {
        Ok(self.attest_all(stream, &vec![of; count])?)
    }

    fn check_many(
        &mut self,
        stream: StreamId,
        all: &[Attestation],
        of: &[u8],
    ) -> Result<(), Failure> {
        let answers = self.ask_all(all.iter().map(|it| Request::Check(stream, *it, of)))?;
        let is_good = answers.iter().all(|it| matches!(it, Answer::Header(_)));
        if is_good { Ok(()) } else { Err("an attestation does not check".into()) }
    }
}

/// The connection to a server process: frames with their length in front.
pub(crate) struct Server {
    socket: RefCell<TcpStream>,
    body: Vec<u8>,
}

impl Server {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket: RefCell::new(socket), body: Vec::new() })
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<Answer, Failure> {
        self.body.clear();
        request.encode(&mut self.body);
        let mut socket = self.socket.borrow_mut();
        write_frame(&mut socket, &self.body)?;
        read_frame(&mut socket, &mut self.body)?;
        Answer::decode(&self.body).ok_or_else(|| "the server's answer is none".into())
    }

    /// Opens a stream of the server.
    pub(crate) fn open(&mut self, stream: StreamId) -> Result<(), Failure> {
        let members = vec![Member { device: DeviceId(1), epoch: Epoch(1) }];
        let secret = SecretNumber(0);
        self.ask(&Request::Open(secret, stream, Algorithm::HmacSha256, 1, members))?;
        Ok(())
    }
}

impl Attestor for Server {
    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, Failure> {
        match self.ask(&Request::Attest(stream, message))? {
            Answer::Attestation(it) => Ok(it),
            other => Err(format!("the server does not attest: {other:?}").into()),
        }
    }

    fn check(&mut self, stream: StreamId, it: &Attestation, of: &[u8]) -> Result<(), Failure> {
        match self.ask(&Request::Check(stream, *it, of))? {
            Answer::Header(_) => Ok(()),
            other => Err(format!("the server does not check: {other:?}").into()),
        }
    }

    fn nothing(&mut self, stream: StreamId) -> Result<(), Failure> {
        self.ask(&Request::Sent(stream))?;
        Ok(())
    }

    fn attest_many(
        &mut self,
        stream: StreamId,
        of: &[u8],
        count: usize,
    ) -> Result<Vec<Attestation>, Failure> {
        (0..count).map(|_| self.attest(stream, of)).collect()
    }

    fn check_many(
        &mut self,
        stream: StreamId,
        all: &[Attestation],
        of: &[u8],
    ) -> Result<(), Failure> {
        all.iter().try_for_each(|it| self.check(stream, it, of))
    }
}

/// Serves one connection at a time, and prints its address first.
pub(crate) fn serve() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    let mut device = library();
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        while read_frame(&mut socket, &mut request).is_ok() {
            answer_to(&mut device, &request, &mut answer);
            write_frame(&mut socket, &answer)?;
        }
    }
}

fn write_frame(socket: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend((body.len() as u32).to_be_bytes());
    frame.extend(body);
    socket.write_all(&frame)
}

fn read_frame(socket: &mut TcpStream, body: &mut Vec<u8>) -> io::Result<()> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    // Both ends are this program.
    body.resize(u32::from_be_bytes(length) as usize, 0);
    socket.read_exact(body)
}
