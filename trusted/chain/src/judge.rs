// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Following the streams of all nodes.
//!
//! Whether a statement is faulty depends on the streams alone, never on time or on what else a
//! receiver knows: all correct nodes judge each sender alike. A receiver may wait, though.

use smt_attestor::Attested;
use smt_replica::{Digest, Request, Service};

use crate::message::{Message, Statement, decode};
use crate::node::{Node, Output};
use crate::track::Track;

/// The fate of a statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It was taken.
    Taken,
    /// It refers to something that is not here yet.
    Wait,
    /// No correct node says this.
    Faulty,
}

/// A statement's sender, counter and MAC.
#[derive(Clone, Copy)]
pub(crate) struct From {
    pub(crate) node: u32,
    pub(crate) counter: u64,
    pub(crate) mac: [u8; 32],
}

/// The word of a node that it has executed a place.
struct Executed {
    configuration: u64,
    place: u64,
    /// The hash of the answer.
    output: Digest,
}

impl<S: Service + Clone> Node<S> {
    /// Takes what can be taken from all streams.
    pub(crate) fn drain(&mut self) {
        loop {
            let mut has_taken = false;
            for node in 0..self.group.replicas {
                while self.take_next(node) {
                    has_taken = true;
                }
            }
            if !has_taken {
                return;
            }
        }
    }

    fn take_next(&mut self, node: u32) -> bool {
        let stream = &self.streams[node as usize];
        if stream.track.is_faulty {
            return false;
        }
        let Some((counter, it)) = stream.next() else {
            return false;
        };
        let mut track = stream.track.clone();
        let from = From { node, counter, mac: it.attestation[1] };
        let verdict = self.judge(&mut track, from, &it);
        let retained = self.group.options.retained;
        let stream = &mut self.streams[node as usize];
        match verdict {
            Verdict::Wait => return false,
            Verdict::Faulty => stream.track.is_faulty = true,
            Verdict::Taken => {
                stream.track = track;
                stream.took(counter, retained);
                self.pass_on(node, &it);
                self.decide();
            }
        }
        verdict == Verdict::Taken
    }

    /// Sends a statement on its way: proofs down the chain, those of the first f + 1 up it too, and
    /// all that is about configurations to all.
    fn pass_on(&mut self, node: u32, it: &Attested) {
        let bytes = Message::Statement(it.clone()).encode();
        let is_proof =
            matches!(decode(&it.body), Some(Statement::Order { .. } | Statement::Proof { .. }));
        if !is_proof {
            if node == self.own {
                self.outputs.push(Output::Nodes(bytes));
            }
            return;
        }
        let Some(current) = self.current() else {
            return;
        };
        let (own, of_sender) = (current.position(self.own), current.position(node));
        let mut to = Vec::new();
        if of_sender <= own {
            to.extend(current.after(self.own));
        }
        // A node takes the proof that commits when it has those between.
        if let Some(own) = own.filter(|own| node == self.own && *own <= self.group.faults()) {
            to.extend(current.order.iter().take(own));
        }
        self.outputs.extend(to.into_iter().map(|to| Output::Node(to, bytes.clone())));
    }

    /// Notes up to where f + 1 have proved the log that this node is in.
    fn decide(&mut self) {
        let configuration = self.own_track().at.0;
        let tracks = self.streams.iter().map(|it| it.track.at);
        let mut places: Vec<u64> =
            tracks.filter(|at| at.0 == configuration).map(|at| at.1).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(place) = places.get(self.group.quorum() - 1) {
            self.committed = self.committed.max((configuration, *place));
        }
    }

    /// Judges the next statement of a stream, whose state becomes what follows from it.
    fn judge(&mut self, track: &mut Track, from: From, it: &Attested) -> Verdict {
        match decode(&it.body) {
            None => Verdict::Faulty,
            Some(Statement::Order { configuration, place, request, output }) => {
                let it = Executed { configuration, place, output };
                self.judge_order(track, from, it, request)
            }
            Some(Statement::Proof { configuration, place, output, before }) => {
                let it = Executed { configuration, place, output };
                self.judge_proof(track, from, it, before)
            }
            Some(Statement::Freeze { configuration }) => {
                if !track.may_freeze(configuration) {
                    return Verdict::Faulty;
                }
                track.freeze(configuration, from.counter, from.mac);
                Verdict::Taken
            }
            Some(Statement::Open { configuration, freezes }) => {
                self.judge_open(track, from, configuration, &freezes)
            }
            Some(Statement::Enter { configuration, opening }) => {
                self.judge_enter(track, configuration, opening)
            }
        }
    }

    /// Whether a sender may speak in a configuration: it has entered it, and has not promised a
    /// later one.
    fn may_speak(&self, track: &Track, configuration: u64) -> bool {
        let has_promised = track.promised > configuration;
        track.at.0 == configuration && !has_promised
    }

    fn judge_order(
        &mut self,
        track: &mut Track,
        from: From,
        it: Executed,
        request: Request,
    ) -> Verdict {
        let Executed { configuration, place, output } = it;
        if !self.may_speak(track, configuration) {
            return Verdict::Faulty;
        }
        let is_genuine = self.is_genuine(&request);
        let own = self.own;
        // A sender enters what was opened, and its ENTER was taken.
        let Some(log) = self.logs.get_mut(&configuration) else {
            return Verdict::Wait;
        };
        let is_head = log.configuration.head() == Some(from.node);
        // The head has executed its own.
        let is_own = from.node == own && place == log.length();
        if !is_head || !is_genuine || (place != log.length() + 1 && !is_own) {
            return Verdict::Faulty;
        }
        if !is_own {
            if !log.is_new(&request) {
                return Verdict::Faulty;
            }
            // With a false output the request stays, for it is a client's, and has its right
            // answer here. Its head has been found out.
            if log.append(request).output != output {
                return Verdict::Faulty;
            }
        }
        log.note_proof(place, from.node, from.mac);
        track.at = (configuration, place);
        Verdict::Taken
    }

    fn judge_proof(
        &mut self,
        track: &mut Track,
        from: From,
        it: Executed,
        before: [u8; 32],
    ) -> Verdict {
        let Executed { configuration, place, output } = it;
        if !self.may_speak(track, configuration) || place != track.at.1 + 1 {
            return Verdict::Faulty;
        }
        let Some(log) = self.logs.get_mut(&configuration) else {
            return Verdict::Wait;
        };
        let Some(previous) = log.configuration.before(from.node) else {
            return Verdict::Faulty;
        };
        let Some(entry) = log.entry(place) else {
            return Verdict::Wait;
        };
        if entry.output != output {
            return Verdict::Faulty;
        }
        match log.proof(place, previous) {
            Some(mac) if mac != before => return Verdict::Faulty,
            // A node that has gone on to a later configuration does not prove this any more.
            None if self.streams[previous as usize].track.at < (configuration, place) => {
                return Verdict::Wait;
            }
            _ => {}
        }
        log.note_proof(place, from.node, from.mac);
        track.at = (configuration, place);
        Verdict::Taken
    }

    fn judge_enter(&self, track: &mut Track, configuration: u64, opening: Digest) -> Verdict {
        if configuration <= track.at.0 || configuration < track.promised {
            return Verdict::Faulty;
        }
        let Some(log) = self.logs.get(&configuration) else {
            return Verdict::Wait;
        };
        if log.opening() != opening {
            return Verdict::Faulty;
        }
        track.at = (configuration, log.start);
        track.promised = track.promised.max(configuration);
        track.frozen = 0;
        Verdict::Taken
    }
}
