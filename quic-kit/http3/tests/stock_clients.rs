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
use http::{Request, StatusCode};
use kit_http3::server;
use kit_offload::{Device, DeviceConfig, OffloadCounts, SharedDevice};
use kit_process::tls;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider};
use smt_nic::quic::AdmissionPolicy;

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
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let pem = (&*certificates.certificate, &*certificates.key);
        let endpoint = server::endpoint(any, pem, &device).unwrap();
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

/// A stock client in this process.
async fn client(authority: &Path) -> Endpoint {
    let mut of_tls = tls::client_config(default_provider(), authority).unwrap();
    of_tls.alpn_protocols = vec![b"h3".to_vec()];
    let of_tls = QuicClientConfig::try_from(of_tls).unwrap();
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    client.set_default_client_config(ClientConfig::new(Arc::new(of_tls)));
    client
}

type Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

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
    let endpoint = client(&served.certificates.authority).await;
    let connecting = endpoint.connect(served.address, "127.0.0.1").unwrap();
    let connection = h3_quinn::Connection::new(connecting.await.unwrap());
    let (mut driver, mut sender) = h3::client::new(connection).await.unwrap();
    let driven = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
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
