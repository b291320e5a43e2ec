// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A body in a mapped file that is written to while it is being sent (SPEC §5.5): records that have
//! left are not sealed again. Here since mapping is unsafe.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
#![cfg(target_os = "linux")]

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use smt::blocking::{Client, Server};
use smt::pki::EphemeralCa;
use smt::{Bytes, CallFailure, ErrorKind, Execution};

/// A file in memory that is mapped and can be written to.
struct Mapped {
    file: File,
    bytes: Bytes,
}

impl Mapped {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("smt-mapped-{name}-{}", std::process::id()));
        std::fs::write(&path, [7; LENGTH]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let bytes = Bytes::from_owner(Mapping::of(&file));
        Self { file, bytes }
    }

    /// Writes to the file, and so to the memory.
    fn change(&self) {
        self.file.write_all_at(&[8; LENGTH], 0).unwrap();
    }
}

struct Mapping(*mut libc::c_void);

// SAFETY: the mapping is of the process, not of a thread, and is only read through the pointer.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(file: &File) -> Self {
        // SAFETY: a new mapping at an address that the system chooses; the result is checked.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                LENGTH,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(address, libc::MAP_FAILED);
        Self(address)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `LENGTH` bytes are mapped at the address until this is dropped. This test is
        // about an application that changes them by mistake.
        unsafe { std::slice::from_raw_parts(self.0.cast(), LENGTH) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `of`, with this length, and the address has no other user
        // any more.
        unsafe { libc::munmap(self.0, LENGTH) };
    }
}

/// A way between a client and a server on which large datagrams can be lost.
struct Way {
    address: SocketAddr,
    loses: Arc<AtomicBool>,
    /// Bytes.
    lost: Arc<AtomicUsize>,
}

impl Way {
    fn to(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        let way = Self {
            address: front.local_addr().unwrap(),
            loses: Arc::default(),
            lost: Arc::default(),
        };
        let (loses, lost) = (Arc::clone(&way.loses), Arc::clone(&way.lost));
        std::thread::spawn(move || forward(&front, &back, &loses, &lost));
        way
    }

    /// Runs `send`, of whose datagrams the large ones are lost, and then `change`.
    fn lose<T>(&self, send: impl FnOnce() -> T, change: impl FnOnce()) -> T {
        self.loses.store(true, Ordering::SeqCst);
        let sent = send();
        while self.lost.load(Ordering::SeqCst) < LENGTH {
            std::thread::sleep(Duration::from_millis(1));
        }
        change();
        // Packets repeated before the change are lost too.
        std::thread::sleep(Duration::from_millis(100));
        self.loses.store(false, Ordering::SeqCst);
        sent
    }
}

/// Both ways, by turns; for the life of the process.
fn forward(front: &UdpSocket, back: &UdpSocket, loses: &AtomicBool, lost: &AtomicUsize) {
    let patience = Some(Duration::from_micros(200));
    front.set_read_timeout(patience).unwrap();
    back.set_read_timeout(patience).unwrap();
    let mut buffer = vec![0; 65_536];
    let mut client = None;
    let is_lost = |length: usize| {
        let is_lost = length > LARGE && loses.load(Ordering::SeqCst);
        lost.fetch_add(if is_lost { length } else { 0 }, Ordering::SeqCst);
        is_lost
    };
    loop {
        if let Ok((length, from)) = front.recv_from(&mut buffer) {
            client = Some(from);
            if !is_lost(length) {
                back.send(&buffer[..length]).unwrap();
            }
        }
        if let Ok(length) = back.recv(&mut buffer)
            && let Some(client) = client.filter(|_| !is_lost(length))
        {
            front.send_to(&buffer[..length], client).unwrap();
        }
    }
}

/// A server, and a client of it over a way.
fn pair() -> (Arc<Server>, Client, Way) {
    let authority = EphemeralCa::new().unwrap();
    let server = smt::server(authority.server(&["localhost"]).unwrap());
    let server = Arc::new(server.bind_blocking("127.0.0.1:0").unwrap());
    let way = Way::to(server.local_address());
    let client = smt::client(authority.trust().unwrap())
        .server_name("localhost")
        .connect_blocking(way.address)
        .unwrap();
    // Large datagrams are tried out.
    std::thread::sleep(Duration::from_millis(300));
    (server, client, way)
}

#[track_caller]
fn assert_call_failed(error: &smt::Error, reason: &CallFailure) {
    let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
    assert_eq!(&call.reason, reason);
    assert_eq!(call.execution, Execution::MayHaveRun);
}

#[test]
fn a_request_whose_body_changes_ends_with_an_error_and_does_not_leave_again() {
    let (server, client, way) = pair();
    let accepting = Arc::clone(&server);
    std::thread::spawn(move || accepting.accept_request());
    let mapped = Mapped::new("request");
    let (body, calling) = (mapped.bytes.clone(), client.clone());
    let call =
        way.lose(|| std::thread::spawn(move || calling.call(body).wait()), || mapped.change());
    let error = call.join().unwrap().unwrap_err();
    assert_call_failed(&error, &CallFailure::BodyChanged);
    assert!(error.to_string().contains("the body changed"), "{error}");
    assert_eq!(client.statistics().protocol.bodies_changed, 1);
    assert_eq!(server.statistics().protocol.messages_delivered, 0);
}

#[test]
fn a_reply_whose_body_changes_is_aborted_and_does_not_leave_again() {
    let (server, client, way) = pair();
    let mapped = Mapped::new("reply");
    let calling = client.clone();
    let call = std::thread::spawn(move || calling.call("file").wait());
    let request = server.accept_request().unwrap();
    let accepting = Arc::clone(&server);
    way.lose(
        || {
            request.reply(mapped.bytes.clone()).unwrap();
            std::thread::spawn(move || accepting.accept_request());
        },
        || mapped.change(),
    );
    let error = call.join().unwrap().unwrap_err();
    assert_call_failed(&error, &CallFailure::Dropped);
    assert_eq!(server.statistics().protocol.bodies_changed, 1);
}

/// Several records, and all of them leave unasked.
const LENGTH: usize = 30_000;
/// Control packets are smaller.
const LARGE: usize = 1_000;
