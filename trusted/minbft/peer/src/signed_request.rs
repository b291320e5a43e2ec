// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client's signed request as the payload of `minbft`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use minbft::RequestPayload;
use serde::{Deserialize, Serialize};
use shared_ids::{ClientId, RequestId};
use smt_replica::{Group, KnownRoots, Request};

/// How often a replica verifies the signature of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verification {
    /// Whenever `minbft` asks: with the request, and with each PREPARE, which each COMMIT repeats.
    EachTime,
    /// Once, while the request is the newest of its client.
    Once,
}

/// The knowledge by which requests are verified.
pub(crate) struct Verifier {
    group: Arc<Group>,
    verification: Verification,
    /// The newest genuine request of each client.
    genuine: BTreeMap<u32, Request>,
}

impl Verifier {
    pub(crate) fn new(group: Arc<Group>, verification: Verification) -> Self {
        Self { group, verification, genuine: BTreeMap::new() }
    }

    fn verify(&mut self, request: &Request) -> Result<()> {
        if self.genuine.get(&request.client) == Some(request) {
            return Ok(());
        }
        let key = self.group.clients.get(&request.client);
        let key = key.ok_or_else(|| anyhow!("no client of the group"))?;
        if request.operation.len() > self.group.options.operation {
            return Err(anyhow!("the operation is longer than the group permits"));
        }
        if !request.is_signed_by(key, &KnownRoots::default()) {
            return Err(anyhow!("the client has not signed it"));
        }
        let known = self.genuine.get(&request.client);
        let is_newest = known.is_none_or(|it| it.number < request.number);
        if self.verification == Verification::Once && is_newest {
            self.genuine.insert(request.client, request.clone());
        }
        Ok(())
    }

    /// Calls `minbft`, which verifies by this.
    pub(crate) fn during<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let empty = Self::new(self.group.clone(), self.verification);
        let own = std::mem::replace(self, empty);
        CURRENT.with_borrow_mut(|it| *it = Some(own));
        let result = call();
        if let Some(own) = CURRENT.take() {
            *self = own;
        }
        result
    }
}

thread_local! {
    /// The verifier of the replica that works in this thread. A payload of `minbft` verifies
    /// itself, and is told nothing but the number of its client.
    static CURRENT: RefCell<Option<Verifier>> = const { RefCell::new(None) };
}

/// A request as `minbft` orders it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SignedRequest(pub(crate) Request);

impl RequestPayload for SignedRequest {
    fn id(&self) -> RequestId {
        RequestId::from_u64(self.0.number)
    }

    fn verify(&self, client: ClientId) -> Result<()> {
        if client.as_u64() != u64::from(self.0.client) {
            return Err(anyhow!("another client's request"));
        }
        CURRENT.with_borrow_mut(|it| match it {
            Some(verifier) => verifier.verify(&self.0),
            None => Err(anyhow!("no replica works in this thread")),
        })
    }
}
