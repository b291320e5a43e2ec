// SPDX-License-Identifier: Apache-2.0 OR MIT

// The inner header at the start of every message (SPEC §5.2) and the padding policies (SPEC §5.6).
package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const innerHeaderLen = 40

// Kinds of messages.
const (
	kindRequest = 1
	kindReply   = 2
	kindOneWay  = 3
	kindBundle  = 4
	kindPart    = 5
)

// Flags (SPEC §5.2).
const (
	flagFailure      = 0x01 // of a reply that is a failure of the application's
	flagNotRun       = 0x02 // beside it
	flagMetadata     = 0x04 // SPEC §5.8
	flagReplyInParts = 0x08 // SPEC §5.9
	flagMore         = 0x10 // parts follow
)

// flagsOf has the flags of each kind.
var flagsOf = map[byte]byte{
	kindRequest: flagMetadata | flagReplyInParts | flagMore,
	kindReply:   flagMetadata | flagFailure | flagNotRun,
	kindOneWay:  flagMetadata,
	kindBundle:  0,
	kindPart:    flagMore,
}

// KindFields are the fields whose meaning follows from the kind: of an inner header, and of the
// header of a member.
type KindFields struct {
	Kind             byte
	Flags            byte
	DeadlineMicros   uint32 // of a request or one-way message
	Code             uint32 // of a failure
	ReplyUnscheduled uint32 // of a request
	Number           uint32 // of a part, or how many parts belong to a reply
}

// appendWords appends the two words behind the flags.
func (f *KindFields) appendWords(b []byte) []byte {
	first, second := f.DeadlineMicros|f.Code, f.ReplyUnscheduled
	switch f.Kind {
	case kindReply:
		second = f.Number
	case kindPart:
		first = f.Number
	}
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, first), second)
}

// parseKindFields reads the two words and refuses an unknown kind, and flags that a kind does not
// have.
func parseKindFields(kind, flags byte, words []byte) (KindFields, error) {
	f := KindFields{Kind: kind, Flags: flags}
	known, ok := flagsOf[kind]
	if !ok {
		return f, fmt.Errorf("message of unknown kind %d", kind)
	}
	if flags&^known != 0 || flags&flagNotRun != 0 && flags&flagFailure == 0 {
		return f, fmt.Errorf("message of kind %d with flags %#x", kind, flags)
	}
	first, second := binary.BigEndian.Uint32(words), binary.BigEndian.Uint32(words[4:])
	switch kind {
	case kindRequest:
		f.DeadlineMicros, f.ReplyUnscheduled = first, second
	case kindReply:
		if f.Number = second; flags&flagFailure != 0 {
			f.Code = first
		}
	case kindOneWay:
		f.DeadlineMicros = first
	case kindPart:
		f.Number = first
	}
	return f, nil
}

// splitMetadata gives the entries of metadata, name and value by turns, and the body behind them
// (SPEC §5.8).
func splitMetadata(b []byte) (entries []string, body []byte, err error) {
	malformed := fmt.Errorf("malformed metadata")
	if len(b) < 2 {
		return nil, nil, malformed
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	if end > 2+4096 || end > len(b) {
		return nil, nil, malformed
	}
	rest, body := b[2:end], b[end:]
	for len(rest) > 0 {
		n := int(rest[0])
		if n == 0 || len(rest) < 1+n+2 || len(entries) == 2*64 {
			return nil, nil, malformed
		}
		name := rest[1 : 1+n]
		for _, c := range name {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
				return nil, nil, malformed
			}
		}
		v := int(binary.BigEndian.Uint16(rest[1+n:]))
		rest = rest[1+n+2:]
		if len(rest) < v {
			return nil, nil, malformed
		}
		entries, rest = append(entries, string(name), string(rest[:v])), rest[v:]
	}
	return entries, body, nil
}

// InnerHeader is the authenticated header of a message.
type InnerHeader struct {
	TrueLength   uint32
	PaddedLength uint32
	KindFields
	Window uint32
	Ack    Ack // used only if its bits are not 0
}

func (h *InnerHeader) encode() []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, h.TrueLength)
	b = be.AppendUint32(b, h.PaddedLength)
	b = append(b, h.Kind, h.Flags, 0, 0)
	b = h.appendWords(b)
	b = be.AppendUint32(b, h.Window)
	b = be.AppendUint64(b, h.Ack.Base)
	return be.AppendUint64(b, h.Ack.Bits)
}

func parseInnerHeader(b []byte) (*InnerHeader, error) {
	if len(b) < innerHeaderLen {
		return nil, fmt.Errorf("inner header cut short")
	}
	be := binary.BigEndian
	fields, err := parseKindFields(b[8], b[9], b[12:])
	if err != nil {
		return nil, err
	}
	h := &InnerHeader{
		TrueLength: be.Uint32(b), PaddedLength: be.Uint32(b[4:]), KindFields: fields, Window: be.Uint32(b[20:]),
		Ack: Ack{be.Uint64(b[24:]), be.Uint64(b[32:])},
	}
	if uint64(h.PaddedLength) < innerHeaderLen+uint64(h.TrueLength) {
		return nil, fmt.Errorf("less padded than true length")
	}
	return h, nil
}

// extendWindow takes a 32-bit window field to a 64-bit limit (SPEC §5.2).
func extendWindow(limit uint64, window uint32) uint64 {
	if d := window - uint32(limit); d < 1<<31 {
		return limit + uint64(d)
	}
	return limit
}

// Padding is a policy (SPEC §5.6).
type Padding struct {
	Policy string // none, block, padme
	Block  uint64
}

// padded gives P for the true inner length t; max is the largest P permitted.
func (p Padding) padded(t, max uint64) uint64 {
	r := t
	switch p.Policy {
	case "block":
		r = (t + p.Block - 1) / p.Block * p.Block
	case "padme":
		e := uint(bits.Len64(t) - 1)
		s := uint(bits.Len64(uint64(e)))
		m := uint64(1)<<(e-s) - 1
		r = (t + m) &^ m
	}
	return min(r, max)
}
