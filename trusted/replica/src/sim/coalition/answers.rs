// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars and clients.

use crate::request::Request;
use crate::sim::coalition::{Coalition, Correct, Lie};
use crate::sim::keys::{CLIENTS, LIAR_CLIENT, client_key};
use crate::sim::step::{By, StepName};
use crate::sim::system::{System, To};

impl<S: System> Coalition<S> {
    /// A request of the client that lies as well.
    pub fn own_request(&mut self) -> Request {
        self.number += 1;
        let operation = S::operation_of_liar(&mut self.random);
        let body = (self.random.nonce(), operation);
        let number = self.number * 1000 + self.random.below(1000);
        Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, body)
    }

    /// Gives one node alone a request of the client whose key liars have.
    pub(super) fn ask(&mut self, of: u32) {
        let bytes = S::request(self.own_request());
        self.send(of, bytes, StepName::Ask);
    }

    /// Sends a node something that is no statement, as the first of the liars.
    pub fn send(&mut self, to: u32, bytes: Vec<u8>, name: StepName<S::Name>) {
        let from = self.those(By::All).first().copied().unwrap_or(0);
        self.carried_out.insert(name);
        self.sent.push(Lie { from, to: To::Node(to), bytes, steps: vec![name] });
    }

    /// All liars ask the service outside of the group for what comes after a number.
    pub fn ask_service(&mut self, number: u64, name: S::Name) {
        let name = StepName::Own(name);
        for from in self.those(By::All) {
            let (to, bytes) = (To::Service(number), Vec::new());
            self.sent.push(Lie { from, to, bytes, steps: vec![name] });
            self.carried_out.insert(name);
        }
    }

    /// Gives all clients the answers of one node, or answers that are wrong, all alike.
    pub(super) fn answer(&mut self, of: Option<u32>, correct: &Correct<'_, S>) {
        let name = if of.is_some() { StepName::AnswerAlike } else { StepName::AnswerWrong };
        for client in CLIENTS {
            let answer = match of {
                Some(of) => correct[of as usize].and_then(|it| S::last_answer(it, client)),
                None => {
                    let waiting = correct.iter().flatten().find_map(|it| S::waiting(it, client));
                    waiting.map(|(number, digest)| (number, digest, b"wrong".to_vec()))
                }
            };
            let Some(answer) = answer else {
                continue;
            };
            for member in self.members.values() {
                let (to, bytes) = (To::Client(client), S::reply(&member.core, client, &answer));
                self.sent.push(Lie { from: member.own, to, bytes, steps: vec![name] });
                self.carried_out.insert(name);
            }
        }
    }
}
