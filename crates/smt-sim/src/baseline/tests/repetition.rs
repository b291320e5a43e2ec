// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seed gives the same run, to the nanosecond.

use super::*;

/// Random messages over several paths with losses: what arrived when, and what every host did.
fn run(seed: u64) -> (Vec<(HostId, Delivered)>, Vec<super::super::StreamCounts>) {
    let mut random = Random::new(seed);
    let mut topology = Topology::datacenter(10_000_000_000, 40_000_000_000);
    topology.switch.mark_above = Some(100_000);
    let mut losses = random.fork();
    let options = StreamOptions { pooling: Pooling::Pool(2), ..StreamOptions::default() };
    let mut scene =
        Scene::new(&topology, options, random.any()).losing(move |_, _| losses.chance(10_000));
    let mut sent = 0;
    for message in 0..5_000 {
        let (from, to) = (random.below(144) as u32, random.below(144) as u32);
        if from != to {
            scene.send(from, to, message, random.below(100_000) as u32);
            sent += 1;
        }
    }
    scene.run_until(Duration::from_secs(10));
    assert_eq!(scene.arrived.len(), sent);
    let counts = scene.world.hosts().iter().map(StreamHost::counts);
    let counts = counts.collect();
    (scene.arrived, counts)
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let seed = seed();
    let first = run(seed);
    assert!(first == run(seed), "two runs differ");
    assert!(first != run(seed.wrapping_add(1)));
}
