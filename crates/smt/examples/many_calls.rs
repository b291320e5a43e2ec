// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A thousand calls at once in one session: the short ones do not wait for the long.

use std::error::Error;
use std::time::Instant;

use smt::Server;
use smt::pki::EphemeralCa;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = EphemeralCa::new()?;
    let identity = authority.server(&["localhost"])?;
    let server = smt::server(identity).bind("127.0.0.1:0").await?;
    let address = server.local_address();
    tokio::spawn(echo(server));

    let client = smt::client(authority.trust()?).server_name("localhost");
    let client = client.connect(address).await?;
    let mut calls = JoinSet::new();
    for number in 0..1_000 {
        let client = client.clone();
        let size = if number % 100 == 0 { LONG } else { SHORT };
        calls.spawn(async move {
            let began = Instant::now();
            let reply = client.call(vec![7; size]).await;
            reply.map(|reply| (reply.len(), began.elapsed()))
        });
    }
    let (mut short, mut long) = (Vec::new(), Vec::new());
    while let Some(finished) = calls.join_next().await {
        let (size, time) = finished??;
        let of_size = if size == SHORT { &mut short } else { &mut long };
        of_size.push(time);
    }
    for (size, times) in [(SHORT, &mut short), (LONG, &mut long)] {
        times.sort_unstable();
        let [p50, p90, p99] = [50, 90, 99].map(|percent| times[times.len() * percent / 100]);
        println!("{size} B: p50 {p50:?}, p90 {p90:?}, p99 {p99:?}");
    }
    Ok(())
}

async fn echo(server: Server) {
    while let Some(request) = server.accept_request().await {
        let body = request.body().clone();
        let _ = request.reply(body);
    }
}

const SHORT: usize = 100;
const LONG: usize = 1_000_000;
