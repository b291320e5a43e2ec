// SPDX-License-Identifier: Apache-2.0 OR MIT

// Members of a bundle (SPEC §5.7). This client takes bundles and makes none.
package main

import (
	"encoding/binary"
	"fmt"
)

const memberHeaderLen = 20

// Member is a message in a bundle.
type Member struct {
	ID uint64
	KindFields
	Body []byte
}

func encodeBundle(members []Member) []byte {
	be := binary.BigEndian
	var b []byte
	for _, m := range members {
		b = be.AppendUint64(b, m.ID)
		b = append(b, m.Kind, m.Flags)
		b = be.AppendUint16(b, uint16(len(m.Body)))
		b = m.appendWords(b)
		b = append(b, m.Body...)
	}
	return b
}

func parseBundle(b []byte) ([]Member, error) {
	be := binary.BigEndian
	var members []Member
	for len(b) > 0 {
		if len(b) < memberHeaderLen {
			return nil, fmt.Errorf("member cut short")
		}
		end := memberHeaderLen + int(be.Uint16(b[10:]))
		if len(b) < end {
			return nil, fmt.Errorf("member cut short")
		}
		fields, err := parseKindFields(b[8], b[9], b[12:])
		if err != nil {
			return nil, err
		}
		if fields.Kind == kindBundle {
			return nil, fmt.Errorf("bundle in a bundle")
		}
		members, b = append(members, Member{be.Uint64(b), fields, b[memberHeaderLen:end]}), b[end:]
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("bundle without a member")
	}
	return members, nil
}

// bundleIn takes a bundle of the server that is whole.
func (s *Session) bundleIn(id uint64, application []byte) {
	members, err := parseBundle(application)
	if err != nil {
		s.count("malformed bundles")
		return
	}
	s.count("bundles of the server")
	w, counter := s.peers[s.stripeOf(id)], s.counterOf(id)
	w.see(counter)
	w.delivered[counter] = true
	s.note(id)
	for i := range members {
		m := &members[i]
		if m.ID>>s.idBits != 0 || s.stripeOf(m.ID) != s.stripeOf(id) || s.ours(m.ID) != (m.Kind == kindReply) {
			s.count("members with an impossible id")
		} else if m.Kind == kindReply {
			s.replyInBundle(m)
		} else {
			s.memberIn(w, m)
		}
	}
}

// replyInBundle takes a reply, unless its call is gone or something of the reply has opened.
func (s *Session) replyInBundle(m *Member) {
	c := s.calls[m.ID]
	if c == nil || c.oneWay || c.cancelling || c.isWhole() || c.in != nil && c.in.header != nil {
		return
	}
	c.busy()
	s.wholeReply(c, &m.KindFields, m.Body)
}

// memberIn takes a message that the server has started, unless it was seen.
func (s *Session) memberIn(w *peerIDs, m *Member) {
	counter := s.counterOf(m.ID)
	if w.isSeen(counter) || counter >= w.floor+uint64(s.Own.Window) {
		s.count("members of a seen id")
		return
	}
	w.see(counter)
	switch m.Kind {
	case kindRequest:
		s.control(typeAbort, s.stripeOf(m.ID), Body{ID: m.ID, Code: 1})
	case kindPart:
		w.delivered[counter] = true
		s.count("parts of the server in bundles")
		s.partIn(&m.KindFields, m.Body)
	default:
		w.delivered[counter] = true
		s.count("one-way messages of the server in bundles")
	}
}
