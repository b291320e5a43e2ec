// SPDX-License-Identifier: Apache-2.0 OR MIT
//! On tokio what woken tasks send gathers and leaves together; also what a future sends that
//! `block_on` polls.

use smt::Client;
use tokio::task::JoinSet;

use crate::support::Credentials;
use crate::support::payload::payload;

const CALLERS: u64 = 20;
const CALLS: u64 = 50;

/// Callers that each call again when they have their reply.
fn callers(client: &Client) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let client = client.clone();
        callers.spawn(async move {
            for _ in 0..CALLS {
                let body = payload(number, 64);
                assert_eq!(client.call(body.clone()).await.unwrap(), body);
            }
        });
    }
    callers
}

#[tokio::test]
async fn both_sides_send_bundles_on_one_thread() {
    let credentials = Credentials::new();
    let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
    let address = server.local_address();
    let client = credentials.client().connect(address).await.unwrap();
    let mut callers = callers(&client);
    // The server is the future that `block_on` polls, until all callers have finished.
    let mut finished = 0;
    while finished < CALLERS {
        tokio::select! {
            Some(request) = server.accept_request() => {
                let body = request.body().clone();
                request.reply(body).unwrap();
            }
            Some(caller) = callers.join_next() => {
                caller.unwrap();
                finished += 1;
            }
        }
    }
    for statistics in [client.statistics(), server.statistics()] {
        let (sends, sent) =
            (statistics.socket.unwrap().send_calls, statistics.protocol.messages_sent);
        assert_eq!(sent, CALLERS * CALLS);
        assert!(statistics.protocol.bundles_sent > 0);
        assert!(sends < sent, "{sends} sends for {sent} messages");
    }
}
