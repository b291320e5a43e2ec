// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::string::ToString;
use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;

use super::*;

fn bits(bits: u8) -> IndexBits {
    IndexBits::new(bits).unwrap()
}

fn layout(id_bits: u8, stripes_log2: u8) -> IdLayout {
    IdLayout { id_bits, stripes_log2 }
}

mod index_bits {
    use super::*;

    #[test]
    fn only_8_to_17_exist() {
        let accepted: alloc::vec::Vec<u8> =
            (0..=255).filter(|bits| IndexBits::new(*bits).is_some()).collect();
        assert_eq!(accepted, (8..=17).collect::<alloc::vec::Vec<u8>>());
    }

    #[test]
    fn the_bits_are_those_that_were_given_and_the_id_has_the_others() {
        for given in 8..=17 {
            assert_eq!((bits(given).bits(), bits(given).id_bits()), (given, 64 - given));
        }
    }
}

mod sequence {
    use super::*;

    // SMT [5.1-1]
    #[test]
    fn has_the_id_high_and_the_index_low() {
        assert_eq!(bits(16).sequence(MessageId(0xABC), 0xFFFF), Ok(0xABC_FFFF));
        assert_eq!(bits(8).sequence(MessageId(0xABC), 0xFF), Ok(0xA_BCFF));
    }

    // SMT [5.1-2]
    #[test]
    fn largest_numbers_fit_and_the_next_are_errors_with_both_numbers() {
        for index_bits in 8..=17 {
            let (id, index) = (MessageId((1 << (64 - index_bits)) - 1), (1 << index_bits) - 1);
            assert_eq!(bits(index_bits).sequence(id, index), Ok(u64::MAX));
            let too_large = MessageId(id.0 + 1);
            let error = bits(index_bits).sequence(too_large, 7).unwrap_err();
            let id_bits = 64 - index_bits;
            assert_eq!(error, NumberError::Id { id: too_large, index: 7, id_bits });
            let error = bits(index_bits).sequence(MessageId(3), index + 1).unwrap_err();
            assert_eq!(
                error,
                NumberError::Index { id: MessageId(3), index: index + 1, index_bits }
            );
        }
    }

    #[test]
    fn errors_name_both_numbers() {
        let text = bits(8).sequence(MessageId(77), 256).unwrap_err().to_string();
        assert!(text.contains("256") && text.contains(&MessageId(77).to_string()), "{text}");
    }

    proptest! {
        /// Equal numbers under one key would be equal nonces.
        #[test]
        fn never_repeats(
            index_bits in 8_u8..=17,
            pairs in prop::collection::hash_set((any::<u64>(), any::<u32>()), 2..50),
        ) {
            let numbers = bits(index_bits);
            // Few distinct values, so that neighbours and overflows into each other's bits occur.
            let mut seen = HashSet::new();
            let pairs: BTreeSet<_> = pairs
                .into_iter()
                .map(|(id, index)| (id >> (index_bits + (id % 40) as u8), index >> (index % 32)))
                .collect();
            for (id, index) in pairs {
                if let Ok(number) = numbers.sequence(MessageId(id), index) {
                    prop_assert!(seen.insert(number), "{id} {index}");
                    prop_assert_eq!(number >> index_bits, id);
                }
            }
        }
    }
}

mod id {
    use super::*;

    #[test]
    fn has_counter_initiator_and_stripe_from_high_to_low() {
        assert_eq!(layout(48, 2).id(5, Side::Client, 3), Ok(MessageId(5 << 3 | 3)));
        assert_eq!(layout(48, 2).id(5, Side::Server, 3), Ok(MessageId(5 << 3 | 1 << 2 | 3)));
        assert_eq!(layout(48, 0).id(5, Side::Server, 0), Ok(MessageId(5 << 1 | 1)));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let last = (1 << (47 - 9)) - 1;
        let id = layout(47, 8).id(last, Side::Server, 255).unwrap();
        assert_eq!(id.0, (1 << 47) - 1);
        assert_eq!(
            layout(47, 8).id(last + 1, Side::Server, 255),
            Err(NumberError::Counter { counter: last + 1, stripe: 255, id_bits: 47 })
        );
        assert_eq!(
            layout(47, 1).id(0, Side::Client, 2),
            Err(NumberError::Stripe { stripe: 2, stripes_log2: 1 })
        );
    }

    #[test]
    fn any_layout_gives_an_answer() {
        for id_bits in 0..=255 {
            for stripes_log2 in 0..=255 {
                let layout = layout(id_bits, stripes_log2);
                let counters = layout.counters();
                assert!(layout.split(MessageId(u64::MAX)).is_none());
                if let Ok(id) = layout.id(counters.saturating_sub(1), Side::Server, 0) {
                    assert_eq!(layout.split(id).unwrap().counter, counters - 1);
                }
                assert!(layout.id(counters, Side::Client, 0).is_err());
            }
        }
    }
}

mod split {
    use super::*;

    proptest! {
        #[test]
        fn is_the_inverse_of_id(
            id_bits in 47_u8..=56, stripes_log2 in 0_u8..=8, counter: u64, stripe: u16,
            server: bool,
        ) {
            let layout = layout(id_bits, stripes_log2);
            let initiator = if server { Side::Server } else { Side::Client };
            let stripe = stripe % (1 << stripes_log2);
            let counter = counter % layout.counters();
            let id = layout.id(counter, initiator, stripe).unwrap();
            prop_assert!(id.0 >> id_bits == 0);
            prop_assert_eq!(layout.split(id), Some(IdParts { counter, initiator, stripe }));
        }

        #[test]
        fn ids_out_of_range_have_no_parts(id_bits in 47_u8..=56, id: u64) {
            let in_range = id >> id_bits == 0;
            prop_assert_eq!(layout(id_bits, 3).split(MessageId(id)).is_some(), in_range);
        }
    }
}

mod next {
    use super::*;

    // SMT [4.1-1], [4.1-3]
    #[test]
    fn ids_are_dense_and_never_repeat() {
        let layout = layout(48, 1);
        let mut seen = HashSet::new();
        for (side, stripe) in
            [(Side::Client, 0), (Side::Client, 1), (Side::Server, 0), (Side::Server, 1)]
        {
            let mut ids = IdAllocator::new(layout, side, stripe);
            for counter in 0..100 {
                assert_eq!(ids.counter(), counter);
                let id = ids.next(100).unwrap().id();
                assert_eq!(layout.split(id), Some(IdParts { counter, initiator: side, stripe }));
                assert!(seen.insert(id));
            }
        }
    }

    #[test]
    fn window_blocks_without_losing_an_id() {
        let mut ids = IdAllocator::new(layout(48, 0), Side::Client, 0);
        assert_eq!(ids.next(0), Err(AllocationError::Blocked { counter: 0, limit: 0 }));
        assert_eq!(ids.next(1).unwrap().id(), MessageId(0));
        assert_eq!(ids.next(1), Err(AllocationError::Blocked { counter: 1, limit: 1 }));
        assert_eq!(ids.next(2).unwrap().id(), MessageId(2));
    }

    // SMT [4.1-4], [4.1-5]
    #[test]
    fn ids_end_and_do_not_wrap() {
        let layout = layout(47, 8);
        let last = layout.counters() - 1;
        let mut ids = IdAllocator::starting_at(layout, Side::Server, 255, last);
        assert_eq!(ids.next(u64::MAX).unwrap().id(), MessageId((1 << 47) - 1));
        for _ in 0..3 {
            assert_eq!(ids.next(u64::MAX), Err(AllocationError::Exhausted { counter: last + 1 }));
        }
    }
}
