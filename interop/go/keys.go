// SPDX-License-Identifier: Apache-2.0 OR MIT

// Keys: from exporter or registered keys to secrets, keys and epochs (SPEC §7), and the sealing of
// control packets (SPEC §3.4).
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// Suite is a TLS 1.3 cipher suite (SPEC §5.1).
type Suite struct {
	ID     uint16
	Hash   func() hash.Hash
	KeyLen int
	AEAD   func(key []byte) (cipher.AEAD, error)
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

var suites = map[uint16]*Suite{
	0x1301: {0x1301, sha256.New, 16, gcm},
	0x1302: {0x1302, sha512.New384, 32, gcm},
	0x1303: {0x1303, sha256.New, 32, chacha20poly1305.New},
}

func expandLabel(h func() hash.Hash, secret []byte, label string, context []byte, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(info, "tls13 "+label...)
	info = append(info, byte(len(context)))
	info = append(info, context...)
	out, err := hkdf.Expand(h, secret, string(info), n)
	if err != nil {
		panic(err)
	}
	return out
}

// names are the four secrets of a session in the order client data, client control, server data,
// server control.
var names = [4]string{"client data", "client control", "server data", "server control"}

// exporterSecrets: export is the TLS exporter of RFC 8446 §7.5 (SPEC §7.1).
func exporterSecrets(s *Suite, hash []byte, export func(label string, context []byte, n int) ([]byte, error)) ([4][]byte, error) {
	var out [4][]byte
	for i, name := range names {
		var err error
		if out[i], err = export("EXPORTER-smt-1 "+name, hash, s.Hash().Size()); err != nil {
			return out, err
		}
	}
	return out, nil
}

// exported is a secret for the application's own use, from a session's exporter secret (SPEC §7.4).
func exported(s *Suite, exporterSecret []byte, label string, context []byte, n int) []byte {
	derived := expandLabel(s.Hash, exporterSecret, label, nil, s.Hash().Size())
	digest := sha256.Sum256(context)
	return expandLabel(s.Hash, derived, "exporter", digest[:], n)
}

// exporter is RFC 8446 §7.5 from the exporter master secret.
func exporter(s *Suite, master []byte, label string, context []byte, n int) []byte {
	size := s.Hash().Size()
	empty := s.Hash().Sum(nil)
	derived := expandLabel(s.Hash, master, label, empty, size)
	h := s.Hash()
	h.Write(context)
	return expandLabel(s.Hash, derived, "exporter", h.Sum(nil), n)
}

// RegisteredKey is a secret that both sides hold, its name, and the identities of the two ends that
// it joins.
type RegisteredKey struct {
	Secret, Name, Client, Server []byte
}

// imported is the key between its two ends (SPEC §7.2, RFC 9258 §5.1).
func (k *RegisteredKey) imported(s *Suite) ([]byte, error) {
	context := append([]byte{byte(len(k.Client))}, k.Client...)
	context = append(append(context, byte(len(k.Server))), k.Server...)
	identity := binary.BigEndian.AppendUint16(nil, uint16(len(k.Name)))
	identity = append(identity, k.Name...)
	identity = binary.BigEndian.AppendUint16(identity, uint16(len(context)))
	identity = append(identity, context...)
	identity = binary.BigEndian.AppendUint16(identity, 0x5301)
	kdf := uint16(1)
	if s.Hash().Size() == sha512.Size384 {
		kdf = 2
	}
	identity = binary.BigEndian.AppendUint16(identity, kdf)
	digest := sha256.Sum256(identity)
	extracted, err := hkdf.Extract(sha256.New, k.Secret, nil)
	if err != nil {
		return nil, err
	}
	return expandLabel(sha256.New, extracted, "derived psk", digest[:], s.Hash().Size()), nil
}

// registeredSecrets also returns the exporter secret (SPEC §7.2, §7.4).
func registeredSecrets(s *Suite, hash []byte, key *RegisteredKey) ([4][]byte, []byte, error) {
	var out [4][]byte
	imported, err := key.imported(s)
	if err != nil {
		return out, nil, err
	}
	prk, err := hkdf.Extract(s.Hash, imported, hash)
	if err != nil {
		return out, nil, err
	}
	for i, name := range names {
		out[i] = expandLabel(s.Hash, prk, "smt "+name, hash, s.Hash().Size())
	}
	return out, expandLabel(s.Hash, prk, "smt exporter", hash, s.Hash().Size()), nil
}

// Key is a key and IV of one epoch.
type Key struct {
	Raw  []byte
	IV   []byte
	AEAD cipher.AEAD
}

func newKey(s *Suite, secret []byte) *Key {
	k := &Key{Raw: expandLabel(s.Hash, secret, "key", nil, s.KeyLen), IV: expandLabel(s.Hash, secret, "iv", nil, 12)}
	var err error
	if k.AEAD, err = s.AEAD(k.Raw); err != nil {
		panic(err)
	}
	return k
}

func nextSecret(s *Suite, secret []byte) []byte {
	return expandLabel(s.Hash, secret, "traffic upd", nil, s.Hash().Size())
}

// EpochKeys are the keys of one direction in one epoch.
type EpochKeys struct {
	Epoch         uint32
	Data, Control *Key
}

// Direction is one direction's secrets and the keys of its open epochs (SPEC §7.3).
type Direction struct {
	suite         *Suite
	data, control []byte
	Current       *EpochKeys
	Old           *EpochKeys // the epoch before, until it is done
	next          *EpochKeys // receiver: derived, not yet confirmed by an opened packet
}

func newDirection(s *Suite, data, control []byte) *Direction {
	return &Direction{suite: s, data: data, control: control,
		Current: &EpochKeys{0, newKey(s, data), newKey(s, control)}}
}

func (d *Direction) derive() *EpochKeys {
	d.data, d.control = nextSecret(d.suite, d.data), nextSecret(d.suite, d.control)
	return &EpochKeys{d.Current.Epoch + 1, newKey(d.suite, d.data), newKey(d.suite, d.control)}
}

// update moves a sender to the next epoch; the epoch before must be done.
func (d *Direction) update() error {
	if d.Old != nil {
		return fmt.Errorf("epoch %d is not done", d.Old.Epoch)
	}
	next := d.derive()
	d.Old, d.Current = d.Current, next
	return nil
}

// find gives a receiver the keys that an epoch byte names: current, old, or the next, derived at
// most once (SPEC §7.3).
func (d *Direction) find(epoch byte) *EpochKeys {
	switch {
	case byte(d.Current.Epoch) == epoch:
		return d.Current
	case d.Old != nil && byte(d.Old.Epoch) == epoch:
		return d.Old
	case byte(d.Current.Epoch+1) == epoch && d.Old == nil:
		if d.next == nil {
			d.next = d.derive()
		}
		return d.next
	}
	return nil
}

// opened tells a receiver that a packet of these keys opened; true if an epoch began.
func (d *Direction) opened(k *EpochKeys) bool {
	if k != d.next || k == nil {
		return false
	}
	d.Old, d.Current, d.next = d.Current, k, nil
	return true
}

// done drops the keys of an epoch before the current (EPOCH_DONE at the receiver, EPOCH_ACK at the
// sender).
func (d *Direction) done(epoch uint32) {
	if d.Old != nil && d.Old.Epoch == epoch {
		d.Old = nil
	}
}

// sealControl seals and encodes a control packet; token is CONFIRM's, else nil (SPEC §3.4).
func sealControl(k *Key, p *Packet, token []byte) []byte {
	aad := p.clear()
	p.Sealed = k.AEAD.Seal(nil, nonce(k.IV, p.Number), token, aad)
	return append(aad, p.Sealed...)
}

// openControl gives CONFIRM's token, else nothing.
func openControl(k *Key, p *Packet) ([]byte, error) {
	aad := p.Raw[:len(p.Raw)-len(p.Sealed)]
	token, err := k.AEAD.Open(nil, nonce(k.IV, p.Number), p.Sealed, aad)
	if err != nil {
		return nil, errAuth
	}
	return token, nil
}

// replay is a window of control numbers of one stripe (SPEC §4.3).
type replay struct {
	next uint64 // highest counter seen, plus 1
	bits [32]uint64
}

const replayWindow = 2048

func (r *replay) fresh(c uint64) bool {
	if c >= r.next {
		return true
	}
	if r.next-c > replayWindow {
		return false
	}
	return r.bits[c%replayWindow/64]>>(c%64)&1 == 0
}

func (r *replay) mark(c uint64) {
	if c >= r.next {
		if c-r.next >= replayWindow {
			r.bits = [32]uint64{}
		} else {
			for i := r.next; i < c; i++ {
				r.bits[i%replayWindow/64] &^= 1 << (i % 64)
			}
		}
		r.next = c + 1
	}
	r.bits[c%replayWindow/64] |= 1 << (c % 64)
}
