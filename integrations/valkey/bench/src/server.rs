// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One server with three listeners, and its CPU time.

use std::error::Error;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::certificates::Certificates;
use crate::client::Client;

/// The ports of the listeners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) tcp: u16,
    pub(crate) tls: u16,
    pub(crate) smt: u16,
}

/// A server, which ends with this.
pub(crate) struct Server {
    process: Child,
    pub(crate) ports: Ports,
    pub(crate) certificates: Arc<Certificates>,
}

impl Server {
    /// Starts a server by the settings of `integrations/valkey/ycsb`.
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let [program, module, keys] =
            ["SMT_VALKEY_SERVER", "SMT_VALKEY_MODULE", "SMT_VALKEY_KEYS"].map(setting);
        let (program, module, keys) = (program?, module?, PathBuf::from(keys?));
        let [certificate, key, authority] = ["server.pem", "server.key", "ca.pem"]
            .map(|name| keys.join(name).display().to_string());
        let free = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let (tcp, tls) = (free[0].local_addr()?.port(), free[1].local_addr()?.port());
        drop(free);
        let folder = keys.join(format!("ycsb-{tcp}"));
        fs::create_dir_all(&folder)?;
        let arguments = format!(
            "--port {tcp} --tls-port {tls} --tls-cert-file {certificate} --tls-key-file {key} \
             --tls-ca-cert-file {authority} --maxclients 4000 --logfile log \
             --loadmodule {module} listen 127.0.0.1:0 cert {certificate} key {key} ca {authority}"
        );
        let certificates = Arc::new(Certificates::load(&keys).await?);
        let process = Command::new(program)
            .args(["--save", ""])
            .args(arguments.split_whitespace())
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()?;
        // From here on the process ends with this, also if it does not answer.
        let mut server = Self { process, ports: Ports { tcp, tls, smt: 0 }, certificates };
        match port_of_smt(tcp, &mut server.process).await {
            Ok(port) => server.ports.smt = port,
            Err(error) => {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("{error}\n{log}").into());
            }
        }
        Ok(server)
    }

    /// CPU time of the server since it was started.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = Path::new("/proc").join(self.process.id().to_string()).join("stat");
        let stat = fs::read_to_string(stat).unwrap_or_default();
        // The fields behind the name, which is in brackets: the 14th and 15th of all.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is ours, and has nothing to keep.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until the server answers.
async fn port_of_smt(tcp: u16, process: &mut Child) -> Result<u16, Box<dyn Error>> {
    for _ in 0..1_000 {
        if let Some(status) = process.try_wait()? {
            return Err(format!("environment: the server has ended ({status})").into());
        }
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", tcp)).await {
            let mut client = Client::new(Box::new(stream));
            let info = client.ask(&[&[b"INFO", b"server"]]).await?;
            let info = String::from_utf8_lossy(info);
            let line = info.lines().find(|line| line.contains("name=smt"));
            let port = line.and_then(|line| line.rsplit_once("port="));
            let (_, port) = port.ok_or("environment: the server has no listener of SMT")?;
            return Ok(port.trim().parse()?);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("environment: the server does not answer within 10 s".into())
}

fn setting(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("caller: {name} is not set: use integrations/valkey/ycsb"))
}

/// `sysconf(_SC_CLK_TCK)` on all Linux machines of today.
const TICKS_PER_SECOND: u64 = 100;
