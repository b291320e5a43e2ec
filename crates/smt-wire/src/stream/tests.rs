// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use proptest::prelude::*;

const USUAL: Geometry = Geometry { first: 1_142, rest: 16_384 };

/// Every geometry that can be agreed.
fn geometries() -> impl Strategy<Value = Geometry> {
    (64..=16_384_u16)
        .prop_flat_map(|rest| (64..=rest, Just(rest)))
        .prop_map(|(first, rest)| Geometry::new(first, rest).unwrap())
}

mod new {
    use super::*;

    #[test]
    fn takes_exactly_the_range_of_the_specification() {
        assert_eq!(Geometry::new(1_142, 16_384), Some(USUAL));
        assert!(Geometry::new(64, 64).is_some());
        assert!(Geometry::new(16_384, 16_384).is_some());
        assert!(Geometry::new(63, 64).is_none());
        assert!(Geometry::new(65, 64).is_none());
        assert!(Geometry::new(64, 16_385).is_none());
    }
}

mod records {
    use super::*;

    #[test]
    fn count_changes_at_the_borders() {
        let (first, rest) = (1_142, 16_384);
        for (padded, records) in
            [(0, 1), (40, 1), (first, 1), (first + 1, 2), (first + rest, 2), (first + rest + 1, 3)]
        {
            assert_eq!(USUAL.records(padded), records, "{padded} bytes");
        }
    }
}

mod stream_length {
    use super::*;

    #[test]
    fn adds_22_per_record() {
        assert_eq!(USUAL.stream_length(104), 126);
        assert_eq!(USUAL.stream_length(1_143), 1_143 + 44);
    }

    #[test]
    fn saturates() {
        assert_eq!(USUAL.stream_length(u32::MAX), u32::MAX);
        assert_eq!(Geometry { first: 64, rest: 64 }.stream_length(u32::MAX), u32::MAX);
    }
}

mod record_at {
    use super::*;

    #[test]
    fn borders_are_where_the_specification_says() {
        assert_eq!(USUAL.record_at(0), 0);
        assert_eq!(USUAL.record_at(1_163), 0);
        assert_eq!(USUAL.record_at(1_164), 1);
        assert_eq!(USUAL.record_at(1_164 + 16_405), 1);
        assert_eq!(USUAL.record_at(1_164 + 16_406), 2);
    }

    proptest! {
        /// Every byte of the stream is in the one record that says so.
        #[test]
        fn every_offset_is_in_exactly_one_record(
            geometry in geometries(),
            padded in 40..=4_000_000_u32,
            at in any::<prop::sample::Index>(),
        ) {
            let offset = at.index(geometry.stream_length(padded) as usize) as u32;
            let index = geometry.record_at(offset);
            prop_assert!(index < geometry.records(padded));
            let contains = |index| {
                let record = geometry.record(padded, index);
                record.stream_start <= offset && ((offset - record.stream_start) as usize) < record.stream_len()
            };
            prop_assert!(contains(index));
            prop_assert!(index == 0 || !contains(index - 1));
            prop_assert!(index + 1 == geometry.records(padded) || !contains(index + 1));
        }
    }
}

mod record {
    use super::*;

    #[test]
    fn starts_follow_the_formula_of_the_specification() {
        let record = USUAL.record(100_000, 3);
        assert_eq!(record.stream_start, (1_142 + 22) + 2 * (16_384 + 22));
        assert_eq!(record.inner_start, 1_142 + 2 * 16_384);
        assert_eq!((record.index, record.extent, record.stream_len()), (3, 16_384, 16_406));
    }

    #[test]
    fn last_holds_what_remains() {
        assert_eq!(USUAL.record(104, 0).extent, 104);
        assert_eq!(USUAL.record(1_143, 1).extent, 1);
    }

    #[test]
    fn past_the_end_is_empty() {
        assert_eq!(USUAL.record(104, 1).extent, 0);
        assert_eq!(USUAL.record(104, u32::MAX).extent, 0);
        assert_eq!(USUAL.record(u32::MAX, u32::MAX).stream_start, u32::MAX);
    }

    proptest! {
        /// Records follow one another without gap in both streams, and add up.
        #[test]
        fn extents_tile_the_message(geometry in geometries(), padded in 40..=2_000_000_u32) {
            let (mut inner, mut stream) = (0, 0);
            for index in 0..geometry.records(padded) {
                let record = geometry.record(padded, index);
                prop_assert_eq!(record.index, index);
                prop_assert_eq!(record.inner_start, inner);
                prop_assert_eq!(record.stream_start, stream);
                prop_assert!(record.extent > 0);
                inner += u32::from(record.extent);
                stream += record.stream_len() as u32;
            }
            prop_assert_eq!(inner, padded);
            prop_assert_eq!(stream, geometry.stream_length(padded));
            prop_assert_eq!(geometry.record(padded, geometry.records(padded)).extent, 0);
        }

        /// The content of all records is the true inner stream, whatever the padding.
        #[test]
        fn content_adds_up_to_the_true_length(
            geometry in geometries(),
            padded in 40..=1_000_000_u32,
            true_part in any::<prop::sample::Index>(),
        ) {
            let true_inner = true_part.index(padded as usize + 1) as u32;
            let records = (0..geometry.records(padded)).map(|index| geometry.record(padded, index));
            let content: usize = records.map(|record| record.content(true_inner)).sum();
            prop_assert_eq!(content, true_inner as usize);
        }

        /// Absurd lengths and indices from the network never panic.
        #[test]
        fn is_total(geometry in geometries(), padded in any::<u32>(), index in any::<u32>(), offset in any::<u32>()) {
            let record = geometry.record(padded, index);
            prop_assert_eq!(record.extent == 0, index >= geometry.records(padded) || padded == 0);
            geometry.stream_length(padded);
            geometry.record_at(offset);
        }
    }
}

mod padded_max {
    use super::*;

    proptest! {
        #[test]
        fn needs_the_last_index_and_one_byte_more_does_not_fit(geometry in geometries(), bits in 8..=17_u8) {
            let padded = geometry.padded_max(bits);
            prop_assert_eq!(geometry.records(padded), 1 << bits);
            prop_assert_eq!(geometry.records(padded + 1), (1 << bits) + 1);
            let exact = u64::from(padded) + (22 << bits);
            prop_assert_eq!(u64::from(geometry.stream_length(padded)), exact);
        }
    }

    #[test]
    #[should_panic(expected = "8 to 17")]
    fn other_index_bits_are_a_programmer_error() {
        USUAL.padded_max(18);
    }
}
