// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CLOSE leaves although messages gather and the runtime ends right after it; a client connects
//! anew at once.

use smt::{Client, blocking};
use tokio::runtime::Builder;

use crate::support::{Credentials, echo, eventually};

/// A server that answers requests four at a time: then four callers run at once, and what they send
/// gathers.
fn server_of_fours(credentials: &Credentials) -> blocking::Server {
    let server = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let accepting = server.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while let Some(request) = accepting.accept_request() {
            held.push(request);
            if held.len() == 4 {
                held.drain(..).for_each(echo);
            }
        }
    });
    server
}

async fn four_calls(client: &Client) {
    let call = async || client.call("hi").await;
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    assert!([a, b, c, d].iter().all(Result::is_ok));
}

#[test]
fn a_client_that_is_dropped_with_its_runtime_says_so() {
    let credentials = Credentials::new();
    let server = server_of_fours(&credentials);
    for _ in 0..20 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connecting = credentials.client().connect(server.local_address());
            four_calls(&connecting.await.unwrap()).await;
        });
    }
    eventually("it holds no session of the gone", || server.statistics().sessions == 0);
}

#[test]
fn a_call_after_it_gets_a_session_of_its_own() {
    let credentials = Credentials::new();
    let server = server_of_fours(&credentials);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connecting = credentials.client().connect(server.local_address());
        let client = connecting.await.unwrap();
        for _ in 0..20 {
            let session = client.connect().await.unwrap();
            four_calls(&client).await;
            session.close();
            four_calls(&client).await;
        }
    });
}
