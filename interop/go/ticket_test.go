// SPDX-License-Identifier: Apache-2.0 OR MIT

// The vectors of handshakes by ticket (SPEC §6.7, §6.8).
package main

import (
	"bytes"
	"crypto/mlkem"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

type ticketParts struct {
	Curve      Hex  `json:"curve"`
	KEMSeed    Hex  `json:"ml_kem_seed"`
	Params     Hex  `json:"params"`
	Share      Hex  `json:"share"`
	Ephemeral  Hex  `json:"ephemeral_share"`
	Hello      Hex  `json:"hello"`
	H1         Hex  `json:"h1"`
	H2         Hex  `json:"h2"`
	Binder     Hex  `json:"binder"`
	Plaintext  Hex  `json:"plaintext"`
	Sealed     Hex  `json:"sealed"`
	Flight     Hex  `json:"flight"`
	Finished   Hex  `json:"finished"`
	TakesEarly bool `json:"takes_early_data"`
}

type ticketVectors struct {
	Credentials struct {
		Authority Hex `json:"authority"`
		Server    struct {
			Certificate Hex `json:"certificate"`
		} `json:"server"`
		Client struct {
			Certificate Hex `json:"certificate"`
		} `json:"client"`
	} `json:"credentials"`
	Handshakes []struct {
		Name   string `json:"name"`
		Suite  string `json:"suite"`
		Ticket struct {
			Hex            Hex    `json:"hex"`
			Hash           Hex    `json:"hash"`
			SignatureInput Hex    `json:"signature_input"`
			Begin          uint64 `json:"begin"`
		} `json:"ticket"`
		Private struct {
			Ticket          ticketParts  `json:"ticket"`
			ClientEphemeral *ticketParts `json:"client_ephemeral"`
		} `json:"private"`
		Client  ticketParts    `json:"client"`
		Server  ticketParts    `json:"server"`
		Secrets map[string]any `json:"secrets"`
	} `json:"handshakes"`
	Malformed []struct {
		Name string `json:"name"`
		Hex  Hex    `json:"hex"`
	} `json:"malformed_tickets"`
}

func givenKeyPair(t *testing.T, group byte, parts *ticketParts) *keyPair {
	t.Helper()
	k := &keyPair{group: group}
	var err error
	if k.curve, err = curveOf(group).NewPrivateKey(parts.Curve); err != nil {
		t.Fatal(err)
	}
	if group == groupHybrid {
		if k.kem, err = mlkem.NewDecapsulationKey768(parts.KEMSeed); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func TestTickets(t *testing.T) {
	var v ticketVectors
	load(t, "tickets.json", &v)
	authority, err := x509.ParseCertificate(v.Credentials.Authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	chain := [][]byte{v.Credentials.Server.Certificate}
	if len(v.Handshakes) == 0 || len(v.Malformed) == 0 {
		t.Fatal("no vectors")
	}
	for _, h := range v.Handshakes {
		t.Run(h.Name, func(t *testing.T) {
			equal := func(what string, found []byte, expected Hex) {
				t.Helper()
				if !bytes.Equal(found, expected) {
					t.Fatalf("%s: %x, expected %x", what, found, expected)
				}
			}
			secret := func(what string, found []byte) {
				t.Helper()
				text, _ := h.Secrets[what].(string)
				if m, ok := h.Secrets[what].(map[string]any); ok {
					text, _ = m["secret"].(string)
				}
				if text != fmt.Sprintf("%x", found) {
					t.Fatalf("%s: %x, expected %s", what, found, text)
				}
			}
			ticket, err := parseTicket(h.Ticket.Hex)
			if err != nil {
				t.Fatal(err)
			}
			equal("ticket hash", ticket.Hash, h.Ticket.Hash)
			equal("signature input", signatureInput("SMT ticket v1", ticket.signed), h.Ticket.SignatureInput)
			now := time.Unix(int64(h.Ticket.Begin), 0)
			if err := ticket.verify(chain, roots, "A.example", now); err != nil {
				t.Fatal(err)
			}
			for name, at := range map[string]time.Time{"a.example": now.Add(-61 * time.Second), "A.EXAMPLE": now.Add(3601 * time.Second), "b.example": now} {
				if ticket.verify(chain, roots, name, at) == nil {
					t.Fatalf("the ticket is taken for %s at %v", name, at)
				}
			}
			ticketKey := givenKeyPair(t, ticket.Group, &h.Private.Ticket)
			equal("ticket's share", ticketKey.share(), ticket.Share)
			shared, err := ticketKey.agree(h.Client.Share)
			if err != nil {
				t.Fatal(err)
			}
			secret("ticket_secret", shared)
			suite := suites[binary.BigEndian.Uint16(h.Client.Hello)]
			keys, err := newTicketKeys(suite, shared)
			if err != nil {
				t.Fatal(err)
			}
			secret("early", keys.early)
			client := &ticketClient{keys: keys, h1: transcript1(h.Client.Params, h.Client.Hello)}
			equal("H1", client.h1, h.Client.H1)
			client.binder = keys.binder(client.h1)
			equal("binder", client.binder, h.Client.Binder)
			client.sealed = keys.seal(client.h1, h.Client.Plaintext)
			equal("sealed part", client.sealed, h.Client.Sealed)
			flight := appendLong(append(bytes.Clone(h.Client.Hello), client.binder...), client.sealed)
			equal("flight 1", flight, h.Client.Flight)
			if h.Private.ClientEphemeral != nil {
				client.ephemeral = givenKeyPair(t, ticket.Group, h.Private.ClientEphemeral)
				equal("ephemeral share", client.ephemeral.share(), h.Client.Ephemeral)
			}
			equal("H2", transcript2(client.h1, client.binder, client.sealed, h.Server.Params, h.Server.Hello), h.Server.H2)
			secrets, err := client.finish(h.Client.Params, h.Server.Params, h.Server.Flight)
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				secret(name, secrets[i])
			}
			if client.earlyTaken != h.Server.TakesEarly {
				t.Fatal("early data")
			}
			checkPlaintext(t, h.Client.Plaintext, v.Credentials.Client.Certificate, client.h1)
			for at := range h.Server.Flight {
				damaged := bytes.Clone(h.Server.Flight)
				damaged[at] ^= 1
				if _, err := client.finish(h.Client.Params, h.Server.Params, damaged); err == nil {
					t.Fatalf("flight 2 is taken with byte %d changed", at)
				}
			}
		})
	}
	for _, m := range v.Malformed {
		if _, err := parseTicket(m.Hex); err == nil {
			t.Errorf("a malformed ticket is taken: %s", m.Name)
		}
	}
}

// checkPlaintext looks at the certificate and the early data in the sealed part.
func checkPlaintext(t *testing.T, plaintext, certificate, h1 []byte) {
	t.Helper()
	r := reader{b: plaintext}
	if c := (reader{b: r.long()}); len(c.b) > 0 {
		der := c.long()
		if !bytes.Equal(der, certificate) || c.cut || len(c.b) > 0 {
			t.Fatal("the client's certificates differ")
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		scheme, signature := r.u16(), r.long()
		if !signatureHolds(leaf.PublicKey, scheme, signatureInput("SMT ticket client", signedByClient(h1, r.b)), signature) {
			t.Fatal("the client's signature is wrong")
		}
	}
	if r.cut {
		t.Fatal("the sealed part is cut short")
	}
	if len(r.b) == 0 {
		return
	}
	members, err := parseBundle(r.b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Kind != kindRequest {
			t.Fatal("early data that is no request")
		}
	}
}
