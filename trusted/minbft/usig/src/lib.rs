// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trusted device behind the trait [`usig::Usig`], for protocols that are written against it.
//!
//! [`DeviceUsig`] is a device's stream in one group, and any [`smt_device_client::Device`] can be
//! below it: the kernel in this process, or the device process of this host.
//!
//! | `usig` | the device |
//! |---|---|
//! | `sign` | attests under the stream's next counter |
//! | `verify` | `check`: it changes nothing, and the protocol judges the counter |
//! | `Counter::counter` | the counter of the attestation less 1, for `usig` begins at 0 |
//! | `attest` | an [`Introduction`]: number and epoch. The group's key proves them |
#![forbid(unsafe_code)]

mod device_usig;
mod halves;
mod introduction;
mod signature;

pub use device_usig::DeviceUsig;
pub use halves::{DeviceSignHalf, DeviceVerifyHalf, Watch};
pub use introduction::{Introduction, Parties};
pub use signature::{DeviceSignature, NoSignature};
