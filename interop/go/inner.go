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
)

// InnerHeader is the authenticated header of a message.
type InnerHeader struct {
	TrueLength       uint32
	PaddedLength     uint32
	Kind             byte
	DeadlineMicros   uint32
	ReplyUnscheduled uint32
	Window           uint32
	Ack              Ack // used only if its bits are not 0
}

func (h *InnerHeader) encode() []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, h.TrueLength)
	b = be.AppendUint32(b, h.PaddedLength)
	b = append(b, h.Kind, 0, 0, 0)
	b = be.AppendUint32(b, h.DeadlineMicros)
	b = be.AppendUint32(b, h.ReplyUnscheduled)
	b = be.AppendUint32(b, h.Window)
	b = be.AppendUint64(b, h.Ack.Base)
	return be.AppendUint64(b, h.Ack.Bits)
}

func parseInnerHeader(b []byte) (*InnerHeader, error) {
	if len(b) < innerHeaderLen {
		return nil, fmt.Errorf("inner header cut short")
	}
	be := binary.BigEndian
	h := &InnerHeader{
		TrueLength: be.Uint32(b), PaddedLength: be.Uint32(b[4:]), Kind: b[8],
		DeadlineMicros: be.Uint32(b[12:]), ReplyUnscheduled: be.Uint32(b[16:]), Window: be.Uint32(b[20:]),
		Ack: Ack{be.Uint64(b[24:]), be.Uint64(b[32:])},
	}
	if h.Kind < kindRequest || h.Kind > kindBundle {
		return nil, fmt.Errorf("message of unknown kind %d", h.Kind)
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
