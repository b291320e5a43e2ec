// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The services of `smt-trusted bft` and `smt-trusted chain`.

use serde::Deserialize;
use smt_replica::{AnyService, ServiceKind};

/// The services that can be replicated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServiceName {
    Counter,
    KeyValue,
}

impl ServiceName {
    /// The service in its first state.
    pub(crate) fn first_state(self) -> AnyService {
        AnyService::new(match self {
            Self::Counter => ServiceKind::Counter,
            Self::KeyValue => ServiceKind::KeyValue,
        })
    }

    /// The name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::KeyValue => "key-value",
        }
    }
}
