// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

const LAYOUT: IdLayout = IdLayout { id_bits: 48, stripes_log2: 2 };

fn window() -> IdWindow {
    IdWindow::new(64, LAYOUT, Side::Client, 3)
}

mod mark_seen {
    use super::*;

    // SMT [4.2-1]
    #[test]
    fn happens_once() {
        let mut window = window();
        assert!(window.mark_seen(0).is_some());
        assert!(window.mark_seen(0).is_none());
        assert!(window.mark_seen(5).is_some());
        assert!(window.mark_seen(5).is_none());
    }

    // SMT [4.1-2]
    #[test]
    fn gives_the_right_to_reply_under_the_id_of_the_window() {
        let first = window().mark_seen(5).unwrap();
        let expected = LAYOUT.id(5, Side::Client, 3).unwrap();
        assert_eq!(first.id(), expected);
        assert_eq!(first.reply_right().id(), expected);
    }

    #[test]
    fn floor_and_limit_rise_when_the_lowest_are_seen() {
        let mut window = window();
        for counter in (1..64).rev() {
            window.mark_seen(counter).unwrap();
            assert_eq!((window.floor(), window.limit()), (0, 64));
        }
        assert!(window.mark_seen(64).is_none());
        window.mark_seen(0).unwrap();
        assert_eq!((window.floor(), window.limit()), (64, 128));
        assert!(window.mark_seen(63).is_none());
        assert!(window.mark_seen(127).is_some());
        assert!(window.mark_seen(128).is_none());
    }

    #[test]
    fn one_slow_id_does_not_stop_the_window_once_seen() {
        let mut window = window();
        for counter in 0..10_000 {
            assert!(window.mark_seen(counter).is_some());
        }
        assert_eq!(window.floor(), 10_000);
    }

    proptest! {
        /// Against the plainest model: a set of the marked ids.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0_u64..3, 0_u64..80), 1..400)) {
            let mut window = window();
            let mut seen = HashSet::new();
            for (kind, offset) in steps {
                // Near the floor, so that it moves; one step in three fills the lowest gap.
                let lowest = (0..).find(|counter| !seen.contains(counter)).unwrap();
                prop_assert_eq!(window.floor(), lowest);
                prop_assert_eq!(window.limit(), lowest + 64);
                let counter = if kind == 0 { lowest } else { (lowest + offset).saturating_sub(8) };
                prop_assert_eq!(window.is_seen(counter), seen.contains(&counter));
                prop_assert_eq!(window.in_range(counter), counter < lowest + 64);
                let expected = counter < lowest + 64 && !seen.contains(&counter);
                prop_assert_eq!(window.mark_seen(counter).is_some(), expected);
                if expected {
                    seen.insert(counter);
                }
            }
        }
    }
}

mod is_seen {
    use super::*;

    #[test]
    fn looking_moves_nothing() {
        let window = window();
        for counter in [0, 1, 63, 64, 1 << 40, u64::MAX] {
            assert!(!window.is_seen(counter));
            assert_eq!(window.in_range(counter), counter < 64);
        }
        assert_eq!((window.floor(), window.limit()), (0, 64));
    }
}

mod is_delivered {
    use super::*;

    #[test]
    fn is_known_below_the_floor_until_the_slot_is_taken() {
        let mut window = window();
        assert_eq!(window.is_delivered(0), Delivered::No);
        window.mark_seen(0).unwrap();
        assert_eq!(window.is_delivered(0), Delivered::No);
        window.mark_delivered(0);
        assert_eq!((window.floor(), window.is_delivered(0)), (1, Delivered::Yes));
        for counter in 1..64 {
            window.mark_seen(counter).unwrap();
        }
        assert_eq!(window.is_delivered(0), Delivered::Yes);
        window.mark_seen(64).unwrap();
        assert_eq!(window.is_delivered(0), Delivered::Unknown);
        assert_eq!(window.is_delivered(64), Delivered::No);
    }

    #[test]
    fn unseen_ids_cannot_be_marked() {
        let mut window = window();
        for counter in [7, 64, u64::MAX] {
            window.mark_delivered(counter);
            assert_eq!(window.is_delivered(counter), Delivered::No);
        }
        window.mark_seen(7).unwrap();
        assert_eq!(window.is_delivered(7), Delivered::No);
    }

    proptest! {
        /// Never wrong: Yes only for marked ids, No only for unmarked ones; and memory that is
        /// given up says nothing.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0_u8..5, 0_u64..300), 1..600)) {
            let mut window = window();
            let mut delivered: HashMap<u64, bool> = HashMap::new();
            for (kind, counter) in steps {
                match kind {
                    0 | 1 => {
                        let counter = if kind == 0 { window.floor() } else { counter };
                        if window.mark_seen(counter).is_some() {
                            delivered.insert(counter, false);
                        }
                    }
                    2 => window.shrink_to_fit(),
                    _ => {
                        window.mark_delivered(counter);
                        if window.is_delivered(counter) == Delivered::Yes {
                            delivered.entry(counter).and_modify(|known| *known = true);
                        }
                    }
                }
                for counter in 0..300 {
                    prop_assert_eq!(window.is_seen(counter), delivered.contains_key(&counter));
                    let truth = delivered.get(&counter).copied().unwrap_or(false);
                    match window.is_delivered(counter) {
                        Delivered::Yes => prop_assert!(truth, "{counter}"),
                        Delivered::No => prop_assert!(!truth, "{counter}"),
                        Delivered::Unknown => prop_assert!(counter < window.floor()),
                    }
                }
            }
        }
    }
}

mod shrink_to_fit {
    use super::*;

    fn memory(window: &IdWindow) -> [bool; 2] {
        [&window.seen, &window.delivered].map(|bits| bits.words.is_some())
    }

    #[test]
    fn a_window_without_gaps_or_deliveries_takes_no_memory() {
        let mut window = window();
        assert_eq!(memory(&window), [false, false]);
        window.mark_seen(1).unwrap();
        window.shrink_to_fit();
        assert_eq!(memory(&window), [true, false], "a gap is remembered");
        window.mark_seen(0).unwrap();
        window.mark_delivered(1);
        window.shrink_to_fit();
        assert_eq!(memory(&window), [false, true], "and a delivery");
    }
}

mod new {
    use super::*;

    #[test]
    fn a_window_takes_a_bit_of_each_ring_for_an_id() {
        for w in [64, 4_096, 65_536] {
            let mut window = IdWindow::new(w, LAYOUT, Side::Client, 3);
            window.mark_seen(u64::from(w) - 1).unwrap();
            window.mark_delivered(u64::from(w) - 1);
            for bits in [&window.seen, &window.delivered] {
                let words = bits.words.as_ref().unwrap();
                assert_eq!(words.len() * 64, w as usize);
            }
        }
    }

    #[test]
    #[should_panic(expected = "choose a power of two")]
    fn other_sizes_are_refused() {
        let _ = IdWindow::new(100, LAYOUT, Side::Client, 0);
    }

    // SMT [4.3-5]
    #[test]
    #[should_panic(expected = "stripe 4 is not in")]
    fn stripes_that_do_not_exist_are_refused() {
        let _ = IdWindow::new(64, LAYOUT, Side::Client, 4);
    }
}

mod accept {
    use super::*;

    #[test]
    fn checking_marks_nothing() {
        let mut window = ControlWindow::new();
        assert!(window.check(9_999) && window.check(0));
        assert!(window.accept(0) && !window.check(0));
    }

    // SMT [4.3-2]
    #[test]
    fn a_number_is_accepted_once_and_the_last_1024_in_any_order() {
        let mut window = ControlWindow::new();
        assert!(window.accept(2_000));
        assert!(!window.accept(2_000));
        for counter in (2_001 - 1_024..2_000).rev() {
            assert!(window.accept(counter), "{counter}");
            assert!(!window.accept(counter), "{counter}");
        }
        assert!(!window.accept(2_000 - 1_024));
    }

    #[test]
    fn the_largest_counter_does_not_overflow() {
        let mut window = ControlWindow::new();
        let largest = (1 << 48) - 1;
        assert!(window.accept(largest) && !window.accept(largest));
        assert!(window.accept(largest - 1) && !window.accept(0));
        assert!(!window.accept(largest + 1) && !window.accept(u64::MAX));
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(jumps in prop::collection::vec(-1_200_i64..2_200, 1..300)) {
            let mut window = ControlWindow::new();
            let mut accepted = HashSet::new();
            let mut highest: Option<i64> = None;
            for jump in jumps {
                // Small steps are common, jumps over the whole window happen.
                let step = if jump % 3 == 0 { jump } else { jump % 7 };
                let counter = (highest.unwrap_or(0) + step).max(0);
                let old = highest.is_some_and(|highest| counter + 1_024 <= highest);
                let expected = !old && !accepted.contains(&counter);
                let number = u64::try_from(counter).unwrap();
                prop_assert_eq!(window.check(number), expected);
                prop_assert_eq!(window.accept(number), expected);
                accepted.insert(counter);
                highest = highest.max(if expected { Some(counter) } else { None });
            }
        }
    }
}
