// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that know TCP or Unix sockets alone, through `smt-valkey-tunnel`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::server::{HANGS_AFTER, Server, ask, keys, packed, say};

/// A running tunnel.
pub(crate) struct Tunnel {
    process: Child,
    /// Where it listens, in its own words.
    pub(crate) place: String,
}

impl Tunnel {
    /// Starts a tunnel to a server by a certificate, and waits until it listens.
    pub(crate) fn start(server: &Server, listen: &str, certificate: &str, more: &[&str]) -> Self {
        let mut command = command(server, listen, certificate);
        let mut process = command.args(more).spawn().expect("it starts");
        let mut lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let line = lines.next().expect("a line").expect("text");
        let place = line.rsplit_once("listens at ");
        let place = place.unwrap_or_else(|| panic!("{line}")).1.to_owned();
        // Its later lines go to the log of the test.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
            }
        });
        Self { process, place }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.place).await;
        stream.expect("the tunnel listens")
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it runs");
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("it ends");
    }
}

fn command(server: &Server, listen: &str, certificate: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-valkey-tunnel"));
    command.args(["--listen", listen, "-p", &server.smt.to_string()]);
    let [cert, key] = ["pem", "key"].map(|kind| keys(&format!("{certificate}.{kind}")));
    command.arg("--cacert").arg(keys("ca.pem"));
    command.arg("--cert").arg(cert).arg("--key").arg(key);
    command.stderr(Stdio::piped());
    command
}

/// All bytes that the server sends until it ends the connection.
async fn to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_to_end(&mut read)).await;
    told.expect("it ends").expect("an end, and no reset");
    read
}

#[tokio::test]
async fn a_client_of_tcp_sees_no_difference_through_a_tunnel() {
    let server = Server::start("").await;
    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "client", &[]);
    let value = "v".repeat(3_000_000);
    let script: Vec<Vec<u8>> = [&["SET", "big", &value][..], &["GET", "big"], &["MULTI"]]
        .into_iter()
        .map(packed)
        .chain((0..3_000).map(|number| packed(&["ECHO", &number.to_string()])))
        .chain([packed(&["EXEC"]), packed(&["SUBSCRIBE", "news"])])
        .collect();
    let mut seen = Vec::new();
    for mut stream in [server.tcp().await, tunnel.connect().await] {
        say(&mut stream, &script.concat()).await;
        let mut read = vec![0; 3_000_000];
        let told = tokio::time::timeout(HANGS_AFTER, stream.read_exact(&mut read)).await;
        told.expect("in time").expect("replies");
        // The client writes no more; what it has asked for still comes, and then the end.
        stream.shutdown().await.expect("it is connected");
        read.extend(to_end(&mut stream).await);
        seen.push(read);
    }
    // Over TCP itself 9.1 drops what it has not sent when it sees that its client writes no more.
    assert!(seen[1].starts_with(&seen[0]), "{} {}", seen[0].len(), seen[1].len());
    assert!(seen[1].ends_with(b"$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"));
}

#[tokio::test]
async fn a_connection_that_its_client_ends_is_ended_by_the_server_too() {
    let server = Server::start("").await;
    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "client", &[]);
    let mut stream = tunnel.connect().await;
    assert_eq!(ask(&mut stream, &["PING"]).await, b"+PONG\r\n");
    server.wait_for("smt_sessions:1").await;
    drop(stream);
    server.wait_for("smt_sessions:0").await;
    // QUIT is an end by the server.
    let mut stream = tunnel.connect().await;
    say(&mut stream, &packed(&["QUIT"])).await;
    assert_eq!(to_end(&mut stream).await, b"+OK\r\n");
    server.wait_for("smt_sessions:0").await;
}

#[tokio::test]
async fn a_unix_socket_is_its_users_alone_and_replaces_a_dead_one() {
    let server = Server::start("").await;
    let path = std::env::temp_dir().join(format!("smt-valkey-{}.sock", server.tcp));
    let place = format!("unix:{}", path.display());
    for _ in 0..2 {
        let tunnel = Tunnel::start(&server, &place, "client", &[]);
        let mode = std::fs::metadata(&path).expect("a socket").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let mut stream = UnixStream::connect(&path).await.expect("it listens");
        assert_eq!(ask(&mut stream, &["PING"]).await, b"+PONG\r\n");
        // A second tunnel does not take the place of one that lives.
        let second = command(&server, &place, "client").output().expect("it ends");
        let text = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(!second.status.success() && text.contains("in use"), "{text}");
        tunnel.kill();
    }
    std::fs::remove_file(&path).expect("it is there");
    // Nor the place of a file.
    let file: PathBuf = path.with_extension("file");
    std::fs::write(&file, "mine").expect("written");
    let place = format!("unix:{}", file.display());
    let refused = command(&server, &place, "client").output().expect("it ends");
    assert!(!refused.status.success());
    assert_eq!(std::fs::read(&file).expect("it is there"), b"mine");
    std::fs::remove_file(&file).expect("it is there");
}

#[tokio::test]
async fn a_client_without_a_session_is_told_why() {
    let server = Server::start("").await;
    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "other", &[]);
    let mut stream = tunnel.connect().await;
    say(&mut stream, &packed(&["PING"])).await;
    let text = String::from_utf8_lossy(&to_end(&mut stream).await).into_owned();
    let expected =
        format!("-ERR smt-valkey-tunnel: connect: no session with 127.0.0.1:{}: ", server.smt);
    assert!(text.starts_with(&expected) && text.contains("certificate"), "{text}");

    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "client", &["--connections", "1"]);
    let mut first = tunnel.connect().await;
    assert_eq!(ask(&mut first, &["PING"]).await, b"+PONG\r\n");
    let mut second = tunnel.connect().await;
    let text = String::from_utf8_lossy(&to_end(&mut second).await).into_owned();
    assert_eq!(text, "-ERR smt-valkey-tunnel: limit: 1 clients are here already\r\n");

    let public = command(&server, "0.0.0.0:0", "client").output();
    let public = public.expect("it ends");
    let text = String::from_utf8_lossy(&public.stderr).into_owned();
    assert!(!public.status.success() && text.contains("--public"), "{text}");
}

#[tokio::test]
async fn a_client_of_a_server_that_dies_sees_a_cut_and_no_end() {
    let mut server = Server::start("").await;
    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "client", &["--silence", "2"]);
    let mut stream = tunnel.connect().await;
    assert_eq!(ask(&mut stream, &["PING"]).await, b"+PONG\r\n");
    server.kill_and_restart().await;
    say(&mut stream, &packed(&["PING"])).await;
    let mut read = Vec::new();
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_to_end(&mut read)).await;
    assert!(told.expect("it ends").is_err(), "a reset: {read:?}");
}

#[tokio::test]
async fn a_client_that_reads_late_fills_the_servers_buffer_and_not_the_tunnel() {
    const COUNT: usize = 3_000;
    const LENGTH: usize = 50_000;
    let server = Server::start("").await;
    let tunnel = Tunnel::start(&server, "127.0.0.1:0", "client", &[]);
    let mut admin = server.tcp().await;
    // 9.1 refers to large values from its buffers, and does not count them. Others refuse this.
    ask(&mut admin, &["CONFIG", "SET", "min-string-size-avoid-copy-reply", "0"]).await;
    ask(&mut admin, &["SET", "value", &"v".repeat(LENGTH)]).await;
    let mut stream = tunnel.connect().await;
    say(&mut stream, &packed(&["GET", "value"]).repeat(COUNT)).await;
    let called = format!("cmdstat_get:calls={COUNT},");
    loop {
        let stats = ask(&mut admin, &["INFO", "commandstats"]).await;
        if String::from_utf8_lossy(&stats).contains(&called) {
            break;
        }
    }
    let clients = ask(&mut admin, &["CLIENT", "LIST"]).await;
    let clients = String::from_utf8_lossy(&clients).into_owned();
    let waiting = clients.split_whitespace().filter_map(|field| {
        let bytes = field.strip_prefix("omem=")?;
        bytes.parse::<usize>().ok()
    });
    let waiting = waiting.max().unwrap_or(0);
    assert!(waiting > COUNT * LENGTH * 3 / 4, "{waiting}:\n{clients}");
    // All of it is still there for a client that reads at last.
    let mut read = vec![0; COUNT * (LENGTH + b"$50000\r\n\r\n".len())];
    let told = tokio::time::timeout(HANGS_AFTER, stream.read_exact(&mut read)).await;
    told.expect("in time").expect("replies");
}
