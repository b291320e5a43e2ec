// SPDX-License-Identifier: Apache-2.0 OR MIT

// Records: ids and sequence numbers (SPEC §4.1, §5.1), geometry (SPEC §5.3), sealing and opening.
package main

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

const recordOverhead = 22 // header 5, inner type 1, tag 16

// messageID composes an id (SPEC §4.1).
func messageID(counter uint64, initiator, stripe, k uint64) uint64 {
	return counter<<(k+1) | initiator<<k | stripe
}

// sequence composes a record's sequence number, or refuses (SPEC §5.1).
func sequence(id, index uint64, indexBits uint) (uint64, error) {
	if id>>(64-indexBits) != 0 || index>>indexBits != 0 {
		return 0, errors.New("id or record index out of range")
	}
	return id<<indexBits | index, nil
}

func nonce(iv []byte, number uint64) []byte {
	n := make([]byte, 12)
	binary.BigEndian.PutUint64(n[4:], number)
	for i := range n {
		n[i] ^= iv[i]
	}
	return n
}

// Geometry is N0 and N.
type Geometry struct{ First, Other uint64 }

// records is the number of records of a message of padded length p.
func (g Geometry) records(p uint64) uint64 {
	if p <= g.First {
		return 1
	}
	return 1 + (p-g.First+g.Other-1)/g.Other
}

// stream is the length of the record stream.
func (g Geometry) stream(p uint64) uint64 { return p + recordOverhead*g.records(p) }

// inner is where record i's bytes begin and end in the inner stream.
func (g Geometry) inner(i, p uint64) (uint64, uint64) {
	if i == 0 {
		return 0, min(g.First, p)
	}
	from := g.First + (i-1)*g.Other
	return from, min(from+g.Other, p)
}

// span is where record i begins and ends in the record stream.
func (g Geometry) span(i, p uint64) (uint64, uint64) {
	from, to := g.inner(i, p)
	start := uint64(0)
	if i > 0 {
		start = g.First + recordOverhead + (i-1)*(g.Other+recordOverhead)
	}
	return start, start + to - from + recordOverhead
}

// at is the record that holds an offset of the record stream.
func (g Geometry) at(offset uint64) uint64 {
	if offset < g.First+recordOverhead {
		return 0
	}
	return 1 + (offset-g.First-recordOverhead)/(g.Other+recordOverhead)
}

// recordEnd gives the end of the record in which a limit lies: no limit cuts a record (SPEC §5.3).
func (g Geometry) recordEnd(limit, p uint64) uint64 {
	_, end := g.span(min(g.at(max(limit, 1)-1), g.records(p)-1), p)
	return end
}

// sealRecord seals content, filled up with zeros behind 0x17 to extent + 1 bytes (SPEC §5.1, §5.3).
func sealRecord(aead cipher.AEAD, iv []byte, seq uint64, content []byte, extent uint64) []byte {
	plain := make([]byte, extent+1)
	plain[copy(plain, content)] = 0x17
	header := []byte{0x17, 0x03, 0x03, 0, 0}
	binary.BigEndian.PutUint16(header[3:], uint16(len(plain)+tagLen))
	return aead.Seal(header, nonce(iv, seq), plain, header[:5:5])
}

var errAuth = errors.New("does not open")

// openRecord gives the extent + 1 bytes of a record's plaintext.
func openRecord(aead cipher.AEAD, iv []byte, seq uint64, record []byte) ([]byte, error) {
	if len(record) < recordOverhead || record[0] != 0x17 || record[1] != 3 || record[2] != 3 ||
		int(binary.BigEndian.Uint16(record[3:])) != len(record)-5 {
		return nil, fmt.Errorf("record header: %w", errAuth)
	}
	plain, err := aead.Open(nil, nonce(iv, seq), record[5:], record[:5])
	if err != nil {
		return nil, errAuth
	}
	return plain, nil
}

// checkPlain checks that content ends where the true inner length t says, and that only zeros
// follow (SPEC §5.3). from is the record's start in the inner stream.
func checkPlain(plain []byte, from, t uint64) error {
	extent := uint64(len(plain) - 1)
	content := uint64(0)
	if t > from {
		content = min(t-from, extent)
	}
	if plain[content] != 0x17 {
		return errors.New("content does not end where the true length says")
	}
	for _, b := range plain[content+1:] {
		if b != 0 {
			return errors.New("padding is not zero")
		}
	}
	return nil
}
