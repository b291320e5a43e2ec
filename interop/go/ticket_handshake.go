// SPDX-License-Identifier: Apache-2.0 OR MIT

// The handshake by ticket as a client: shares, key schedule, both flights, early data (SPEC §6.7,
// §6.8).
package main

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// keyPair is a key pair in the form of a client's in TLS 1.3: a curve's, and ML-KEM's before it in
// the hybrid group.
type keyPair struct {
	group byte
	curve *ecdh.PrivateKey
	kem   *mlkem.DecapsulationKey768
}

func curveOf(group byte) ecdh.Curve {
	if group == groupP256 {
		return ecdh.P256()
	}
	return ecdh.X25519()
}

func newKeyPair(group byte) (*keyPair, error) {
	k := &keyPair{group: group}
	var err error
	if k.curve, err = curveOf(group).GenerateKey(rand.Reader); err == nil && group == groupHybrid {
		k.kem, err = mlkem.GenerateKey768()
	}
	return k, err
}

func (k *keyPair) share() []byte {
	var b []byte
	if k.kem != nil {
		b = k.kem.EncapsulationKey().Bytes()
	}
	return append(b, k.curve.PublicKey().Bytes()...)
}

// agree takes the share of a side that has answered this one.
func (k *keyPair) agree(answer []byte) ([]byte, error) {
	var secret []byte
	if k.group == groupHybrid {
		if len(answer) != mlkem.CiphertextSize768+32 {
			return nil, errors.New("share of a wrong length")
		}
		var err error
		if secret, err = k.kem.Decapsulate(answer[:mlkem.CiphertextSize768]); err != nil {
			return nil, err
		}
		answer = answer[mlkem.CiphertextSize768:]
	}
	return onCurve(k.curve, answer, secret)
}

// answer makes a share that answers a share in the form of a client's, and the secret of both.
func answerShare(group byte, asking []byte) (share, secret []byte, err error) {
	if group == groupHybrid {
		if len(asking) != mlkem.EncapsulationKeySize768+32 {
			return nil, nil, errors.New("share of a wrong length")
		}
		kem, err := mlkem.NewEncapsulationKey768(asking[:mlkem.EncapsulationKeySize768])
		if err != nil {
			return nil, nil, err
		}
		secret, share = kem.Encapsulate()
		asking = asking[mlkem.EncapsulationKeySize768:]
	}
	curve, err := curveOf(group).GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	share = append(share, curve.PublicKey().Bytes()...)
	secret, err = onCurve(curve, asking, secret)
	return share, secret, err
}

// onCurve appends the secret with a point; a result of zero is an error (SPEC [6.7-9]).
func onCurve(private *ecdh.PrivateKey, point, before []byte) ([]byte, error) {
	peer, err := private.Curve().NewPublicKey(point)
	if err != nil {
		return nil, err
	}
	shared, err := private.ECDH(peer)
	return append(before, shared...), err
}

// ticketKeys is the key schedule of SPEC §6.7.
type ticketKeys struct {
	suite *Suite
	early []byte
}

func newTicketKeys(s *Suite, shared []byte) (*ticketKeys, error) {
	early, err := hkdf.Extract(s.Hash, shared, make([]byte, s.Hash().Size()))
	return &ticketKeys{s, early}, err
}

func (k *ticketKeys) xl(secret []byte, label string, context []byte) []byte {
	return expandLabel(k.suite.Hash, secret, "smt tk "+label, context, k.suite.Hash().Size())
}

func (k *ticketKeys) mac(secret, message []byte) []byte {
	h := hmac.New(k.suite.Hash, secret)
	h.Write(message)
	return h.Sum(nil)
}

func (k *ticketKeys) binder(h1 []byte) []byte { return k.mac(k.xl(k.early, "binder", nil), h1) }

// seal seals the sealed part of flight 1: one text under one key, so the nonce is the IV.
func (k *ticketKeys) seal(h1, plaintext []byte) []byte {
	key := newKey(k.suite, k.xl(k.early, "client flight", h1))
	return key.AEAD.Seal(nil, key.IV, plaintext, h1)
}

// handshake is the secret of both shares; without ephemeral ones the other is zeros.
func (k *ticketKeys) handshake(ephemeral []byte) ([]byte, error) {
	if ephemeral == nil {
		ephemeral = make([]byte, k.suite.Hash().Size())
	}
	return hkdf.Extract(k.suite.Hash, ephemeral, k.xl(k.early, "derived", nil))
}

func (k *ticketKeys) finished(hs, h2 []byte) []byte {
	return k.mac(k.xl(hs, "server finished", h2), h2)
}

// secrets are the four of SPEC §7.1.
func (k *ticketKeys) secrets(hs, h2, parameterHash []byte) ([4][]byte, error) {
	exporterSecret := k.xl(hs, "exporter", h2)
	return exporterSecrets(k.suite, parameterHash, func(label string, context []byte, n int) ([]byte, error) {
		return exported(k.suite, exporterSecret, label, context, n), nil
	})
}

// transcript1 is H1.
func transcript1(clientParams, hello []byte) []byte {
	h := sha256.New()
	h.Write([]byte("smt-1 ticket"))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(clientParams))))
	h.Write(clientParams)
	h.Write(hello)
	return h.Sum(nil)
}

// transcript2 is H2.
func transcript2(h1, binder, sealed, serverParams, serverHello []byte) []byte {
	digest := sha256.Sum256(sealed)
	h := sha256.New()
	for _, part := range [][]byte{h1, binder, digest[:], binary.BigEndian.AppendUint32(nil, uint32(len(serverParams))), serverParams, serverHello} {
		h.Write(part)
	}
	return h.Sum(nil)
}

// TicketPlan is how a client uses a ticket.
type TicketPlan struct {
	Ticket         *Ticket
	ForwardSecrecy bool
	Identity       *tls.Certificate // or nil
	Early          []byte           // early data
	Damage         string           // what to do wrong, so that the server refuses it
}

// ticketClient is one attempt by ticket.
type ticketClient struct {
	keys       *ticketKeys
	h1         []byte
	binder     []byte
	sealed     []byte
	ephemeral  *keyPair // or nil
	earlyTaken bool
}

// Refusal is the answer of a server that does not take a ticket.
type Refusal byte

func (r Refusal) Error() string { return fmt.Sprintf("the server refuses the ticket: %d", byte(r)) }

// begin makes flight 1's key exchange bytes.
func (plan *TicketPlan) begin(own *Params, params []byte) (*ticketClient, []byte, error) {
	t := plan.Ticket
	var suite *Suite
	for _, code := range t.Suites {
		for _, of := range own.Suites {
			if suite == nil && of == code {
				suite = suites[code]
			}
		}
	}
	if suite == nil {
		return nil, nil, errors.New("the ticket has no suite that this client has")
	}
	share, shared, err := answerShare(t.Group, t.Share)
	if err != nil {
		return nil, nil, err
	}
	c := &ticketClient{}
	var ephemeral []byte
	if plan.ForwardSecrecy || t.Flags&needsForwardSecrecy != 0 && plan.Damage != "init" {
		if c.ephemeral, err = newKeyPair(t.Group); err != nil {
			return nil, nil, err
		}
		ephemeral = c.ephemeral.share()
	}
	random := make([]byte, 32)
	rand.Read(random)
	hello := binary.BigEndian.AppendUint16(nil, suite.ID)
	hash := append([]byte(nil), t.Hash...)
	if plan.Damage == "hash" {
		hash[0] ^= 1
	}
	hello = append(append(hello, hash...), random...)
	hello = appendLong(appendLong(hello, share), ephemeral)
	if c.keys, err = newTicketKeys(suite, shared); err != nil {
		return nil, nil, err
	}
	c.h1 = transcript1(params, hello)
	c.binder = c.keys.binder(c.h1)
	if plan.Damage == "binder" {
		c.binder[0] ^= 1
	}
	plaintext, err := clientProof(plan.Identity, c.h1, plan.Early)
	if err != nil {
		return nil, nil, err
	}
	c.sealed = c.keys.seal(c.h1, append(plaintext, plan.Early...))
	return c, appendLong(append(hello, c.binder...), c.sealed), nil
}

// clientProof is the first thing in the sealed part: certificates, and a signature if there are
// any, over the hello and the early data that follows.
func clientProof(identity *tls.Certificate, h1, early []byte) ([]byte, error) {
	if identity == nil {
		return appendLong(nil, nil), nil
	}
	var chain []byte
	for _, der := range identity.Certificate {
		chain = appendLong(chain, der)
	}
	content := signatureInput("SMT ticket client", signedByClient(h1, early))
	scheme, signature, err := sign(identity.PrivateKey, content)
	if err != nil {
		return nil, err
	}
	b := appendLong(nil, chain)
	return appendLong(binary.BigEndian.AppendUint16(b, scheme), signature), nil
}

// signedByClient is the content of the client's signature.
func signedByClient(h1, early []byte) []byte {
	hash := sha256.Sum256(early)
	return append(append([]byte{}, h1...), hash[:]...)
}

func sign(key crypto.PrivateKey, content []byte) (uint16, []byte, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		digest := sha256.Sum256(content)
		signature, err := k.Sign(rand.Reader, digest[:], crypto.SHA256)
		return 0x0403, signature, err
	case ed25519.PrivateKey:
		return 0x0807, ed25519.Sign(k, content), nil
	}
	return 0, nil, errors.New("a key of an unknown kind")
}

// finish takes flight 2's key exchange bytes; the four secrets.
func (c *ticketClient) finish(clientParams, serverParams, flight []byte) ([4][]byte, error) {
	var none [4][]byte
	if len(flight) == 0 {
		return none, io.ErrUnexpectedEOF
	}
	if flight[0] != 0 && flight[0] != 4 {
		return none, Refusal(flight[0])
	}
	r := reader{b: flight}
	c.earlyTaken = r.u8() == 4
	r.take(32)
	share := r.long()
	hello := flight[:len(flight)-len(r.b)]
	finished := r.take(c.keys.suite.Hash().Size())
	if r.cut || len(r.b) > 0 {
		return none, errors.New("flight 2 is cut short, or has bytes behind its end")
	}
	if (c.ephemeral != nil) != (len(share) > 0) {
		return none, errors.New("a share where none belongs, or none")
	}
	var ephemeral []byte
	var err error
	if c.ephemeral != nil {
		if ephemeral, err = c.ephemeral.agree(share); err != nil {
			return none, err
		}
	}
	hs, err := c.keys.handshake(ephemeral)
	if err != nil {
		return none, err
	}
	h2 := transcript2(c.h1, c.binder, c.sealed, serverParams, hello)
	if !hmac.Equal(c.keys.finished(hs, h2), finished) {
		return none, errors.New("the server's finished is wrong")
	}
	return c.keys.secrets(hs, h2, parameterHash(clientParams, serverParams))
}

// repeatFirst sends the first flight of a session again, from another port, as anybody can who has
// seen it; the server's answer.
func repeatFirst(addr string, e *Established) ([]byte, error) {
	link, err := dial(addr, 0, 0)
	if err != nil {
		return nil, err
	}
	defer link.close()
	own := *e
	own.Link, own.Send, own.Recv = link, nil, nil
	a := &attempt{Established: &own, flight: 1, body: e.First, repeated: true, parts: map[byte]*assembly{},
		config: &Config{Trace: func(string, ...any) {}}}
	end := time.Now().Add(5 * time.Second)
	for again := time.Now(); a.answer == nil && time.Now().Before(end); {
		if now := time.Now(); !now.Before(again) {
			a.transmit()
			again = now.Add(200 * time.Millisecond)
		}
		for b := link.receive(earlier(again, end)); len(b) > 0; {
			p, used, err := parsePacket(b, version1)
			if used == 0 || err != nil {
				break
			}
			b = b[used:]
			if p.Type == typeHandshake && p.Destination == own.Own.Index {
				if err := a.fragment(p); err != nil {
					return nil, err
				}
			}
		}
	}
	return a.answer, nil
}
