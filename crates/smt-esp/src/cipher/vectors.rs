// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Known answers. AES-GCM: draft-mcgrew-gcm-test-01, which Linux's `crypto/testmgr.h` has too.
//! RFC 4309 and RFC 4868 have none for whole packets: those of AES-CCM-8 and HMAC were computed by
//! OpenSSL 3.5 and by Python's `hmac`.

use data_encoding::HEXLOWER;

use super::{Cipher, CipherFailed};
use crate::suite::{KeyMaterial, Suite};

struct Vector {
    suite: Suite,
    key_and_salt: &'static str,
    high: Option<u32>,
    plaintext: &'static str,
    /// SPI, lower 32 bits of the number, IV, ciphertext and ICV.
    packet: &'static str,
}

const VECTORS: [Vector; 11] = [
    Vector {
        suite: Suite::Aes128Gcm16,
        key_and_salt: "4c80cdefbb5d10da906ac73c3613a6342e443b68",
        high: Some(0x8765_4321),
        plaintext: "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000\
            00000000045f736970045f756470037369700963796265726369747902646b00\
            0021000101020201",
        packet: "00004321000000004956ed7e3b244cfefecf537e729d5b07dc30df528dd22b76\
            8d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d\
            15b21e1884f5ff6247aeabb786b93bce61bc17d768fd9732459018148f6cbe72\
            2fd04796562dfdb4",
    },
    Vector {
        suite: Suite::Aes128Gcm16,
        key_and_salt: "feffe9928665731c6d6a8f9467308308cafebabe",
        high: None,
        plaintext: "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100\
            0001000000000000037369700963796265726369747902646b00000100010001",
        packet: "0000a5f80000000afacedbaddecaf888deb22cd9b07c72c16e3a65beeb8df304\
            a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642\
            cfbb85a5b47e48a4ec3b9ba95d918bd183b70d3aa8bc6ee4c309e9d85a41ad4a",
    },
    Vector {
        suite: Suite::Aes256Gcm16,
        key_and_salt: "abbccddef00112233445566778899aababbccddef00112233445566778899aab\
            11223344",
        high: None,
        plaintext: "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee000000000\
            7002400020bf0000020405b40101040201020201",
        packet: "4a2cbfe3000000020102030405060708ff425c9b724599df7a3bcd510194e00d\
            6a78107f1b0b1cbf06efae9d65a5d763748a637985771d347f0545659f14e99d\
            ef842d8eb335f4eecfdbf831824b4c4915956c96",
    },
    Vector {
        suite: Suite::Aes128Gcm16,
        key_and_salt: "0000000000000000000000000000000000000000",
        high: None,
        plaintext: "4500003c99c500008001cb7a40679318010101010800075c0200440061626364\
            65666768696a6b6c6d6e6f707172737475767761626364656667686901020201",
        packet: "000000000000000100000000000000004688daf2f973a392732909c331d56d60\
            f694abaa414b5e7ff5fdcdfff5e9a284456476492719ffb64de7d9dca1e1d894\
            bc3bd57873ed4d181d19d4d5c8c18af3f821d496eeb096e98ad2b69e4799c71d",
    },
    Vector {
        suite: Suite::Aes256Gcm16,
        key_and_salt: "abbccddef00112233445566778899aababbccddef00112233445566778899aab\
            73616c74",
        high: Some(0x156f_3126),
        plaintext: "45080028732c00004006e9f90a0106120a01038f06b88023dd6bafbecb712602\
            50101f646d540001",
        packet: "17405e67dd0db99b616e640169766563f2d69ecdbd5a0d5b8d5ef38bad4da58d\
            1f278fde98ef67549d524a3018d9a57ff4d3a31ce673119e451626c2415771e3\
            b7eebca614c89b35",
    },
    Vector {
        suite: Suite::Aes128Gcm16,
        key_and_salt: "7d773d00c144c525ac619d18c84a3f47d9664267",
        high: None,
        plaintext: "01020201",
        packet: "335467aeffffffff43457e9182443bc6437f866bcb3f699fe9b0822bac961c45\
            04bef270",
    },
    Vector {
        suite: Suite::Aes256Gcm16,
        key_and_salt: "6c6567616c697a656d6172696a75616e61616e64646f69746265666f72656961\
            7475726e",
        high: Some(u32::MAX),
        plaintext: "45000030da3a00008001df3bc0a80005c0a800010800c6cd0200070061626364\
            65666768696a6b6c6d6e6f707172737401020201",
        packet: "796b6963ffffffff333021696765746df97ab2aa356d8edce17644ac8c78e25d\
            d24dedbb29ebf1b64a274b39b49c3a864cd3d78ca4ae68a32b42458fb57dbe82\
            1dcc63b9d0937ba2945f669368661a329fb4c053",
    },
    Vector {
        suite: Suite::Aes128Ccm8,
        key_and_salt: "101112131415161718191a1b1c1d1e1fa1a2a3",
        high: None,
        plaintext: "080055aa000100027369787465656e206279746573206f6b01020201",
        packet: "c0ffee01000000070000000000000007624d73db68d6e2c7b94074ae652d55f7\
            acafb3c14930745df135f81b0cd4ab8e865cfda4",
    },
    Vector {
        suite: Suite::Aes128Ccm8,
        key_and_salt: "101112131415161718191a1b1c1d1e1fa1a2a3",
        high: Some(3),
        plaintext: "080055aa000100027369787465656e206279746573206f6b01020201",
        packet: "c0ffee01000000070000000000000007624d73db68d6e2c7b94074ae652d55f7\
            acafb3c14930745df135f81b4ecce57f350d4a64",
    },
    Vector {
        suite: Suite::NullHmacSha256,
        key_and_salt: "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f",
        high: None,
        plaintext: "080055aa000100027369787465656e206279746573206f6b01020201",
        packet: "c0ffee0100000007080055aa000100027369787465656e206279746573206f6b\
            01020201a99374b395c2c5bbf6f6a5653c02b983",
    },
    Vector {
        suite: Suite::NullHmacSha256,
        key_and_salt: "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f",
        high: Some(3),
        plaintext: "080055aa000100027369787465656e206279746573206f6b01020201",
        packet: "c0ffee0100000007080055aa000100027369787465656e206279746573206f6b\
            010202018529e90fc81bf9e86dbf7ad37add6e39",
    },
];

fn bytes(hex: &str) -> Vec<u8> {
    HEXLOWER.decode(hex.as_bytes()).unwrap()
}

impl Vector {
    fn cipher(&self) -> Cipher {
        Cipher::new(&KeyMaterial::new(self.suite, &bytes(self.key_and_salt)).unwrap())
    }
}

#[test]
fn every_known_answer_is_sealed_and_opened() {
    for vector in &VECTORS {
        let (plaintext, packet) = (bytes(vector.plaintext), bytes(vector.packet));
        let body_at = 8 + vector.suite.iv_len();
        let mut sealed = packet[..body_at].to_vec();
        sealed.extend_from_slice(&plaintext);
        sealed.resize(packet.len(), 0);
        vector.cipher().seal(&mut sealed, vector.high).unwrap();
        assert_eq!(sealed, packet, "{}", vector.packet);
        vector.cipher().open(&mut sealed, vector.high).unwrap();
        assert_eq!(sealed[body_at..body_at + plaintext.len()], plaintext);
    }
}

#[test]
fn a_packet_with_other_high_bits_or_a_changed_bit_is_not_opened() {
    for vector in &VECTORS {
        let packet = bytes(vector.packet);
        let other = vector.high.map_or(Some(0), |high| Some(high ^ 1));
        let mut opened = packet.clone();
        assert_eq!(vector.cipher().open(&mut opened, other), Err(CipherFailed));
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            let opened = vector.cipher().open(&mut changed, vector.high);
            assert_eq!(opened, Err(CipherFailed), "byte {at} of {}", vector.packet);
        }
    }
}

#[test]
fn a_packet_that_is_cut_is_not_opened() {
    for vector in &VECTORS {
        let packet = bytes(vector.packet);
        for length in 0..packet.len() {
            let mut cut = packet[..length].to_vec();
            let opened = vector.cipher().open(&mut cut, vector.high);
            assert_eq!(opened, Err(CipherFailed));
        }
    }
}
