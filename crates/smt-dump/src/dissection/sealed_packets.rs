// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of PSP to rows: all that is in them if they open, or else what is clear of them.

use std::io::Write;
use std::time::Duration;

use smt_wire::native::NativeHeader;
use smt_wire::{DataHeader, PacketType, SessionIndex};

use super::{Dissection, Origin};
use crate::associations::Opening;
use crate::datagram::Datagram;
use crate::error::DumpError;
use crate::psp::PspPacket;
use crate::row::{Remark, RowPsp, Unread};
use crate::segments;
use crate::terms::Direction;

impl Dissection {
    /// Shows a packet of PSP.
    pub(super) fn show_psp(
        &mut self,
        time: Duration,
        datagram: &Datagram<'_>,
        psp: &PspPacket<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let mut origin = Origin {
            time,
            datagram,
            psp: Some(RowPsp { spi: psp.spi, iv: psp.iv, opened_by: None }),
        };
        let (contents, told) = match self.associations.open(datagram.target.ip(), psp) {
            Opening::Opened(contents, told) => (contents, told),
            unopened => {
                self.keep(time, datagram);
                let remark = self.remark(datagram, &unopened);
                self.counts.failed += u64::from(remark == Remark::IcvFailed);
                return self.show_clear(origin, psp, remark, output);
            }
        };
        self.counts.opened += 1;
        origin.psp = origin.psp.map(|psp| RowPsp { opened_by: Some(told), ..psp });
        let inside = &contents[NativeHeader::LEN..];
        if let Err(error) = segments::refuse_place(inside) {
            self.counts.datagrams += 1;
            self.keep(time, datagram);
            return self.show_unread(origin, error.into(), output);
        }
        if let Some(decrypted) = &mut self.decrypted {
            decrypted.keep_opened(time, datagram, &contents, psp.next_header);
        }
        self.show_packets(origin, 0, inside, output)
    }

    /// The remark about a packet that has not opened. Other sessions' keys say nothing of one whose
    /// own key is not known: a device gives an SPI again under a new device key.
    fn remark(&self, datagram: &Datagram<'_>, unopened: &Opening) -> Remark {
        let session = datagram.payload.get(SESSION).and_then(|bytes| {
            let index = u64::from_be_bytes(bytes.try_into().ok()?);
            self.handshakes
                .ends(Direction { target: datagram.target, session: SessionIndex(index) })
        });
        match unopened {
            Opening::Forged(sessions) if sessions.contains(&session) => Remark::IcvFailed,
            Opening::CutOff | Opening::Opened(..) => Remark::None,
            Opening::Forged(_) | Opening::NoKey => match self.wishes.keys {
                Some(_) => Remark::NoKey,
                None => Remark::None,
            },
        }
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
        let is_header_clear = psp.clear_length >= NativeHeader::LEN + DataHeader::LEN;
        let is_data = payload.get(TYPE_AT) == Some(&(PacketType::Data as u8));
        let mut rest = payload;
        if is_header_clear && is_data {
            if let Err(error) = segments::refuse_place(payload) {
                return self.show_unread(origin, error.into(), output);
            }
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

    fn show_unread(
        &self,
        origin: Origin<'_>,
        unread: Unread,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let mut row = origin.row(0);
        row.packet = Err(unread);
        self.view.show(&row, None, output)
    }
}

/// Where the type is in a packet (SPEC §3).
const TYPE_AT: usize = 1;
/// Where the receiver's session index is in DATA and control packets (SPEC §3.3, §8).
const SESSION: std::ops::Range<usize> = 12..20;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::net::{IpAddr, Ipv4Addr};
    use std::rc::Rc;

    use smt_record::{AeadProvider, AwsLc, Suite};
    use smt_wire::{AssociationFields, MessageId, VERSION};

    use super::*;
    use crate::datagram::CarrierKind;
    use crate::decrypted_capture::DecryptedCapture;
    use crate::key_log::Keys;
    use crate::messages::Messages;
    use crate::rpcs::Ends;
    use crate::{Wishes, psp};

    const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const INDEX: SessionIndex = SessionIndex(0x0F);
    const KEY: [u8; 32] = [5; 32];

    /// A dissection with the keys of a session, and with an association that was told in this one.
    fn dissection(told_in: Option<Ends>) -> Dissection {
        let log = format!("SMT_SECRET f server data 0 1301 {}", "00".repeat(32));
        let mut dissection = Dissection::new(Wishes {
            port: 17_379,
            native_protocol: Some(253),
            keys: Keys::parse(log.as_bytes()).ok(),
            ..Wishes::default()
        });
        let fields = AssociationFields { serial: 1, spi: 7, version: 1 };
        (dissection.associations).learn(RECEIVER, told_in, fields, &KEY);
        dissection
    }

    /// A DATA packet under the association, with this in the place of a segment's stride.
    fn sealed(stride: u16) -> Vec<u8> {
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session: INDEX,
            id: MessageId(4),
            message_length: 100,
            offset: 0,
        };
        let mut data = [0; DataHeader::LEN];
        header.emit(VERSION, &mut data);
        data[10..12].copy_from_slice(&stride.to_be_bytes());
        let mut packet = vec![253, 1, 11, 0x05, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        packet.extend([0x43, 0xE3, 0x43, 0xE3, 0, 0, 0, 0]);
        packet.extend(data);
        let nonce: [u8; 12] = packet[4..16].try_into().unwrap();
        let aead = AwsLc.aead(Suite::Aes256Gcm, &KEY, nonce).unwrap();
        let mut text = [0; 122];
        let icv = aead.seal(0, &packet, &mut text).unwrap();
        [&packet[..], &text, &icv].concat()
    }

    /// The lines about a packet of PSP whose last `cut_off` bytes were not captured.
    fn lines(mut dissection: Dissection, packet: &[u8], cut_off: usize) -> String {
        shown(&mut dissection, packet, cut_off)
    }

    fn shown(dissection: &mut Dissection, packet: &[u8], cut_off: usize) -> String {
        let kept = &packet[..packet.len() - cut_off];
        let psp = PspPacket::parse(kept, cut_off, 253).unwrap();
        let datagram = Datagram {
            carrier: CarrierKind::Psp,
            source: (RECEIVER, 17_379).into(),
            target: (RECEIVER, 17_379).into(),
            payload: &psp.contents[NativeHeader::LEN..],
            missing: psp.missing,
            cut_off,
            packet: kept,
            payload_at: 16 + NativeHeader::LEN,
            transport_at: 0,
            protocol_at: 0,
            identification: Some(1),
            psp: Some(psp),
        };
        let mut output = Vec::new();
        let shown = dissection.show(Duration::ZERO, &datagram, &mut output);
        shown.unwrap();
        String::from_utf8(output).unwrap()
    }

    /// The bytes of a file, shared with the test.
    #[derive(Clone, Default)]
    struct Written(Rc<RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn other_session() -> Option<Ends> {
        Some(Ends {
            client: (RECEIVER, 1).into(),
            server: (RECEIVER, 17_379).into(),
            client_session: None,
            server_session: None,
            stripes_log2: 0,
        })
    }

    #[test]
    fn data_is_taken_up_under_an_association_of_its_session_alone() {
        let own = lines(dissection(None), &sealed(0), 0);
        // The record in it is of zeros.
        assert!(own.contains(" iv 9 DATA ") && own.contains("record 0 FAILED"), "{own}");
        let other = lines(dissection(other_session()), &sealed(0), 0);
        assert!(other.ends_with(" [under no association of its session: a receiver drops it]\n"));
    }

    #[test]
    fn a_packet_that_was_changed_fails_and_one_of_another_session_has_no_key() {
        let mut changed = sealed(0);
        changed[100] ^= 1;
        let own = lines(dissection(None), &changed, 0);
        assert!(own.ends_with(" [ICV FAILED]\n"), "{own}");
        let other = lines(dissection(other_session()), &changed, 0);
        assert!(other.ends_with(" [no key]\n"), "{other}");
    }

    #[test]
    fn a_packet_that_was_cut_off_shows_its_header_and_how_much_is_missing() {
        for cut_off in [1, psp::ICV_BYTES, 100] {
            let line = lines(dissection(None), &sealed(0), cut_off);
            let told = format!(" (the capture cut {cut_off} bytes off)\n");
            assert!(line.contains(" id 4 ") && line.ends_with(&told), "{line}");
        }
    }

    #[test]
    fn a_packet_that_has_not_opened_is_as_it_was_in_a_decrypted_capture() {
        let (packet, written) = (sealed(0), Written::default());
        let mut dissection = dissection(other_session());
        dissection.decrypted = Some(DecryptedCapture::default());
        dissection.messages = Messages::new(true);
        dissection.wishes.decrypted = Some(Box::new(written.clone()));
        let mut changed = packet.clone();
        changed[100] ^= 1;
        shown(&mut dissection, &changed, 0);
        dissection.finish(&mut Vec::new()).unwrap();
        assert!(written.0.borrow().ends_with(&changed));
    }

    // SMT [15.3-11]
    #[test]
    fn a_place_in_a_segment_is_malformed() {
        for cut_off in [0, 1] {
            let line = lines(dissection(None), &sealed(1_400), cut_off);
            assert!(line.contains("claims a place in a segment"), "{line}");
        }
    }
}
