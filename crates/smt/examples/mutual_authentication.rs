// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server lets only clients in that its authority knows, and sees who called.

use std::error::Error;

use smt::pki::{CertificateText, EphemeralCa};
use smt::{Builder, ClientAuth, TlsClient};

fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let server = smt::server(authority.server(&["localhost"])?)
        .client_auth(ClientAuth::Required(authority.trust()?))
        .bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            let caller =
                request.peer().certificates.first().map(|leaf| CertificateText::from_der(leaf));
            let answer = match caller {
                Some(Ok(certificate)) => format!("you are known to me:\n{certificate}"),
                _ => "who are you?".to_owned(),
            };
            if let Err(error) = request.reply(answer) {
                eprintln!("{error}");
            }
        }
    });

    let client = || -> Result<Builder<TlsClient>, Box<dyn Error>> {
        Ok(smt::client(authority.trust()?).server_name("localhost"))
    };
    let known = client()?.identity(authority.client("billing")?).connect_blocking(address)?;
    println!("{}", String::from_utf8_lossy(&known.call("who am I?").wait()?));

    let stranger = EphemeralCa::new()?.client("billing")?;
    for (who, builder) in [("nobody", client()?), ("a stranger", client()?.identity(stranger))] {
        match builder.connect_blocking(address) {
            Ok(_) => return Err(format!("{who} was let in").into()),
            Err(error) => println!("{who}: {error}"),
        }
    }
    Ok(())
}
