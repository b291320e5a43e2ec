// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use alloc::vec::Vec;

use super::header_key::HeaderKey;
use super::packet_key::PacketKey;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn phase_key(suite: Suite, key: &str, iv: &str) -> PhaseKey {
    PhaseKey::new(suite, &bytes(key), bytes(iv).try_into().unwrap()).unwrap()
}

fn header_key(suite: Suite, key: &str) -> HeaderProtectionKey {
    HeaderProtectionKey::new(suite, &bytes(key)).unwrap()
}

mod vectors {
    use super::*;

    #[test]
    fn the_servers_initial_packet_is_sealed_and_opened() {
        // RFC 9001, appendix A.3; the keys are those of appendix A.1.
        let suite = Suite::Aes128Gcm;
        let key = phase_key(
            suite,
            "cf3a5331653c364c88f0f379b6067e37",
            "0ac1493ca1905853b0bba03e",
        );
        let key = PacketKey::new(&key);
        let header = bytes("c1000000010008f067a5502a4262b50040750001");
        let frames = bytes(
            "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739\
             88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94\
             0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00\
             020304",
        );
        let mut payload = [&frames[..], &[0; 16]].concat();
        key.seal(1, &header, &mut payload);
        let sample = payload[2..18].try_into().unwrap();
        let mask = HeaderKey::new(&header_key(suite, "c206b8d9b9f0f37644430b490eeaa314"));
        assert_eq!(mask.mask(&sample).to_vec(), bytes("2ec0d8356a"));
        let sealed = bytes(
            "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f\
             5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73\
             cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850\
             abbdca3d20398c276456cbc42158407dd074ee",
        );
        assert_eq!(payload, sealed);
        key.open(1, &header, &mut payload).unwrap();
        assert_eq!(&payload[..frames.len()], frames);
    }

    #[test]
    fn the_clients_initial_mask_is_that_of_the_rfc() {
        // RFC 9001, appendix A.2.
        let key = header_key(Suite::Aes128Gcm, "9f50449e04a0e810283a1e9933adedd2");
        let sample = bytes("d1b1c98dd7689fb8ec11d242b123dc9b");
        let mask = HeaderKey::new(&key).mask(&sample.try_into().unwrap());
        assert_eq!(mask.to_vec(), bytes("437b9aec36"));
    }

    #[test]
    fn the_short_header_packet_is_sealed_by_the_engine() {
        // RFC 9001, appendix A.5: ChaCha20-Poly1305, no connection id.
        let suite = Suite::ChaCha20Poly1305;
        let key = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8";
        let key = phase_key(suite, key, "e0459b3474bdd0e44a41c144");
        let hp = "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";
        let hp = header_key(suite, hp);
        let mut engine = engine(1, 4);
        let connection = engine
            .add(&ConnectionKeys {
                receive: key.clone(),
                receive_next: None,
                receive_header: hp.clone(),
                transmit: key,
                transmit_header: hp,
                generation: 0,
                largest: None,
                sealed: 0,
            })
            .unwrap();
        let mut packet = bytes("4200bff401 00000000000000000000000000000000");
        let stride = packet.len();
        let mut batch = Batch {
            packets: &mut packet,
            stride,
            id_length: 0,
            numbers: &[654_360_564],
        };
        engine.seal(connection, &mut batch).unwrap();
        assert_eq!(packet, bytes("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));
    }
}

const ID: [u8; 8] = [9, 8, 7, 6, 5, 4, 3, 2];

fn engine(connections_max: u32, id_places: usize) -> QuicEngine {
    QuicEngine::new(&QuicConfig {
        connections_max,
        id_places,
        id_length: 8,
        hash_key: [5; 16],
    })
    .unwrap()
}

/// The key of a phase: any bytes that no other phase has.
fn key_of(suite: Suite, generation: u64) -> PhaseKey {
    let byte = 1 + generation as u8;
    PhaseKey::new(suite, &[byte; 32][..suite.key_bytes()], [byte; 12]).unwrap()
}

/// Keys of a peer that has the same ones in both directions.
fn keys(suite: Suite) -> ConnectionKeys {
    let header = HeaderProtectionKey::new(suite, &[200; 32][..suite.key_bytes()]).unwrap();
    ConnectionKeys {
        receive: key_of(suite, 0),
        receive_next: Some(key_of(suite, 1)),
        receive_header: header.clone(),
        transmit: key_of(suite, 0),
        transmit_header: header,
        generation: 0,
        largest: None,
        sealed: 0,
    }
}

/// A connection with the id, and an engine of the peer that seals for it.
struct Pair {
    here: QuicEngine,
    connection: Handle,
    peer: QuicEngine,
    at_peer: Handle,
}

impl Pair {
    fn new(suite: Suite) -> Self {
        let (mut here, mut peer) = (engine(4, 16), engine(4, 16));
        let connection = here.add(&keys(suite)).unwrap();
        here.add_id(connection, ConnectionId::new(&ID).unwrap())
            .unwrap();
        let at_peer = peer.add(&keys(suite)).unwrap();
        Self {
            here,
            connection,
            peer,
            at_peer,
        }
    }

    /// A packet of the peer, in the phase that its key is of.
    fn sealed(&mut self, number: u64, generation: u64) -> Vec<u8> {
        let first = 0x43 | if generation % 2 == 1 { 0x04 } else { 0 };
        let low = (number as u32).to_be_bytes();
        let frames = number.to_be_bytes();
        let mut packet = [&[first][..], &ID, &low, &frames, &[0; 16]].concat();
        let stride = packet.len();
        let mut batch = Batch {
            packets: &mut packet,
            stride,
            id_length: ID.len(),
            numbers: &[number],
        };
        self.peer.seal(self.at_peer, &mut batch).unwrap();
        packet
    }

    /// Hands a packet to the engine. One that opens has its number as its frames.
    fn receive(&mut self, packet: &[u8]) -> Received {
        let mut received = packet.to_vec();
        let outcome = self.here.receive(&mut received);
        match &outcome {
            Received::Opened(opened) => {
                assert_eq!(
                    received[opened.payload.clone()],
                    opened.number.to_be_bytes()
                );
            }
            Received::Untouched(_) => assert_eq!(received, packet, "it goes up as it came"),
        }
        outcome
    }

    fn open(&mut self, packet: &[u8]) -> Opened {
        match self.receive(packet) {
            Received::Opened(opened) => opened,
            Received::Untouched(why) => panic!("{why:?}"),
        }
    }
}

const SUITES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

mod receive {
    use super::*;

    #[test]
    fn packets_of_every_suite_are_opened_and_repetitions_are_told() {
        for suite in SUITES {
            let mut pair = Pair::new(suite);
            for number in [0, 1, 5, 3, 1_000_000, 999_999] {
                let packet = pair.sealed(number, 0);
                let opened = pair.open(&packet);
                assert_eq!((opened.number, opened.generation), (number, 0));
                assert_eq!(opened.freshness, Freshness::New);
                assert_eq!(pair.open(&packet).freshness, Freshness::Duplicate);
            }
            assert_eq!(pair.here.counters().duplicates, 6);
        }
    }

    #[test]
    fn a_changed_packet_goes_up_as_it_came_and_moves_nothing() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let packet = pair.sealed(7, 0);
        for at in 1 + ID.len()..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x10;
            assert_eq!(
                pair.receive(&changed),
                Received::Untouched(Untouched::NotOpened)
            );
        }
        let mut flipped = packet.clone();
        flipped[0] ^= 0x04;
        pair.receive(&flipped);
        assert_eq!(pair.open(&packet).freshness, Freshness::New);
        assert_eq!(pair.here.counters().not_opened, packet.len() as u64 - 8);
    }

    #[test]
    fn long_headers_unknown_ids_and_short_packets_go_up_as_they_came() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let packet = pair.sealed(7, 0);
        let mut long = packet.clone();
        long[0] |= 0x80;
        assert_eq!(
            pair.receive(&long),
            Received::Untouched(Untouched::LongHeader)
        );
        let mut unknown = packet.clone();
        unknown[1] ^= 1;
        let unknown = pair.receive(&unknown);
        assert_eq!(unknown, Received::Untouched(Untouched::UnknownConnection));
        for length in 0..1 + ID.len() + 4 + 16 {
            let short = Received::Untouched(Untouched::TooShort);
            assert_eq!(pair.receive(&packet[..length]), short, "{length}");
        }
        pair.here.remove(pair.connection);
        let removed = pair.receive(&packet);
        assert_eq!(removed, Received::Untouched(Untouched::UnknownConnection));
        assert_eq!(pair.here.sizes(), (0, 0));
    }

    #[test]
    fn the_integrity_limit_stops_a_connection_and_counts_softwares_failures() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let packet = pair.sealed(7, 0);
        let mut changed = packet.clone();
        changed[20] ^= 1;
        let of = pair.here.connections.get_mut(pair.connection).unwrap();
        *of = of.clone().with_limits(10, 3);
        pair.receive(&changed);
        pair.here.count_failures(pair.connection, 1);
        pair.open(&packet);
        pair.receive(&changed);
        let stopped = Received::Untouched(Untouched::IntegrityLimit);
        assert_eq!(pair.receive(&packet), stopped);
    }
}

mod in_step {
    use super::*;

    #[test]
    fn every_sample_has_a_mask() {
        // The block counter of ChaCha20 is the sample's: the last block is one of them.
        let mut pair = Pair::new(Suite::ChaCha20Poly1305);
        let mut packet = pair.sealed(7, 0);
        packet[13..17].copy_from_slice(&[0xff; 4]);
        let forged = pair.receive(&packet);
        assert_eq!(forged, Received::Untouched(Untouched::NotOpened));
    }

    #[test]
    fn a_connection_that_was_admitted_late_goes_on_from_softwares_numbers() {
        let suite = Suite::Aes128Gcm;
        let mut pair = Pair::new(suite);
        pair.here.remove(pair.connection);
        let keys = ConnectionKeys {
            largest: Some(1 << 40),
            ..keys(suite)
        };
        pair.connection = pair.here.add(&keys).unwrap();
        let id = ConnectionId::new(&ID).unwrap();
        pair.here.add_id(pair.connection, id).unwrap();
        let packet = pair.sealed((1 << 40) + 1, 0);
        assert_eq!(pair.open(&packet).number, (1 << 40) + 1);
        pair.here.note_opened(pair.connection, (1 << 40) + 5);
        let packet = pair.sealed((1 << 40) + 5, 0);
        assert_eq!(pair.open(&packet).freshness, Freshness::Duplicate);
    }

    #[test]
    fn packets_that_software_has_sealed_count_towards_the_limit() {
        let suite = Suite::Aes128Gcm;
        let mut pair = Pair::new(suite);
        pair.peer.count_seals(pair.at_peer, suite.seals_max() - 1);
        pair.sealed(1, 0);
        let mut packet = [&[0x43][..], &ID, &[0, 0, 0, 2], &[0; 24]].concat();
        let stride = packet.len();
        let mut batch = Batch {
            packets: &mut packet,
            stride,
            id_length: ID.len(),
            numbers: &[2],
        };
        let sealed = pair.peer.seal(pair.at_peer, &mut batch);
        assert_eq!(sealed, Err(NotSealed::ConfidentialityLimit));
        let same = pair
            .peer
            .set_transmit_key(pair.at_peer, &key_of(suite, 0), 0);
        assert!(!same, "the same phase again would have no limit");
        assert!(
            pair.peer
                .set_transmit_key(pair.at_peer, &key_of(suite, 1), 1)
        );
    }

    #[test]
    fn a_lower_number_of_the_next_phase_does_not_move_on() {
        let suite = Suite::Aes128Gcm;
        let mut pair = Pair::new(suite);
        let packet = pair.sealed(9, 0);
        pair.open(&packet);
        pair.peer
            .set_transmit_key(pair.at_peer, &key_of(suite, 1), 1);
        let wrong = pair.sealed(8, 1);
        assert_eq!(pair.receive(&wrong), Received::Untouched(Untouched::NoKey));
        let right = pair.sealed(10, 1);
        assert_eq!(pair.open(&right).generation, 1);
    }

    #[test]
    fn ids_without_bytes_are_the_hosts() {
        for id_length in [0, 21] {
            let config = QuicConfig {
                connections_max: 1,
                id_places: 8,
                id_length,
                hash_key: [1; 16],
            };
            let refused = QuicEngine::new(&config).err();
            assert_eq!(refused, Some(QuicTableError::BadIdLength));
        }
    }
}

mod key_update {
    use super::*;

    #[test]
    fn the_peers_first_packet_of_the_next_phase_moves_on_and_late_ones_still_open() {
        let mut pair = Pair::new(Suite::ChaCha20Poly1305);
        let late = pair.sealed(8, 0);
        let packet = pair.sealed(9, 0);
        pair.open(&packet);
        let next = key_of(Suite::ChaCha20Poly1305, 1);
        assert!(pair.peer.set_transmit_key(pair.at_peer, &next, 1));
        let packet = pair.sealed(10, 1);
        assert_eq!(pair.open(&packet).generation, 1);
        assert_eq!(pair.open(&late).generation, 0);
        pair.here.drop_previous_key(pair.connection);
        // Its phase is the next one's bit again, and that key is not there.
        assert_eq!(pair.receive(&late), Received::Untouched(Untouched::NoKey));
    }

    #[test]
    fn a_forged_flip_of_the_phase_changes_nothing() {
        let mut pair = Pair::new(Suite::Aes256Gcm);
        let packet = pair.sealed(9, 0);
        let mut forged = packet.clone();
        // The bit is masked, and flips all the same.
        forged[0] ^= 0x04;
        assert_eq!(
            pair.receive(&forged),
            Received::Untouched(Untouched::NotOpened)
        );
        assert_eq!(pair.open(&packet).generation, 0);
    }

    #[test]
    fn a_key_that_comes_after_its_phase_is_refused_and_software_opens_meanwhile() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let suite = Suite::Aes128Gcm;
        for generation in 1..=2 {
            let key = key_of(suite, generation);
            pair.peer.set_transmit_key(pair.at_peer, &key, generation);
            let packet = pair.sealed(generation * 10, generation);
            if generation == 2 {
                assert_eq!(pair.receive(&packet), Received::Untouched(Untouched::NoKey));
                assert!(
                    !pair
                        .here
                        .set_next_key(pair.connection, &key_of(suite, 1), 1)
                );
                assert!(pair.here.set_next_key(pair.connection, &key, 2));
            }
            assert_eq!(pair.open(&packet).generation, generation);
        }
    }
}

mod table {
    use super::*;

    #[test]
    fn ids_come_and_go_while_the_connection_runs() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let other = ConnectionId::new(&[1; 8]).unwrap();
        assert_eq!(pair.here.add_id(pair.connection, other), Ok(()));
        let in_use = pair.here.add_id(pair.connection, other);
        assert_eq!(in_use, Err(QuicTableError::IdInUse));
        let packet = pair.sealed(1, 0);
        let first = ConnectionId::new(&ID).unwrap();
        assert!(pair.here.remove_id(pair.connection, &first));
        assert!(!pair.here.remove_id(pair.connection, &first));
        let unknown = Received::Untouched(Untouched::UnknownConnection);
        assert_eq!(pair.receive(&packet), unknown);
        let short = ConnectionId::new(&[1; 4]).unwrap();
        let wrong = pair.here.add_id(pair.connection, short);
        assert_eq!(wrong, Err(QuicTableError::BadIdLength));
    }

    #[test]
    fn a_handle_of_a_removed_connection_means_no_later_one() {
        let mut engine = engine(1, 4);
        let keys = keys(Suite::Aes128Gcm);
        let first = engine.add(&keys).unwrap();
        assert_eq!(engine.add(&keys), Err(QuicTableError::NoRoom));
        engine.remove(first);
        let second = engine.add(&keys).unwrap();
        assert_ne!(first, second);
        let id = ConnectionId::new(&ID).unwrap();
        assert_eq!(
            engine.add_id(first, id),
            Err(QuicTableError::UnknownConnection)
        );
        assert_eq!(engine.add_id(second, id), Ok(()));
        engine.remove(first);
        assert_eq!(engine.sizes(), (1, 1));
    }
}

mod seal {
    use super::*;

    fn built(numbers: &[u64], payload: usize) -> Vec<u8> {
        let packet = |number: &u64| {
            let low = (*number as u16).to_be_bytes();
            let body = alloc::vec![number.to_be_bytes()[7]; payload + 16];
            [&[0x41][..], &ID, &low, &body].concat()
        };
        numbers.iter().flat_map(packet).collect()
    }

    #[test]
    fn a_batch_is_cut_by_its_stride_and_each_packet_opens() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let numbers = [4, 5, 9];
        let mut packets = built(&numbers, 100);
        packets.truncate(packets.len() - 40);
        let stride = 11 + 116;
        let mut batch = Batch {
            packets: &mut packets,
            stride,
            id_length: ID.len(),
            numbers: &numbers,
        };
        pair.peer.seal(pair.at_peer, &mut batch).unwrap();
        for (packet, number) in packets.chunks(stride).zip(numbers) {
            let mut packet = packet.to_vec();
            let Received::Opened(opened) = pair.here.receive(&mut packet) else {
                panic!("packet {number} does not open");
            };
            assert_eq!(opened.number, number);
            assert!(
                packet[opened.payload]
                    .iter()
                    .all(|byte| *byte == number as u8)
            );
        }
    }

    #[test]
    fn a_batch_with_a_bad_packet_or_beyond_the_limit_is_left_as_it_was() {
        let mut pair = Pair::new(Suite::Aes128Gcm);
        let of = pair.peer.connections.get_mut(pair.at_peer).unwrap();
        *of = of.clone().with_limits(2, 10);
        let whole = built(&[4, 5], 20);
        let stride = whole.len() / 2;
        let mut attempt = |packets: &mut Vec<u8>, numbers: &[u64]| {
            let mut batch = Batch {
                packets,
                stride,
                id_length: ID.len(),
                numbers,
            };
            pair.peer.seal(pair.at_peer, &mut batch)
        };
        let mut packets = whole.clone();
        let wrong_number = attempt(&mut packets, &[4, 6]);
        assert_eq!(wrong_number, Err(NotSealed::BadPacket(1)));
        let mut long = whole.clone();
        long[0] |= 0x80;
        assert_eq!(attempt(&mut long, &[4, 5]), Err(NotSealed::BadPacket(0)));
        let mut phase = whole.clone();
        phase[stride] ^= 0x04;
        assert_eq!(attempt(&mut phase, &[4, 5]), Err(NotSealed::BadPacket(1)));
        let mut three = [&whole[..], &built(&[6], 20)].concat();
        let before = three.clone();
        let limit = attempt(&mut three, &[4, 5, 6]);
        assert_eq!(
            (limit, three),
            (Err(NotSealed::ConfidentialityLimit), before)
        );
        assert_eq!(packets, whole);
        assert_eq!(attempt(&mut packets, &[4, 5]), Ok(()));
        let mut more = built(&[6], 20);
        assert_eq!(
            attempt(&mut more, &[6]),
            Err(NotSealed::ConfidentialityLimit)
        );
    }
}
