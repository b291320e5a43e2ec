// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The form in which a capture is shown: a line or an object for each packet, or for each RPC, of
//! all sessions or of one.

use std::io::Write;

use smt_wire::{Control, MessageId, Packet, SessionIndex};

use crate::Wishes;
use crate::error::DumpError;
use crate::packet_json;
use crate::row::{Fact, Row};
use crate::rpc::{self, Rpc};
use crate::rpcs::{Ends, Piece, Rpcs};

/// Writes what is wanted, and passes over the rest.
pub(crate) struct View {
    is_json: bool,
    session: Option<SessionIndex>,
    rpc: Option<MessageId>,
    /// Instead of packets.
    rpcs: Option<Rpcs>,
    is_headed: bool,
}

impl View {
    pub(crate) fn new(wishes: &Wishes) -> Self {
        Self {
            is_json: wishes.is_json,
            session: wishes.session,
            rpc: wishes.rpc,
            rpcs: wishes.is_by_rpc.then(Rpcs::default),
            is_headed: false,
        }
    }

    /// Shows a packet, whose session has these ends.
    pub(crate) fn show(
        &self,
        row: &Row<'_>,
        ends: Option<Ends>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        if self.rpcs.is_some() || !self.is_wanted(row, ends) {
            return Ok(());
        }
        if self.is_json {
            let stripes_log2 = ends.map_or(0, |ends| ends.stripes_log2);
            return Ok(writeln!(output, "{}", packet_json::object(row, stripes_log2))?);
        }
        Ok(writeln!(output, "{row}")?)
    }

    /// Takes a DATA packet into the table of RPCs.
    pub(crate) fn take_data(
        &mut self,
        ends: Ends,
        piece: &Piece<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let Some(rpcs) = &mut self.rpcs else {
            return Ok(());
        };
        match rpcs.take_data(ends, piece) {
            Some(rpc) => self.show_rpc(&rpc, output),
            None => Ok(()),
        }
    }

    /// Takes a control packet into the table of RPCs.
    pub(crate) fn take_control(&mut self, ends: Ends, control: &Control<'_>) {
        if let Some(rpcs) = &mut self.rpcs {
            rpcs.take_control(ends, control);
        }
    }

    /// Shows the RPCs that are left.
    pub(crate) fn finish(&mut self, output: &mut dyn Write) -> Result<(), DumpError> {
        while let Some(rpc) = self.rpcs.as_mut().and_then(Rpcs::oldest) {
            self.show_rpc(&rpc, output)?;
        }
        Ok(())
    }

    fn show_rpc(&mut self, rpc: &Rpc, output: &mut dyn Write) -> Result<(), DumpError> {
        let is_wanted = self.rpc.is_none_or(|id| id == rpc.id)
            && self.session.is_none_or(|session| {
                session == rpc.session || rpc.ends.sessions().any(|end| end == session)
            });
        if !is_wanted {
            return Ok(());
        }
        if self.is_json {
            return Ok(writeln!(output, "{}", rpc.object())?);
        }
        if !self.is_headed {
            self.is_headed = true;
            writeln!(output, "{}", rpc::HEADING)?;
        }
        Ok(writeln!(output, "{rpc}")?)
    }

    fn is_wanted(&self, row: &Row<'_>, ends: Option<Ends>) -> bool {
        if self.session.is_none() && self.rpc.is_none() {
            return true;
        }
        let Ok(packet) = &row.packet else {
            return false;
        };
        let is_of_session = self.session.is_none_or(|session| {
            let mut of_ends = ends.iter().flat_map(Ends::sessions);
            sessions(packet).contains(&Some(session)) || of_ends.any(|end| end == session)
        });
        let is_of_rpc = self.rpc.is_none_or(|id| {
            let stripes_log2 = ends.map_or(0, |ends| ends.stripes_log2);
            let is_member =
                |fact: &Fact| matches!(fact, Fact::Member(header, _) if header.id == id);
            match packet {
                Packet::Data(data) => data.header.id == id || row.facts.iter().any(is_member),
                Packet::Control(control) => {
                    packet_json::ids(&control.body, stripes_log2).contains(&id.0)
                }
                _ => false,
            }
        });
        is_of_session && is_of_rpc
    }
}

/// The indexes that a packet names.
fn sessions(packet: &Packet<'_>) -> [Option<SessionIndex>; 2] {
    match packet {
        Packet::Control(control) => [Some(control.header.session), None],
        Packet::Cookie(cookie) => [Some(cookie.destination), None],
        Packet::Data(data) => [Some(data.header.session), None],
        Packet::Handshake(handshake) => [Some(handshake.destination), Some(handshake.source)],
        Packet::Reset(reset) => [Some(reset.index), None],
        Packet::Unavailable(unavailable) => [Some(unavailable.destination), None],
        Packet::VersionAnswer(_) => [None, None],
    }
}
