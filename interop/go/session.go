// SPDX-License-Identifier: Apache-2.0 OR MIT

// A live session: packets in, control packets answered, epochs, datagram size, close (SPEC §7.3,
// §8, §9, §12).
package main

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// Session is an established session of a client. It is driven by Run alone.
type Session struct {
	*Established
	geometry    Geometry
	k           uint64
	idBits      uint
	padding     Padding
	grantWindow uint64
	datagram    int
	trace       func(format string, args ...any)

	early    *Call // of Config.Early, or nil
	calls    map[uint64]*Call
	counters []uint64 // own ids, by stripe
	limits   []uint64 // the peer's limits of them
	turn     int
	notes    [][]uint64 // replies to acknowledge, by stripe

	numbers []uint64 // own control numbers, by stripe
	windows []replay

	peers []*peerIDs // the ids that the peer starts, by stripe

	underKey   uint64
	epochDone  time.Time // when EPOCH_DONE is due
	epochWait  time.Duration
	began      time.Time
	lastOpened time.Time
	asking     time.Time
	earlyBytes int
	closed     string
	pings      map[uint64]bool
	probes     []probe
	askWindow  time.Time
	Counts     map[string]int
}

const earlyDeadline = 10 * time.Second

// earlyData is the early data of one request (SPEC §6.8).
func earlyData(request []byte, unscheduled uint32) []byte {
	fields := KindFields{Kind: kindRequest, DeadlineMicros: uint32(earlyDeadline.Microseconds()), ReplyUnscheduled: unscheduled}
	return encodeBundle([]Member{{KindFields: fields, Body: request}})
}

// peerIDs is the id window of one stripe (SPEC §4.2).
type peerIDs struct {
	floor     uint64
	seen      map[uint64]bool
	delivered map[uint64]bool
	live      map[uint64]*Incoming
}

type probe struct {
	size, tries int
	next        time.Time
	done        bool
}

func newSession(e *Established, padding Padding, sizes []int, trace func(string, ...any)) *Session {
	s := &Session{Established: e, padding: padding, datagram: baseDatagram, trace: trace, grantWindow: 200_000,
		geometry: Geometry{uint64(e.Peer.FirstRecordSize), uint64(e.Peer.RecordSize)}, k: uint64(e.Peer.Stripes),
		idBits: 64 - uint(max(e.Own.IndexBits, e.Peer.IndexBits)),
		calls:  map[uint64]*Call{}, pings: map[uint64]bool{}, Counts: map[string]int{}, began: time.Now(), lastOpened: time.Now()}
	n := 1 << s.k
	s.counters, s.limits, s.numbers = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	s.notes, s.windows = make([][]uint64, n), make([]replay, n)
	for i := range s.limits {
		s.limits[i] = uint64(e.Peer.Window)
		s.peers = append(s.peers, &peerIDs{seen: map[uint64]bool{}, delivered: map[uint64]bool{}, live: map[uint64]*Incoming{}})
	}
	s.numbers[0] = e.NextNumber
	s.windows[0] = e.Replay
	for _, size := range sizes {
		if size > baseDatagram && size <= int(e.Peer.DatagramLimit) {
			s.probes = append(s.probes, probe{size: size})
		}
	}
	if e.Early != nil { // before anything else, so that it has the first id
		s.early, _ = s.Start(e.Early, false, earlyDeadline)
		if e.EarlyTaken {
			s.early.busy()
			s.early.out.sent = s.early.out.stream
		}
	}
	for _, b := range e.Rest {
		s.datagramIn(b)
	}
	return s
}

func (s *Session) count(what string) { s.Counts[what]++ }

func (s *Session) stripeOf(id uint64) int { return int(id & (1<<s.k - 1)) }

func (s *Session) ours(id uint64) bool { return id>>s.k&1 == 0 }

func (s *Session) counterOf(id uint64) uint64 { return id >> (s.k + 1) }

// issued says whether an id of this side was ever used.
func (s *Session) issued(id uint64) bool {
	return s.ours(id) && s.counterOf(id) < s.counters[s.stripeOf(id)]
}

func (s *Session) peerLimit(stripe int) uint64 { return s.peers[stripe].floor + uint64(s.Own.Window) }

func (s *Session) note(id uint64) {
	stripe := s.stripeOf(id)
	s.notes[stripe] = append(s.notes[stripe], id)
}

// control sends one control packet under the current epoch.
func (s *Session) control(t byte, stripe int, body Body) {
	p := &Packet{Version: version1, Type: t, Epoch: byte(s.Send.Current.Epoch), Session: s.Peer.Index,
		Number: uint64(stripe)<<48 | s.numbers[stripe], Body: body}
	s.numbers[stripe]++
	s.underKey++
	s.count("sent " + typeNames[t])
	s.trace("%v > %s %d %+v", time.Since(s.began).Round(time.Microsecond), typeNames[t], stripe, body)
	var token []byte
	if t == typeConfirm {
		token = s.OwnToken
	}
	s.Link.send(sealControl(s.Send.Current.Control, p, token))
}

// heard notes that something of the peer opened under these keys.
func (s *Session) heard(k *EpochKeys) {
	s.lastOpened = time.Now()
	if s.Recv.opened(k) {
		s.trace("the server moved to epoch %d", k.Epoch)
		s.count("epochs of the server")
	}
}

// Run drives the session until a condition holds, the session is closed, or the time is over.
func (s *Session) Run(until func() bool, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		s.pump()
		if until() {
			return true
		}
		now := time.Now()
		if s.closed != "" || now.After(end) {
			return false
		}
		if b := s.Link.receive(earlier(end, now.Add(time.Millisecond))); b != nil {
			s.datagramIn(b)
			for i := 0; i < 64 && len(s.Link.in) > 0; i++ {
				if b := s.Link.receive(now); b != nil {
					s.datagramIn(b)
				}
			}
		}
		now = time.Now()
		s.timers(now)
		s.epochTimer(now)
		s.probeTimer(now)
	}
}

func (s *Session) datagramIn(b []byte) {
	for len(b) > 0 {
		p, used, err := parsePacket(b, version1)
		if err != nil {
			s.count("malformed")
			s.trace("dropped: %v", err)
		}
		if used == 0 {
			return
		}
		b = b[used:]
		if err == nil {
			s.packet(p)
		}
	}
}

func (s *Session) packet(p *Packet) {
	switch {
	case p.Type == typeData:
		if p.Session == s.Own.Index {
			s.dataIn(p)
		} else {
			s.count("other session")
		}
	case p.Type == typeReset:
		if p.Index == s.Peer.Index && subtle.ConstantTimeCompare(p.Token, s.PeerToken) == 1 {
			s.closed = "reset by the server"
		}
	case p.Type >= typeConfirm:
		if p.Session == s.Own.Index {
			s.controlIn(p)
		} else {
			s.count("other session")
		}
	}
}

func (s *Session) dataIn(p *Packet) {
	if p.ID>>s.idBits != 0 {
		s.count("id out of range")
		return
	}
	if s.ours(p.ID) {
		if c := s.calls[p.ID]; c != nil {
			s.reply(c, p)
		} else if s.issued(p.ID) {
			s.count("late DATA")
		} else {
			s.count("DATA of an id never issued")
		}
		return
	}
	s.peerData(p)
}

// peerData takes what the server starts: requests are refused, one-way messages accepted.
func (s *Session) peerData(p *Packet) {
	w := s.peers[s.stripeOf(p.ID)]
	counter := s.counterOf(p.ID)
	m := w.live[counter]
	if m == nil {
		if counter < w.floor || w.seen[counter] || counter >= w.floor+uint64(s.Own.Window) {
			s.count("DATA of a seen id")
			return
		}
		if p.Offset != 0 {
			return
		}
		m = &Incoming{id: p.ID}
	}
	had := m.header != nil
	kinds := []byte{kindRequest, kindOneWay, kindPart}
	if s.Own.TakesBundles && s.Peer.TakesBundles {
		kinds = append(kinds, kindBundle)
	}
	if _, err := s.data(m, p, kinds...); err != nil {
		s.count("dropped DATA: " + err.Error())
		return
	}
	if !had {
		w.live[counter] = m
		if m.header.Kind != kindBundle { // which is marked when all of it has opened (SPEC §5.7)
			w.see(counter)
		}
		m.granted = s.geometry.recordEnd(uint64(s.Own.Unscheduled), uint64(m.header.PaddedLength))
	}
	switch {
	case m.header.Kind == kindRequest:
		delete(w.live, counter)
		s.control(typeAbort, s.stripeOf(p.ID), Body{ID: p.ID, Code: 1})
	case m.complete() && m.header.Kind == kindBundle:
		delete(w.live, counter)
		s.bundleIn(p.ID, m.application())
	case m.complete():
		delete(w.live, counter)
		w.delivered[counter] = true
		if m.header.Kind == kindPart {
			s.count("parts of the server")
			s.partIn(&m.header.KindFields, m.application())
		} else if m.expired() { // SPEC §9.5
			s.count("one-way messages of the server that came too late")
		} else {
			s.count("one-way messages of the server")
		}
		s.control(typeAck, s.stripeOf(p.ID), Body{Acks: []Ack{{p.ID, 1}}})
	default:
		s.grant(m, false)
	}
}

func (w *peerIDs) see(counter uint64) {
	w.seen[counter] = true
	for w.seen[w.floor] {
		delete(w.seen, w.floor)
		w.floor++
	}
}

func (w *peerIDs) isSeen(counter uint64) bool { return counter < w.floor || w.seen[counter] }

func (s *Session) controlIn(p *Packet) {
	stripe := int(p.Number >> 48)
	counter := p.Number & (1<<48 - 1)
	if stripe >= len(s.windows) {
		s.count("stripe out of range")
		return
	}
	if !s.windows[stripe].fresh(counter) {
		s.count("replayed control")
		return
	}
	k := s.Recv.find(p.Epoch)
	if k == nil {
		s.count("no keys of this epoch")
		return
	}
	if _, err := openControl(k.Control, p); err != nil {
		s.count("control does not open")
		return
	}
	s.windows[stripe].mark(counter)
	s.heard(k)
	s.count("got " + typeNames[p.Type])
	s.trace("%v < %s %d %+v", time.Since(s.began).Round(time.Microsecond), typeNames[p.Type], stripe, p.Body)
	s.answer(p, stripe)
}

// answer does what a control packet asks for (SPEC §8).
func (s *Session) answer(p *Packet, stripe int) {
	b := &p.Body
	switch p.Type {
	case typeGrant:
		for _, g := range b.Grants {
			if c := s.calls[g.ID]; c != nil {
				if uint64(g.Granted) > c.out.granted || uint64(g.Received) > c.out.received {
					c.progress()
				}
				c.out.granted = max(c.out.granted, uint64(g.Granted))
				c.out.received = max(c.out.received, uint64(g.Received))
			}
		}
	case typeResend:
		for _, r := range b.Resends {
			s.resend(r)
		}
	case typeBusy:
		// The questions go on with their back-off.
		for _, id := range b.IDs {
			if c := s.calls[id]; c != nil {
				c.busy()
			}
		}
	case typeAck:
		for _, a := range b.Acks {
			s.acked(a)
		}
	case typeNeedAck:
		for _, id := range b.IDs {
			s.needAck(id)
		}
	case typeCancel:
		for _, id := range b.IDs {
			s.peerCancel(id)
		}
	case typeVoided, typeSeen, typeSeenAndGone, typeNeverSeen:
		for _, id := range b.IDs {
			s.verdict(p.Type, id)
		}
	case typeAbort:
		if c := s.calls[b.ID]; c != nil && !c.oneWay {
			s.note(b.ID)
			if b.Code == 1 || b.Code == 3 || b.Code == 5 {
				s.end(c, didNotRun)
			} else {
				s.end(c, mayHaveRun) // an unknown code is taken as 2
			}
		}
	case typeWindow:
		s.limits[stripe] = max(s.limits[stripe], b.Value)
	case typeWindowRequest:
		s.control(typeWindow, stripe, Body{Value: s.peerLimit(stripe)})
	case typeKeyUpdateRequest:
		if b.Word == s.Send.Current.Epoch {
			s.Update()
		}
	case typeEpochDone:
		if b.Word < s.Recv.Current.Epoch {
			s.Recv.done(b.Word)
			s.control(typeEpochAck, 0, Body{Word: b.Word})
		}
	case typeEpochAck:
		s.Send.done(b.Word)
	case typePing:
		s.control(typePong, 0, Body{Value: b.Value})
	case typePong:
		delete(s.pings, b.Value)
	case typeProbe:
		s.control(typeProbeAck, 0, Body{Word: uint32(len(p.Raw))})
	case typeProbeAck:
		for i := range s.probes {
			if s.probes[i].size == int(b.Word) {
				s.probes[i].done = true
				s.datagram = max(s.datagram, s.probes[i].size)
			}
		}
	case typePartWindow:
		for _, w := range b.Windows {
			if c := s.calls[w.ID]; c != nil && c.writer != nil {
				c.writer.raise(w.Limit)
			}
		}
	case typePartWindowRequest:
		for _, id := range b.IDs {
			if c := s.calls[id]; c != nil && c.reader != nil {
				s.control(typePartWindow, stripe, Body{Windows: []PartWindow{{id, c.reader.asked()}}})
			}
		}
	case typeClose:
		s.closed = fmt.Sprintf("closed by the server, code %d", b.Code)
	}
}

// resend: for an own id the peer wants the request, else what this side sent for the peer's (SPEC
// §9.3).
func (s *Session) resend(r Resend) {
	if !s.ours(r.ID) {
		w := s.peers[s.stripeOf(r.ID)]
		counter := s.counterOf(r.ID)
		switch {
		case w.live[counter] != nil:
			s.askFor(w.live[counter])
		case w.isSeen(counter):
			// all requests of the server are refused
			s.control(typeAbort, s.stripeOf(r.ID), Body{ID: r.ID, Code: 1})
		default:
			s.control(typeNeverSeen, s.stripeOf(r.ID), Body{IDs: []uint64{r.ID}})
		}
		return
	}
	c := s.calls[r.ID]
	if c == nil || c.cancelling {
		if s.issued(r.ID) {
			s.control(typeAck, s.stripeOf(r.ID), Body{Acks: []Ack{{r.ID, 1}}})
		}
		return
	}
	to := uint64(r.Offset) + uint64(r.Length)
	if r.Length == toTheEnd {
		to = c.out.allowed(s.geometry)
	}
	c.out.repeat(uint64(r.Offset), to, s.geometry)
}

func (s *Session) acked(a Ack) {
	for i := 0; i < 64; i++ {
		if a.Bits>>i&1 == 0 {
			continue
		}
		id := a.Base + uint64(i)<<(s.k+1)
		if c := s.calls[id]; c != nil {
			c.out.acked = true
			if c.oneWay {
				s.end(c, delivered)
			}
		}
	}
}

func (s *Session) needAck(id uint64) {
	stripe := s.stripeOf(id)
	if s.ours(id) {
		c := s.calls[id]
		switch {
		case !s.issued(id):
			s.count("impossible id")
		case c == nil || c.cancelling || c.isWhole():
			s.control(typeAck, stripe, Body{Acks: []Ack{{id, 1}}})
		case c.in == nil || c.in.header == nil:
			s.control(typeResend, stripe, Body{Resends: []Resend{{id, 0, toTheEnd}}})
		default:
			s.askFor(c.in)
		}
		return
	}
	w := s.peers[stripe]
	counter := s.counterOf(id)
	switch {
	case w.delivered[counter]:
		s.control(typeAck, stripe, Body{Acks: []Ack{{id, 1}}})
	case w.live[counter] != nil:
		s.askFor(w.live[counter])
	case !w.isSeen(counter):
		s.control(typeNeverSeen, stripe, Body{IDs: []uint64{id}})
	default:
		s.control(typeSeenAndGone, stripe, Body{IDs: []uint64{id}})
	}
}

func (s *Session) peerCancel(id uint64) {
	if s.ours(id) {
		s.count("impossible id")
		return
	}
	stripe := s.stripeOf(id)
	w := s.peers[stripe]
	counter := s.counterOf(id)
	answer := byte(typeSeen)
	if w.live[counter] != nil || !w.isSeen(counter) {
		delete(w.live, counter)
		w.see(counter)
		answer = typeVoided
	}
	s.control(answer, stripe, Body{IDs: []uint64{id}})
}

// verdict takes the answers to CANCEL and to questions.
func (s *Session) verdict(t byte, id uint64) {
	c := s.calls[id]
	if c == nil {
		return
	}
	c.Answer = t
	switch t {
	case typeVoided:
		if c.cancelling && c.oneWay {
			s.end(c, notDelivered)
		} else if c.cancelling {
			s.end(c, didNotRun)
		}
	case typeSeen:
		if c.cancelling && c.oneWay {
			s.end(c, mayDelivered)
		} else if c.cancelling {
			s.end(c, mayHaveRun)
		}
	case typeSeenAndGone:
		if c.oneWay {
			s.end(c, mayDelivered)
		} else if !c.isWhole() { // else a late answer: the reply waits for its parts
			s.end(c, mayHaveRun)
		}
	case typeNeverSeen:
		if !c.cancelling {
			c.out.repeat(0, c.out.free, s.geometry)
		}
	}
}

// Update moves this side's direction to the next epoch (SPEC §7.3).
func (s *Session) Update() bool {
	if s.Send.update() != nil {
		return false
	}
	s.underKey = 0
	s.epochDone, s.epochWait = time.Now(), firstInterval
	s.trace("own direction in epoch %d", s.Send.Current.Epoch)
	return true
}

func (s *Session) epochTimer(now time.Time) {
	if s.underKey >= 1<<22 {
		s.Update()
	}
	old := s.Send.Old
	if old == nil || now.Before(s.epochDone) {
		return
	}
	for _, c := range s.calls {
		if c.out.acked {
			continue
		}
		for i, sealed := range c.out.sealed {
			if sealed != nil && c.out.epochs[i] == old.Epoch {
				return
			}
		}
	}
	s.control(typeEpochDone, 0, Body{Word: old.Epoch})
	s.epochDone = now.Add(s.epochWait)
	s.epochWait = min(2*s.epochWait, lastInterval)
}

func (s *Session) probeTimer(now time.Time) {
	for i := range s.probes {
		p := &s.probes[i]
		if p.done || p.tries == 3 || now.Before(p.next) {
			continue
		}
		p.tries++
		p.next = now.Add(100 * time.Millisecond)
		s.control(typeProbe, 0, Body{Padding: p.size - controlHeader - tagLen})
	}
}

// Ping sends one PING.
func (s *Session) Ping() uint64 {
	v := rand.Uint64()
	s.pings[v] = true
	s.control(typePing, 0, Body{Value: v})
	return v
}

// AskWindow sends WINDOW_REQUEST while the window blocks (SPEC §4.2).
func (s *Session) AskWindow() {
	if now := time.Now(); now.After(s.askWindow) {
		s.askWindow = now.Add(firstInterval)
		for i := range s.limits {
			s.control(typeWindowRequest, i, Body{})
		}
	}
}

// Flush acknowledges all replies that no message has acknowledged yet.
func (s *Session) Flush() {
	for stripe := range s.notes {
		for len(s.notes[stripe]) > 0 {
			s.control(typeAck, stripe, Body{Acks: []Ack{s.takeAck(stripe)}})
		}
	}
}

// Close sends CLOSE once (SPEC §12.3).
func (s *Session) Close() {
	s.control(typeClose, 0, Body{Code: 0})
	s.closed = "closed"
}

// pattern fills a payload that no other call has.
func pattern(size int, seed uint64) []byte {
	b := make([]byte, size+8)
	r := rand.NewPCG(seed, 1)
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	return b[:size]
}
