// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of a liar.

use std::sync::Arc;

use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use smt_bft::{Attested, Message, Reference, Request, Statement};

use super::{Action, Bft, REPLICAS, State, statement};
use crate::MessageId;

/// A statement that a liar has attested.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Lie {
    /// The first statement of a new epoch.
    Hello,
    /// It orders a request at a place of a view.
    Prepare {
        /// The view.
        view: u64,
        /// The place.
        place: u64,
        /// The request; one above the last is one that no client has signed.
        request: usize,
    },
    /// It commits to the log of a view up to a place.
    Commit {
        /// The view.
        view: u64,
        /// The place.
        place: u64,
    },
    /// It wants a view.
    ViewChange {
        /// The view.
        view: u64,
    },
    /// It opens a view on VIEW-CHANGEs, each of a device in an epoch.
    NewView {
        /// The view.
        view: u64,
        /// The devices and epochs.
        votes: Vec<(u32, u64)>,
    },
    /// It enters a view as the given correct replica did.
    Enter {
        /// The view.
        view: u64,
        /// The correct replica whose words it repeats.
        like: u32,
    },
}

impl Bft {
    /// All lies that can be told now, each as it is first heard by one replica.
    pub(super) fn lies(&self, state: &State, actions: &mut Vec<Action>) {
        let told: usize = state.streams.iter().map(|it| it.said.len()).sum();
        let left = self.bounds.lies.saturating_sub(told);
        for stream in &state.streams {
            let key = (stream.liar, stream.epoch);
            let alphabet = if left > 0 { self.alphabet(state, key) } else { Vec::new() };
            let mut rows: Vec<Vec<Lie>> = alphabet.iter().map(|it| vec![it.clone()]).collect();
            if self.bounds.rows && left > 1 {
                let two = |one: &Lie| {
                    let one = one.clone();
                    alphabet.iter().map(move |other| vec![one.clone(), other.clone()])
                };
                rows.extend(alphabet.iter().flat_map(two));
            }
            for (own, seen) in self.see(state) {
                let at = seen.observed.streams.get(&key);
                if at.is_some_and(|it| it.is_faulty) {
                    continue;
                }
                actions.extend(rows.iter().map(|it| Action::Lie(own, key, it.clone())));
            }
        }
        self.forgeries(state, actions);
    }

    fn alphabet(&self, state: &State, (liar, epoch): (u32, u64)) -> Vec<Lie> {
        let stream = self.said(state, (liar, epoch));
        if epoch > 1 && stream.is_empty() {
            return vec![Lie::Hello];
        }
        // A device in a new epoch attests nothing more in the old one. What it had said before is
        // first heard now, and refers to nothing that is younger.
        let is_old = self.has_restarted(state, liar) && epoch == 1;
        let mut lies = Vec::new();
        for view in 0..=self.bounds.views {
            let leads = view % u64::from(REPLICAS) == u64::from(liar);
            for place in 1..=self.bounds.requests as u64 {
                match leads {
                    true => lies.extend(
                        (0..=self.bounds.requests)
                            .map(|request| Lie::Prepare { view, place, request }),
                    ),
                    false => lies.push(Lie::Commit { view, place }),
                }
            }
            if view == 0 {
                continue;
            }
            lies.push(Lie::ViewChange { view });
            if is_old {
                continue;
            }
            if leads {
                let votes = self.votes(state, view);
                lies.extend(votes.into_iter().map(|votes| Lie::NewView { view, votes }));
            }
            let like = self.entered(state, view).map(|like| Lie::Enter { view, like });
            lies.extend(like);
        }
        lies
    }

    fn has_restarted(&self, state: &State, liar: u32) -> bool {
        let mut streams = state.streams.iter();
        streams.any(|it| it.liar == liar && it.epoch > 1 && !it.said.is_empty())
    }

    /// All that a NEW-VIEW may name: one VIEW-CHANGE, one twice, or two.
    fn votes(&self, state: &State, view: u64) -> Vec<Vec<(u32, u64)>> {
        let known: Vec<_> = self.keys(state).into_iter().collect();
        let has = |it: &(u32, u64)| self.view_change(state, *it, view).is_some();
        let known: Vec<(u32, u64)> = known.into_iter().filter(has).collect();
        let mut all: Vec<Vec<(u32, u64)>> = known.iter().map(|it| vec![*it]).collect();
        for (at, one) in known.iter().enumerate() {
            all.extend(known[at..].iter().map(|other| vec![*one, *other]));
        }
        all
    }

    /// All streams, in the order of devices and epochs.
    fn keys(&self, state: &State) -> Vec<(u32, u64)> {
        let mut keys: Vec<_> = state.correct.iter().map(|it| (it.0, 1)).collect();
        keys.extend(state.streams.iter().map(|it| (it.liar, it.epoch)));
        keys.sort_unstable();
        keys
    }

    /// The VIEW-CHANGE of a stream for a view.
    fn view_change(&self, state: &State, key: (u32, u64), view: u64) -> Option<Reference> {
        let said = self.said(state, key);
        { 1.. }.zip(said).find_map(|(counter, it)| {
            let (attested, said) = statement(&self.messages.bytes(it))?;
            let mac = attested.attestation[1];
            (said == Statement::ViewChange { view })
                .then_some(Reference { device: key.0, epoch: key.1, counter, mac })
        })
    }

    /// A correct replica that has entered a view.
    fn entered(&self, state: &State, view: u64) -> Option<u32> {
        let has = |own: u32| self.opening(state, own, view).is_some();
        state.correct.iter().map(|it| it.0).find(|own| has(*own))
    }

    fn opening(&self, state: &State, own: u32, view: u64) -> Option<[u8; 32]> {
        let said = self.said(state, (own, 1));
        said.into_iter().find_map(|it| match statement(&self.messages.bytes(it))?.1 {
            Statement::Enter { view: entered, opening } if entered == view => Some(opening),
            _ => None,
        })
    }

    /// The request of a number; one that no client has signed beyond them.
    fn request(&self, number: usize) -> Option<Request> {
        let at = number.min(self.requests.len() - 1);
        let Message::Request(mut request) = Message::decode(&self.messages.bytes(self.requests[at]))?
        else {
            return None;
        };
        if number > at {
            request.operation = 100_u64.to_be_bytes().to_vec();
        }
        Some(request)
    }

    fn meant(&self, state: &State, lie: &Lie) -> Option<Statement> {
        Some(match lie {
            Lie::Hello => Statement::Hello { nonce: [0; 16] },
            Lie::Prepare { view, place, request } => Statement::Prepare {
                view: *view,
                sequence: *place,
                batch: Arc::new(vec![self.request(*request)?]),
            },
            Lie::Commit { view, place } => Statement::Commit { view: *view, sequence: *place },
            Lie::ViewChange { view } => Statement::ViewChange { view: *view },
            Lie::NewView { view, votes } => {
                let votes = votes.iter().map(|it| self.view_change(state, *it, *view));
                Statement::NewView { view: *view, votes: votes.collect::<Option<_>>()? }
            }
            Lie::Enter { view, like } => {
                Statement::Enter { view: *view, opening: self.opening(state, *like, *view)? }
            }
        })
    }

    /// Has a lie attested.
    pub(super) fn say(&self, state: &mut State, key: (u32, u64), lie: &Lie) -> Option<()> {
        let body = postcard::to_allocvec(&self.meant(state, lie)?).ok()?;
        let device = self.liars.iter().position(|it| *it == key.0)?;
        let stream = state.streams.iter_mut().find(|it| (it.liar, it.epoch) == key)?;
        let attestation = self.devices[device].attest(key.1, stream.said.len(), &body)?;
        let attestation = [attestation.header_bytes(), attestation.mac()];
        let message = Message::Statement(Attested { attestation, body });
        stream.said.push(self.messages.number(&message.encode()));
        Some(())
    }

    /// Statements in the name of a correct leader, which orders what no client has signed.
    fn forgeries(&self, state: &State, actions: &mut Vec<Action>) {
        for (own, _) in &state.correct {
            for (other, run) in state.correct.iter().filter(|it| it.0 != *own) {
                let counter = self.runs.see(*run).said.len() as u64;
                let view = u64::from(*other);
                if counter == 0 && view == 0 {
                    let lie = Lie::Prepare { view, place: 1, request: 0 };
                    actions.push(Action::Forge(*own, (*other, 1), lie));
                }
            }
        }
    }

    /// A statement that the device of `key` has not attested, with a MAC of zeros.
    pub(super) fn forged(&self, state: &State, key: (u32, u64), lie: &Lie) -> Option<MessageId> {
        let body = postcard::to_allocvec(&self.meant(state, lie)?).ok()?;
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream: StreamId(self.answers.group().stream),
            device: DeviceId(key.0),
            length: u32::try_from(body.len()).ok()?,
            epoch: Epoch(key.1),
            counter: self.said(state, key).len() as u64 + 1,
        };
        let message = Message::Statement(Attested { attestation: [header.encode(), [0; 32]], body });
        Some(self.messages.number(&message.encode()))
    }
}
