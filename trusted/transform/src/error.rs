// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reasons for which a node stops.

use std::sync::Arc;

use smt_replica::AttestorError;

use crate::message::Input;

/// Why a node stops.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NodeError {
    /// Two runs of the protocol had different effects on the same inputs. The step was not
    /// attested, so that the node has stopped, and not lied.
    #[error(
        "the protocol: two runs of it had different effects on {0}: it depends on something else \
         than its inputs, as on a clock, random numbers or the order of a hash table"
    )]
    NotDeterministic(Box<Input>),
    /// The effects of the protocol have more bytes than a step may have. The step was not attested:
    /// none of those after it would have reached anyone.
    #[error(
        "the protocol: its effects on {input} make a step of {bytes} bytes, and a step of this \
         group has at most {max}"
    )]
    StepTooLong {
        /// The input.
        input: Box<Input>,
        /// The length of the step.
        bytes: usize,
        /// The group's longest step.
        max: usize,
    },
    /// The device gives no more attestations.
    #[error("the device gives no more attestations: {0}")]
    Device(Arc<AttestorError>),
}
