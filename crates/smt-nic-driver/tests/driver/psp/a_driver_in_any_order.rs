// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver while its device's queues are turned in random orders, fails and is reset.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use smt_carrier::{
    Association, AssociationHandle, AssociationKey, Associations, Batch, Layout, Path,
};
use smt_nic::context_memory::ContextLimits;
use smt_nic::engine::{BadContextBlock, ContextBlock, Engine, EngineError, PlannedPackets};
use smt_nic::engine::{Protected, Stage};
use smt_nic::headers::Headers;
use smt_nic::psp::{PspContext, PspEngine};
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{Driver, DriverConfig, NicKeys, OutgoingAddresses};

use super::pair::{header, stream};
use super::wire::WireWatch;

/// The PSP engine, which refuses every `fails_each`th segment or packet; 0 refuses none.
#[derive(Clone, Debug)]
struct Failing {
    fails_each: u64,
    asked: Arc<Mutex<u64>>,
}

impl Failing {
    fn fails(&self) -> Result<(), EngineError> {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        match self.fails_each > 0 && asked.is_multiple_of(self.fails_each) {
            true => Err(EngineError::BadPayload),
            false => Ok(()),
        }
    }
}

impl Engine for Failing {
    type Context = PspContext;

    fn create(&self, block: &ContextBlock) -> Result<PspContext, BadContextBlock> {
        PspEngine.create(block)
    }

    fn resync(&self, context: &mut PspContext, number: u64) {
        PspEngine.resync(context, number);
    }

    fn stage(&self, context: &PspContext) -> Stage {
        PspEngine.stage(context)
    }

    fn permits(
        &self,
        context: &PspContext,
        headers: &Headers,
        planned: PlannedPackets<'_>,
    ) -> Result<(), EngineError> {
        self.fails()?;
        PspEngine.permits(context, headers, planned)
    }

    fn transform(
        &self,
        context: &mut PspContext,
        headers: &Headers,
        packet: &mut Vec<u8>,
    ) -> Result<Protected, EngineError> {
        let done = PspEngine.transform(context, headers, packet);
        self.fails()?;
        done
    }

    fn protect(&self, context: &mut PspContext, of: &mut [u8]) -> Result<Protected, EngineError> {
        PspEngine.protect(context, of)
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Post {
        association: u8,
        id: u64,
        bytes: usize,
        priority: u8,
    },
    Step(u16),
    Reap,
    Run,
    Reset,
    /// Removes an association, and installs another in its place.
    Replace(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let post = (0_u8..4, 0_u64..20, 1_usize..6_000, 0_u8..8);
    prop_oneof![
        6 => post.prop_map(|(association, id, bytes, priority)| Event::Post {
            association,
            id,
            bytes,
            priority,
        }),
        12 => (0_u16..4).prop_map(Event::Step),
        3 => Just(Event::Reap),
        1 => Just(Event::Run),
        1 => Just(Event::Reset),
        1 => (0_u8..4).prop_map(Event::Replace),
    ]
}

struct Scene {
    driver: Driver,
    nic: Nic<Failing>,
    watch: WireWatch,
    handles: Vec<AssociationHandle>,
    spis: u32,
}

impl Scene {
    fn new(contexts_max: usize, psp_contexts: usize, fails_each: u64) -> Self {
        let config = DriverConfig {
            psp: true,
            psp_contexts,
            priority_classes: 2,
            queues: 2,
            ring_entries: 8,
            receive_queues: 0,
            waiting_max: 1_000,
            ..DriverConfig::default()
        };
        let device = NicConfig {
            contexts: ContextLimits { contexts_max, cached_max: 1 },
            ..NicConfig::default()
        };
        let engine = Failing { fails_each, asked: Arc::default() };
        let mut nic = Nic::new(device, engine);
        let driver = Driver::new(config, NicKeys::new(1));
        driver.attach(&mut nic);
        let mut scene =
            Self { driver, nic, watch: WireWatch::default(), handles: Vec::new(), spis: 0 };
        for _ in 0..4 {
            let handle = scene.install();
            scene.handles.push(handle);
        }
        scene
    }

    fn install(&mut self) -> AssociationHandle {
        self.spis += 1;
        let association = Association {
            version: (self.spis % 2) as u8,
            spi: self.spis,
            key: AssociationKey::new([self.spis as u8; 32]),
        };
        let all = self.driver.associations().unwrap();
        all.install(association).unwrap()
    }

    fn take(&mut self, event: Event) {
        let watch = self.watch.clone();
        let mut wire = |packet: &[u8]| watch.see(packet);
        match event {
            Event::Post { association, id, bytes, priority } => {
                let (header, stream) = (header(id, bytes), stream(bytes));
                let batch = Batch {
                    layout: Layout::Segmented { header: &header, payload_max: 1_300 },
                    priority,
                    association: Some(self.handles[usize::from(association)]),
                    ..Batch::datagrams(Path::to("192.0.2.2:9".parse().unwrap()), 1, &stream)
                };
                let addresses = OutgoingAddresses {
                    source: "192.0.2.1:7".parse().unwrap(),
                    destination: "192.0.2.2:9".parse().unwrap(),
                };
                self.driver.post(&mut self.nic, &batch, addresses).unwrap();
            }
            Event::Step(queue) => {
                self.driver.step(&mut self.nic, queue, &mut wire).unwrap();
            }
            Event::Reap => self.driver.reap(&mut self.nic),
            Event::Run => self.driver.run(&mut self.nic, &mut wire).unwrap(),
            Event::Reset => self.driver.reset(&mut self.nic),
            Event::Replace(association) => {
                let fresh = self.install();
                let place = &mut self.handles[usize::from(association)];
                let old = std::mem::replace(place, fresh);
                self.driver.associations().unwrap().remove(old);
            }
        }
    }

    /// Turns the device in strict priority, and looks at the completions after so many steps each
    /// time. Returns whether all has left after a while.
    fn comes_to_rest(&mut self, steps: usize) -> bool {
        (0..ROUNDS_MAX).any(|_| {
            for _ in 0..steps {
                let queue = self.nic.next_queue();
                queue.into_iter().for_each(|queue| self.take(Event::Step(queue)));
            }
            self.take(Event::Reap);
            self.driver.is_idle()
        })
    }
}

/// More rounds than 30 messages of five packets need: a descriptor for each packet and context, in
/// two steps each.
const ROUNDS_MAX: usize = 2_000;

/// A post of a short message under the first association.
fn post(id: u64, priority: u8) -> Event {
    Event::Post { association: 0, id, bytes: 100, priority }
}

/// The device serves classes in strict priority, and the driver looks at each completion at once:
/// the queue that creates the context has no turn while a more urgent one has segments.
#[test]
fn segments_above_the_class_that_creates_their_context_leave_all_the_same() {
    let mut scene = Scene::new(5, 5, 0);
    scene.take(post(2, 0));
    [4, 6, 8, 10].into_iter().for_each(|id| scene.take(post(id, 7)));
    assert!(scene.comes_to_rest(1));
    assert_eq!(scene.watch.counts(), (0, 5));
    let statistics = scene.driver.statistics();
    assert_eq!((statistics.lost, statistics.packets_in_software), (0, 0));
    assert_eq!(scene.nic.contexts(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_iv_leaves_twice_and_nothing_in_the_clear_whatever_happens(
        events in prop::collection::vec(event(), 0..120),
        contexts_max in 0_usize..6,
        psp_contexts in 0_usize..6,
        fails_each in 0_u64..9,
    ) {
        let mut scene = Scene::new(contexts_max, psp_contexts, fails_each);
        for event in events {
            scene.take(event);
        }
        scene.take(Event::Run);
        prop_assert!(scene.driver.is_idle());
        prop_assert_eq!(scene.watch.counts().0, 0);
        prop_assert!(scene.nic.contexts() <= contexts_max.min(psp_contexts));
    }

    #[test]
    fn a_device_of_strict_priority_comes_to_rest_however_often_its_completions_are_read(
        posts in prop::collection::vec((0_u8..4, 0_u64..20, 1_usize..6_000, 0_u8..8), 1..30),
        steps in 1_usize..9,
        contexts_max in 0_usize..6,
        psp_contexts in 0_usize..6,
        fails_each in 0_u64..9,
    ) {
        let mut scene = Scene::new(contexts_max, psp_contexts, fails_each);
        for (association, id, bytes, priority) in posts {
            scene.take(Event::Post { association, id, bytes, priority });
        }
        prop_assert!(scene.comes_to_rest(steps));
        prop_assert_eq!(scene.watch.counts().0, 0);
    }

    #[test]
    fn all_that_was_posted_leaves_sealed_if_nothing_is_reset_or_removed(
        posts in prop::collection::vec((0_u8..4, 0_u64..20, 1_usize..6_000, 0_u8..8), 1..30),
        steps in prop::collection::vec(0_u16..4, 0..60),
        contexts_max in 0_usize..6,
        psp_contexts in 0_usize..6,
    ) {
        let mut scene = Scene::new(contexts_max, psp_contexts, 0);
        let mut packets = 0;
        for (association, id, bytes, priority) in posts {
            packets += bytes.div_ceil(1_300);
            scene.take(Event::Post { association, id, bytes, priority });
            steps.iter().take(3).for_each(|queue| scene.take(Event::Step(*queue)));
        }
        for queue in steps {
            scene.take(Event::Step(queue));
            scene.take(Event::Reap);
        }
        scene.take(Event::Run);
        prop_assert_eq!(scene.watch.counts(), (0, packets));
        prop_assert_eq!(scene.driver.statistics().lost, 0);
    }
}
