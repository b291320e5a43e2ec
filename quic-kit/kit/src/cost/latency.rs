// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time that an AEAD of n parallel units adds to a packet: a queue whose packets come at random
//! (Poisson), and n servers of a fixed time each, simulated.

use smt_report::{Axis, Line, Plot, Table, number};

/// Clocks of a unit in megahertz.
const CLOCKS: [u32; 4] = [100, 200, 300, 500];
const UNITS: [u32; 8] = [1, 2, 4, 8, 12, 16, 24, 32];

/// Mean microseconds from a packet's arrival to its end, by units and clock.
pub(super) fn of_units(packet: u32, gigabits: f64) -> (Table, Plot) {
    let mut table = Table {
        corner: "units".to_owned(),
        columns: CLOCKS.iter().map(|clock| format!("{clock} MHz, us")).collect(),
        rows: Vec::new(),
    };
    let mut lines: Vec<Line> = CLOCKS
        .iter()
        .enumerate()
        .map(|(color, clock)| Line { name: format!("{clock} MHz"), color, points: Vec::new() })
        .collect();
    for units in UNITS {
        let cells = CLOCKS.iter().zip(&mut lines).map(|(clock, line)| {
            let unit = Unit { megahertz: f64::from(*clock) };
            match mean_latency(&unit, units, packet, gigabits) {
                Some(mean) => {
                    line.points.push((f64::from(units), mean));
                    number(mean)
                }
                None => "too slow".to_owned(),
            }
        });
        table.rows.push((units.to_string(), cells.collect()));
    }
    let all = lines.iter().flat_map(|line| &line.points);
    let most = all.map(|(_, mean)| *mean).fold(1.0, f64::max);
    let plot = Plot {
        title: format!("Time added by the AEAD to packets of {packet} bytes, {gigabits} Gbit/s"),
        x: Axis::linear("parallel units", 32.0),
        y: Axis::linear("us", most),
        lines,
    };
    (table, plot)
}

/// A unit that takes a block a cycle once its pipeline is full.
struct Unit {
    megahertz: f64,
}

impl Unit {
    /// Microseconds of a packet, in which the unit takes no other: pipelines are filled anew.
    fn time(&self, packet: u32) -> f64 {
        let blocks = f64::from(packet.div_ceil(BLOCK));
        (blocks + PIPELINE) / self.megahertz
    }
}

/// `None`: the units are slower than the packets come.
fn mean_latency(unit: &Unit, units: u32, packet: u32, gigabits: f64) -> Option<f64> {
    let between = f64::from(packet) * 8.0 / gigabits / 1_000.0;
    let time = unit.time(packet);
    if time / f64::from(units) >= between * LOAD_MAX {
        return None;
    }
    let (mut free, mut now, mut sum) = (vec![0.0_f64; units as usize], 0.0, 0.0);
    let mut random = 1_u64;
    for _ in 0..PACKETS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let drawn = ((random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        now -= drawn.ln() * between;
        let first = free.iter_mut().min_by(|one, other| one.total_cmp(other))?;
        *first = first.max(now) + time;
        sum += *first - now;
    }
    Some(sum / f64::from(PACKETS))
}

/// Bytes of a block.
const BLOCK: u32 = 16;
/// Cycles from the first block's way in to its way out, and the tag's behind the last.
const PIPELINE: f64 = 40.0;
/// A queue at more than this share of what its units can do is not stable in practice.
const LOAD_MAX: f64 = 0.98;
const PACKETS: u32 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_unit_adds_its_own_time_and_a_busy_one_more() {
        let unit = Unit { megahertz: 200.0 };
        let own = unit.time(1_350);
        assert!((own - 125.0 / 200.0).abs() < 1e-9, "{own}");
        let idle = mean_latency(&unit, 8, 1_350, 0.1);
        assert!(idle.is_some_and(|idle| (idle - own).abs() < 0.01), "{idle:?}");
        let busy = mean_latency(&unit, 1, 1_350, 15.0);
        assert!(busy.is_some_and(|busy| busy > 2.0 * own), "{busy:?}");
        assert_eq!(mean_latency(&unit, 1, 1_350, 100.0), None);
    }

    #[test]
    fn one_unit_waits_as_long_as_the_formula_for_one_says() {
        // M/D/1 (Pollaczek and Khinchine): the wait is load / (2 (1 - load)) services.
        let unit = Unit { megahertz: 200.0 };
        let own = unit.time(1_350);
        let load = 0.6;
        let gigabits = load / own * 1_350.0 * 8.0 / 1_000.0;
        let expected = own * (1.0 + load / (2.0 * (1.0 - load)));
        let mean = mean_latency(&unit, 1, 1_350, gigabits);
        assert!(mean.is_some_and(|mean| (mean / expected - 1.0).abs() < 0.03), "{mean:?}");
    }
}
