// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The answers that shipped clients can take.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use smt_replica::{Proof, Reply, Request, SigningKey};

use crate::MessageId;

/// An answer that no service gives.
pub(crate) const WRONG: &[u8] = b"wrong";

/// Answers by client.
pub(crate) type Taken = Arc<BTreeSet<(u32, Vec<u8>)>>;

/// The answers that clients can take, by what correct nodes have told them.
#[derive(Default)]
pub(crate) struct Answers(RwLock<HashMap<BTreeSet<MessageId>, Taken>>);

impl Answers {
    /// The answers after these replies of correct nodes, which `take` finds the first time.
    pub(crate) fn after(
        &self,
        told: BTreeSet<MessageId>,
        take: impl FnOnce(&BTreeSet<MessageId>) -> BTreeSet<(u32, Vec<u8>)>,
    ) -> Taken {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = known.get(&told) {
            return taken.clone();
        }
        drop(known);
        let taken = Arc::new(take(&told));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(told, taken.clone());
        taken
    }
}

/// All that a client takes of messages, in whatever order they come, where two are enough for an
/// answer: a client forgets none that it has. `start` makes a client that waits for its answer.
pub(crate) fn takes<C>(
    messages: &[Vec<u8>],
    start: impl Fn() -> C,
    receive: impl Fn(&mut C, &[u8]) -> Option<Vec<u8>>,
) -> BTreeSet<Vec<u8>> {
    let orders = messages.iter().flat_map(|one| messages.iter().map(move |other| [one, other]));
    let answer = |order: [&Vec<u8>; 2]| {
        let mut client = start();
        order.into_iter().find_map(|it| receive(&mut client, it))
    };
    orders.filter_map(answer).collect()
}

/// The replies of liars beside those of correct nodes: of each the same, a wrong one to each
/// request, and a wrong one in the name of each correct node.
pub(crate) fn lies(
    (nodes, liars): (u32, &[u32]),
    requests: &[Request],
    correct: &[Reply],
    key: impl Fn(u32) -> SigningKey,
) -> Vec<Reply> {
    let wrong = requests.iter().map(|it| Reply {
        replica: 0,
        view: 0,
        client: it.client,
        number: it.number,
        request: it.digest(),
        result: Ok(WRONG.to_vec()),
        proof: Proof::default(),
    });
    let told: Vec<Reply> = correct.iter().cloned().chain(wrong).collect();
    let mut lies = Vec::new();
    for liar in liars {
        let key = key(*liar);
        let signed = |it: &Reply, replica| Reply { replica, view: 0, ..it.clone() }.sign(&key);
        lies.extend(told.iter().map(|it| signed(it, *liar)));
        for name in (0..nodes).filter(|it| !liars.contains(it)) {
            let wrong = told.iter().filter(|it| it.result.as_deref() == Ok(WRONG));
            lies.extend(wrong.map(|it| signed(it, name)));
        }
    }
    lies
}
