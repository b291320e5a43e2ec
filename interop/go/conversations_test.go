// SPDX-License-Identifier: Apache-2.0 OR MIT

// The conversations of vectors/conversations: every packet opens with secrets that are derived here
// from the registered key, or those of the key log where TLS made them, and the messages are those
// of the commands and events.
package main

import (
	"bytes"
	"encoding/hex"
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
		Events   []map[string]any
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
	// Bodies by id and kind.
	bodies map[string][]byte
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
			map[uint64]uint64{}, map[uint64]map[uint64]byte{}, map[string][]byte{}}
	}
	for _, step := range c.Steps {
		if step.In != nil {
			sides[peer].take(t, s, *step.In)
		}
		for _, out := range step.Out {
			sides[own].take(t, s, out)
		}
	}
	for _, w := range sides {
		w.open(t, s, Geometry{c.Endpoint.First, c.Endpoint.Other}, c.Endpoint.IndexBits)
	}
	c.compare(t, sides[own], sides[peer])
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

// open opens the records of every message that is whole.
func (w *wire) open(t *testing.T, s *Suite, g Geometry, indexBits uint) {
	for id, padded := range w.lengths {
		if !w.have[id].covers(0, g.stream(padded)) {
			t.Errorf("message %x is not whole", id)
			continue
		}
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
			w.bodies[named(id, h.Kind)] = body
			continue
		}
		members, err := parseBundle(body)
		if err != nil {
			t.Errorf("bundle %x: %v", id, err)
		}
		for _, m := range members {
			w.bodies[named(m.ID, m.Kind)] = m.Body
		}
	}
}

func named(id uint64, kind byte) string { return fmt.Sprintf("%x, kind %d", id, kind) }

var kinds = map[string]byte{"call": kindRequest, "request": kindRequest, "reply": kindReply, "one_way": kindOneWay}

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
					of := of.(map[string]any)
					body := of["body"].(map[string]any)
					var id uint64
					fmt.Sscanf(of["id"].(string), "%x", &id)
					vector := bodyVector{uint64(body["start"].(float64)), uint64(body["length"].(float64))}
					find(peer, id, kind, vector.bytes())
				}
			}
		}
	}
	if count == 0 {
		t.Error("no message was compared")
	}
}
