// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of a test: a process in a folder of its own, at ports that nobody else has.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use smt::{Identity, Trust};
use smt_valkey::{Options, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// A running server.
pub(crate) struct Server {
    process: Child,
    program: String,
    folder: PathBuf,
    pub(crate) tcp: u16,
    pub(crate) smt: u16,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server with these arguments of `valkey-server`, which are words.
    pub(crate) async fn start(arguments: &str) -> Self {
        Self::start_with("", arguments).await
    }

    /// The same, with further arguments of the module.
    pub(crate) async fn start_with(module: &str, arguments: &str) -> Self {
        Self::start_program(setting("SMT_VALKEY_SERVER"), module, arguments).await
    }

    /// Starts Redis 7.0; `None` after telling that it cannot be had.
    pub(crate) async fn start_redis(module: &str, arguments: &str) -> Option<Self> {
        let Ok(program) = std::env::var("SMT_VALKEY_REDIS") else {
            eprintln!("SMT_VALKEY_REDIS is not set: tests with Redis 7.0 are left out");
            return None;
        };
        Some(Self::start_program(program, module, arguments).await)
    }

    /// The log of a server of Valkey that ends while it starts.
    pub(crate) fn refused(module: &str, arguments: &str) -> String {
        let mut server = Self::begin(setting("SMT_VALKEY_SERVER"), module, arguments);
        let status = server.process.wait().expect("it ends");
        assert!(!status.success(), "{}", server.log());
        server.log()
    }

    async fn start_program(program: String, module: &str, arguments: &str) -> Self {
        let mut server = Self::begin(program, module, arguments);
        server.wait().await;
        server
    }

    fn begin(program: String, module: &str, arguments: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let tcp = free.local_addr().expect("its address").port();
        drop(free);
        let folder = std::env::temp_dir().join(format!("smt-valkey-{}-{tcp}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [certificate, key, authority] = ["server.pem", "server.key", "ca.pem"].map(keys);
        let module = format!(
            "--loadmodule {} listen 127.0.0.1:0 cert {} key {} ca {} {module}",
            setting("SMT_VALKEY_MODULE"),
            certificate.display(),
            key.display(),
            authority.display()
        );
        let given = format!("--port {tcp} --save --logfile log {module} {arguments}");
        let arguments = given.split_whitespace().flat_map(|word| match word {
            // An empty list of moments: no snapshots.
            "--save" => vec![word.to_owned(), String::new()],
            _ => vec![word.to_owned()],
        });
        let arguments: Vec<String> = arguments.collect();
        let process = spawn(&program, &folder, &arguments);
        Self { process, program, folder, tcp, smt: 0, arguments }
    }

    /// Waits until the server answers, and asks it for its port of SMT.
    async fn wait(&mut self) {
        for _ in 0..1_000 {
            if let Some(status) = self.process.try_wait().expect("its state") {
                panic!("the server has ended ({status}):\n{}", self.log());
            }
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.tcp)).await {
                let info = ask(&mut stream, &["INFO", "everything"]).await;
                let info = String::from_utf8_lossy(&info).into_owned();
                // The line of its listener is not the same in all versions, and Redis has none.
                let port = info.lines().find_map(|line| line.split_once("smt_port:"));
                let is_loaded = ask(&mut stream, &["PING"]).await == b"+PONG\r\n";
                if let (Some((_, port)), true) = (port, is_loaded) {
                    self.smt = port.trim().parse().expect("a port");
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not answer:\n{}", self.log());
    }

    /// Waits until INFO has a line.
    pub(crate) async fn wait_for(&self, line: &str) {
        let mut stream = self.tcp().await;
        for _ in 0..6_000 {
            let info = ask(&mut stream, &["INFO", "everything"]).await;
            if String::from_utf8_lossy(&info).lines().any(|found| found == line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("INFO has no line {line}:\n{}", self.log());
    }

    /// Waits until the log has these words.
    pub(crate) async fn wait_for_log(&self, words: &str) {
        for _ in 0..6_000 {
            if self.log().contains(words) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the log has no {words}:\n{}", self.log());
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Kills it without a word, and starts it again in its folder.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        self.process = spawn(&self.program, &self.folder, &self.arguments);
        self.wait().await;
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.tcp)).await;
        stream.expect("a connection over TCP")
    }

    pub(crate) async fn smt(&self) -> Stream {
        let stream = options("client").stream(("127.0.0.1", self.smt)).await;
        stream.unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.folder).expect("the folder is ours");
        }
    }
}

fn spawn(program: &str, folder: &Path, arguments: &[String]) -> Child {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts")
}

pub(crate) fn setting(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: use integrations/valkey/test"))
}

/// A file among the certificates.
pub(crate) fn keys(name: &str) -> PathBuf {
    Path::new(&setting("SMT_VALKEY_KEYS")).join(name)
}

/// A client by one of the certificates.
pub(crate) fn options(name: &str) -> Options {
    let trust = Trust::roots_from_pem_files(&[keys("ca.pem")]).expect("an authority");
    let [certificate, key] = ["pem", "key"].map(|kind| keys(&format!("{name}.{kind}")));
    let identity = Identity::from_pem_files(certificate, key).expect("a certificate");
    // Some commands take seconds on machines under load.
    let options = Options::new(trust).silence_max(HANGS_AFTER);
    options.identity(identity)
}

/// A command in the form of the protocol.
pub(crate) fn packed<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    command.get_packed_command()
}

/// Sends a command, and returns the bytes of its reply.
pub(crate) async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    words: &[&str],
) -> Vec<u8> {
    say(stream, &packed(words)).await;
    reply(stream).await
}

pub(crate) async fn say(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.expect("it may be written");
    stream.flush().await.expect("it leaves");
}

/// The next reply; nothing may stand behind it. Empty at the end of the connection.
pub(crate) async fn reply(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let length = smt_valkey::reply_length(&read).expect("a reply");
        if let Some(length) = length {
            assert_eq!(length, read.len(), "more than a reply");
            return read;
        }
        let bytes = tokio::time::timeout(HANGS_AFTER, stream.read_buf(&mut read)).await;
        if bytes.expect("an answer in time").unwrap_or(0) == 0 {
            return Vec::new();
        }
    }
}

/// Nothing in a test takes that long: it hangs.
pub(crate) const HANGS_AFTER: Duration = Duration::from_secs(60);
