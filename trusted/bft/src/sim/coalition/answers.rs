// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars and clients.

use smt_replica::sim::{CLIENTS, To};
use smt_replica::{AnyService, Digest, Proof, Reply, Standing};

use crate::message::Message;
use crate::replica::Replica;
use crate::sim::coalition::{Coalition, Correct, Lie};
use crate::sim::step::{By, StepName};

/// Number and digest of a request, and an answer to it.
type Answer = (u64, Digest, Vec<u8>);

impl Coalition {
    /// Gives one replica alone a request of the client whose key liars have.
    pub(super) fn ask(&mut self, of: u32) {
        let bytes = Message::Request(self.own_request()).encode();
        let from = self.those(By::All).first().copied().unwrap_or(0);
        self.carried_out.insert(StepName::Ask);
        self.sent.push(Lie { from, to: To::Node(of), bytes, steps: vec![StepName::Ask] });
    }

    /// Gives all clients the answers of one replica, or answers that are wrong, all alike.
    pub(super) fn answer(&mut self, of: Option<u32>, correct: &Correct<'_>) {
        let name = if of.is_some() { StepName::AnswerAlike } else { StepName::AnswerWrong };
        for client in CLIENTS {
            let answer = match of {
                Some(of) => correct[of as usize].and_then(|it| last_answer(client, it)),
                None => wrong_answer(client, correct),
            };
            let Some((number, request, result)) = answer else {
                continue;
            };
            for member in self.members.values() {
                let (replica, view) = (member.own(), member.core.metrics.view);
                let (result, proof) = (Ok(result.clone()), Proof::default());
                let reply = Reply { replica, view, client, number, request, result, proof };
                let reply = reply.sign(&member.core.reply_key);
                let (to, bytes) = (To::Client(client), Message::Reply(reply).encode());
                self.sent.push(Lie { from: replica, to, bytes, steps: vec![name] });
                self.carried_out.insert(name);
            }
        }
    }
}

/// The answer of a replica to the request of a client that it executed last.
fn last_answer(client: u32, replica: &Replica<AnyService>) -> Option<Answer> {
    let executed = replica.history.iter().rev().flat_map(|it| it.1.iter().rev());
    let request = { executed }.find(|it| it.client == client)?;
    match replica.ledger.standing(request) {
        Standing::Answered(answer) => Some((request.number, request.digest(), answer.clone())),
        Standing::New | Standing::Refused(_) => None,
    }
}

/// The wrong answer to a request that waits.
fn wrong_answer(client: u32, correct: &Correct<'_>) -> Option<Answer> {
    let mut pending = correct.iter().flatten().flat_map(|it| it.pending.iter());
    let request = &pending.find(|it| it.request.client == client)?.request;
    Some((request.number, request.digest(), b"wrong".to_vec()))
}
