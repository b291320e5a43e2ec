// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stock clients of HTTP/3 fetch files from a server whose packets the engine opens and seals.
//!
//! h3's own client with stock quinn is always there. The others are told and passed over where they
//! are not: ngtcp2's `gtlsclient`, aioquic's example `http3_client.py` (`KIT_HTTP3_CLIENT`, run by
//! `KIT_PYTHON`) and libcurl, by Python's `curl_cffi`. `quic-kit/prepare-clients` installs them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../offload/tests/certificates/mod.rs"]
mod files;

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::error::ConnectionError;
use http::{Request, StatusCode};
use kit_http3::server;
use kit_offload::{Device, DeviceConfig, OffloadCounts, SharedDevice};
use kit_process::tls;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::quic::{ClientConnection, Version};
use smt_nic::quic::AdmissionPolicy;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::files::Files;

/// Bytes of the files: none, less than a packet, many packets, and more than a window.
const SIZES: [usize; 5] = [0, 1, 1_000, 100_003, 3_000_000];

/// A server with files of these sizes, on the engine.
struct Served {
    device: SharedDevice,
    address: SocketAddr,
    certificates: Files,
    folder: PathBuf,
}

impl Served {
    /// On the current runtime.
    fn begin() -> Self {
        let certificates = Files::make();
        let folder = certificates.folder.join("files");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(certificates.folder.join("fetched")).unwrap();
        for size in SIZES {
            std::fs::write(folder.join(name(size)), body(size)).unwrap();
        }
        let config =
            DeviceConfig { connections_max: 16, policy: AdmissionPolicy::ALL, is_compared: true };
        let device = SharedDevice::new(Device::new(config).unwrap());
        let pem = (&*certificates.certificate, &*certificates.key);
        let endpoint = server::endpoint(any(), pem, &device).unwrap();
        let address = endpoint.local_addr().unwrap();
        tokio::spawn(server::serve(endpoint, Arc::from(folder.as_path())));
        Self { device, address, certificates, folder }
    }

    fn url(&self, size: usize) -> String {
        format!("https://127.0.0.1:{}/{}", self.address.port(), name(size))
    }

    fn fetched(&self) -> PathBuf {
        self.certificates.folder.join("fetched")
    }

    /// The files that a client has written are those of the server.
    fn assert_fetched(&self, client: &str) {
        for size in SIZES {
            let fetched = std::fs::read(self.fetched().join(name(size)));
            let fetched = fetched.unwrap_or_else(|error| panic!("{client}, {size}: {error}"));
            let of_server = std::fs::read(self.folder.join(name(size))).unwrap();
            assert_eq!(sha_256(&fetched), sha_256(&of_server), "{client}, {size}");
        }
    }

    /// The engine has opened and sealed almost all packets since.
    fn assert_offloaded(&self, client: &str, before: OffloadCounts, sealed: u64) {
        let counts = self.device.counts();
        println!("{client}: {counts:?}");
        assert_eq!((counts.different, counts.dropped), (0, 0), "{client}");
        assert_eq!(counts.compared, counts.opened, "{client}");
        assert_eq!(counts.sealed_in_software, 0, "{client}");
        let eligible = counts.eligible - before.eligible;
        let opened = counts.opened - before.opened;
        assert!(opened > 0 && opened * 100 >= eligible * 99, "{client}");
        assert!(counts.sealed - before.sealed > sealed, "{client}");
    }
}

fn name(size: usize) -> String {
    format!("{size}.bin")
}

/// Bytes of a generator, different at each place.
fn body(size: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(next).collect()
}

/// By the library that TLS has.
fn sha_256(bytes: &[u8]) -> Vec<u8> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    suite.common.hash_provider.hash(bytes).as_ref().to_vec()
}

/// Runs a client to its end. One that hangs has failed.
async fn succeed(client: &str, mut command: Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).stderr(Stdio::piped());
    let ended = tokio::time::timeout(HANGS_AFTER, command.output()).await;
    let output = ended.unwrap_or_else(|_| panic!("{client} hangs")).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client}: {said}");
}

const HANGS_AFTER: Duration = Duration::from_secs(60);

/// ngtcp2's client from Debian, with GnuTLS.
fn ngtcp2(served: &Served) -> Option<Command> {
    let there = Command::new("gtlsclient").arg("--help").output();
    there.ok()?;
    let mut command = Command::new("gtlsclient");
    command
        .args(["--quiet", "--exit-on-all-streams-close", "--download"])
        .arg(served.fetched())
        .args(["127.0.0.1", &served.address.port().to_string()]);
    Some(command)
}

fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("KIT_PYTHON")?);
    python.exists().then_some(python)
}

/// aioquic's example, unchanged.
fn aioquic(served: &Served) -> Option<Command> {
    let script = PathBuf::from(std::env::var_os("KIT_HTTP3_CLIENT")?);
    let mut command = Command::new(python()?);
    command.arg(script.exists().then_some(script)?);
    command
        .arg("--ca-certs")
        .arg(&served.certificates.authority)
        .arg("--output-dir")
        .arg(served.fetched());
    Some(command)
}

/// libcurl with ngtcp2 and BoringSSL: `fetch FOLDER AUTHORITY URL...`.
const FETCH_BY_CURL: &str = "
import os, sys
from curl_cffi import Curl, CurlHttpVersion, CurlOpt
folder, authority, *urls = sys.argv[1:]
curl = Curl()
for url in urls:
    with open(os.path.join(folder, url.rsplit('/', 1)[1]), 'wb') as file:
        curl.setopt(CurlOpt.URL, url.encode())
        curl.setopt(CurlOpt.CAINFO, authority.encode())
        curl.setopt(CurlOpt.HTTP_VERSION, CurlHttpVersion.V3ONLY)
        curl.setopt(CurlOpt.FAILONERROR, 1)
        curl.setopt(CurlOpt.WRITEDATA, file)
        curl.perform()
";

fn curl(served: &Served) -> Option<Command> {
    let python = python()?;
    let there = Command::new(&python)
        .args(["-c", "from curl_cffi import CurlHttpVersion; CurlHttpVersion.V3ONLY"])
        .output();
    there.ok().filter(|output| output.status.success())?;
    let mut command = Command::new(python);
    command.args(["-c", FETCH_BY_CURL]).arg(served.fetched()).arg(&served.certificates.authority);
    Some(command)
}

/// A client fetches all files: several at once on one connection, or one after the other.
async fn fetch_all(client: &str, of: fn(&Served) -> Option<Command>) {
    let served = Served::begin();
    let Some(mut command) = of(&served) else {
        println!("{client} is skipped: it is not installed");
        return;
    };
    command.args(SIZES.map(|size| served.url(size)));
    let before = served.device.counts();
    succeed(client, command).await;
    served.assert_fetched(client);
    served.assert_offloaded(client, before, 2_000);
}

#[tokio::test]
async fn ngtcp2s_client_fetches_files_through_the_engine() {
    fetch_all("ngtcp2's client", ngtcp2).await;
}

#[tokio::test]
async fn aioquics_client_fetches_files_through_the_engine() {
    fetch_all("aioquic's client", aioquic).await;
}

#[tokio::test]
async fn curl_fetches_files_through_the_engine() {
    fetch_all("curl", curl).await;
}

/// ngtcp2's client changes its address without saying so, changes it and says so, and updates keys,
/// each as early as it can.
///
/// The silent change comes before the requests. A client whose requests are acknowledged has
/// nothing to send, and a server cannot learn its new address: both would wait for the end of the
/// idle timeout (RFC 9000 §9.3 begins with a packet from the client).
#[tokio::test]
async fn ngtcp2s_client_is_followed_through_its_changes() {
    let changes: [&[&str]; 3] = [
        &["--change-local-addr=1ms", "--nat-rebinding", "--delay-stream=20ms"],
        &["--change-local-addr=1ms"],
        &["--key-update=1ms"],
    ];
    for change in changes {
        let client = format!("ngtcp2's client {change:?}");
        let served = Served::begin();
        let Some(mut command) = ngtcp2(&served) else {
            println!("{client} is skipped: it is not installed");
            return;
        };
        command.args(change);
        command.args(SIZES.map(|size| served.url(size)));
        let before = served.device.counts();
        succeed(&client, command).await;
        served.assert_fetched(&client);
        served.assert_offloaded(&client, before, 2_000);
    }
}

/// aioquic's client resumes a session, and sends its requests in 0-RTT packets.
#[tokio::test]
async fn aioquics_client_resumes_a_session_with_early_requests() {
    let served = Served::begin();
    for is_early in [false, true] {
        let client = format!("aioquic's client, early: {is_early}");
        let Some(mut command) = aioquic(&served) else {
            println!("{client} is skipped: it is not installed");
            return;
        };
        let ticket = served.certificates.folder.join("ticket");
        assert_eq!(ticket.exists(), is_early, "a ticket is there after the first");
        command.arg("--session-ticket").arg(&ticket);
        command.args(is_early.then_some("--zero-rtt"));
        command.args(SIZES.map(|size| served.url(size)));
        let before = served.device.counts();
        succeed(&client, command).await;
        served.assert_fetched(&client);
        served.assert_offloaded(&client, before, 2_000);
        std::fs::remove_dir_all(served.fetched()).unwrap();
        std::fs::create_dir(served.fetched()).unwrap();
    }
}

/// TLS of a stock client in this process.
fn client_tls(authority: &Path) -> rustls::ClientConfig {
    let mut of_tls = tls::client_config(default_provider(), authority).unwrap();
    of_tls.alpn_protocols = vec![b"h3".to_vec()];
    of_tls
}

fn client(of_tls: rustls::ClientConfig) -> Endpoint {
    let of_tls = QuicClientConfig::try_from(of_tls).unwrap();
    let mut client = Endpoint::client(any()).unwrap();
    client.set_default_client_config(ClientConfig::new(Arc::new(of_tls)));
    client
}

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

type Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

/// A client of HTTP/3 on a connection, which a task drives to its end.
async fn begin_http3(connection: Connection) -> (Sender, JoinHandle<ConnectionError>) {
    let connection = h3_quinn::Connection::new(connection);
    let (mut driver, sender) = h3::client::new(connection).await.unwrap();
    let driven = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    (sender, driven)
}

/// The status, the length that the answer names, and its body.
async fn get(sender: &mut Sender, method: &str, url: &str) -> (StatusCode, u64, Vec<u8>) {
    let request = Request::builder().method(method).uri(url).body(()).unwrap();
    let mut stream = sender.send_request(request).await.unwrap();
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    let length = response.headers()["content-length"].to_str().unwrap();
    let mut body = Vec::new();
    while let Some(mut piece) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    (response.status(), length.parse().unwrap(), body)
}

#[tokio::test]
async fn h3s_client_fetches_files_through_the_engine() {
    let served = Served::begin();
    let before = served.device.counts();
    let endpoint = client(client_tls(&served.certificates.authority));
    let connecting = endpoint.connect(served.address, "127.0.0.1").unwrap();
    let (mut sender, driven) = begin_http3(connecting.await.unwrap()).await;
    for size in SIZES {
        let (status, length, fetched) = get(&mut sender, "GET", &served.url(size)).await;
        assert_eq!((status, length), (StatusCode::OK, size as u64));
        assert_eq!(sha_256(&fetched), sha_256(&body(size)), "{size}");
        let (status, length, fetched) = get(&mut sender, "HEAD", &served.url(size)).await;
        assert_eq!((status, length, fetched.len()), (StatusCode::OK, size as u64, 0));
    }
    let out = format!("https://127.0.0.1:{}/../server.pem", served.address.port());
    for (method, url, expected) in [
        ("GET", served.url(7), StatusCode::NOT_FOUND),
        ("GET", out, StatusCode::NOT_FOUND),
        ("POST", served.url(1), StatusCode::METHOD_NOT_ALLOWED),
    ] {
        assert_eq!(get(&mut sender, method, &url).await.0, expected, "{url}");
    }
    served.assert_offloaded("h3's client", before, 2_000);
    drop(sender);
    let _ = driven.await;
}

/// TLS of a client that prefers X25519MLKEM768, as browsers and Go do. Its key share alone has
/// 1,216 bytes.
fn large_tls(authority: &Path) -> rustls::ClientConfig {
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::X25519MLKEM768, kx_group::X25519];
    let mut of_tls = tls::client_config(provider, authority).unwrap();
    of_tls.alpn_protocols = vec![b"h3".to_vec()];
    of_tls.enable_early_data = true;
    of_tls
}

/// Bytes of the first message of a handshake.
fn client_hello_bytes(of_tls: rustls::ClientConfig) -> usize {
    let name = "127.0.0.1".try_into().unwrap();
    let mut connection =
        ClientConnection::new(Arc::new(of_tls), Version::V1, name, Vec::new()).unwrap();
    let mut hello = Vec::new();
    connection.write_hs(&mut hello);
    hello.len()
}

/// The way of a relay with a client's datagrams.
#[derive(Clone, Copy)]
enum Relayed {
    /// All but the first wait until the server has answered the first.
    InParts,
    /// As in parts, and packets of the kind Handshake are lost: the handshake is never complete for
    /// the server.
    WithoutFinished,
}

/// A relay between one client and the server. Returns its address.
async fn relay(server: SocketAddr, relayed: Relayed) -> SocketAddr {
    let of_client = UdpSocket::bind(any()).await.unwrap();
    let of_server = UdpSocket::bind(any()).await.unwrap();
    of_server.connect(server).await.unwrap();
    let address = of_client.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 2_048], [0; 2_048]);
        let (mut client, mut is_answered, mut waiting) = (None, false, Vec::new());
        loop {
            tokio::select! {
                received = of_client.recv_from(&mut up) => {
                    let (length, from) = received.unwrap();
                    let datagram = &up[..length];
                    match (relayed, client.replace(from)) {
                        (Relayed::WithoutFinished, _) if has_handshake_packet(datagram) => {}
                        (_, Some(_)) if !is_answered => waiting.push(datagram.to_vec()),
                        _ => drop(of_server.send(datagram).await.unwrap()),
                    }
                }
                received = of_server.recv(&mut down) => {
                    let length = received.unwrap();
                    is_answered = true;
                    for datagram in waiting.drain(..) {
                        of_server.send(&datagram).await.unwrap();
                    }
                    of_client.send_to(&down[..length], client.unwrap()).await.unwrap();
                }
            }
        }
    });
    address
}

/// Whether one of the packets of a datagram is of the kind Handshake (RFC 9000 §17.2).
fn has_handshake_packet(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let [first, ..] = *rest
        && first & 0x80 != 0
    {
        let kind = first & 0x30;
        if kind == 0x20 {
            return true;
        }
        let ids = &rest[5..];
        let ids = &ids[1 + usize::from(ids[0])..];
        rest = &ids[1 + usize::from(ids[0])..];
        if kind == 0 {
            let (token, behind) = variable_length(rest);
            rest = &behind[token..];
        }
        let (length, behind) = variable_length(rest);
        rest = &behind[length..];
    }
    false
}

/// An integer of RFC 9000 §16, and what is behind it.
fn variable_length(bytes: &[u8]) -> (usize, &[u8]) {
    let length = 1 << (bytes[0] >> 6);
    let rest = bytes[1..length].iter();
    let value =
        rest.fold(usize::from(bytes[0] & 0x3f), |value, &byte| value << 8 | usize::from(byte));
    (value, &bytes[length..])
}

/// A request by a client whose `ClientHello` does not fit into one datagram. The server has
/// accepted the connection before the second one comes.
#[tokio::test]
async fn a_client_hello_of_two_datagrams_does_not_hang() {
    let served = Served::begin();
    let of_tls = large_tls(&served.certificates.authority);
    let hello = client_hello_bytes(of_tls.clone());
    assert!(hello > 1_200, "quinn's first datagrams have 1,200 bytes, and this has {hello}");
    let address = relay(served.address, Relayed::InParts).await;
    let endpoint = client(of_tls);
    let asked = async {
        let connection = endpoint.connect(address, "127.0.0.1").unwrap().await.unwrap();
        let (mut sender, _driven) = begin_http3(connection).await;
        let (status, _, fetched) = get(&mut sender, "GET", &served.url(100_003)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(sha_256(&fetched), sha_256(&body(100_003)));
    };
    tokio::time::timeout(HANGS_AFTER, asked).await.expect("the server answers");
}

/// The same with a ticket: the request is in 0-RTT packets, and is answered although the client's
/// part of the handshake never comes.
#[tokio::test]
async fn an_early_request_behind_a_client_hello_of_two_datagrams_is_answered_early() {
    let served = Served::begin();
    let endpoint = client(large_tls(&served.certificates.authority));
    let asked = async {
        let connection = endpoint.connect(served.address, "127.0.0.1").unwrap().await.unwrap();
        let (mut sender, _driven) = begin_http3(connection).await;
        assert_eq!(get(&mut sender, "GET", &served.url(1)).await.0, StatusCode::OK);

        let address = relay(served.address, Relayed::WithoutFinished).await;
        let connecting = endpoint.connect(address, "127.0.0.1").unwrap();
        let Ok((connection, is_accepted)) = connecting.into_0rtt() else {
            panic!("the server has given a ticket");
        };
        let (mut sender, _driven) = begin_http3(connection).await;
        let (status, _, fetched) = get(&mut sender, "GET", &served.url(1_000)).await;
        assert_eq!((status, fetched), (StatusCode::OK, body(1_000)));
        assert!(is_accepted.await, "the server has taken the 0-RTT packets");
    };
    tokio::time::timeout(HANGS_AFTER, asked).await.expect("the server answers");
}
