// SPDX-License-Identifier: Apache-2.0 OR MIT

// A message on its way in: record 0 first, then every record opened and checked (SPEC §5.4).
package main

import (
	"errors"
	"fmt"
	"time"
)

// Incoming is a reply, or a message that the peer started.
type Incoming struct {
	id       uint64
	header   *InnerHeader // nil until record 0 has opened
	begun    time.Time    // when it opened
	stream   []byte
	have     ranges
	opened   []bool
	epochs   []byte
	inner    []byte
	left     int    // records not opened
	received uint64 // all records wholly below have opened
	granted  uint64
	early    []*Packet
}

// expired says whether the time of a one-way message has passed (SPEC §9.5).
func (m *Incoming) expired() bool {
	left := m.header.DeadlineMicros
	return left != 0 && left != 0xFFFFFFFF && time.Since(m.begun) > time.Duration(left)*time.Microsecond
}

const earlyLimit = 256 << 10

func (m *Incoming) complete() bool { return m.header != nil && m.left == 0 }

func (m *Incoming) application() []byte {
	return m.inner[innerHeaderLen : innerHeaderLen+int(m.header.TrueLength)]
}

// data takes a DATA packet; true if it brought progress. kinds are those that the id permits.
func (s *Session) data(m *Incoming, p *Packet, kinds ...byte) (bool, error) {
	if m.header == nil {
		if p.Offset != 0 {
			if s.earlyBytes+len(p.Payload) <= earlyLimit {
				s.earlyBytes += len(p.Payload)
				m.early = append(m.early, p)
			}
			return false, nil
		}
		if err := s.first(m, p, kinds); err != nil {
			return false, err
		}
		early := m.early
		m.early = nil
		s.add(m, p)
		for _, q := range early {
			s.earlyBytes -= len(q.Payload)
			s.add(m, q)
		}
		return true, nil
	}
	return s.add(m, p), nil
}

// first opens record 0 and believes its header.
func (s *Session) first(m *Incoming, p *Packet, kinds []byte) error {
	padded := uint64(p.MessageLength)
	if padded < innerHeaderLen || padded > uint64(s.Own.MessageLimit)+innerHeaderLen || s.geometry.records(padded) > 1<<s.Peer.IndexBits {
		return errors.New("message length out of range")
	}
	_, end := s.geometry.span(0, padded)
	if uint64(len(p.Payload)) < end {
		return errors.New("record 0 is not whole")
	}
	k := s.Recv.find(p.Epoch)
	if k == nil {
		return errors.New("no keys of this epoch")
	}
	seq, err := sequence(p.ID, 0, uint(s.Peer.IndexBits))
	if err != nil {
		return err
	}
	plain, err := openRecord(k.Data.AEAD, k.Data.IV, seq, p.Payload[:end])
	if err != nil {
		s.count("record 0 does not open")
		return err
	}
	s.heard(k)
	h, err := parseInnerHeader(plain)
	if err != nil {
		return err
	}
	if h.PaddedLength != p.MessageLength {
		return errors.New("padded length is not the message length")
	}
	if !contains(kinds, h.Kind) {
		return fmt.Errorf("kind %d contradicts the id", h.Kind)
	}
	if err := checkPlain(plain, 0, innerHeaderLen+uint64(h.TrueLength)); err != nil {
		return err
	}
	m.header, m.begun = h, time.Now()
	n := s.geometry.records(padded)
	m.stream = make([]byte, s.geometry.stream(padded))
	m.inner = make([]byte, padded)
	m.opened, m.epochs, m.left = make([]bool, n), make([]byte, n), int(n)
	stripe := s.stripeOf(m.id)
	s.limits[stripe] = extendWindow(s.limits[stripe], h.Window)
	if h.Ack.Bits != 0 {
		s.acked(h.Ack)
	}
	return nil
}

// add takes bytes of a message whose record 0 has opened.
func (s *Session) add(m *Incoming, p *Packet) bool {
	from := uint64(p.Offset)
	to := from + uint64(len(p.Payload))
	padded := uint64(m.header.PaddedLength)
	if p.MessageLength != m.header.PaddedLength || to > uint64(len(m.stream)) {
		s.count("DATA that contradicts record 0")
		return false
	}
	progress := false
	for from < to {
		i := s.geometry.at(from)
		start, end := s.geometry.span(i, padded)
		stop := min(end, to)
		if !m.opened[i] {
			if _, ok := overlap(m.have, start, end); !ok {
				m.epochs[i] = p.Epoch
			}
			for at := from; at < stop; { // only bytes that are missing
				if r, ok := overlap(m.have, at, stop); ok && r.from <= at {
					at = r.to
				} else {
					until := stop
					if ok {
						until = r.from
					}
					copy(m.stream[at:until], p.Payload[at-uint64(p.Offset):])
					m.have.add(at, until)
					at, progress = until, true
				}
			}
			if m.have.covers(start, end) && !s.openAt(m, i) {
				s.count("record does not open")
				m.have.remove(start, end)
			}
		}
		from = stop
	}
	for i := s.geometry.at(m.received); m.received < uint64(len(m.stream)) && m.opened[i]; i++ {
		_, m.received = s.geometry.span(i, padded)
	}
	return progress
}

func overlap(r ranges, from, to uint64) (span, bool) {
	for _, x := range r {
		if x.to > from && x.from < to {
			return x, true
		}
	}
	return span{}, false
}

func (s *Session) openAt(m *Incoming, i uint64) bool {
	padded := uint64(m.header.PaddedLength)
	start, end := s.geometry.span(i, padded)
	from, to := s.geometry.inner(i, padded)
	k := s.Recv.find(m.epochs[i])
	if k == nil {
		return false
	}
	seq, err := sequence(m.id, i, uint(s.Peer.IndexBits))
	if err != nil {
		return false
	}
	plain, err := openRecord(k.Data.AEAD, k.Data.IV, seq, m.stream[start:end])
	if err != nil {
		return false
	}
	s.heard(k)
	if checkPlain(plain, from, innerHeaderLen+uint64(m.header.TrueLength)) != nil {
		return false
	}
	copy(m.inner[from:to], plain)
	m.opened[i] = true
	m.left--
	return true
}

// missing has the unscheduled and granted bytes that have not come.
func (m *Incoming) missing() []span {
	return m.have.gaps(min(m.granted, uint64(len(m.stream))))
}
