// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoint under test, connected to its peer before anything else runs.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use shuttle::future::JoinHandle;
use smt_carrier::{Carrier, Wait};
use smt_wire::Shard;

use super::carrier::{Inbox, ModelCarrier, ModelWatch, catch_break};
use super::peer::Peer;
use super::runtime::{Alarm, ModelRuntime, Spins};
use crate::builder::endpoint_parts::{EndpointParts, OpenedEndpoint};
use crate::builder::{Builder, Role, Unprotected};
use crate::clock::Clock;
use crate::driver::background::BackgroundDriver;
use crate::driver::{Drive, DriveBy, Driver, Guard};
use crate::endpoint_state::EndpointState;
use crate::operation::CallDefaults;
use crate::server_handle::ServerHandle;
use crate::servers::ServerChoice;

/// An endpoint under test.
pub(super) struct Tested {
    pub(super) guard: Arc<Guard>,
    server: Option<Arc<ServerHandle>>,
    /// Datagrams that come to it, and to its peer.
    pub(super) inbox: Arc<Inbox>,
    pub(super) peer_inbox: Arc<Inbox>,
    alarm: Arc<Alarm>,
    background: Option<JoinHandle<()>>,
}

impl Tested {
    /// A client, and the peer that serves it.
    pub(super) fn client(by: DriveBy) -> (Self, Peer) {
        let (tested, mut peer) = Self::open(by, true);
        let mut attempt = None;
        let driver = Arc::clone(tested.guard.driver());
        let server = tested.its_server();
        let mut connect = server.poll_connect(&mut attempt);
        while driver.change(|state, now| connect(state, now, Waker::noop())).is_pending() {
            while peer.step(Wait::Never) || driver.receive_now() {}
        }
        (tested, peer)
    }

    /// A server, and the peer that calls it.
    pub(super) fn server(by: DriveBy) -> (Self, Peer) {
        let (tested, mut peer) = Self::open(by, false);
        peer.connect();
        while !peer.is_connected() {
            while tested.guard.driver().receive_now() || peer.step(Wait::Never) {}
        }
        (tested, peer)
    }

    fn open(by: DriveBy, is_client: bool) -> (Self, Peer) {
        let [own, other] = ModelCarrier::pair();
        let remote = own.remote();
        let (inbox, peer_inbox) = (Arc::clone(own.inbox()), Arc::clone(other.inbox()));
        let (opened, clock) = protocol(!is_client, &own);
        let carrier: Arc<dyn Carrier> = Arc::new(own);
        let state = EndpointState::new(opened, Arc::clone(&carrier), None);
        let drive = Drive {
            clock,
            by,
            spin: SPIN,
            span: tracing::Span::none(),
            credentials: crate::credentials::Credentials::default(),
            runtime: None,
        };
        let guard = Driver::open(state, carrier, drive).expect("a background thread");
        let server = is_client.then(|| {
            let choice = ServerChoice {
                address: remote.into(),
                server_name: "model".to_owned(),
                deadline: session_deadline(),
            };
            ServerHandle::only(Arc::clone(&guard), choice)
        });
        let tested =
            Self { guard, server, inbox, peer_inbox, alarm: Alarm::new(true), background: None };
        (tested, Peer::new(other, is_client))
    }

    /// Its driver runs from now on. `has_timers` tells whether short alarms go off.
    pub(super) fn drive(&mut self, spins: Spins, has_timers: bool) {
        let background = self.make_driver(spins, has_timers);
        self.background = Some(shuttle::future::spawn(background));
    }

    /// The same, and a panic of the driver ends it alone. Returns whether that was so, in the end.
    pub(super) fn drive_until_panic(&mut self, spins: Spins) -> JoinHandle<bool> {
        let mut background = Some(Box::pin(self.make_driver(spins, false)));
        shuttle::future::spawn(std::future::poll_fn(move |context| {
            let poll = || {
                let mut polled = background.take()?;
                match polled.as_mut().poll(context) {
                    Poll::Pending => Some(polled),
                    Poll::Ready(()) => None,
                }
            };
            match catch_break(poll) {
                Ok(Some(pending)) => background = Some(pending),
                Ok(None) => return Poll::Ready(false),
                Err(()) => return Poll::Ready(true),
            }
            Poll::Pending
        }))
    }

    fn make_driver(
        &mut self,
        spins: Spins,
        has_timers: bool,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.alarm = Alarm::new(has_timers);
        let driver = Arc::clone(self.guard.driver());
        driver.set_watch(ModelWatch::new(&self.inbox));
        let runtime =
            ModelRuntime { inbox: Arc::clone(&self.inbox), alarm: Arc::clone(&self.alarm), spins };
        let alarm = Arc::clone(&self.alarm);
        shuttle::thread::spawn(move || alarm.run());
        BackgroundDriver::new(driver, runtime).drive()
    }

    /// From now on short alarms go off.
    pub(super) fn permit_timers(&self) {
        self.alarm.permit();
    }

    pub(super) fn background(&self) -> &JoinHandle<()> {
        self.background.as_ref().expect("a driver that was started")
    }

    /// The last handle goes: its driver ends, and its peer waits for nothing more.
    pub(super) fn close(self) {
        let Self { guard, server, inbox, peer_inbox, alarm, background, .. } = self;
        alarm.permit();
        inbox.stop();
        let driver = Arc::clone(guard.driver());
        drop((guard, server));
        driver.wake_background_thread();
        // It may have been aborted.
        let _ = background.map(shuttle::future::block_on);
        alarm.end();
        peer_inbox.stop();
    }

    /// The server of a client.
    fn its_server(&self) -> Arc<ServerHandle> {
        Arc::clone(self.server.as_ref().expect("a client"))
    }

    /// A client for tasks.
    pub(super) fn tasks(&self) -> crate::Client {
        crate::Client::new(self.its_server(), CallDefaults::default())
    }

    /// A client for threads.
    pub(super) fn threads(&self) -> crate::blocking::Client {
        crate::blocking::Client::new(self.its_server(), CallDefaults::default())
    }
}

/// A protocol core that repeats nothing: what is not dealt with when it comes is never dealt with.
pub(super) fn protocol(accept: bool, carrier: &dyn Carrier) -> (OpenedEndpoint, Clock) {
    let endpoint_parts = match accept {
        true => parts(Unprotected::<true>),
        false => parts(Unprotected::<false>),
    };
    (endpoint_parts.endpoint(Shard::default(), carrier, None), endpoint_parts.clock)
}

fn parts(role: impl Role) -> EndpointParts {
    let builder = Builder::of(role).configure(|config| {
        config.resend_interval = NEVER / 2;
        config.silence_max = NEVER;
    });
    builder.endpoint_parts().expect("choices that are valid")
}

/// A session comes about at once.
pub(super) fn session_deadline() -> Duration {
    NEVER
}

/// A body of its own for each number.
pub(super) fn body(number: u8) -> Bytes {
    Bytes::copy_from_slice(&[number])
}

const NEVER: Duration = Duration::from_secs(3_600);
/// Looks that a wait is spun for.
const SPIN: Duration = Duration::from_micros(4);
