// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The devices of a group's replicas.

use smt_attestation::{Algorithm, DeviceId, Epoch, Group, Member, SigningKey, Start, StreamId};
use smt_device_client::{Device, DeviceError, Library};

use crate::keys::GroupKeys;

/// Devices by their numbers, each in its first epoch.
pub trait Devices {
    /// A device as its host uses it.
    type Device: Device;

    /// The device of a replica, which has the group's secret and no stream yet.
    ///
    /// # Errors
    /// Those of the way to the device.
    fn open(&self, number: u32) -> Result<Self::Device, DeviceError>;
}

/// The kernel as a library in this process.
#[derive(Clone, Copy, Debug)]
pub struct InProcess;

impl Devices for InProcess {
    type Device = Library<1, 8, 64>;

    fn open(&self, number: u32) -> Result<Self::Device, DeviceError> {
        let start = Start { device: DeviceId(number), epoch: Epoch(1), nonce: [0; 16] };
        // No replica has a statement signed, so the key signs nothing.
        let mut library = Library::start(start, SigningKey::new(&[0; 32]));
        library.add_secret(GroupKeys::SECRET, GroupKeys::secret())?;
        Ok(library)
    }
}

/// The devices of a group as its kernels know them: replica N has device N.
#[must_use]
pub(crate) fn members(group: &smt_replica::Group) -> Vec<Member> {
    let epochs = (0..).zip(&group.epochs);
    epochs
        .map(|(device, epoch)| Member { device: DeviceId(device), epoch: Epoch(*epoch) })
        .collect()
}

/// Opens the group's stream, in which the device must have attested nothing: the first statement
/// of a replica of `minbft` has the first counter.
pub(crate) fn open_stream(
    device: &mut impl Device,
    group: &smt_replica::Group,
    members: &[Member],
) -> Result<StreamId, DeviceError> {
    let stream = StreamId(group.stream);
    let quorum = u32::try_from(group.quorum()).unwrap_or(u32::MAX);
    let algorithm = Algorithm::HmacSha256;
    device.open(GroupKeys::SECRET, &Group { stream, algorithm, quorum, members })?;
    Ok(stream)
}
