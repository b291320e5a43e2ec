// SPDX-License-Identifier: Apache-2.0 OR MIT
//! RFC 9001's vectors.

use super::*;

#[test]
fn the_servers_initial_packet_is_sealed_and_opened() {
    // RFC 9001, appendix A.3; the keys are those of appendix A.1.
    let suite = Suite::Aes128Gcm;
    let key = phase_key(suite, "cf3a5331653c364c88f0f379b6067e37", "0ac1493ca1905853b0bba03e");
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
    let mut batch = Batch { packets: &mut packet, stride, id_length: 0, numbers: &[654_360_564] };
    engine.seal(connection, &mut batch).unwrap();
    assert_eq!(packet, bytes("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));
}
