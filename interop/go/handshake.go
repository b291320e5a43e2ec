// SPDX-License-Identifier: Apache-2.0 OR MIT

// Session establishment as a client: flights, cookies, retransmission, attempts, CONFIRM (SPEC §6).
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const baseDatagram = 1200 // SPEC §9.8

// Config has the wishes of a client.
type Config struct {
	TLS        *tls.Config
	Params     Params // index and random are filled in per attempt
	Deadline   time.Duration
	Registered *RegisteredKey // instead of TLS; its suite is the only one of the parameters
	Ticket     *TicketPlan    // for the first attempt, before TLS
	Early      []byte         // a request that may run twice, with flight 1 if the ticket permits
	Trace      func(format string, args ...any)
}

// Established is a session that is live for the client.
type Established struct {
	Link       *Link
	Suite      *Suite
	Own, Peer  Params
	Send, Recv *Direction
	OwnToken   []byte
	PeerToken  []byte
	NextNumber uint64 // of stripe 0
	Replay     replay
	Rest       [][]byte // bytes behind the packet that made the session live
	Attempts   int
	Cookies    int
	Flights    int
	FlightMax  int // fragments of the longest own flight
	Resent     int
	Exchange   byte   // tag 2 of the parameters
	Early      []byte // the request of Config.Early, the first of the session
	EarlyTaken bool   // it was taken with the first flight
	First      []byte // the body of flight 1
}

// attempt is one try: one source index, one ClientHello.
type attempt struct {
	*Established
	config    *Config
	clientRaw []byte
	serverRaw []byte
	tls       *tlsClient
	ticket    *ticketClient
	dest      uint64
	cookie    []byte
	flight    byte   // own last flight
	body      []byte // its body
	parts     map[byte]*assembly
	remote    uint64 // source index that the parts are of
	repeated  bool   // flight 1 is another attempt's: flight 2 is only kept
	answer    []byte // its key exchange bytes
}

// assembly collects a flight's fragments.
type assembly struct {
	body []byte
	have ranges
}

var bootNumber = func() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint32(b[:]) | 1
}()

var serial uint32

// nextIndex issues a session index: boot number and serial (SPEC §6.3).
func nextIndex() uint64 {
	serial++
	return uint64(bootNumber)<<32 | uint64(serial)
}

func connect(link *Link, config *Config) (*Established, error) {
	deadline := time.Now().Add(config.Deadline)
	refusals := 0
	var last error = errors.New("no answer")
	for n := 1; ; n++ {
		e, err := tryOnce(link, config, n == 1, deadline)
		if err == nil {
			e.Attempts = n
			return e, nil
		}
		if !errors.Is(err, errNoAnswer) || n == 1 {
			last = err
		}
		config.Trace("attempt %d: %v", n, err)
		if config.Ticket != nil && n == 1 {
			fmt.Printf("by ticket: %v\n", err)
		}
		if errors.Is(err, errRefused) {
			refusals++
		} else {
			refusals = 0
		}
		if refusals == 3 || time.Now().After(deadline) {
			return nil, last
		}
	}
}

var errRefused = errors.New("refused")
var errNoAnswer = errors.New("no answer until the deadline")

func tryOnce(link *Link, config *Config, isFirst bool, deadline time.Time) (*Established, error) {
	a := &attempt{Established: &Established{Link: link, Own: config.Params}, config: config, parts: map[byte]*assembly{}}
	a.Own.Index = nextIndex()
	a.Own.Versions = []byte{version1}
	a.OwnToken = make([]byte, 16)
	rand.Read(a.OwnToken)
	a.Early = config.Early
	var out []byte
	if config.Ticket != nil && isFirst {
		a.Own.KeyExchange = exchangeTicket
		var err error
		if a.ticket, out, err = config.Ticket.begin(&a.Own, a.Own.encode()); err != nil {
			return nil, err
		}
	} else if config.Registered != nil {
		a.Own.KeyExchange = exchangeRegistered
		a.Own.KeyName = config.Registered.Name
		a.Own.Random = make([]byte, 32)
		rand.Read(a.Own.Random)
	} else {
		a.tls = newTLSClient(config.TLS)
		defer a.tls.close()
		if out = a.tls.step(nil); a.tls.err != nil {
			return nil, a.tls.err
		}
	}
	a.Exchange = a.Own.KeyExchange
	a.clientRaw = a.Own.encode()
	a.setFlight(1, out)
	a.First = a.body
	repeats := 0
	wait := 50 * time.Millisecond
	a.transmit()
	next := time.Now().Add(wait)
	for {
		now := time.Now()
		if now.After(deadline) {
			return nil, fmt.Errorf("%w: own flight %d", errNoAnswer, a.flight)
		}
		if !now.Before(next) {
			wait = min(2*wait, time.Second)
			next = now.Add(wait)
			a.Resent++
			if repeats++; repeats > 4 {
				return nil, fmt.Errorf("%w: own flight %d", errNoAnswer, a.flight)
			}
			lost := link.LostOut
			a.transmit()
			config.Trace("flight %d again, %d of its datagrams lost", a.flight, link.LostOut-lost)
		}
		b := link.receive(earlier(next, deadline))
		for len(b) > 0 {
			p, used, err := parsePacket(b, version1)
			if used == 0 {
				config.Trace("dropped: %v", err)
				break
			}
			b = b[used:]
			if err != nil {
				continue
			}
			config.Trace("%s flight %d offset %d", typeNames[p.Type], p.Flight, p.FragOffset)
			before := a.flight
			live, err := a.packet(p)
			if err != nil {
				return nil, err
			}
			if live {
				if len(b) > 0 {
					a.Rest = append(a.Rest, b)
				}
				return a.Established, nil
			}
			if a.flight != before {
				repeats = 0
				wait = 50 * time.Millisecond
				next = time.Now().Add(wait)
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (a *attempt) setFlight(n byte, exchange []byte) {
	var params []byte
	if n == 1 {
		params = a.clientRaw
	}
	a.flight = n
	a.body = binary.BigEndian.AppendUint16(nil, uint16(len(params)))
	a.body = append(append(a.body, params...), exchange...)
}

// transmit sends the last flight; CONFIRM goes right behind it once there are keys (SPEC §6.5).
func (a *attempt) transmit() {
	room := baseDatagram - handshakeHead - len(a.cookie)
	count := 0
	for at := 0; at < len(a.body); at += room {
		end := min(at+room, len(a.body))
		p := &Packet{Version: version1, Type: typeHandshake, Destination: a.dest, Source: a.Own.Index, Flight: a.flight, Cookie: a.cookie,
			FlightLength: uint32(len(a.body)), FragOffset: uint32(at), Fragment: a.body[at:end]}
		var behind []byte
		last := end == len(a.body)
		confirm := last && a.Send != nil
		if confirm && handshakeHead+len(a.cookie)+end-at+60 <= baseDatagram {
			behind = a.confirm()
			confirm = false
		}
		p.PaddedTo = baseDatagram - len(behind)
		a.Link.send(append(p.encode(), behind...))
		if confirm {
			a.Link.send(a.confirm())
		}
		count++
	}
	a.FlightMax = max(a.FlightMax, count)
}

func (a *attempt) confirm() []byte {
	p := &Packet{Version: version1, Type: typeConfirm, Session: a.Peer.Index, Number: a.NextNumber}
	a.NextNumber++
	return sealControl(a.Send.Current.Control, p, a.OwnToken)
}

// packet takes one packet; true if the session is live.
func (a *attempt) packet(p *Packet) (bool, error) {
	switch p.Type {
	case typeCookie:
		isFirst := len(a.cookie) == 0
		if p.Destination == a.Own.Index && (isFirst || a.flight == 1) && !bytes.Equal(a.cookie, p.Cookie) {
			a.cookie = bytes.Clone(p.Cookie)
			a.Cookies++
			// Only the first at once (SPEC §6.4): a flight is larger than a cookie.
			if isFirst {
				a.transmit()
			}
		}
	case typeVersion:
		a.config.Trace("the peer speaks versions %v", p.Versions)
	case typeUnavailable:
		// A hint (SPEC §12.4): this client goes on until its deadline.
		if p.Destination == a.Own.Index && a.flight == 1 {
			a.config.Trace("the peer takes no client now: code %d", p.Code)
		}
	case typeHandshake:
		if p.Destination == a.Own.Index {
			return false, a.fragment(p)
		}
	case typeConfirm:
		if a.Recv == nil || p.Session != a.Own.Index || p.Epoch != 0 || p.Number>>48 != 0 || !a.Replay.fresh(p.Number) {
			break
		}
		token, err := openControl(a.Recv.Current.Control, p)
		if err != nil {
			break
		}
		a.Replay.mark(p.Number)
		a.PeerToken = token
		return true, nil
	}
	return false, nil
}

func (a *attempt) fragment(p *Packet) error {
	if p.Flight != a.flight+1 {
		return nil // the answer to an earlier flight, repeated
	}
	if a.dest != 0 && p.Source != a.dest {
		return nil
	}
	if p.Source != a.remote {
		a.remote, a.parts = p.Source, map[byte]*assembly{}
	}
	f := a.parts[p.Flight]
	if f == nil || len(f.body) != int(p.FlightLength) {
		f = &assembly{body: make([]byte, p.FlightLength)}
		a.parts[p.Flight] = f
	}
	copy(f.body[p.FragOffset:], p.Fragment)
	f.have.add(uint64(p.FragOffset), uint64(p.FragOffset)+uint64(len(p.Fragment)))
	if !f.have.covers(0, uint64(len(f.body))) {
		return nil
	}
	delete(a.parts, p.Flight)
	return a.take(p.Flight, p.Source, f.body)
}

// take handles a complete flight of the server.
func (a *attempt) take(flight byte, source uint64, body []byte) error {
	a.Flights = int(flight)
	if len(body) < 2 || len(body) < 2+int(binary.BigEndian.Uint16(body)) {
		return errors.New("flight without parameters")
	}
	n := int(binary.BigEndian.Uint16(body))
	params, exchange := body[2:2+n], body[2+n:]
	if flight == 2 {
		peer, err := parseParams(params)
		if err != nil {
			return err
		}
		if err := peer.answers(&a.Own); err != nil {
			return err
		}
		if peer.Index != source {
			return errors.New("the server's index is not its source index")
		}
		a.Peer, a.serverRaw, a.dest = *peer, bytes.Clone(params), source
	} else if n != 0 {
		return errors.New("parameters in a later flight")
	}
	if a.repeated {
		a.answer = bytes.Clone(exchange)
		return nil
	}
	if a.ticket != nil {
		return a.byTicket(flight, exchange)
	}
	if a.tls == nil {
		return a.registered(flight, exchange)
	}
	out := a.tls.step(exchange)
	if a.tls.err != nil {
		if len(out) > 0 { // an alert is sent as the next flight
			a.setFlight(flight+1, out)
			a.transmit()
		}
		return fmt.Errorf("%w: %v", errRefused, a.tls.err)
	}
	if len(out) == 0 {
		return nil
	}
	if a.tls.finished {
		state := a.tls.conn.ConnectionState()
		suite := suites[state.CipherSuite]
		if suite == nil || state.NegotiatedProtocol != "smt/1" {
			return errors.New("TLS negotiated another suite or protocol")
		}
		secrets, err := exporterSecrets(suite, parameterHash(a.clientRaw, a.serverRaw), state.ExportKeyingMaterial)
		if err != nil {
			return err
		}
		a.keys(suite, secrets)
	}
	a.setFlight(flight+1, out)
	a.transmit()
	return nil
}

func (a *attempt) registered(flight byte, exchange []byte) error {
	if flight != 2 || len(exchange) != 0 {
		return errors.New("key exchange bytes with registered keys")
	}
	if len(a.Peer.Suites) != 1 || a.Peer.Suites[0] != a.Own.Suites[0] || suites[a.Peer.Suites[0]] == nil {
		return errors.New("the suites of registered keys differ")
	}
	suite := suites[a.Peer.Suites[0]]
	secrets, _, err := registeredSecrets(suite, parameterHash(a.clientRaw, a.serverRaw), a.config.Registered)
	if err != nil {
		return err
	}
	a.keys(suite, secrets)
	a.setFlight(3, nil)
	a.transmit()
	return nil
}

func (a *attempt) byTicket(flight byte, exchange []byte) error {
	if flight != 2 {
		return errors.New("a further flight of a handshake by ticket")
	}
	secrets, err := a.ticket.finish(a.clientRaw, a.serverRaw, exchange)
	if err != nil {
		return err
	}
	suite := a.ticket.keys.suite
	agreed := false
	for _, code := range a.Peer.Suites {
		agreed = agreed || code == suite.ID
	}
	if !agreed {
		return errors.New("the suite is none of the server's parameters")
	}
	a.EarlyTaken = a.ticket.earlyTaken
	a.keys(suite, secrets)
	a.setFlight(3, nil)
	a.transmit()
	return nil
}

func (a *attempt) keys(suite *Suite, s [4][]byte) {
	a.Suite = suite
	a.Send = newDirection(suite, s[0], s[1])
	a.Recv = newDirection(suite, s[2], s[3])
}
