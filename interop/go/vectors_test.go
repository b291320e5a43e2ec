// SPDX-License-Identifier: Apache-2.0 OR MIT

// All test vectors of SPEC Appendix A, in both directions where there are two.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// Hex is a binary value.
type Hex []byte

func (h *Hex) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return err
	}
	var err error
	*h, err = hex.DecodeString(*s)
	if *h == nil {
		*h = Hex{}
	}
	return err
}

// Num64 is an integer of 16 hex digits.
type Num64 uint64

func (n *Num64) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 16, 64)
	*n = Num64(v)
	return err
}

type packetFields struct {
	Epoch         byte   `json:"epoch"`
	Retransmit    bool   `json:"retransmit"`
	Session       Num64  `json:"session"`
	ID            Num64  `json:"id"`
	MessageLength uint32 `json:"message_length"`
	Offset        uint32 `json:"offset"`
	Payload       Hex    `json:"payload"`
	Destination   Num64  `json:"destination"`
	Source        Num64  `json:"source"`
	Flight        byte   `json:"flight"`
	Cookie        Hex    `json:"cookie"`
	FlightLength  uint32 `json:"flight_length"`
	Fragment      Hex    `json:"fragment"`
	Versions      []int  `json:"versions"`
	Index         Num64  `json:"index"`
	Token         Hex    `json:"token"`
	Code          uint16 `json:"code"`
	Stripe        uint16 `json:"stripe"`
	Counter       Num64  `json:"counter"`
	Sealed        Hex    `json:"sealed"`
	Body          struct {
		Entries []struct {
			ID       Num64  `json:"id"`
			Granted  uint32 `json:"granted"`
			Received uint32 `json:"received"`
			Priority byte   `json:"priority"`
			Offset   uint32 `json:"offset"`
			Length   uint32 `json:"length"`
			Base     Num64  `json:"base"`
			Bits     Num64  `json:"bits"`
			Limit    Num64  `json:"limit"`
		} `json:"entries"`
		ID      Num64  `json:"id"`
		Code    uint16 `json:"code"`
		Limit   Num64  `json:"limit"`
		Epoch   uint32 `json:"epoch"`
		Value   Num64  `json:"value"`
		Padding int    `json:"padding"`
		Size    uint32 `json:"size"`
		Serial  uint32 `json:"serial"`
		SPI     uint32 `json:"spi"`
		Version byte   `json:"version"`
	} `json:"body"`
}

func (f *packetFields) packet(name string, version byte, stated bool, padded int) *Packet {
	p := &Packet{Version: version, Epoch: f.Epoch, Retransmit: f.Retransmit, Session: uint64(f.Session), ID: uint64(f.ID),
		MessageLength: f.MessageLength, Offset: f.Offset, Payload: f.Payload, LengthStated: stated,
		Destination: uint64(f.Destination), Source: uint64(f.Source), Flight: f.Flight, Cookie: f.Cookie, FlightLength: f.FlightLength,
		Fragment: f.Fragment, PaddedTo: padded, Index: uint64(f.Index), Token: f.Token, Code: f.Code,
		Number: uint64(f.Stripe)<<48 | uint64(f.Counter), Sealed: f.Sealed}
	for t, n := range typeNames {
		if n == name {
			p.Type = t
		}
	}
	if p.Type == typeHandshake {
		p.FragOffset, p.Offset = p.Offset, 0
	}
	for _, v := range f.Versions {
		p.Versions = append(p.Versions, byte(v))
	}
	b := &p.Body
	for _, e := range f.Body.Entries {
		switch p.Type {
		case typeGrant:
			b.Grants = append(b.Grants, Grant{uint64(e.ID), e.Granted, e.Received, e.Priority})
		case typeResend:
			b.Resends = append(b.Resends, Resend{uint64(e.ID), e.Offset, e.Length})
		case typeAck:
			b.Acks = append(b.Acks, Ack{uint64(e.Base), uint64(e.Bits)})
		case typePartWindow:
			b.Windows = append(b.Windows, PartWindow{uint64(e.ID), uint64(e.Limit)})
		default:
			b.IDs = append(b.IDs, uint64(e.ID))
		}
	}
	b.ID, b.Code, b.Padding = uint64(f.Body.ID), f.Body.Code, f.Body.Padding
	b.Value = uint64(f.Body.Limit) | uint64(f.Body.Value)
	b.Word = f.Body.Epoch | f.Body.Size | f.Body.Serial
	b.SPI, b.PSP = f.Body.SPI, f.Body.Version
	return p
}

// kindVector has the fields that depend on the kind.
type kindVector struct {
	Kind             string `json:"kind"`
	DeadlineMicros   uint32 `json:"deadline_us"`
	ReplyUnscheduled uint32 `json:"reply_unscheduled"`
	HasMetadata      bool   `json:"has_metadata"`
	Failure          *struct {
		Code   uint32 `json:"code"`
		NotRun bool   `json:"not_run"`
	} `json:"failure"`
	Parts struct {
		ReplyInParts bool   `json:"reply_in_parts"`
		More         bool   `json:"more"`
		Number       uint32 `json:"number"`
	} `json:"parts"` // null: as if it had none of them
}

func (v *kindVector) fields() KindFields {
	kinds := map[string]byte{"REQUEST": kindRequest, "REPLY": kindReply, "ONE_WAY": kindOneWay, "BUNDLE": kindBundle, "PART": kindPart}
	f := KindFields{Kind: kinds[v.Kind], DeadlineMicros: v.DeadlineMicros, ReplyUnscheduled: v.ReplyUnscheduled, Number: v.Parts.Number}
	set := func(is bool, flag byte) {
		if is {
			f.Flags |= flag
		}
	}
	set(v.HasMetadata, flagMetadata)
	set(v.Parts.ReplyInParts, flagReplyInParts)
	set(v.Parts.More, flagMore)
	if v.Failure != nil {
		f.Code = v.Failure.Code
		set(true, flagFailure)
		set(v.Failure.NotRun, flagNotRun)
	}
	return f
}

type innerFields struct {
	TrueLength   uint32 `json:"true_length"`
	PaddedLength uint32 `json:"padded_length"`
	kindVector
	Window uint32 `json:"window"`
	Ack    *struct {
		Base Num64 `json:"base"`
		Bits Num64 `json:"bits"`
	} `json:"ack"`
}

type paramFields struct {
	Versions        []int    `json:"versions"`
	KeyExchange     byte     `json:"key_exchange"`
	Index           Num64    `json:"index"`
	Suites          []uint16 `json:"suites"`
	IndexBits       byte     `json:"index_bits"`
	RecordSize      uint16   `json:"record_size"`
	FirstRecordSize uint16   `json:"first_record_size"`
	Window          uint32   `json:"window"`
	MessageLimit    uint32   `json:"message_limit"`
	Unscheduled     uint32   `json:"unscheduled"`
	DatagramLimit   uint16   `json:"datagram_limit"`
	Stripes         byte     `json:"stripes"`
	KeyName         Hex      `json:"key_name"`
	Random          Hex      `json:"random"`
	TakesBundles    bool     `json:"takes_bundles"`
	PartWindow      uint32   `json:"part_window"`
	PSPVersions     []int    `json:"psp_versions"` // a []byte would be base 64
}

type packetsFile struct {
	Packets []struct {
		Name         string       `json:"name"`
		Type         string       `json:"type"`
		Version      byte         `json:"version"`
		Fields       packetFields `json:"fields"`
		Hex          Hex          `json:"hex"`
		LengthStated bool         `json:"length_stated"`
		PaddedTo     int          `json:"padded_to"`
	} `json:"packets"`
	Malformed []struct {
		Name    string `json:"name"`
		Version byte   `json:"version"`
		Hex     Hex    `json:"hex"`
	} `json:"malformed"`
	InnerHeaders []struct {
		Name   string      `json:"name"`
		Fields innerFields `json:"fields"`
		Hex    Hex         `json:"hex"`
	} `json:"inner_headers"`
	MalformedInner []struct {
		Name string `json:"name"`
		Hex  Hex    `json:"hex"`
	} `json:"malformed_inner_headers"`
	Params []struct {
		Name   string      `json:"name"`
		Fields paramFields `json:"fields"`
		Hex    Hex         `json:"hex"`
	} `json:"params"`
	MalformedParams []struct {
		Name string `json:"name"`
		Hex  Hex    `json:"hex"`
	} `json:"malformed_params"`
}

func TestPackets(t *testing.T) {
	var f packetsFile
	load(t, "packets.json", &f)
	seen := map[string]bool{}
	for _, v := range f.Packets {
		seen[v.Type] = true
		version := v.Version
		if version == versionAnswer {
			version = version1
		}
		want := v.Fields.packet(v.Type, v.Version, v.LengthStated, v.PaddedTo)
		if got := want.encode(); !bytes.Equal(got, v.Hex) {
			t.Errorf("%s: encoded\n%x, want\n%x", v.Name, got, v.Hex)
		}
		p, used, err := parsePacket(v.Hex, version)
		if err != nil || used != len(v.Hex) {
			t.Errorf("%s: %v, %d bytes used", v.Name, err, used)
			continue
		}
		if got := p.encode(); !bytes.Equal(got, v.Hex) {
			t.Errorf("%s: encoded again\n%x, want\n%x", v.Name, got, v.Hex)
		}
	}
	for _, n := range typeNames {
		if !seen[n] {
			t.Errorf("no vector of type %s", n)
		}
	}
	for _, v := range f.Malformed {
		if _, _, err := parsePacket(v.Hex, v.Version); err == nil {
			t.Errorf("%s: parsed", v.Name)
		}
	}
}

func TestInnerHeaders(t *testing.T) {
	var f packetsFile
	load(t, "packets.json", &f)
	for _, v := range f.InnerHeaders {
		h := &InnerHeader{TrueLength: v.Fields.TrueLength, PaddedLength: v.Fields.PaddedLength,
			KindFields: v.Fields.fields(), Window: v.Fields.Window}
		if a := v.Fields.Ack; a != nil {
			h.Ack = Ack{uint64(a.Base), uint64(a.Bits)}
		}
		if got := h.encode(); !bytes.Equal(got, v.Hex) {
			t.Errorf("%s: encoded %x, want %x", v.Name, got, v.Hex)
		}
		if got, err := parseInnerHeader(v.Hex); err != nil || *got != *h {
			t.Errorf("%s: parsed %v, %v", v.Name, got, err)
		}
	}
	for _, v := range f.MalformedInner {
		if _, err := parseInnerHeader(v.Hex); err == nil {
			t.Errorf("%s: parsed", v.Name)
		}
	}
}

func TestBundles(t *testing.T) {
	var f struct {
		Bundles []struct {
			Name    string `json:"name"`
			Hex     Hex    `json:"hex"`
			Members []struct {
				ID   Num64 `json:"id"`
				Body Hex   `json:"body"`
				kindVector
			} `json:"members"`
		} `json:"bundles"`
		Malformed []struct {
			Name string `json:"name"`
			Hex  Hex    `json:"hex"`
		} `json:"malformed_bundles"`
	}
	load(t, "packets.json", &f)
	for _, v := range f.Bundles {
		var members []Member
		for _, m := range v.Members {
			members = append(members, Member{uint64(m.ID), m.fields(), m.Body})
		}
		if got := encodeBundle(members); !bytes.Equal(got, v.Hex) {
			t.Errorf("%s: encoded %x, want %x", v.Name, got, v.Hex)
		}
		got, err := parseBundle(v.Hex)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		} else if !bytes.Equal(encodeBundle(got), v.Hex) {
			t.Errorf("%s: encoded again %x", v.Name, encodeBundle(got))
		}
	}
	if len(f.Bundles) == 0 || len(f.Malformed) == 0 {
		t.Error("no vectors")
	}
	for _, v := range f.Malformed {
		if _, err := parseBundle(v.Hex); err == nil {
			t.Errorf("%s: parsed", v.Name)
		}
	}
}

func TestParams(t *testing.T) {
	var f packetsFile
	load(t, "packets.json", &f)
	for _, v := range f.Params {
		x := v.Fields
		p := &Params{KeyExchange: x.KeyExchange, Index: uint64(x.Index), Suites: x.Suites, IndexBits: x.IndexBits, RecordSize: x.RecordSize,
			FirstRecordSize: x.FirstRecordSize, Window: x.Window, MessageLimit: x.MessageLimit, Unscheduled: x.Unscheduled,
			DatagramLimit: x.DatagramLimit, Stripes: x.Stripes, KeyName: x.KeyName, Random: x.Random, TakesBundles: x.TakesBundles, PartWindow: x.PartWindow}
		for _, n := range x.Versions {
			p.Versions = append(p.Versions, byte(n))
		}
		for _, n := range x.PSPVersions {
			p.PSPVersions = append(p.PSPVersions, byte(n))
		}
		if got := p.encode(); !bytes.Equal(got, v.Hex) {
			t.Errorf("%s: encoded %x, want %x", v.Name, got, v.Hex)
		}
		got, err := parseParams(v.Hex)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		} else if !bytes.Equal(got.encode(), v.Hex) {
			t.Errorf("%s: encoded again %x", v.Name, got.encode())
		}
	}
	for _, v := range f.MalformedParams {
		if _, err := parseParams(v.Hex); err == nil {
			t.Errorf("%s: parsed", v.Name)
		}
	}
}

type epochVector struct {
	Secret Hex `json:"secret"`
	Key    Hex `json:"key"`
	IV     Hex `json:"iv"`
}

func suiteOf(t *testing.T, s string) *Suite {
	n, _ := strconv.ParseUint(s, 16, 16)
	suite := suites[uint16(n)]
	if suite == nil {
		t.Fatalf("suite %s", s)
	}
	return suite
}

func checkEpochs(t *testing.T, name string, s *Suite, first []byte, epochs []epochVector) []*Key {
	t.Helper()
	var keys []*Key
	secret := first
	for e, v := range epochs {
		if e > 0 {
			secret = nextSecret(s, secret)
		}
		k := newKey(s, secret)
		if !bytes.Equal(secret, v.Secret) || !bytes.Equal(k.Raw, v.Key) || !bytes.Equal(k.IV, v.IV) {
			t.Errorf("%s: epoch %d: %x %x %x", name, e, secret, k.Raw, k.IV)
		}
		keys = append(keys, k)
	}
	return keys
}

type exportedVector struct {
	Label   string `json:"label"`
	Context Hex    `json:"context"`
	Secret  Hex    `json:"secret"`
}

func checkExported(t *testing.T, name string, s *Suite, own []byte, vectors []exportedVector) {
	t.Helper()
	if len(vectors) == 0 {
		t.Errorf("%s: nothing is exported", name)
	}
	for _, v := range vectors {
		if got := exported(s, own, v.Label, v.Context, len(v.Secret)); !bytes.Equal(got, v.Secret) {
			t.Errorf("%s: %s is %x", name, v.Label, got)
		}
	}
}

func TestKeySchedule(t *testing.T) {
	var f struct {
		Hash []struct{ Client, Server, Hash Hex } `json:"parameter_hash"`
		Exp  []struct {
			Suite   string                   `json:"suite"`
			Master  Hex                      `json:"exporter_master_secret"`
			Hash    Hex                      `json:"parameter_hash"`
			Secrets map[string][]epochVector `json:"secrets"`
			Own     Hex                      `json:"exporter_secret"`
			Out     []exportedVector         `json:"exported"`
		} `json:"exporter"`
		Reg []struct {
			Name    string                   `json:"name"`
			Suite   string                   `json:"suite"`
			IKM     Hex                      `json:"ikm"`
			KeyName Hex                      `json:"key_name"`
			Client  Hex                      `json:"client"`
			Server  Hex                      `json:"server"`
			Hash    Hex                      `json:"parameter_hash"`
			Secrets map[string][]epochVector `json:"secrets"`
			Out     []exportedVector         `json:"exported"`
		} `json:"registered"`
		Control []struct {
			Name      string `json:"name"`
			Suite     string `json:"suite"`
			Secret    Hex    `json:"secret"`
			Key       Hex    `json:"key"`
			IV        Hex    `json:"iv"`
			Stripe    uint64 `json:"stripe"`
			Counter   Num64  `json:"counter"`
			Plaintext Hex    `json:"plaintext"`
			AAD       Hex    `json:"aad"`
			Packet    Hex    `json:"packet"`
		} `json:"control"`
	}
	load(t, "key_schedule.json", &f)
	for i, v := range f.Hash {
		if got := parameterHash(v.Client, v.Server); !bytes.Equal(got, v.Hash) {
			t.Errorf("parameter hash %d: %x", i, got)
		}
	}
	for _, v := range f.Exp {
		s := suiteOf(t, v.Suite)
		secrets, err := exporterSecrets(s, v.Hash, func(label string, context []byte, n int) ([]byte, error) {
			return exporter(s, v.Master, label, context, n), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			checkEpochs(t, v.Suite+" "+name, s, secrets[i], v.Secrets[name])
		}
		own := exporter(s, v.Master, "EXPORTER-smt-1 exporter", v.Hash, s.Hash().Size())
		if !bytes.Equal(own, v.Own) {
			t.Errorf("%s: exporter secret %x", v.Suite, own)
		}
		checkExported(t, v.Suite, s, own, v.Out)
	}
	for _, v := range f.Reg {
		s := suiteOf(t, v.Suite)
		secrets, own, err := registeredSecrets(s, v.Hash, &RegisteredKey{v.IKM, v.KeyName, v.Client, v.Server})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			checkEpochs(t, v.Name+" "+name, s, secrets[i], v.Secrets[name])
		}
		checkExported(t, v.Name, s, own, v.Out)
	}
	for _, v := range f.Control {
		s := suiteOf(t, v.Suite)
		k := checkEpochs(t, v.Name, s, v.Secret, []epochVector{{v.Secret, v.Key, v.IV}})[0]
		p, _, err := parsePacket(v.Packet, version1)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if p.Number != v.Stripe<<48|uint64(v.Counter) || typeNames[p.Type] != v.Name || !bytes.Equal(p.clear(), v.AAD) {
			t.Errorf("%s: parsed wrongly", v.Name)
		}
		if plain, err := openControl(k, p); err != nil || !bytes.Equal(plain, v.Plaintext) {
			t.Errorf("%s: opened %x, %v", v.Name, plain, err)
		}
		q := *p
		q.Sealed = nil
		if got := sealControl(k, &q, v.Plaintext); !bytes.Equal(got, v.Packet) {
			t.Errorf("%s: sealed %x", v.Name, got)
		}
		p.Raw = bytes.Clone(p.Raw)
		p.Raw[3] ^= 2 // reserved, yet covered
		if _, err := openControl(k, p); err == nil {
			t.Errorf("%s: opened though changed", v.Name)
		}
	}
}

func TestRecords(t *testing.T) {
	var f struct {
		Messages []struct {
			Name        string        `json:"name"`
			Suite       string        `json:"suite"`
			Sender      string        `json:"sender"`
			Epochs      []epochVector `json:"epochs"`
			Initiator   string        `json:"initiator"`
			Counter     Num64         `json:"counter"`
			Stripe      uint64        `json:"stripe"`
			StripesLog2 uint64        `json:"stripes_log2"`
			ID          Num64         `json:"id"`
			IndexBits   uint          `json:"index_bits"`
			N0          uint64        `json:"first_record_size"`
			N           uint64        `json:"record_size"`
			TrueLength  uint64        `json:"true_length"`
			Padded      uint64        `json:"padded_length"`
			Stream      uint64        `json:"stream_length"`
			Inner       Hex           `json:"inner_stream"`
			Records     []struct {
				Index    uint64 `json:"index"`
				Epoch    int    `json:"epoch"`
				Sequence Num64  `json:"sequence"`
				Offset   uint64 `json:"offset"`
				Record   Hex    `json:"record"`
			} `json:"records"`
		} `json:"messages"`
	}
	load(t, "records.json", &f)
	for _, v := range f.Messages {
		s := suiteOf(t, v.Suite)
		keys := checkEpochs(t, v.Name, s, v.Epochs[0].Secret, v.Epochs)
		initiator := uint64(0)
		if v.Initiator == "server" {
			initiator = 1
		}
		id := messageID(uint64(v.Counter), initiator, v.Stripe, v.StripesLog2)
		if id != uint64(v.ID) {
			t.Errorf("%s: id %x", v.Name, id)
		}
		g := Geometry{v.N0, v.N}
		if g.stream(v.Padded) != v.Stream || g.records(v.Padded) != uint64(len(v.Records)) {
			t.Errorf("%s: stream %d, %d records", v.Name, g.stream(v.Padded), g.records(v.Padded))
		}
		h, err := parseInnerHeader(v.Inner)
		if err != nil || uint64(h.TrueLength) != v.TrueLength || uint64(h.PaddedLength) != v.Padded {
			t.Errorf("%s: inner header %v %v", v.Name, h, err)
		}
		T := uint64(len(v.Inner))
		for _, r := range v.Records {
			seq, err := sequence(id, r.Index, v.IndexBits)
			if err != nil || seq != uint64(r.Sequence) {
				t.Errorf("%s %d: sequence %x %v", v.Name, r.Index, seq, err)
			}
			from, to := g.inner(r.Index, v.Padded)
			start, end := g.span(r.Index, v.Padded)
			if start != r.Offset || end-start != uint64(len(r.Record)) || g.at(start) != r.Index || g.at(end-1) != r.Index {
				t.Errorf("%s %d: span %d %d", v.Name, r.Index, start, end)
			}
			content := v.Inner[min(from, T):min(to, T)]
			k := keys[r.Epoch]
			if got := sealRecord(k.AEAD, k.IV, seq, content, to-from); !bytes.Equal(got, r.Record) {
				t.Errorf("%s %d: sealed %x", v.Name, r.Index, got)
			}
			plain, err := openRecord(k.AEAD, k.IV, seq, r.Record)
			if err != nil || checkPlain(plain, from, T) != nil || !bytes.Equal(plain[:len(content)], content) {
				t.Errorf("%s %d: opened %x %v", v.Name, r.Index, plain, err)
			}
			if T > from && T <= to && checkPlain(plain, from, T-1) == nil {
				t.Errorf("%s %d: another true length goes through", v.Name, r.Index)
			}
		}
	}
}

func TestPadding(t *testing.T) {
	var f struct {
		Padding []struct {
			Policy string  `json:"policy"`
			Block  *uint64 `json:"block"`
			True   uint64  `json:"true_inner"`
			Max    uint64  `json:"max"`
			Padded uint64  `json:"padded"`
		} `json:"padding"`
	}
	load(t, "padding.json", &f)
	for i, v := range f.Padding {
		p := Padding{Policy: v.Policy}
		if v.Block != nil {
			p.Block = *v.Block
		}
		if got := p.padded(v.True, v.Max); got != v.Padded {
			t.Errorf("%d %v: %d, want %d", i, p, got, v.Padded)
		}
	}
}

func TestReplayWindow(t *testing.T) {
	var r replay
	for _, c := range []uint64{0, 1, 5, 3, 5000, 4000, 1<<48 - 1} {
		if !r.fresh(c) {
			t.Errorf("%d is not fresh", c)
		}
		r.mark(c)
		if r.fresh(c) {
			t.Errorf("%d is fresh again", c)
		}
	}
	if r.fresh(4999) {
		t.Error("below the window")
	}
}

func TestWindowExtension(t *testing.T) {
	for _, v := range []struct {
		limit  uint64
		window uint32
		want   uint64
	}{{64, 100, 100}, {100, 64, 100}, {0xFFFFFFF0, 0x10, 0x100000010}, {0x100000010, 0xFFFFFFF0, 0x100000010}} {
		if got := extendWindow(v.limit, v.window); got != v.want {
			t.Errorf("%x %x: %x", v.limit, v.window, got)
		}
	}
}

func TestMetadata(t *testing.T) {
	var f struct {
		Metadata []struct {
			Name    string `json:"name"`
			Hex     Hex    `json:"hex"`
			Entries []struct {
				Name  string `json:"name"`
				Value Hex    `json:"value"`
			} `json:"entries"`
			Body Hex `json:"body"`
		} `json:"metadata"`
		Malformed []struct {
			Name string `json:"name"`
			Hex  Hex    `json:"hex"`
		} `json:"malformed_metadata"`
	}
	load(t, "packets.json", &f)
	if len(f.Metadata) == 0 || len(f.Malformed) == 0 {
		t.Error("no vectors")
	}
	for _, v := range f.Metadata {
		var want []string
		for _, e := range v.Entries {
			want = append(want, e.Name, string(e.Value))
		}
		entries, body, err := splitMetadata(v.Hex)
		if err != nil || !slices.Equal(entries, want) || !bytes.Equal(body, v.Body) {
			t.Errorf("%s: %q, %x, %v", v.Name, entries, body, err)
		}
	}
	for _, v := range f.Malformed {
		if _, _, err := splitMetadata(v.Hex); err == nil {
			t.Errorf("%s: split", v.Name)
		}
	}
}
