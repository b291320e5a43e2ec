// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of PSP to rows: all that is in them if they open, or else what is clear of them.

use std::io::Write;
use std::time::Duration;

use smt_wire::{DataHeader, PacketType};

use super::{Dissection, Origin};
use crate::associations::Opening;
use crate::datagram::{Datagram, NATIVE_HEADER_BYTES};
use crate::error::DumpError;
use crate::psp::PspPacket;
use crate::row::{Remark, RowPsp, Unread};

impl Dissection {
    /// Shows a packet of PSP.
    pub(super) fn show_psp(
        &mut self,
        time: Duration,
        datagram: &Datagram<'_>,
        psp: &PspPacket<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let opening = self.associations.open(datagram.target.ip(), psp);
        let origin = Origin {
            time,
            datagram,
            psp: Some(RowPsp {
                spi: psp.spi,
                iv: psp.iv,
                is_opened: matches!(opening, Opening::Opened(_)),
            }),
        };
        if let Opening::Opened(contents) = opening {
            self.counts.opened += 1;
            if let Some(decrypted) = &mut self.decrypted {
                decrypted.keep_opened(time, datagram, &contents, psp.next_header);
            }
            return self.show_packets(origin, 0, &contents[NATIVE_HEADER_BYTES..], output);
        }
        if let Some(decrypted) = &mut self.decrypted {
            decrypted.keep(time, datagram);
        }
        let remark = match opening {
            Opening::Forged => Remark::IcvFailed,
            _ if self.wishes.keys.is_some() => Remark::NoKey,
            _ => Remark::None,
        };
        self.counts.failed += u64::from(remark == Remark::IcvFailed);
        self.show_clear(origin, psp, remark, output)
    }

    /// Shows what is clear of a packet that has not opened: a header of DATA, or nothing.
    fn show_clear(
        &mut self,
        origin: Origin<'_>,
        psp: &PspPacket<'_>,
        remark: Remark,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        self.counts.datagrams += 1;
        let payload = origin.datagram.payload;
        let is_header_clear = psp.clear_length >= NATIVE_HEADER_BYTES + DataHeader::LEN;
        let is_data = payload.get(TYPE_AT) == Some(&(PacketType::Data as u8));
        let mut rest = payload;
        if is_header_clear && is_data {
            let mut row = origin.row(0);
            row.remark = remark;
            rest = self.show_next(row, payload, output)?;
        }
        if !rest.is_empty() {
            let mut row = origin.row(payload.len() - rest.len());
            row.remark = remark;
            row.packet = Err(Unread::Sealed);
            self.view.show(&row, None, output)?;
        }
        Ok(())
    }
}

/// Where the type is in a packet (SPEC §3).
const TYPE_AT: usize = 1;
