// SPDX-License-Identifier: Apache-2.0 OR MIT

// A message on its way out: sealed once, sent as far as granted, sent again when asked for (SPEC
// §5.5, §9.1).
package main

// Outgoing is a request or a one-way message.
type Outgoing struct {
	id     uint64
	header InnerHeader
	// inner header and application bytes; the header is filled in when record 0 is sealed
	inner    []byte
	padded   uint64
	stream   uint64
	sealed   [][]byte
	epochs   []uint32
	sent     uint64 // record stream below this was sent
	free     uint64 // may be sent without a grant
	granted  uint64
	received uint64 // as the peer's GRANT says
	again    ranges // asked for again
	acked    bool
}

func (o *Outgoing) allowed(g Geometry) uint64 { return g.recordEnd(max(o.granted, o.free), o.padded) }

func (o *Outgoing) left() uint64 { return o.stream - o.sent + o.again.total() }

// repeat notes a range to be sent again; record 0 travels whole (SPEC §5.3). Bytes that were never
// sent go out anyhow.
func (o *Outgoing) repeat(from, to uint64, g Geometry) {
	to = min(to, o.sent)
	if from >= to {
		return
	}
	if _, end := g.span(0, o.padded); from < end {
		from, to = 0, max(to, min(end, o.sent))
	}
	o.again.add(from, to)
}

// seal seals record i once (SPEC §5.5).
func (s *Session) seal(o *Outgoing, i uint64) []byte {
	if o.sealed[i] != nil {
		return o.sealed[i]
	}
	if i == 0 {
		s.freezeHeader(o)
	}
	from, to := s.geometry.inner(i, o.padded)
	t := uint64(len(o.inner))
	seq, err := sequence(o.id, i, uint(s.Own.IndexBits))
	if err != nil {
		panic(err)
	}
	k := s.Send.Current
	o.sealed[i] = sealRecord(k.Data.AEAD, k.Data.IV, seq, o.inner[min(from, t):min(to, t)], to-from)
	o.epochs[i] = k.Epoch
	s.underKey++
	return o.sealed[i]
}

// piece gives at most room bytes of the record stream from an offset on, all of one epoch (SPEC
// §5.4).
func (s *Session) piece(o *Outgoing, from, to uint64, room int) ([]byte, uint32) {
	var out []byte
	epoch := uint32(0)
	to = min(to, from+uint64(room))
	for from < to {
		i := s.geometry.at(from)
		record := s.seal(o, i)
		if out == nil {
			epoch = o.epochs[i]
		} else if o.epochs[i] != epoch {
			s.count("packets ended where the epoch changes")
			break
		}
		start, end := s.geometry.span(i, o.padded)
		out = append(out, record[from-start:min(end, to)-start]...)
		from = min(end, to)
	}
	return out, epoch
}

func (s *Session) sendData(o *Outgoing, from, to uint64, again bool) uint64 {
	payload, epoch := s.piece(o, from, to, s.datagram-dataHeader)
	p := &Packet{Version: version1, Type: typeData, Epoch: byte(epoch), Retransmit: again, Session: s.Peer.Index, ID: o.id,
		MessageLength: uint32(o.padded), Offset: uint32(from), Payload: payload}
	s.Link.send(p.encode())
	s.count("sent DATA")
	if again {
		s.count("sent DATA again")
	}
	return uint64(len(payload))
}

// pump sends what may be sent: fewest bytes left first (SPEC §9.1).
func (s *Session) pump() {
	for {
		var best *Outgoing
		for _, c := range s.calls {
			o := c.out
			if c.ended || c.cancelling || (len(o.again) == 0 && o.sent >= o.allowed(s.geometry)) {
				continue
			}
			if best == nil || o.left() < best.left() || o.left() == best.left() && o.id < best.id {
				best = o
			}
		}
		if best == nil {
			return
		}
		for budget := 32; budget > 0; budget-- {
			if len(best.again) > 0 {
				r := best.again[0]
				n := s.sendData(best, r.from, r.to, true)
				best.again.remove(r.from, r.from+n)
			} else if best.sent < best.allowed(s.geometry) {
				best.sent += s.sendData(best, best.sent, best.allowed(s.geometry), false)
			} else {
				break
			}
		}
	}
}
