// SPDX-License-Identifier: Apache-2.0 OR MIT

// Packets: the clear header of every type, parsed and encoded (SPEC §3, §6.2, §6.4, §12).
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Wire versions (SPEC §3.1, §12.2, §14).
const (
	versionAnswer    = 0
	version1         = 1
	versionPlaintext = 0xF1
)

// Packet types (SPEC §3.2).
const (
	typeData             = 0x01
	typeHandshake        = 0x10
	typeCookie           = 0x11
	typeVersion          = 0x12
	typeReset            = 0x13
	typeUnavailable      = 0x15
	typeConfirm          = 0x20
	typeGrant            = 0x21
	typeResend           = 0x22
	typeBusy             = 0x23
	typeAck              = 0x24
	typeNeedAck          = 0x25
	typeCancel           = 0x26
	typeVoided           = 0x27
	typeSeen             = 0x28
	typeNeverSeen        = 0x29
	typeSeenAndGone      = 0x2A
	typeAbort            = 0x2B
	typeWindow           = 0x2C
	typeWindowRequest    = 0x2D
	typeKeyUpdateRequest = 0x2E
	typeEpochDone        = 0x2F
	typeEpochAck         = 0x30
	typePing             = 0x31
	typePong             = 0x32
	typeProbe            = 0x33
	typeProbeAck         = 0x34
	typeClose            = 0x35

	typePartWindow        = 0x36
	typePartWindowRequest = 0x37

	typeAssociation        = 0x38
	typeAssociationAck     = 0x39
	typeAssociationRequest = 0x3A
)

var typeNames = map[byte]string{
	typeData: "DATA", typeHandshake: "HANDSHAKE", typeCookie: "COOKIE", typeVersion: "VERSION", typeReset: "RESET",
	typeUnavailable: "UNAVAILABLE",
	typeConfirm:     "CONFIRM", typeGrant: "GRANT", typeResend: "RESEND", typeBusy: "BUSY", typeAck: "ACK",
	typeNeedAck: "NEED_ACK", typeCancel: "CANCEL", typeVoided: "VOIDED", typeSeen: "SEEN", typeNeverSeen: "NEVER_SEEN",
	typeSeenAndGone: "SEEN_AND_GONE", typeAbort: "ABORT", typeWindow: "WINDOW", typeWindowRequest: "WINDOW_REQUEST",
	typeKeyUpdateRequest: "KEY_UPDATE_REQUEST", typeEpochDone: "EPOCH_DONE", typeEpochAck: "EPOCH_ACK",
	typePing: "PING", typePong: "PONG", typeProbe: "PROBE", typeProbeAck: "PROBE_ACK", typeClose: "CLOSE",
	typePartWindow: "PART_WINDOW", typePartWindowRequest: "PART_WINDOW_REQUEST",
	typeAssociation: "ASSOCIATION", typeAssociationAck: "ASSOCIATION_ACK", typeAssociationRequest: "ASSOCIATION_REQUEST",
}

const (
	prefixLen      = 12
	dataHeader     = 36
	controlHeader  = 28
	tagLen         = 16
	handshakeHead  = 40
	resetLen       = 36
	unavailableLen = 22
	wordsData      = 0xB0
	wordsOther     = 0x50
	flagRetransmit = 0x01
	maxFlight      = 65536
	maxCookie      = 64
	maxEntries     = 64
)

// Packet is any packet; which fields count depends on Type.
type Packet struct {
	Version    byte
	Type       byte
	Epoch      byte
	Retransmit bool

	Session uint64 // DATA and control: chosen by the receiver

	ID            uint64 // DATA
	MessageLength uint32
	Offset        uint32
	Payload       []byte
	LengthStated  bool

	Destination  uint64 // HANDSHAKE, COOKIE, UNAVAILABLE
	Source       uint64
	Flight       byte
	Cookie       []byte
	FlightLength uint32
	FragOffset   uint32
	Fragment     []byte
	PaddedTo     int

	Versions []byte // VERSION

	Index uint64 // RESET
	Token []byte

	Code uint16 // UNAVAILABLE

	Number uint64 // control: stripe and counter
	Body   Body
	Sealed []byte // tag, or for CONFIRM encrypted token and tag

	Raw []byte // the bytes that were parsed
}

var errMalformed = errors.New("malformed packet")
var errUnknownType = errors.New("unknown type")
var errVersion = errors.New("version not spoken")

func malformed(what string) error { return fmt.Errorf("%w: %s", errMalformed, what) }

// parsePacket takes one packet from the front of b. used is how far the next packet is; it is 0 if
// the rest of the datagram has to be dropped (SPEC §3).
func parsePacket(b []byte, version byte) (p *Packet, used int, err error) {
	if len(b) < prefixLen {
		return nil, 0, malformed("cut short")
	}
	p = &Packet{Version: b[0], Type: b[1], Epoch: b[2], Retransmit: b[3]&flagRetransmit != 0}
	if p.Version == versionAnswer {
		if p.Type != typeVersion {
			return nil, 0, errVersion
		}
	} else if p.Version != version {
		return nil, 0, fmt.Errorf("%w: %d", errVersion, p.Version)
	} else if p.Type == typeVersion {
		return nil, 0, malformed("VERSION with a version byte other than 0")
	}
	length := int(binary.BigEndian.Uint16(b[6:]))
	words := byte(wordsOther)
	if p.Type == typeData {
		words = wordsData
	}
	if b[4] != words {
		return nil, 0, malformed("header words")
	}
	if length == 0 {
		if p.Type != typeData {
			return nil, 0, malformed("length 0")
		}
		length = len(b)
	} else {
		p.LengthStated = true
	}
	if length < prefixLen || length > len(b) {
		return nil, 0, malformed("length")
	}
	b = b[:length]
	p.Raw = b
	switch {
	case p.Type == typeData:
		if length <= dataHeader {
			return nil, 0, malformed("DATA without a payload")
		}
		p.Session = binary.BigEndian.Uint64(b[12:])
		p.ID = binary.BigEndian.Uint64(b[20:])
		p.MessageLength = binary.BigEndian.Uint32(b[28:])
		p.Offset = binary.BigEndian.Uint32(b[32:])
		p.Payload = b[dataHeader:]
	case p.Type == typeHandshake:
		err = p.parseHandshake(b)
	case p.Type == typeCookie:
		if length <= 20 || length > 20+maxCookie {
			return nil, 0, malformed("COOKIE length")
		}
		p.Destination = binary.BigEndian.Uint64(b[12:])
		p.Cookie = b[20:]
	case p.Type == typeVersion:
		if length == prefixLen {
			return nil, 0, malformed("VERSION without a version")
		}
		if length > prefixLen+255 {
			return nil, 0, malformed("VERSION with more than 255 versions")
		}
		p.Versions = b[prefixLen:]
	case p.Type == typeReset:
		if length != resetLen {
			return nil, 0, malformed("RESET length")
		}
		p.Index = binary.BigEndian.Uint64(b[12:])
		p.Token = b[20:]
	case p.Type == typeUnavailable:
		if length != unavailableLen {
			return nil, 0, malformed("UNAVAILABLE length")
		}
		p.Destination = binary.BigEndian.Uint64(b[12:])
		p.Code = binary.BigEndian.Uint16(b[20:])
	case p.Type >= typeConfirm && p.Type <= typeAssociationRequest:
		sealed := sealedLen(p.Type)
		if length < controlHeader+sealed {
			return nil, 0, malformed("control packet cut short")
		}
		p.Session = binary.BigEndian.Uint64(b[12:])
		p.Number = binary.BigEndian.Uint64(b[20:])
		p.Sealed = b[length-sealed:]
		p.Body, err = parseBody(p.Type, b[controlHeader:length-sealed])
	default:
		return nil, length, fmt.Errorf("%w 0x%02x", errUnknownType, p.Type)
	}
	if err != nil {
		return nil, 0, err
	}
	return p, length, nil
}

func (p *Packet) parseHandshake(b []byte) error {
	if len(b) < handshakeHead {
		return malformed("HANDSHAKE cut short")
	}
	p.Destination = binary.BigEndian.Uint64(b[12:])
	p.Source = binary.BigEndian.Uint64(b[20:])
	p.Flight = b[28]
	cookie := int(b[29])
	fragment := int(binary.BigEndian.Uint16(b[30:]))
	p.FlightLength = binary.BigEndian.Uint32(b[32:])
	p.FragOffset = binary.BigEndian.Uint32(b[36:])
	switch {
	case p.Source == 0:
		return malformed("source index 0")
	case p.Flight < 1 || p.Flight > 7:
		return malformed("flight number")
	case cookie > maxCookie:
		return malformed("cookie length")
	case p.FlightLength > maxFlight:
		return malformed("flight length")
	case handshakeHead+cookie+fragment > len(b):
		return malformed("fragment past the packet")
	case uint64(p.FragOffset)+uint64(fragment) > uint64(p.FlightLength):
		return malformed("fragment past the flight")
	}
	p.Cookie = b[handshakeHead : handshakeHead+cookie]
	p.Fragment = b[handshakeHead+cookie : handshakeHead+cookie+fragment]
	if used := handshakeHead + cookie + fragment; len(b) > used {
		p.PaddedTo = len(b)
	}
	return nil
}

// clear is the packet up to its sealed bytes: for control packets the AAD (SPEC §3.4), for all
// others the whole packet.
func (p *Packet) clear() []byte {
	b := make([]byte, prefixLen, 128)
	b[0], b[1], b[2], b[4] = p.Version, p.Type, p.Epoch, wordsOther
	if p.Retransmit {
		b[3] = flagRetransmit
	}
	be := binary.BigEndian
	total := 0
	switch p.Type {
	case typeData:
		b[4] = wordsData
		b = be.AppendUint64(b, p.Session)
		b = be.AppendUint64(b, p.ID)
		b = be.AppendUint32(b, p.MessageLength)
		b = be.AppendUint32(b, p.Offset)
		b = append(b, p.Payload...)
		if p.LengthStated {
			total = len(b)
		}
	case typeHandshake:
		b = be.AppendUint64(b, p.Destination)
		b = be.AppendUint64(b, p.Source)
		b = append(b, p.Flight, byte(len(p.Cookie)))
		b = be.AppendUint16(b, uint16(len(p.Fragment)))
		b = be.AppendUint32(b, p.FlightLength)
		b = be.AppendUint32(b, p.FragOffset)
		b = append(b, p.Cookie...)
		b = append(b, p.Fragment...)
		if len(b) < p.PaddedTo {
			b = append(b, make([]byte, p.PaddedTo-len(b))...)
		}
		total = len(b)
	case typeCookie:
		b = be.AppendUint64(b, p.Destination)
		b = append(b, p.Cookie...)
		total = len(b)
	case typeVersion:
		b = append(b, p.Versions...)
		total = len(b)
	case typeReset:
		b = be.AppendUint64(b, p.Index)
		b = append(b, p.Token...)
		total = len(b)
	case typeUnavailable:
		b = be.AppendUint64(b, p.Destination)
		b = be.AppendUint16(b, p.Code)
		total = len(b)
	default:
		b = be.AppendUint64(b, p.Session)
		b = be.AppendUint64(b, p.Number)
		b = p.Body.append(p.Type, b)
		total = len(b) + sealedLen(p.Type)
	}
	be.PutUint16(b[6:], uint16(total))
	return b
}

// sealedLen is the bytes behind the body of a control packet: the tag, and before it what is
// encrypted.
func sealedLen(t byte) int {
	switch t {
	case typeConfirm:
		return 16 + tagLen // the reset token
	case typeAssociation:
		return 32 + tagLen // the key
	}
	return tagLen
}

// encode is the whole packet; a control packet must have been sealed.
func (p *Packet) encode() []byte {
	b := p.clear()
	if p.Type >= typeConfirm {
		b = append(b, p.Sealed...)
	}
	return b
}
