// SPDX-License-Identifier: Apache-2.0 OR MIT

// The conversations of vectors/conversations: every packet opens with secrets that are derived here
// from the registered key, or those of the key log where TLS made them, and the messages are those
// of the commands and events.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

type bodyVector struct{ Start, Length uint64 }

func (b *bodyVector) bytes() []byte {
	out := make([]byte, b.Length)
	for i := range out {
		out[i] = byte((b.Start + uint64(i)) % 251)
	}
	return out
}

// said is a message that a command sends or an event tells, among other commands and events.
type said struct {
	ID   Num64       `json:"id"`
	Body *bodyVector `json:"body"`

	ReplyInParts bool         `json:"reply_in_parts"` // call_in_parts, request
	More         bool         `json:"more"`           // and part
	IsFull       bool         `json:"window_is_full"` // part: it was not taken
	Parts        []bodyVector `json:"parts"`          // take_parts: those that had come
	End          bool         `json:"end"`            // and whether they are all
}

// UnmarshalJSON leaves the events empty that are a mere text.
func (s *said) UnmarshalJSON(b []byte) error {
	type fields said
	if b[0] == '"' {
		return nil
	}
	return json.Unmarshal(b, (*fields)(s))
}

type conversation struct {
	Endpoint struct {
		Side string
		Key  struct {
			Name, IKM, Suite Hex
			Client, Server   string
		}
		TLS       *struct{ Suite Hex }
		Token     Hex    `json:"reset_token"`
		IndexBits uint   `json:"index_bits"`
		First     uint64 `json:"first_record_size"`
		Other     uint64 `json:"record_size"`
		Window    uint32 `json:"part_window"`
	}
	Established *struct {
		Client Hex `json:"client_params"`
		Server Hex `json:"server_params"`
		Token  Hex `json:"peer_reset_token"`
	}
	KeyLog []string `json:"key_log"`
	Steps  []struct {
		In       *Hex
		Out      []Hex
		Commands []map[string]said
		Events   []map[string]said
	}
}

// wire is what one side of a conversation has sent.
type wire struct {
	secrets [2][]byte // data, control
	token   Hex
	// The bytes of each message's record stream, which of them have come, and the epoch of the
	// packet at each offset.
	streams map[uint64][]byte
	have    map[uint64]*ranges
	lengths map[uint64]uint64
	epochs  map[uint64]map[uint64]byte
	// Bodies by id and kind; those of parts by the id of the request and their number.
	bodies map[string][]byte
	whole  map[uint64]bool
	parts  []part // in the order in which they became whole
	// The entries of PART_WINDOW and PART_WINDOW_REQUEST, in their order.
	windows []PartWindow
	asked   []uint64
	replies map[uint64]KindFields
}

// part is a part of a call that is whole.
type part struct {
	request uint64
	KindFields
	body []byte
}

func (w *wire) key(s *Suite, purpose int, epoch byte) *Key {
	secret := w.secrets[purpose]
	for range epoch {
		secret = nextSecret(s, secret)
	}
	return newKey(s, secret)
}

func TestConversations(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "vectors", "conversations", "*.json"))
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	sort.Strings(paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var c conversation
			load(t, filepath.Join("conversations", filepath.Base(path)), &c)
			if c.Established != nil {
				c.check(t)
			}
		})
	}
}

func (c *conversation) check(t *testing.T) {
	s, secrets := c.secrets(t)
	own, peer := 0, 1
	if c.Endpoint.Side == "server" {
		own, peer = 1, 0
	}
	tokens := [2]Hex{}
	tokens[own], tokens[peer] = c.Endpoint.Token, c.Established.Token
	var sides [2]*wire
	for i := range sides {
		sides[i] = &wire{[2][]byte{secrets[2*i], secrets[2*i+1]}, tokens[i], map[uint64][]byte{}, map[uint64]*ranges{},
			map[uint64]uint64{}, map[uint64]map[uint64]byte{}, map[string][]byte{}, map[uint64]bool{}, nil, nil, nil,
			map[uint64]KindFields{}}
	}
	geometry := Geometry{c.Endpoint.First, c.Endpoint.Other}
	calls := &playedParts{c: c, own: sides[own], peer: sides[peer], readers: map[uint64]*partReader{}, writers: map[uint64]*partWriter{}}
	for _, step := range c.Steps {
		if step.In != nil {
			sides[peer].take(t, s, *step.In)
			sides[peer].open(t, s, geometry, c.Endpoint.IndexBits)
		}
		for _, out := range step.Out {
			sides[own].take(t, s, out)
			sides[own].open(t, s, geometry, c.Endpoint.IndexBits)
		}
		calls.step(t, step.Commands, step.Events)
	}
	for _, w := range sides {
		for id := range w.lengths {
			if !w.whole[id] {
				t.Errorf("message %x is not whole", id)
			}
		}
	}
	c.compare(t, sides[own], sides[peer])
	calls.end(t)
}

// secrets are those of the first epochs, in the order of names.
func (c *conversation) secrets(t *testing.T) (*Suite, [4][]byte) {
	k := &c.Endpoint.Key
	if c.Endpoint.TLS != nil {
		k.Suite = c.Endpoint.TLS.Suite
	}
	s := suiteOf(t, hex.EncodeToString(k.Suite))
	var logged [4][]byte
	for i, name := range names {
		before := fmt.Sprintf(" %s 0 %x ", name, []byte(k.Suite))
		for _, line := range c.KeyLog {
			if _, secret, ok := strings.Cut(line, before); ok {
				logged[i], _ = hex.DecodeString(secret)
			}
		}
	}
	if c.Endpoint.TLS != nil {
		return s, logged
	}
	hash := parameterHash(c.Established.Client, c.Established.Server)
	secrets, _, err := registeredSecrets(s, hash, &RegisteredKey{k.IKM, k.Name, []byte(k.Client), []byte(k.Server)})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if !bytes.Equal(secrets[i], logged[i]) {
			t.Errorf("the secret %s is not in the key log", name)
		}
	}
	return s, secrets
}

// take opens the control packets of a datagram and keeps the bytes of its messages.
func (w *wire) take(t *testing.T, s *Suite, b []byte) {
	t.Helper()
	for len(b) > 0 {
		p, used, err := parsePacket(b, version1)
		if err != nil || used == 0 {
			t.Fatalf("%x: %v", b, err)
		}
		b = b[used:]
		switch {
		case p.Type == typeData:
			w.keep(p)
		case p.Type == typeReset:
			if !bytes.Equal(p.Token, w.token) {
				t.Errorf("RESET with the token %x", p.Token)
			}
		case p.Type >= typeConfirm:
			plain, err := openControl(w.key(s, 1, p.Epoch), p)
			if err != nil || p.Type == typeConfirm && !bytes.Equal(plain, w.token) {
				t.Errorf("%s: %x, %v", typeNames[p.Type], plain, err)
			}
			w.windows = append(w.windows, p.Body.Windows...)
			if p.Type == typePartWindowRequest {
				w.asked = append(w.asked, p.Body.IDs...)
			}
		}
	}
}

func (w *wire) keep(p *Packet) {
	if w.have[p.ID] == nil {
		w.have[p.ID], w.epochs[p.ID] = &ranges{}, map[uint64]byte{}
		w.lengths[p.ID] = uint64(p.MessageLength)
	}
	from := uint64(p.Offset)
	to := from + uint64(len(p.Payload))
	if grow := int(to) - len(w.streams[p.ID]); grow > 0 {
		w.streams[p.ID] = append(w.streams[p.ID], make([]byte, grow)...)
	}
	copy(w.streams[p.ID][from:], p.Payload)
	w.have[p.ID].add(from, to)
	w.epochs[p.ID][from] = p.Epoch
}

// open opens the records of every message that has become whole.
func (w *wire) open(t *testing.T, s *Suite, g Geometry, indexBits uint) {
	for id, padded := range w.lengths {
		if w.whole[id] || !w.have[id].covers(0, g.stream(padded)) {
			continue
		}
		w.whole[id] = true
		var inner []byte
		for i := range g.records(padded) {
			start, end := g.span(i, padded)
			seq, err := sequence(id, i, indexBits)
			if err != nil {
				t.Fatal(err)
			}
			// Record 0 is in the packet at offset 0; a conversation has no message of two epochs.
			key := w.key(s, 0, w.epochs[id][0])
			plain, err := openRecord(key.AEAD, key.IV, seq, w.streams[id][start:end])
			if err != nil {
				t.Errorf("message %x, record %d: %v", id, i, err)
				return
			}
			inner = append(inner, plain[:len(plain)-1]...)
		}
		h, err := parseInnerHeader(inner)
		if err != nil || uint64(h.PaddedLength) != padded {
			t.Errorf("message %x: %v, %v", id, h, err)
			continue
		}
		body := inner[innerHeaderLen : innerHeaderLen+h.TrueLength]
		if h.Kind != kindBundle {
			w.message(t, id, h.KindFields, body)
			continue
		}
		members, err := parseBundle(body)
		if err != nil {
			t.Errorf("bundle %x: %v", id, err)
		}
		for _, m := range members {
			w.message(t, m.ID, m.KindFields, m.Body)
		}
	}
}

// message notes a message that is whole.
func (w *wire) message(t *testing.T, id uint64, fields KindFields, body []byte) {
	switch fields.Kind {
	case kindPart:
		if len(body) < partPrefix {
			t.Fatalf("part %x has %d bytes", id, len(body))
		}
		w.parts = append(w.parts, part{binary.BigEndian.Uint64(body), fields, body[partPrefix:]})
		return
	case kindReply:
		w.replies[id] = fields
	}
	w.bodies[named(id, fields.Kind)] = body
}

func named(id uint64, kind byte) string { return fmt.Sprintf("%x, kind %d", id, kind) }

var kinds = map[string]byte{"call": kindRequest, "call_in_parts": kindRequest, "request": kindRequest, "reply": kindReply, "one_way": kindOneWay}

// compare finds every message of the commands in what was sent, and every one of the events in what
// came.
func (c *conversation) compare(t *testing.T, own, peer *wire) {
	count := 0
	find := func(w *wire, id uint64, kind byte, body []byte) {
		count++
		if found, ok := w.bodies[named(id, kind)]; !ok || !bytes.Equal(found, body) {
			t.Errorf("message %s is %x", named(id, kind), found)
		}
	}
	for _, step := range c.Steps {
		for _, command := range step.Commands {
			for name, of := range command {
				if kind := kinds[name]; kind != 0 {
					find(own, uint64(of.ID), kind, of.Body.bytes())
				}
			}
		}
		for _, event := range step.Events {
			for name, of := range event {
				if kind := kinds[name]; kind != 0 {
					find(peer, uint64(of.ID), kind, of.Body.bytes())
				}
			}
		}
	}
	if count == 0 {
		t.Error("no message was compared")
	}
}

// playedParts plays what the own side does with the parts of its calls to the readers and writers
// of this client.
type playedParts struct {
	c                              *conversation
	own, peer                      *wire
	readers                        map[uint64]*partReader
	writers                        map[uint64]*partWriter
	sent, came, told, raised, read int
}

func (p *playedParts) step(t *testing.T, commands, events []map[string]said) {
	t.Helper()
	for ; p.came < len(p.peer.parts); p.came++ {
		came := p.peer.parts[p.came]
		r := p.readers[came.request]
		if r == nil {
			t.Fatalf("a part of %x, which nobody reads", came.request)
		}
		if err := r.accept(came.Number, came.Flags&flagMore != 0, came.body); err != nil {
			t.Errorf("part %d of %x: %v", came.Number, came.request, err)
		}
	}
	for ; p.raised < len(p.peer.windows); p.raised++ {
		if w := p.writers[p.peer.windows[p.raised].ID]; w != nil {
			w.raise(p.peer.windows[p.raised].Limit)
		}
	}
	for _, event := range events {
		if of, ok := event["request"]; ok {
			p.begin(uint64(of.ID), of.ReplyInParts, of.More, p.peerWindow(t))
		}
	}
	for _, command := range commands {
		for name, of := range command {
			switch id := uint64(of.ID); name {
			case "call_in_parts":
				p.begin(id, of.More, of.ReplyInParts, 0)
			case "part":
				p.write(t, id, &of)
			case "take_parts":
				p.take(t, id, &of)
			}
		}
	}
	for ; p.told < len(p.own.windows); p.told++ { // an answer to PART_WINDOW_REQUEST
		told := p.own.windows[p.told]
		if r := p.readers[told.ID]; r == nil || r.limit != told.Limit {
			t.Errorf("PART_WINDOW %+v does not repeat the limit", told)
		}
	}
}

func (p *playedParts) peerWindow(t *testing.T) uint64 {
	params := p.c.Established.Client
	if p.c.Endpoint.Side == "client" {
		params = p.c.Established.Server
	}
	peer, err := parseParams(params)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(peer.PartWindow)
}

// begin notes a call in parts. The window of a reply's parts is open from the beginning.
func (p *playedParts) begin(id uint64, writes, reads bool, limit uint64) {
	if writes {
		p.writers[id] = &partWriter{limit: limit}
	}
	if reads {
		p.readers[id] = newPartReader(p.c.Endpoint.Window, limit == 0)
	}
}

func (p *playedParts) write(t *testing.T, id uint64, of *said) {
	body := of.Body.bytes()
	number, err := p.writers[id].number(body, of.More || p.c.Endpoint.Side == "server")
	if (err == errPartWindow) != of.IsFull {
		t.Errorf("part %d of %x: %v, but full: %t", number, id, err, of.IsFull)
	}
	if err != nil {
		return
	}
	p.sent++
	for _, sent := range p.own.parts { // a bundle may have them in any order
		if sent.request == id && sent.Number == number && bytes.Equal(sent.body, body) {
			return
		}
	}
	t.Errorf("part %d of %x did not leave", number, id)
}

func (p *playedParts) take(t *testing.T, id uint64, of *said) {
	r := p.readers[id]
	for _, want := range of.Parts {
		if body := p.takeOne(t, id, r); !bytes.Equal(body, want.bytes()) {
			t.Errorf("part of %x is %x", id, body)
		}
		p.read++
	}
	// The endpoint looked once more, unless a reply has ended the call.
	p.takeOne(t, id, r)
	if reads := p.c.Endpoint.Side == "server"; reads && r.isRead() != of.End {
		t.Errorf("parts of %x: read %t", id, r.isRead())
	}
}

// takeOne takes a part; a limit that is due is the next that the own side tells.
func (p *playedParts) takeOne(t *testing.T, id uint64, r *partReader) []byte {
	body, _, tell := r.take()
	if tell != 0 {
		if p.told == len(p.own.windows) || p.own.windows[p.told] != (PartWindow{id, tell}) {
			t.Fatalf("PART_WINDOW %d of %x is not told: %v", tell, id, p.own.windows[p.told:])
		}
		p.told++
	}
	return body
}

// end checks that all parts were sent, and read if they say anything, and how many the reply says.
func (p *playedParts) end(t *testing.T) {
	if p.sent != len(p.own.parts) {
		t.Errorf("%d parts left, %d were sent", len(p.own.parts), p.sent)
	}
	for id, r := range p.readers {
		if !r.isRead() && p.peer.replies[id].Number != r.next {
			t.Errorf("of the parts of %x %d were read", id, r.next)
		}
	}
	for id, w := range p.writers {
		if n := p.own.replies[id].Number; p.c.Endpoint.Side == "server" && n != w.next {
			t.Errorf("the reply %x says %d parts of %d", id, n, w.next)
		}
	}
}
