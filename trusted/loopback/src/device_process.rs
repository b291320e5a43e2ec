// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Device processes of a program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use smt_attestation::DeviceId;
use smt_device::{RunError, RunOptions, Store};
use smt_device_client::{Client, DeviceError, SecretNumber};
use zeroize::Zeroizing;

/// Runs the device of a directory until it is killed. `DeviceProcess::start` expects that its
/// program does so when its arguments are `device DIRECTORY`.
///
/// # Errors
/// Those of [`smt_device::run`].
pub fn run_device(directory: &Path) -> Result<(), RunError> {
    let (directory, socket) = (directory.to_path_buf(), directory.join("socket"));
    let (tpm, account, clients, memory) = (None, None, None, true);
    let options = RunOptions { directory, socket, tpm, account, clients, memory };
    match smt_device::run(&options)? {}
}

/// A group's secret for a device.
#[derive(Clone, Copy)]
pub struct GivenSecret {
    /// The number under which the device has it.
    pub number: SecretNumber,
    /// Its bytes, which everybody may know.
    pub bytes: [u8; 32],
}

/// A new device in a process and a directory of its own, which end with this value.
#[derive(Debug)]
pub struct DeviceProcess {
    child: Child,
    directory: PathBuf,
}

impl DeviceProcess {
    /// Makes a device, which gets a group's secret if there is one, and starts it.
    ///
    /// # Errors
    /// The operating system or the device fails.
    pub fn start(program: &Path, number: u32, secret: Option<GivenSecret>) -> io::Result<Self> {
        static COUNT: Mutex<u32> = Mutex::new(0);
        // One at a time: a child that another thread is about to start holds the lock of a
        // directory for a moment.
        let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let name = format!("smt-loopback-device-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut store =
            Store::create(&directory, DeviceId(number), None).map_err(io::Error::other)?;
        if let Some(GivenSecret { number, bytes }) = secret {
            store.add_secret(number, Zeroizing::new(bytes)).map_err(io::Error::other)?;
        }
        drop(store);
        let mut command = Command::new(program);
        command.arg("device").arg(&directory).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = Self { child: command.spawn()?, directory };
        drop(count);
        let line = first_line(process.child.stderr.take())?;
        if !line.contains("serves at") {
            return Err(io::Error::other(format!("the device does not start: {line}")));
        }
        Ok(process)
    }

    /// A connection.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub fn connect(&self) -> Result<Client, DeviceError> {
        Client::connect(&self.socket())
    }

    /// Where hosts connect.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process. The directory stays.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The first line of a process. All that it says afterwards goes to this one's standard error: a
/// process whose pipe is closed or full fails or stands still when it writes.
///
/// # Errors
/// It has no output, or says no line.
pub fn first_line(from: Option<impl Read + Send + 'static>) -> io::Result<String> {
    line_and_rest(from, io::stderr())
}

/// The first line; the rest goes to `rest`.
fn line_and_rest(
    from: Option<impl Read + Send + 'static>,
    mut rest: impl Write + Send + 'static,
) -> io::Result<String> {
    let mut line = String::new();
    let mut from = BufReader::new(from.ok_or(io::ErrorKind::BrokenPipe)?);
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    std::thread::spawn(move || io::copy(&mut from, &mut rest));
    Ok(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_process_may_write_more_than_its_first_line() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"serves at a place\n").unwrap();
        assert_eq!(line_and_rest(Some(reader), io::sink()).unwrap(), "serves at a place");
        // More than a pipe holds: each line is read.
        for _ in 0..70 {
            writeln!(writer, "{:1000}", "").unwrap();
        }
    }

    #[test]
    fn a_process_that_ends_without_a_line_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let told = first_line(Some(reader));
        assert_eq!(told.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
