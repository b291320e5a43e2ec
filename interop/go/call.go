// SPDX-License-Identifier: Apache-2.0 OR MIT

// Calls and one-way messages that this side starts, and their timers (SPEC §4.1, §9, §11).
package main

import (
	"errors"
	"time"
)

// Outcomes (SPEC §11).
const (
	replied      = "replied"
	failedNotRun = "failed, did not run"
	failedMayRun = "failed, may have run"
	didNotRun    = "did not run"
	mayHaveRun   = "may have run"
	delivered    = "delivered"
	notDelivered = "not delivered"
	mayDelivered = "may have been delivered"
)

// Call is an RPC or a one-way message of this side.
type Call struct {
	id         uint64
	oneWay     bool // or a part
	out        *Outgoing
	in         *Incoming
	start      time.Time
	deadline   time.Time
	interval   time.Duration // of the next question
	ask        time.Time
	questions  int // without progress
	cancelling bool
	ended      bool
	Outcome    string
	Answer     byte     // what answered CANCEL
	Reply      []byte   // of a failure its text
	Code       uint32   // of a failure
	Metadata   []string // of the reply, name and value by turns

	reader       *partReader // of the parts of the reply, or nil
	writer       *partWriter // of the parts of the request, or nil
	replyOutcome string      // once the reply has come, which may wait for its parts
}

const (
	firstInterval = 5 * time.Millisecond
	lastInterval  = 500 * time.Millisecond
)

var errBlocked = errors.New("the window is closed")

// Start begins a call or a one-way message; errBlocked if no id may be issued now (SPEC §4.2).
func (s *Session) Start(payload []byte, oneWay bool, limit time.Duration) (*Call, error) {
	kind := byte(kindRequest)
	if oneWay {
		kind = kindOneWay
	}
	c, err := s.begin(payload, KindFields{Kind: kind})
	if err != nil {
		return nil, err
	}
	c.deadline = c.start.Add(limit)
	return c, nil
}

// begin issues an id for a message of this side, which has no deadline yet.
func (s *Session) begin(payload []byte, fields KindFields) (*Call, error) {
	if uint64(len(payload)) > uint64(s.Peer.MessageLimit) {
		return nil, errors.New("above the peer's message limit")
	}
	stripe := -1
	for i := range s.counters { // the stripes take turns
		x := (s.turn + i) % len(s.counters)
		if s.counters[x] < s.limits[x] {
			stripe = x
			break
		}
	}
	if stripe < 0 {
		return nil, errBlocked
	}
	s.turn = stripe + 1
	id := messageID(s.counters[stripe], 0, uint64(stripe), s.k)
	if id>>s.idBits != 0 {
		return nil, errors.New("ids are used up")
	}
	s.counters[stripe]++
	t := innerHeaderLen + uint64(len(payload))
	most := min(uint64(s.Peer.MessageLimit)+innerHeaderLen, s.geometry.First+(1<<s.Own.IndexBits-1)*s.geometry.Other)
	padded := s.padding.padded(t, most)
	n := s.geometry.records(padded)
	o := &Outgoing{id: id, padded: padded, stream: s.geometry.stream(padded), sealed: make([][]byte, n), epochs: make([]uint32, n),
		header: InnerHeader{TrueLength: uint32(len(payload)), PaddedLength: uint32(padded), KindFields: fields}}
	o.inner = append(make([]byte, innerHeaderLen, t), payload...)
	_, record0 := s.geometry.span(0, padded)
	o.free = min(o.stream, max(uint64(s.Peer.Unscheduled), record0))
	now := time.Now()
	c := &Call{id: id, oneWay: fields.Kind != kindRequest, out: o, start: now, interval: firstInterval, ask: now.Add(firstInterval)}
	s.calls[id] = c
	return c, nil
}

// freezeHeader writes the inner header when record 0 is sealed (SPEC §5.2, §5.5).
func (s *Session) freezeHeader(o *Outgoing) {
	c := s.calls[o.id]
	stripe := s.stripeOf(o.id)
	h := &o.header
	if h.Kind != kindPart {
		h.DeadlineMicros = uint32(max(1, min(time.Until(c.deadline).Microseconds(), 0xFFFFFFFF)))
	}
	if h.Kind == kindRequest {
		h.ReplyUnscheduled = s.Own.Unscheduled
	}
	h.Window = uint32(s.peerLimit(stripe))
	h.Ack = s.takeAck(stripe)
	copy(o.inner, h.encode())
}

// takeAck takes notes of replies and bundles that came, as many as fit one base and 64 bits (SPEC
// §8 ACK).
func (s *Session) takeAck(stripe int) Ack {
	notes := s.notes[stripe]
	if len(notes) == 0 {
		return Ack{}
	}
	base := notes[0]
	for _, id := range notes {
		if s.ours(id) == s.ours(base) {
			base = min(base, id)
		}
	}
	a := Ack{Base: base}
	rest := notes[:0]
	for _, id := range notes {
		if i := (id - base) >> (s.k + 1); i < 64 && s.ours(id) == s.ours(base) {
			a.Bits |= 1 << i
		} else {
			rest = append(rest, id)
		}
	}
	s.notes[stripe] = rest
	return a
}

func (c *Call) progress() {
	c.questions = 0
	c.interval = firstInterval
	c.ask = time.Now().Add(firstInterval)
}

// busy notes that the peer has the whole request, and works on it (SPEC §9.3).
func (c *Call) busy() {
	if !c.oneWay {
		c.out.acked, c.out.again = true, nil
	}
}

// isWhole says whether the reply has come.
func (c *Call) isWhole() bool { return c.replyOutcome != "" }

func (s *Session) end(c *Call, outcome string) {
	if c.ended {
		return
	}
	c.ended, c.Outcome = true, outcome
	delete(s.calls, c.id)
}

// Cancel gives a call up (SPEC §9.6).
func (s *Session) Cancel(c *Call) {
	if c.ended || c.cancelling {
		return
	}
	c.cancelling = true
	c.progress()
	s.control(typeCancel, s.stripeOf(c.id), Body{IDs: []uint64{c.id}})
}

// reply takes DATA of the reply to a call.
func (s *Session) reply(c *Call, p *Packet) {
	if c.oneWay || c.cancelling || c.isWhole() {
		return
	}
	if c.in == nil {
		c.in = &Incoming{id: c.id}
	}
	had := c.in.header != nil
	progress, err := s.data(c.in, p, kindReply)
	if err != nil {
		s.count("dropped DATA: " + err.Error())
		return
	}
	if progress {
		c.progress()
	}
	if c.in.header == nil {
		return
	}
	if !had { // the first record of a reply acknowledges its request (SPEC §9.4)
		c.in.granted = s.geometry.recordEnd(uint64(s.Own.Unscheduled), uint64(c.in.header.PaddedLength))
		c.out.acked, c.out.again = true, nil
	}
	if c.in.complete() {
		s.note(c.id)
		s.wholeReply(c, &c.in.header.KindFields, c.in.application())
		return
	}
	s.grant(c.in, false)
}

// wholeReply ends a call by its reply, unless that waits for its parts (SPEC §5.9).
func (s *Session) wholeReply(c *Call, h *KindFields, body []byte) {
	c.Reply = body
	if h.Flags&flagMetadata != 0 {
		entries, body, err := splitMetadata(c.Reply)
		if err != nil {
			s.end(c, mayHaveRun)
			return
		}
		c.Metadata, c.Reply = entries, body
	}
	if c.reader != nil && c.reader.endAt(h.Number) != nil {
		s.end(c, mayHaveRun)
		return
	}
	switch c.Code = h.Code; {
	case h.Flags&flagNotRun != 0:
		c.replyOutcome = failedNotRun
	case h.Flags&flagFailure != 0:
		c.replyOutcome = failedMayRun
	default:
		c.replyOutcome = replied
	}
	s.endIfRead(c)
}

// grant keeps a window of bytes granted and not received (SPEC §9.2).
func (s *Session) grant(m *Incoming, again bool) {
	length := uint64(len(m.stream))
	want := s.geometry.recordEnd(min(length, max(m.granted, m.received+s.grantWindow)), uint64(m.header.PaddedLength))
	if !again && (want <= m.granted || want < length && want-m.granted < s.grantWindow/4) {
		return
	}
	if length <= uint64(s.Own.Unscheduled) {
		return
	}
	m.granted = want
	s.control(typeGrant, s.stripeOf(m.id), Body{Grants: []Grant{{m.id, uint32(want), uint32(m.received), 4}}})
}

// timers asks for packets that do not come (SPEC §9.3, §9.5, §9.6) and ends what has lasted too
// long.
func (s *Session) timers(now time.Time) {
	for _, c := range s.calls {
		s.partTimer(c, now)
		if now.After(c.deadline) && !c.deadline.IsZero() && !c.cancelling {
			s.count("deadlines")
			s.Cancel(c)
		}
		if now.Before(c.ask) {
			continue
		}
		if c.interval == firstInterval || s.asking.IsZero() {
			if s.asking.IsZero() || s.lastOpened.After(s.asking) {
				s.asking = now
			}
		}
		c.ask = now.Add(c.interval)
		c.interval = min(2*c.interval, lastInterval)
		c.questions++
		if c.questions >= 3 && s.datagram > baseDatagram {
			s.count("back to 1,200 bytes")
			s.datagram = baseDatagram // SPEC §9.8
		}
		stripe := s.stripeOf(c.id)
		switch {
		case c.cancelling:
			s.control(typeCancel, stripe, Body{IDs: []uint64{c.id}})
		case c.isWhole(): // its parts are still missing
			s.Ping()
		case c.oneWay:
			s.control(typeNeedAck, stripe, Body{IDs: []uint64{c.id}})
		case c.in == nil || c.in.header == nil:
			s.control(typeResend, stripe, Body{Resends: []Resend{{c.id, 0, toTheEnd}}})
		default:
			s.askFor(c.in)
		}
	}
	if now.Sub(s.lastOpened) > 2*time.Second && !s.asking.IsZero() && now.Sub(s.asking) > 2*time.Second && len(s.calls) > 0 {
		s.closed = "the peer is silent" // SPEC §9.9
	}
}

// askFor sends RESEND for missing bytes, and the grant again, which may have been lost.
func (s *Session) askFor(m *Incoming) {
	var r []Resend
	for _, g := range m.missing() {
		if len(r) == maxEntries {
			break
		}
		r = append(r, Resend{m.id, uint32(g.from), uint32(g.to - g.from)})
	}
	s.grant(m, true)
	if len(r) > 0 {
		s.control(typeResend, s.stripeOf(m.id), Body{Resends: r})
	}
}
