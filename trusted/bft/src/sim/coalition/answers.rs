// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars and clients.

use smt_replica::{Reply, ReplyProof};

use crate::ledger::Answer;
use crate::message::Message;
use crate::sim::coalition::{Coalition, Correct, Lie};
use crate::sim::group::CLIENTS;
use crate::sim::liar::To;
use crate::sim::step::{By, StepName};

impl Coalition {
    /// Gives one replica alone a request of the client whose key liars have.
    pub(super) fn ask(&mut self, of: u32) {
        let bytes = Message::Request(self.own_request()).encode();
        let from = self.those(By::All).first().copied().unwrap_or(0);
        self.carried_out.insert(StepName::Ask);
        self.sent.push(Lie { from, to: To::Replica(of), bytes, steps: vec![StepName::Ask] });
    }

    /// Gives all clients the answers of one replica, or answers that are wrong, all alike.
    pub(super) fn answer(&mut self, of: Option<u32>, correct: &Correct<'_>) {
        let name = if of.is_some() { StepName::AnswerAlike } else { StepName::AnswerWrong };
        for client in CLIENTS {
            let answer = match of {
                Some(of) => correct[of as usize].and_then(|it| it.ledger.answer(client)).cloned(),
                None => wrong_answer(client, correct),
            };
            let Some(Answer { number, request, result }) = answer else {
                continue;
            };
            for member in self.members.values() {
                let (replica, view) = (member.own(), member.core.metrics.view);
                let (result, proof) = (result.clone(), ReplyProof::default());
                let reply = Reply { replica, view, client, number, request, result, proof };
                let reply = reply.sign(&member.core.reply_key);
                let (to, bytes) = (To::Client(client), Message::Reply(reply).encode());
                self.sent.push(Lie { from: replica, to, bytes, steps: vec![name] });
                self.carried_out.insert(name);
            }
        }
    }
}

/// The wrong answer to a request that waits.
fn wrong_answer(client: u32, correct: &Correct<'_>) -> Option<Answer> {
    let pending = correct.iter().flatten().find_map(|it| it.pending.get(&client))?;
    let request = &pending.request;
    let result = b"wrong".to_vec();
    Some(Answer { number: request.number, request: request.digest(), result })
}
