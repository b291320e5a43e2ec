// SPDX-License-Identifier: Apache-2.0 OR MIT

// Members of a bundle (SPEC §5.7). This client offers no bundles and gets none: here they are bytes
// only.
package main

import (
	"encoding/binary"
	"fmt"
)

const memberHeaderLen = 20

// Member is a message in a bundle.
type Member struct {
	ID               uint64
	Kind             byte
	DeadlineMicros   uint32
	ReplyUnscheduled uint32
	Body             []byte
}

func encodeBundle(members []Member) []byte {
	be := binary.BigEndian
	var b []byte
	for _, m := range members {
		b = be.AppendUint64(b, m.ID)
		b = append(b, m.Kind, 0)
		b = be.AppendUint16(b, uint16(len(m.Body)))
		b = be.AppendUint32(b, m.DeadlineMicros)
		b = be.AppendUint32(b, m.ReplyUnscheduled)
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
		m := Member{be.Uint64(b), b[8], be.Uint32(b[12:]), be.Uint32(b[16:]), b[memberHeaderLen:end]}
		if m.Kind < kindRequest || m.Kind > kindOneWay {
			return nil, fmt.Errorf("member of kind %d", m.Kind)
		}
		members, b = append(members, m), b[end:]
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("bundle without a member")
	}
	return members, nil
}
