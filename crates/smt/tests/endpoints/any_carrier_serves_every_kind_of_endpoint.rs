// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads, tasks and foreign event loops work over carriers that are no sockets: over one with a
//! descriptor to poll, and over one that can only be waited for.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::{Arrival, Batch, Capabilities, Carrier, ReceiveError, SendError, Wait};
use smt_io::MemoryCarrier;

use crate::support::payload::payload;
use crate::support::polled_pair::{PolledClient, PolledServer};
use crate::support::{Credentials, echo, serve};

/// Memory that tells no descriptor.
struct Waited(MemoryCarrier);

impl Carrier for Waited {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        self.0.send(batch)
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        self.0.receive(sink, wait)
    }

    fn local_address(&self) -> SocketAddr {
        self.0.local_address()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

/// The two ends of a network, and the address of the second.
type Ends = (Arc<dyn Carrier>, Arc<dyn Carrier>, SocketAddr);

/// A network whose carriers have descriptors, and one whose carriers have none.
fn networks() -> [Ends; 2] {
    let (near, far) = MemoryCarrier::pair();
    let address = far.local_address();
    let polled: Ends = (Arc::new(near), Arc::new(far), address);
    let (near, far) = MemoryCarrier::pair();
    let waited: Ends = (Arc::new(Waited(near)), Arc::new(Waited(far)), address);
    assert!(!polled.0.readiness().is_none() && waited.0.readiness().is_none());
    [polled, waited]
}

const LENGTHS: [usize; 4] = [0, 100, 5_000, 300_000];

#[test]
fn threads_call_over_any_carrier() {
    for (near, far, address) in networks() {
        let credentials = Credentials::new();
        let server = credentials.server().bind_over_blocking(far).unwrap();
        serve(&server, 1, echo);
        let client = credentials.client().connect_over_blocking(near, address);
        let client = client.unwrap();
        for length in LENGTHS {
            let body = payload(1, length);
            assert_eq!(client.call(body.clone()).wait().unwrap(), body);
        }
    }
}

#[tokio::test]
async fn tasks_call_over_any_carrier() {
    tasks_call(false).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tasks_with_an_io_thread_call_over_any_carrier() {
    tasks_call(true).await;
}

async fn tasks_call(has_io_thread: bool) {
    for (near, far, address) in networks() {
        let credentials = Credentials::new();
        let server = credentials.server().io_thread(has_io_thread);
        let server = server.bind_over(far).unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let client = credentials.client().io_thread(has_io_thread);
        let client = client.connect_over(near, address).await.unwrap();
        for length in LENGTHS {
            let body = payload(1, length);
            assert_eq!(client.call(body.clone()).await.unwrap(), body);
        }
    }
}

#[test]
fn event_loops_call_over_any_carrier() {
    for (near, far, address) in networks() {
        let credentials = Credentials::new();
        let server = credentials.server().bind_over_polled(far).unwrap();
        assert!(server.statistics().socket.is_none());
        let _server = PolledServer::echoing(server);
        let client = credentials.client().open_over_polled(near).unwrap();
        let mut client = PolledClient::new(client, address);
        for length in LENGTHS {
            let body = payload(1, length);
            assert_eq!(client.call(body.clone()).unwrap(), body);
        }
    }
}
