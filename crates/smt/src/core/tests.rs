// SPDX-License-Identifier: Apache-2.0 OR MIT

use smt_carrier::{Path, Wait};
use smt_io::MemoryCarrier;
use smt_wire::Shard;

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
    core.turn(now, || now);
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

#[test]
#[cfg(feature = "tokio")]
fn what_gathers_does_so_from_when_the_last_was_sent() {
    let (mut core, server) = core();
    let path = Path::to(server.local_address());
    let at = |micros| Time::default() + Duration::from_micros(micros);
    let mut buffer = vec![0; 2_048];
    let mut sends = |core: &mut Core, now, sent| {
        core.endpoint
            .connect(at(now), path, "server", Duration::from_secs(5))
            .unwrap();
        core.turn(at(now), || at(sent));
        let received = || server.receive(&mut buffer, Wait::Never).unwrap();
        std::iter::from_fn(received).count() > 0
    };
    core.cork(at(0));
    assert!(!sends(&mut core, 49, 49));
    assert!(sends(&mut core, 50, 60), "sending took 10 us");
    assert!(!sends(&mut core, 109, 109));
    assert!(sends(&mut core, 110, 260), "sending took 150 us");
    assert!(!sends(&mut core, 309, 309));
    assert_eq!(core.gather(at(309)), 0);
    assert!(!sends(&mut core, 358, 358));
    assert!(sends(&mut core, 359, 359));
}
