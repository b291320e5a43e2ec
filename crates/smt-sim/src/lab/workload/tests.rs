// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables against their sources and against what the Homa simulations published; see
//! docs/WORKLOADS.md.

use super::*;

const ALL: [Workload; 5] = [Workload::W1, Workload::W2, Workload::W3, Workload::W4, Workload::W5];

/// The share of messages that are no longer than this, and the share of all bytes in them.
fn up_to(workload: Workload, size_max: u32) -> (f64, f64) {
    let (mut below, mut messages, mut bytes) = (0, 0.0, 0.0);
    for &(size, up_to) in workload.steps() {
        let share = f64::from(up_to - below) / 1e9;
        below = up_to;
        if size <= size_max {
            messages += share;
            bytes += share * f64::from(size);
        }
    }
    (messages, bytes / workload.mean())
}

fn assert_near(is: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((is - expected).abs() <= tolerance, "{what} is {is}, not {expected}");
}

mod tables {
    use super::*;

    #[test]
    fn rise_in_both_columns_up_to_all_messages() {
        for workload in ALL {
            let steps = workload.steps();
            assert!(steps[0].0 > 0 && steps[0].1 > 0, "{workload:?}");
            assert!(steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{workload:?}");
            assert_eq!(steps[steps.len() - 1].1, 1_000_000_000, "{workload:?}");
        }
    }

    #[test]
    fn keep_the_means_of_their_sources() {
        for (workload, mean) in
            ALL.into_iter().zip([187.511, 440.791, 2_927.354, 127_796.644, 2_515_863.255])
        {
            assert_near(workload.mean() / mean, 1.0, 0.000_3, &format!("{workload:?}"));
        }
    }

    #[test]
    fn keep_the_shares_of_their_sources_at_1000_bytes_and_at_the_unscheduled_limit() {
        for (workload, short, unscheduled) in [
            (Workload::W1, (0.9651, 0.6531), (0.9998, 0.9851)),
            (Workload::W2, (0.9533, 0.5125), (0.9985, 0.7390)),
            (Workload::W3, (0.8576, 0.0705), (0.9688, 0.1917)),
            (Workload::W4, (0.6041, 0.0023), (0.7095, 0.0045)),
            (Workload::W5, (0.0, 0.0), (0.1500, 0.0003)),
        ] {
            for (limit, (messages, bytes)) in [(999, short), (9_327, unscheduled)] {
                let (is_messages, is_bytes) = up_to(workload, limit);
                assert_near(
                    is_messages,
                    messages,
                    0.000_1,
                    &format!("{workload:?} messages up to {limit}"),
                );
                assert_near(is_bytes, bytes, 0.000_2, &format!("{workload:?} bytes up to {limit}"));
            }
        }
    }

    /// Shares of messages in the size ranges of Figure 12's data, Homa at 80 %.
    #[test]
    fn agree_with_the_messages_of_the_published_runs() {
        for (workload, published) in [
            (Workload::W1, [(31, 0.5087), (508, 0.9022), (1_937, 0.9909)]),
            (Workload::W2, [(269, 0.5085), (512, 0.9104), (3_151, 0.9910)]),
            (Workload::W3, [(256, 0.4979), (1_755, 0.9013), (30_468, 0.9900)]),
            (Workload::W4, [(662, 0.5052), (120_373, 0.9006), (3_430_822, 0.9910)]),
            (Workload::W5, [(70_658, 0.5024), (4_806_186, 0.8999), (26_917_814, 0.9905)]),
        ] {
            for (size, share) in published {
                let (messages, _) = up_to(workload, size);
                assert_near(messages, share, 0.002, &format!("{workload:?} messages up to {size}"));
            }
        }
    }

    /// The Homa simulation scales its load by the part of the wire that is payload: 96 B around
    /// each of the first 9,328 B's packets of 1,442 B, then 82 B and a grant of 84 B for each
    /// packet of 1,456 B.
    #[test]
    fn leave_the_payload_share_of_the_wire_that_the_simulation_configured() {
        for (workload, share) in ALL.into_iter().zip([0.657, 0.796, 0.887, 0.898, 0.898]) {
            let (mut below, mut wire) = (0, 0.0);
            for &(size, up_to) in workload.steps() {
                let unscheduled = size.min(9_328);
                let overhead = 96 * unscheduled.div_ceil(1_442)
                    + (82 + 84) * (size - unscheduled).div_ceil(1_456);
                wire += f64::from(size + overhead) * f64::from(up_to - below) / 1e9;
                below = up_to;
            }
            assert_near(workload.mean() / wire, share, 0.001_5, &format!("{workload:?}"));
        }
    }
}

mod size {
    use super::*;

    #[test]
    fn ranges_from_the_shortest_to_the_longest_of_the_source() {
        for (workload, shortest, longest) in [
            (Workload::W1, 1, 100_000),
            (Workload::W2, 2, 3_529_904),
            (Workload::W3, 3, 15_158_197),
            (Workload::W4, 53, 10_000_000),
            (Workload::W5, 1_442, 28_840_000),
            (Workload::Fixed(64), 64, 64),
        ] {
            assert_eq!(workload.size(0), shortest, "{workload:?}");
            assert_eq!(workload.size(u64::MAX), longest, "{workload:?}");
        }
    }

    #[test]
    fn changes_exactly_where_a_step_ends() {
        let (_, first_ends) = Workload::W5.steps()[0];
        assert_eq!(first_ends, 25_000_000, "a fortieth");
        let first_above = (u64::MAX / 40) + 1;
        assert_eq!(Workload::W5.size(first_above - 1), 1_442);
        assert_eq!(Workload::W5.size(first_above), 2_884);
    }

    #[test]
    fn has_the_mean_and_never_falls_over_evenly_spread_numbers() {
        for workload in ALL {
            let (mut sum, mut last) = (0, 0);
            for number in 0..1_u64 << 20 {
                let size = workload.size(number << 44 | 1 << 43);
                assert!(size >= last, "{workload:?}");
                last = size;
                sum += u64::from(size);
            }
            let mean = sum as f64 / f64::from(1 << 20);
            assert_near(mean / workload.mean(), 1.0, 0.01, &format!("{workload:?}"));
        }
    }
}

mod quantile {
    use super::*;

    /// The thinned table may name a neighbour of the source's size.
    #[test]
    fn is_within_5_percent_of_the_source() {
        for (workload, sizes) in [
            (Workload::W1, [27, 503, 1_876]),
            (Workload::W2, [269, 512, 3_151]),
            (Workload::W3, [268, 1_755, 31_013]),
            (Workload::W4, [662, 120_373, 3_430_822]),
            (Workload::W5, [70_658, 4_806_186, 26_917_814]),
        ] {
            for (share, size) in [0.5, 0.9, 0.99].into_iter().zip(sizes) {
                let ratio = f64::from(workload.quantile(share)) / f64::from(size);
                assert_near(ratio, 1.0, 0.05, &format!("{workload:?} at {share}"));
            }
        }
    }

    #[test]
    fn counts_a_step_to_its_end() {
        assert_eq!(Workload::W5.quantile(0.025), 1_442);
        assert_eq!(Workload::W5.quantile(0.025_000_001), 2_884);
    }

    #[test]
    fn is_the_nearer_end_beyond_0_and_1() {
        for workload in ALL {
            assert_eq!(workload.quantile(-1.0), workload.size(0), "{workload:?}");
            assert_eq!(workload.quantile(2.0), workload.size(u64::MAX), "{workload:?}");
        }
    }

    #[test]
    fn of_a_fixed_size_is_that_size() {
        assert_eq!(Workload::Fixed(700).quantile(0.5), 700);
        assert_near(Workload::Fixed(700).mean(), 700.0, 0.0, "the mean");
    }
}

mod from_str {
    use super::*;

    #[test]
    fn names_and_sizes_are_understood() {
        for (text, workload) in [
            ("w1", Workload::W1),
            ("W5", Workload::W5),
            ("1000", Workload::Fixed(1_000)),
            ("64k", Workload::Fixed(65_536)),
            ("64K", Workload::Fixed(65_536)),
            ("2MiB", Workload::Fixed(2 << 20)),
            ("3G", Workload::Fixed(3 << 30)),
            ("4294967295", Workload::Fixed(u32::MAX)),
        ] {
            assert_eq!(text.parse(), Ok(workload), "{text}");
        }
    }

    #[test]
    fn every_name_is_understood() {
        for workload in ALL.into_iter().chain([Workload::Fixed(1_001)]) {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "w",
            "w0",
            "w6",
            "w11",
            " w1",
            "K",
            "0",
            "0K",
            "-1",
            "+1",
            "1.5K",
            "64 K",
            "1T",
            "4G",
            "4194305K",
            "4294967296",
        ] {
            assert!(text.parse::<Workload>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_refusal_says_what_is_allowed() {
        assert_eq!(
            "w6".parse::<Workload>().unwrap_err().to_string(),
            "a workload is w1, w2, w3, w4, w5 or a message's bytes from 1 to 4294967295, such as 1000 or 64K; \
             not \"w6\""
        );
    }
}
