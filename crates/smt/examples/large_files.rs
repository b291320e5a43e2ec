// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file of 20 MB comes from the server in messages of 4 MB, several under way at the same time.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use smt::Bytes;
use smt::blocking::Server;
use smt::pki::EphemeralCa;

fn main() -> Result<(), Box<dyn Error>> {
    let file: Vec<u8> = (0..FILE_BYTES).map(|at| (at * at / 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("smt-large-file-{}", std::process::id()));
    std::fs::write(&path, &file)?;

    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let builder = smt::server(identity);
    let server = builder.bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    let served = Bytes::from(std::fs::read(&path)?);
    std::thread::spawn(move || serve(&server, &served));

    let trust = authority.trust()?;
    let client = smt::client(trust).server_name("localhost");
    let client = Arc::new(client.connect_blocking(address)?);
    let began = Instant::now();
    let mut parts = Vec::new();
    for place in (0..FILE_BYTES).step_by(PART_BYTES) {
        let client = Arc::clone(&client);
        let call = move || client.call(place.to_be_bytes().to_vec()).wait();
        parts.push(std::thread::spawn(call));
    }
    let mut received = Vec::new();
    for part in parts {
        received.extend_from_slice(&part.join().expect("no thread panics")?);
    }
    println!("{} bytes after {:?}", received.len(), began.elapsed());
    std::fs::remove_file(path)?;
    let is_equal = received == file;
    is_equal.then_some(()).ok_or_else(|| "the file has changed on its way".into())
}

/// A request is a place in the file; the reply is what stands there, without a copy.
fn serve(server: &Server, file: &Bytes) {
    while let Some(request) = server.accept_request() {
        match request.body().as_ref().try_into().map(usize::from_be_bytes) {
            Ok(place) if place < file.len() => {
                let part = file.slice(place..file.len().min(place + PART_BYTES));
                if let Err(error) = request.reply(part) {
                    eprintln!("{error}");
                }
            }
            _ => request.refuse(NO_SUCH_PART, "the file has no such part"),
        }
    }
}

/// The application's number for a refusal.
const NO_SUCH_PART: u32 = 1;
const FILE_BYTES: usize = 20_000_000;
const PART_BYTES: usize = 4_000_000;
