// SPDX-License-Identifier: Apache-2.0 OR MIT

// Bodies of control packets (SPEC §8).
package main

import "encoding/binary"

// Grant is an entry of GRANT.
type Grant struct {
	ID       uint64
	Granted  uint32
	Received uint32
	Priority byte
}

// Resend is an entry of RESEND.
type Resend struct {
	ID     uint64
	Offset uint32
	Length uint32
}

// Ack is an entry of ACK: bit i is the id base + (i << (k+1)).
type Ack struct {
	Base uint64
	Bits uint64
}

// PartWindow is an entry of PART_WINDOW.
type PartWindow struct {
	ID    uint64 // of the request
	Limit uint64
}

// Body is the body of any control packet; which fields count depends on the type.
type Body struct {
	Grants  []Grant
	Resends []Resend
	Acks    []Ack
	IDs     []uint64
	Windows []PartWindow
	ID      uint64 // ABORT
	Code    uint16 // ABORT, CLOSE
	Value   uint64 // WINDOW, PING, PONG
	Word    uint32 // epoch, serial, or the size of PROBE_ACK
	SPI     uint32 // ASSOCIATION
	PSP     byte   // ASSOCIATION: the version of PSP
	Padding int    // PROBE
}

const toTheEnd = 0xFFFFFFFF

func entries(b []byte, size int) (int, error) {
	n := len(b) / size
	if len(b)%size != 0 {
		return 0, malformed("body of a wrong size")
	}
	if n < 1 || n > maxEntries {
		return 0, malformed("no entry, or too many")
	}
	return n, nil
}

func parseBody(t byte, b []byte) (Body, error) {
	var body Body
	be := binary.BigEndian
	want := -1
	switch t {
	case typeGrant:
		n, err := entries(b, 24)
		if err != nil {
			return body, err
		}
		for i := 0; i < n; i++ {
			e := b[24*i:]
			body.Grants = append(body.Grants, Grant{be.Uint64(e), be.Uint32(e[8:]), be.Uint32(e[12:]), e[16]})
		}
	case typeResend:
		n, err := entries(b, 16)
		if err != nil {
			return body, err
		}
		for i := 0; i < n; i++ {
			e := b[16*i:]
			body.Resends = append(body.Resends, Resend{be.Uint64(e), be.Uint32(e[8:]), be.Uint32(e[12:])})
		}
	case typeAck:
		n, err := entries(b, 16)
		if err != nil {
			return body, err
		}
		for i := 0; i < n; i++ {
			e := b[16*i:]
			body.Acks = append(body.Acks, Ack{be.Uint64(e), be.Uint64(e[8:])})
		}
	case typeBusy, typeNeedAck, typeCancel, typeVoided, typeSeen, typeNeverSeen, typeSeenAndGone, typePartWindowRequest:
		n, err := entries(b, 8)
		if err != nil {
			return body, err
		}
		for i := 0; i < n; i++ {
			body.IDs = append(body.IDs, be.Uint64(b[8*i:]))
		}
	case typePartWindow:
		n, err := entries(b, 16)
		if err != nil {
			return body, err
		}
		for i := 0; i < n; i++ {
			body.Windows = append(body.Windows, PartWindow{be.Uint64(b[16*i:]), be.Uint64(b[16*i+8:])})
		}
	case typeAbort:
		if want = 16; len(b) == want {
			body.ID, body.Code = be.Uint64(b), be.Uint16(b[8:])
		}
	case typeClose:
		if want = 8; len(b) == want {
			body.Code = be.Uint16(b)
		}
	case typeWindow, typePing, typePong:
		if want = 8; len(b) == want {
			body.Value = be.Uint64(b)
		}
	case typeAssociation:
		if want = 12; len(b) == want {
			body.Word, body.SPI, body.PSP = be.Uint32(b), be.Uint32(b[4:]), b[8]
		}
	case typeKeyUpdateRequest, typeEpochDone, typeEpochAck, typeProbeAck, typeAssociationAck, typeAssociationRequest:
		if want = 4; len(b) == want {
			body.Word = be.Uint32(b)
		}
	case typeProbe:
		body.Padding = len(b)
	case typeConfirm, typeWindowRequest:
		want = 0
	}
	if want >= 0 && len(b) != want {
		return body, malformed("body of a wrong size")
	}
	return body, nil
}

func (body *Body) append(t byte, b []byte) []byte {
	be := binary.BigEndian
	switch t {
	case typeGrant:
		for _, g := range body.Grants {
			b = be.AppendUint64(b, g.ID)
			b = be.AppendUint32(b, g.Granted)
			b = be.AppendUint32(b, g.Received)
			b = append(b, g.Priority, 0, 0, 0, 0, 0, 0, 0)
		}
	case typeResend:
		for _, r := range body.Resends {
			b = be.AppendUint64(b, r.ID)
			b = be.AppendUint32(b, r.Offset)
			b = be.AppendUint32(b, r.Length)
		}
	case typeAck:
		for _, a := range body.Acks {
			b = be.AppendUint64(b, a.Base)
			b = be.AppendUint64(b, a.Bits)
		}
	case typeBusy, typeNeedAck, typeCancel, typeVoided, typeSeen, typeNeverSeen, typeSeenAndGone, typePartWindowRequest:
		for _, id := range body.IDs {
			b = be.AppendUint64(b, id)
		}
	case typePartWindow:
		for _, w := range body.Windows {
			b = be.AppendUint64(b, w.ID)
			b = be.AppendUint64(b, w.Limit)
		}
	case typeAbort:
		b = be.AppendUint64(b, body.ID)
		b = be.AppendUint16(b, body.Code)
		b = append(b, make([]byte, 6)...)
	case typeClose:
		b = be.AppendUint16(b, body.Code)
		b = append(b, make([]byte, 6)...)
	case typeWindow, typePing, typePong:
		b = be.AppendUint64(b, body.Value)
	case typeAssociation:
		b = be.AppendUint32(b, body.Word)
		b = be.AppendUint32(b, body.SPI)
		b = append(b, body.PSP, 0, 0, 0)
	case typeKeyUpdateRequest, typeEpochDone, typeEpochAck, typeProbeAck, typeAssociationAck, typeAssociationRequest:
		b = be.AppendUint32(b, body.Word)
	case typeProbe:
		b = append(b, make([]byte, body.Padding)...)
	}
	return b
}
