// SPDX-License-Identifier: Apache-2.0 OR MIT

// Tickets: their bytes, whether a client may use one (SPEC §6.7), and the DNS record that carries
// one (SPEC §6.9).
package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Groups of a ticket's share.
const (
	groupP256   = 1
	groupX25519 = 2
	groupHybrid = 3
)

var groupNames = map[byte]string{groupP256: "P-256", groupX25519: "X25519", groupHybrid: "X25519MLKEM768"}

// Flags of a ticket.
const (
	needsForwardSecrecy = 1
	needsCertificate    = 2
	takesEarlyData      = 4
)

const clockSkew = 60 // seconds

// Ticket is a share of a server's, signed ahead.
type Ticket struct {
	Group      byte
	Suites     []uint16
	ID         []byte
	Begin, End uint64
	Flags      byte
	Share      []byte
	Names      []string
	ChainHash  []byte
	Scheme     uint16
	Signature  []byte

	signed []byte // the part that the signature covers
	Hash   []byte // of the whole ticket
	Chain  [][]byte
}

// reader takes values from the front of bytes; a value that is not whole is remembered, and reads
// as zeros.
type reader struct {
	b   []byte
	cut bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.cut, r.b = true, nil
		return make([]byte, n)
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) u8() byte      { return r.take(1)[0] }
func (r *reader) u16() uint16   { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u64() uint64   { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) short() []byte { return r.take(int(r.u8())) }
func (r *reader) long() []byte  { return r.take(int(r.u16())) }

func appendLong(b, value []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
}

// parseTicket refuses what is malformed, whoever has signed it.
func parseTicket(b []byte) (*Ticket, error) {
	r := reader{b: b}
	if r.u8() != 1 {
		return nil, errors.New("ticket of another format")
	}
	t := &Ticket{Group: r.u8()}
	codes := r.short()
	t.ID, t.Begin, t.End, t.Flags = r.take(16), r.u64(), r.u64(), r.u8()
	t.Share = r.long()
	names := reader{b: r.long()}
	t.ChainHash = r.take(32)
	t.signed = b[:len(b)-len(r.b)]
	t.Scheme, t.Signature = r.u16(), r.long()
	for len(names.b) > 0 {
		t.Names = append(t.Names, string(names.short()))
	}
	if r.cut || names.cut || len(r.b) > 0 {
		return nil, errors.New("ticket cut short, or with bytes behind its end")
	}
	if groupNames[t.Group] == "" || t.Flags > 7 {
		return nil, errors.New("ticket with an unknown group or flag")
	}
	if len(codes) == 0 || len(codes)%2 != 0 {
		return nil, errors.New("ticket without whole suites")
	}
	for ; len(codes) > 0; codes = codes[2:] {
		code := binary.BigEndian.Uint16(codes)
		if suites[code] == nil {
			return nil, errors.New("ticket with an unknown suite")
		}
		t.Suites = append(t.Suites, code)
	}
	if t.End < t.Begin || t.End-t.Begin > 3600 {
		return nil, errors.New("ticket for longer than an hour, or for no time")
	}
	hash := sha256.Sum256(b)
	t.Hash = hash[:]
	return t, nil
}

// signatureInput is what a signature of SPEC §6.7 covers.
func signatureInput(context string, content []byte) []byte {
	b := append(bytes.Repeat([]byte{' '}, 64), context...)
	return append(append(b, 0), content...)
}

// verify says whether the ticket may be used for a server of this name now.
func (t *Ticket) verify(chain [][]byte, roots *x509.CertPool, name string, now time.Time) error {
	var framed []byte
	for _, der := range chain {
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(der)))
		framed = append(framed, der...)
	}
	if hash := sha256.Sum256(framed); !bytes.Equal(hash[:], t.ChainHash) {
		return errors.New("the ticket is of another chain")
	}
	found := false
	for _, of := range t.Names {
		found = found || strings.EqualFold(of, name)
	}
	if !found {
		return fmt.Errorf("the ticket is not for %q", name)
	}
	if seconds := uint64(now.Unix()); seconds+clockSkew < t.Begin || seconds > t.End {
		return errors.New("the ticket is over, or has not begun")
	}
	var certificates []*x509.Certificate
	intermediates := x509.NewCertPool()
	for i, der := range chain {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		certificates = append(certificates, certificate)
		if i > 0 {
			intermediates.AddCert(certificate)
		}
	}
	leaf := certificates[0]
	options := x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: name, CurrentTime: now}
	if _, err := leaf.Verify(options); err != nil {
		return err
	}
	if !signatureHolds(leaf.PublicKey, t.Scheme, signatureInput("SMT ticket v1", t.signed), t.Signature) {
		return errors.New("the ticket's signature is wrong")
	}
	t.Chain = chain
	return nil
}

// signatureHolds checks a signature by a scheme that TLS 1.3 permits for CertificateVerify.
func signatureHolds(key crypto.PublicKey, scheme uint16, content, signature []byte) bool {
	sum256, sum384 := sha256.Sum256(content), sha512.Sum384(content)
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return scheme == 0x0403 && k.Curve == elliptic.P256() && ecdsa.VerifyASN1(k, sum256[:], signature) ||
			scheme == 0x0503 && k.Curve == elliptic.P384() && ecdsa.VerifyASN1(k, sum384[:], signature)
	case ed25519.PublicKey:
		return scheme == 0x0807 && ed25519.Verify(k, content, signature)
	case *rsa.PublicKey:
		return scheme == 0x0804 && rsa.VerifyPSS(k, crypto.SHA256, sum256[:], signature, &rsa.PSSOptions{SaltLength: 32}) == nil
	}
	return false
}

// Keys of a ticket's record.
const (
	keyTicket = 65280
	keyChain  = 65281
)

// parseRecord reads the RDATA of an SVCB record (SPEC §6.9): a ticket's bytes, and its chain if
// that is there.
func parseRecord(rdata []byte) (ticket []byte, chain [][]byte, err error) {
	r := reader{b: rdata}
	if r.u16() != 1 || r.u8() != 0 {
		return nil, nil, errors.New("record of another priority than 1, or with a target")
	}
	last := -1
	for len(r.b) > 0 {
		key, value := int(r.u16()), r.long()
		if key <= last {
			return nil, nil, errors.New("record whose keys do not ascend")
		}
		last = key
		switch key {
		case 0: // mandatory
			for m := (reader{b: value}); len(m.b) > 0 && !m.cut; {
				if k := m.u16(); k != keyTicket && k != keyChain {
					return nil, nil, errors.New("record with an unknown mandatory key")
				}
			}
		case keyTicket:
			ticket = value
		case keyChain:
			for c := (reader{b: value}); len(c.b) > 0; {
				chain = append(chain, c.long())
				if c.cut || len(chain) > 10 {
					return nil, nil, errors.New("record with a chain that is not whole, or too long")
				}
			}
		}
	}
	if r.cut || ticket == nil {
		return nil, nil, errors.New("record that is cut short, or without a ticket")
	}
	return ticket, chain, nil
}

// recordInZone finds the record of a server's name and port in a zone file, in the presentation
// format of RFC 3597.
func recordInZone(path, name string, port int) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	owner := fmt.Sprintf("_%d._smt.%s.", port, name)
	for _, words := range zoneRecords(string(text)) {
		if !strings.EqualFold(words[0], owner) {
			continue
		}
		for i, word := range words {
			if word != `\#` || i+1 >= len(words) || words[i-1] != "TYPE64" {
				continue
			}
			rdata, err := hex.DecodeString(strings.Join(words[i+2:], ""))
			if err == nil && fmt.Sprint(len(rdata)) != words[i+1] {
				err = errors.New("record of another length than it says")
			}
			return rdata, err
		}
	}
	return nil, fmt.Errorf("%s has no record of %s", path, owner)
}

// zoneRecords are the words of each record; one in parentheses goes on over lines (RFC 1035 §5.1).
func zoneRecords(text string) [][]string {
	var records [][]string
	var words []string
	open := false
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, ";")
		for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(line)) {
			switch word {
			case "(", ")":
				open = word == "("
			default:
				words = append(words, word)
			}
		}
		if !open && len(words) > 0 {
			records, words = append(records, words), nil
		}
	}
	return records
}
