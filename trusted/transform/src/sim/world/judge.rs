// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties of a run that has ended.

use std::collections::BTreeMap;

use crate::sim::group::LIAR_CLIENT;
use crate::sim::world::{Compared, Host, Violation, World};

impl World<'_> {
    /// Checks all properties: the log that the correct nodes have executed is the order that must
    /// explain each answer, and it keeps the order in time.
    pub(super) fn judge(&mut self) {
        self.compared.fill(Compared::default());
        for at in 0..self.hosts.len() {
            self.look(at);
            if let Host::Liar(liar) = &self.hosts[at]
                && liar.lies > 0
            {
                self.events.insert(format!("{:?}", liar.attack));
                let correct = self.hosts.iter().filter_map(|it| match it {
                    Host::Correct(it) => it.node(),
                    Host::Liar(_) | Host::Stopped => None,
                });
                let is_found = { correct }.all(|it| it.faulty().any(|it| it == at as u32));
                if liar.attack.is_found() && !is_found {
                    self.violations.push(Violation::NotFound(at as u32));
                }
            }
        }
        let mut answers = BTreeMap::<(u32, u64), (usize, Vec<u8>)>::new();
        let mut sum = 0_u64;
        for (place, (client, number, added)) in &self.log {
            sum = sum.wrapping_add(*added);
            let made =
                self.operations.iter().any(|it| (it.client, it.number) == (*client, *number));
            if *client != LIAR_CLIENT && !made {
                self.violations.push(Violation::Invented(*client, *number));
            }
            let answer = (*place, sum.to_be_bytes().to_vec());
            if answers.insert((*client, *number), answer).is_some() && *client != LIAR_CLIENT {
                self.violations.push(Violation::Twice(*client, *number));
            }
        }
        let mut ended = Vec::new();
        for it in &self.operations {
            let known = answers.get(&(it.client, it.number));
            match (&it.ended, known) {
                (None, _) => self.violations.push(Violation::Stuck(it.client, it.number)),
                (Some((at, answer)), Some((place, right))) if right == answer => {
                    ended.push((it, *at, *place));
                }
                _ => self.violations.push(Violation::WrongAnswer(it.client, it.number)),
            }
        }
        for (one, at, place) in &ended {
            if ended.iter().any(|(other, _, later)| at < &other.begun && place > later) {
                self.violations.push(Violation::Order(one.client, one.number));
            }
        }
    }
}
