//! Temporary driver.
use smt_sim::swarm::{Case, Coverage, run};
fn main() {
    let args: Vec<u64> = std::env::args()
        .skip(1)
        .map(|a| a.parse().unwrap())
        .collect();
    let (first, count) = (args[0], args.get(1).copied().unwrap_or(1));
    let mut coverage = Coverage::default();
    let mut bad = 0;
    let began = std::time::Instant::now();
    let mut packets = 0;
    for seed in first..first + count {
        if count == 1 {
            println!("{:#?}", Case::new(seed));
        }
        let t = std::time::Instant::now();
        let verdict = run(&Case::new(seed));
        if t.elapsed().as_millis() > 1000 {
            println!(
                "seed {seed} took {:?} {} packets",
                t.elapsed(),
                verdict.packets
            );
        }
        coverage.add(&verdict.coverage);
        packets += verdict.packets;
        if count == 1 {
            println!("{verdict:?}");
        }
        if !verdict.failures.is_empty() {
            bad += 1;
            println!(
                "seed {seed}: {} failures, {}",
                verdict.failures.len(),
                verdict.failures[0]
            );
        }
    }
    println!(
        "{count} seeds, {bad} bad, {:?} per seed, {} packets per seed",
        began.elapsed() / count as u32,
        packets / count
    );
    for (name, share) in coverage.shares() {
        println!("{share:6.1} %  {name}");
    }
}
