// SPDX-License-Identifier: Apache-2.0 OR MIT

// Parameters that both sides offer and answer in flights 1 and 2, and their hash (SPEC §6.3).
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Params are one side's parameters.
type Params struct {
	Versions        []byte
	KeyExchange     byte
	Index           uint64
	Suites          []uint16
	IndexBits       byte
	RecordSize      uint16
	FirstRecordSize uint16
	Window          uint32
	MessageLimit    uint32
	Unscheduled     uint32
	DatagramLimit   uint16
	Stripes         byte
	KeyName         []byte // registered keys only, else nil
	Random          []byte
	TakesBundles    bool
	PartWindow      uint32 // 0: no calls in parts
	PSPVersions     []byte // nil: records are sealed
}

// Key exchange values (SPEC §6.3, §14).
const (
	exchangeTLS        = 0
	exchangeRegistered = 1
	exchangeTicket     = 2
)

func (p *Params) encode() []byte {
	be := binary.BigEndian
	var b []byte
	put := func(tag byte, value []byte) { b = append(append(b, tag, byte(len(value))), value...) }
	put(1, p.Versions)
	put(2, []byte{p.KeyExchange})
	put(3, be.AppendUint64(nil, p.Index))
	var suites []byte
	for _, s := range p.Suites {
		suites = be.AppendUint16(suites, s)
	}
	put(4, suites)
	put(5, []byte{p.IndexBits})
	put(6, be.AppendUint16(nil, p.RecordSize))
	put(7, be.AppendUint16(nil, p.FirstRecordSize))
	put(8, be.AppendUint32(nil, p.Window))
	put(9, be.AppendUint32(nil, p.MessageLimit))
	put(10, be.AppendUint32(nil, p.Unscheduled))
	put(11, be.AppendUint16(nil, p.DatagramLimit))
	put(12, []byte{p.Stripes})
	if p.KeyName != nil {
		put(13, p.KeyName)
	}
	if p.Random != nil {
		put(14, p.Random)
	}
	if p.TakesBundles {
		put(15, nil)
	}
	if p.PartWindow != 0 {
		put(17, be.AppendUint32(nil, p.PartWindow))
	}
	if p.PSPVersions != nil {
		put(18, p.PSPVersions)
	}
	return b
}

func parseParams(b []byte) (*Params, error) {
	p := &Params{}
	values := map[byte][]byte{}
	last := -1
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return nil, fmt.Errorf("parameters are cut short")
		}
		tag, n := b[0], int(b[1])
		if int(tag) <= last {
			return nil, fmt.Errorf("parameter %d is not in ascending order", tag)
		}
		last = int(tag)
		values[tag] = b[2 : 2+n : 2+n]
		b = b[2+n:]
	}
	fixed := map[byte]int{2: 1, 3: 8, 5: 1, 6: 2, 7: 2, 8: 4, 9: 4, 10: 4, 11: 2, 12: 1}
	for tag := byte(1); tag <= 12; tag++ {
		v, ok := values[tag]
		if !ok {
			return nil, fmt.Errorf("parameter %d is missing", tag)
		}
		if n, ok := fixed[tag]; ok && len(v) != n {
			return nil, fmt.Errorf("parameter %d has a wrong length", tag)
		}
	}
	be := binary.BigEndian
	p.Versions = values[1]
	p.KeyExchange = values[2][0]
	p.Index = be.Uint64(values[3])
	if len(p.Versions) == 0 || len(values[4]) == 0 || len(values[4])%2 != 0 {
		return nil, fmt.Errorf("parameter 1 or 4 has a wrong length")
	}
	for i := 0; i < len(values[4]); i += 2 {
		p.Suites = append(p.Suites, be.Uint16(values[4][i:]))
	}
	p.IndexBits = values[5][0]
	p.RecordSize = be.Uint16(values[6])
	p.FirstRecordSize = be.Uint16(values[7])
	p.Window = be.Uint32(values[8])
	p.MessageLimit = be.Uint32(values[9])
	p.Unscheduled = be.Uint32(values[10])
	p.DatagramLimit = be.Uint16(values[11])
	p.Stripes = values[12][0]
	if v, ok := values[15]; ok {
		if len(v) != 0 {
			return nil, fmt.Errorf("parameter 15 has a wrong length")
		}
		p.TakesBundles = true
	}
	if v, ok := values[17]; ok {
		if len(v) != 4 || be.Uint32(v) < 4096 || be.Uint32(v) > 1<<30 {
			return nil, fmt.Errorf("parameter 17 has a wrong length or value")
		}
		p.PartWindow = be.Uint32(v)
	}
	if v, ok := values[18]; ok {
		if len(v) < 1 || len(v) > 16 {
			return nil, fmt.Errorf("parameter 18 has a wrong length")
		}
		p.PSPVersions = v
	}
	if p.KeyExchange == exchangeRegistered {
		name, ok := values[13]
		random, ok2 := values[14]
		if !ok || !ok2 {
			return nil, fmt.Errorf("parameter 13 or 14 is missing")
		}
		if len(name) > 32 || len(random) != 32 {
			return nil, fmt.Errorf("parameter 13 or 14 has a wrong length")
		}
		p.KeyName, p.Random = name, random
	}
	for _, c := range []struct {
		ok   bool
		name string
	}{
		{p.Index != 0, "index"},
		{p.IndexBits >= 8 && p.IndexBits <= 17, "index bits"},
		{p.RecordSize >= 64 && p.RecordSize <= 16384, "record size"},
		{p.FirstRecordSize >= 64 && p.FirstRecordSize <= 1142 && p.FirstRecordSize <= p.RecordSize, "first record size"},
		{p.Window >= 64 && p.Window <= 65536, "window"},
		{p.Unscheduled >= uint32(p.FirstRecordSize)+recordOverhead, "unscheduled"},
		{p.DatagramLimit >= 1200, "datagram limit"},
		{p.Stripes <= 8, "stripes"},
	} {
		if !c.ok {
			return nil, fmt.Errorf("parameter %s is out of range", c.name)
		}
	}
	return p, nil
}

// answers says whether a server's parameters are a permitted answer to a client's (SPEC §6.3).
func (server *Params) answers(client *Params) error {
	switch {
	case len(server.Versions) != 1 || !contains(client.Versions, server.Versions[0]):
		return fmt.Errorf("the server chose a version that was not offered")
	case server.KeyExchange != client.KeyExchange:
		return fmt.Errorf("the server did not echo the key exchange")
	case server.RecordSize > client.RecordSize:
		return fmt.Errorf("the server chose a record size above the proposed")
	case server.FirstRecordSize > client.FirstRecordSize:
		return fmt.Errorf("the server chose a first record size above the proposed")
	case server.Stripes > client.Stripes:
		return fmt.Errorf("the server chose more stripes than offered")
	}
	return nil
}

func contains(list []byte, v byte) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

// parameterHash covers both sides' parameters as sent and as received (SPEC §6.3).
func parameterHash(client, server []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(len(client)))
	b = append(b, client...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(server)))
	b = append(b, server...)
	h := sha256.Sum256(b)
	return h[:]
}
