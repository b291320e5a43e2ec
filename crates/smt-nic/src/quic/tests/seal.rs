// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that the host has built are sealed.

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
    let mut batch = Batch { packets: &mut packets, stride, id_length: ID.len(), numbers: &numbers };
    pair.peer.seal(pair.at_peer, &mut batch).unwrap();
    for (packet, number) in packets.chunks(stride).zip(numbers) {
        let mut packet = packet.to_vec();
        let Received::Opened(opened) = pair.here.receive(&mut packet) else {
            panic!("packet {number} does not open");
        };
        assert_eq!(opened.number, number);
        assert!(packet[opened.payload].iter().all(|byte| *byte == number as u8));
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
        let mut batch = Batch { packets, stride, id_length: ID.len(), numbers };
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
    assert_eq!((limit, three), (Err(NotSealed::ConfidentialityLimit), before));
    assert_eq!(packets, whole);
    assert_eq!(attempt(&mut packets, &[4, 5]), Ok(()));
    let mut more = built(&[6], 20);
    assert_eq!(attempt(&mut more, &[6]), Err(NotSealed::ConfidentialityLimit));
}
