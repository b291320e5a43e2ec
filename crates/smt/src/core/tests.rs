// SPDX-License-Identifier: Apache-2.0 OR MIT

use smt_carrier::Path;
use smt_io::MemoryCarrier;
use smt_wire::Shard;

use super::timing::PUT_OFF;
use super::*;
use crate::ThrowAway;
use crate::builder::Builder;

/// The state of a client, and the other end of its network.
fn core() -> (Core, MemoryCarrier) {
    let authority = ThrowAway::new().unwrap();
    let builder = Builder::new().trust(authority.trust().unwrap());
    let endpoint = builder
        .basis(false)
        .unwrap()
        .endpoint(Shard::default(), None);
    let (carrier, other) = MemoryCarrier::pair();
    (Core::new(endpoint, Arc::new(carrier), None, false), other)
}

#[test]
fn questions_wait_while_the_socket_may_have_their_answers() {
    let (mut core, server) = core();
    let now = Time::from_nanos(1);
    let path = Path::to(server.local_address());
    let deadline = Duration::from_secs(5);
    core.endpoint
        .connect(now, path, "server", deadline)
        .unwrap();
    while let Some(batch) = core.next_batch(now) {
        assert!(core.put_back(batch, Ok(())));
    }
    let (due, _) = core.endpoint.poll_timeout().unwrap();
    let is_still_due = |core: &Core| core.endpoint.poll_timeout().unwrap().0 == due;
    core.fire_timers(due + PUT_OFF / 2, true);
    assert!(is_still_due(&core), "something has come just now");
    core.fire_timers(due + PUT_OFF, true);
    assert!(!is_still_due(&core), "it comes all the time");
    let (due, _) = core.endpoint.poll_timeout().unwrap();
    core.fire_timers(due, false);
    assert_ne!(core.endpoint.poll_timeout().unwrap().0, due);
}

#[test]
fn time_never_goes_back() {
    let (mut core, _server) = core();
    let at = Time::from_nanos;
    assert_eq!(
        [7, 5, 9].map(|now| core.advance(at(now))),
        [7, 7, 9].map(at)
    );
}
