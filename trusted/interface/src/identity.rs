// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions bound to the devices at their ends.

use smt::Session;
use smt_attestation::{
    Algorithm, Attestation, DeviceId, Epoch, Group, HEADER_LEN, Kind, MAC_LEN, Member, Misuse,
    PUBLIC_KEY_LEN, SIGNATURE_LEN, StreamId, verify_signature,
};
use smt_device_client::{Device, DeviceError, SecretNumber};

/// The stream of a device in a group that has no other member. Proofs spend its counters and none
/// of a real group.
pub const IDENTITY_STREAM: StreamId = StreamId(u32::MAX);
/// Bytes of a [`Proof`].
pub(crate) const PROOF_LEN: usize = HEADER_LEN + SIGNATURE_LEN;
/// The label of the secret that both ends of a session export (SPEC §7.4).
const LABEL: &str = "EXPORTER-SMT-trusted device";

/// The member at the other end, as its vendor knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Peer {
    /// Its device.
    pub device: DeviceId,
    /// The key of its device's signatures, which `smt-trusted vendor provision` prints.
    pub public_key: [u8; PUBLIC_KEY_LEN],
}

/// The end of a session that a proof is for: a proof of one end is none of the other one's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// The one that connected.
    Client = 1,
    /// The one that was connected to.
    Server = 2,
}

/// The facts that a device signs for a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    /// Bytes that only the two ends of the session have.
    pub(crate) exporter: [u8; 32],
    pub(crate) group: StreamId,
    /// The end that proves.
    pub(crate) end: End,
    pub(crate) own: DeviceId,
    pub(crate) other: DeviceId,
}

impl Binding {
    fn message(&self) -> Vec<u8> {
        let numbers = [self.group.0, self.end as u32, self.own.0, self.other.0];
        let numbers = numbers.map(u32::to_be_bytes);
        [&b"SMT session v1\0\0"[..], &self.exporter, numbers.as_flattened()].concat()
    }
}

/// A device's statement that it is at one end of a session: what it signed (32 bytes), and the
/// signature.
pub(crate) struct Proof(pub(crate) [u8; PROOF_LEN]);

impl Proof {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The epoch of the peer's device, if the proof is that of this peer and binding.
    pub(crate) fn verify(&self, peer: &Peer, binding: &Binding) -> Option<Epoch> {
        let (header, signature) = self.0.split_first_chunk::<HEADER_LEN>()?;
        let signature = signature.try_into().ok()?;
        // Without a MAC, which only the device itself could verify.
        let claim = Attestation::new(header, &[0; MAC_LEN]).claim()?;
        let is_peers = claim.device == peer.device && binding.own == peer.device;
        let is_identity = claim.stream == IDENTITY_STREAM && claim.kind == Kind::Message;
        let is_signed = verify_signature(&peer.public_key, header, &binding.message(), signature);
        (is_peers && is_identity && is_signed).then_some(claim.epoch)
    }
}

/// A device that proves which sessions it is at. It may be a second connection to the device of a
/// [`crate::Node`].
#[derive(Debug)]
pub struct Identity<D>(D);

impl<D: Device> Identity<D> {
    /// Opens the device's own stream, unless it is open already.
    ///
    /// # Errors
    /// Those of [`Device::open`].
    pub fn new(mut device: D) -> Result<Self, DeviceError> {
        let own = device.own();
        let members = [Member { device: own.device, epoch: own.epoch }];
        let (stream, algorithm) = (IDENTITY_STREAM, Algorithm::HmacSha256);
        let group = Group { stream, algorithm, quorum: 1, members: &members };
        match device.open(SecretNumber(0), &group) {
            Ok(()) | Err(DeviceError::Misuse(Misuse::StreamExists)) => Ok(Self(device)),
            Err(error) => Err(error),
        }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.0.own().device
    }

    pub(crate) fn prove(&mut self, binding: &Binding) -> Result<Proof, DeviceError> {
        let message = binding.message();
        let attestation = self.0.attest(IDENTITY_STREAM, &message)?;
        let no_claim = DeviceError::Protocol("its attestation is none");
        let counter = attestation.claim().ok_or(no_claim)?.counter;
        let signature = self.0.sign(IDENTITY_STREAM, counter, &message)?;
        let mut proof = [0; PROOF_LEN];
        proof[..HEADER_LEN].copy_from_slice(&attestation.header_bytes());
        proof[HEADER_LEN..].copy_from_slice(&signature);
        Ok(Proof(proof))
    }
}

/// The bytes that both ends of a session have, and nobody else.
pub(crate) fn exporter(session: &Session) -> Result<[u8; 32], smt::Error> {
    let mut bytes = [0; 32];
    session.export(LABEL, &[], &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use smt_attestation::{SigningKey, Start};
    use smt_device_client::Library;

    use super::*;

    fn identity(device: u32) -> (Identity<Library<1, 1, 4>>, Peer) {
        let own = Start { device: DeviceId(device), epoch: Epoch(3), nonce: [0; 16] };
        let mut library = Library::start(own, SigningKey::new(&[device as u8; 32]));
        let secret = smt_attestation::GroupSecret::new([device as u8; 32]);
        library.add_secret(SecretNumber(0), secret).unwrap();
        let peer = Peer { device: own.device, public_key: library.public_key() };
        (Identity::new(library).unwrap(), peer)
    }

    const BINDING: Binding = Binding {
        exporter: [7; 32],
        group: StreamId(4),
        end: End::Client,
        own: DeviceId(1),
        other: DeviceId(2),
    };

    #[test]
    fn a_proof_is_taken_for_its_own_session_group_end_and_devices_alone() {
        let (mut one, peer) = identity(1);
        let proof = one.prove(&BINDING).unwrap();
        assert_eq!(proof.verify(&peer, &BINDING), Some(Epoch(3)));
        let others = [
            Binding { exporter: [8; 32], ..BINDING },
            Binding { group: StreamId(5), ..BINDING },
            Binding { end: End::Server, ..BINDING },
            Binding { own: DeviceId(2), ..BINDING },
            Binding { other: DeviceId(3), ..BINDING },
        ];
        for other in others {
            assert_eq!(proof.verify(&peer, &other), None, "{other:?}");
        }
    }

    #[test]
    fn a_proof_of_another_device_or_with_a_changed_bit_is_refused() {
        let (mut one, peer) = identity(1);
        let (mut two, _) = identity(2);
        let foreign = two.prove(&BINDING).unwrap();
        assert_eq!(foreign.verify(&peer, &BINDING), None);
        let proof = one.prove(&BINDING).unwrap();
        for bit in 0..8 * PROOF_LEN {
            let mut changed = Proof(proof.0);
            changed.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.verify(&peer, &BINDING), None, "bit {bit}");
        }
        assert!(Proof::decode(&proof.0[1..]).is_none());
    }

    /// A message that the group attested, in whatever words, is no proof.
    #[test]
    fn a_signature_over_a_message_of_a_group_is_no_proof() {
        let (mut one, peer) = identity(1);
        let members = [Member { device: DeviceId(1), epoch: Epoch(3) }];
        let (stream, algorithm) = (StreamId(4), Algorithm::HmacSha256);
        // The library has one stream: a new device with the same key.
        let own = one.0.own();
        let mut library = Library::<1, 1, 4>::start(own, SigningKey::new(&[1; 32]));
        library.add_secret(SecretNumber(1), smt_attestation::GroupSecret::new([9; 32])).unwrap();
        let group = Group { stream, algorithm, quorum: 1, members: &members };
        library.open(SecretNumber(1), &group).unwrap();
        let message = BINDING.message();
        let attestation = library.attest(stream, &message).unwrap();
        let signature = library.sign(stream, 1, &message).unwrap();
        let mut proof = one.prove(&BINDING).unwrap();
        proof.0[..HEADER_LEN].copy_from_slice(&attestation.header_bytes());
        proof.0[HEADER_LEN..].copy_from_slice(&signature);
        assert_eq!(proof.verify(&peer, &BINDING), None);
    }
}
