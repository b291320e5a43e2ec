// SPDX-License-Identifier: Apache-2.0 OR MIT

// An SMT client written from the specification alone. It calls an echo server and checks what comes
// back.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

var passed, failed int

func step(ok bool, format string, args ...any) bool {
	word := "PASS"
	if ok {
		passed++
	} else {
		failed++
		word = "FAIL"
	}
	fmt.Println(word, fmt.Sprintf(format, args...))
	return ok
}

func fatal(err error) {
	fmt.Println("FAIL", err)
	fmt.Printf("%d passed, %d failed\n", passed, failed+1)
	os.Exit(1)
}

func main() {
	addr := flag.String("addr", "127.0.0.1:17379", "server")
	ca := flag.String("ca", "", "certificates of the authority, PEM")
	name := flag.String("name", "", "the server's name in its certificate")
	cert := flag.String("cert", "", "own certificate chain, PEM")
	key := flag.String("key", "", "own key, PEM")
	sizeList := flag.String("sizes", "0,1,64,1000,1142,5000,60000,1000000", "message sizes")
	count := flag.Int("count", 1, "calls of each size")
	parallel := flag.Int("parallel", 1, "calls at once")
	loss := flag.Float64("loss", 0, "share of datagrams lost in each direction")
	seed := flag.Uint64("seed", 1, "of the loss")
	update := flag.Bool("update", false, "move to the next epoch mid-way, twice")
	pad := flag.String("pad", "none", "none, block:N or padme")
	n0 := flag.Uint("n0", 1142, "first record size")
	n := flag.Uint("n", 16384, "record size")
	bits := flag.Uint("index-bits", 16, "index bits")
	k := flag.Uint("stripes", 0, "log2 of the stripes")
	window := flag.Uint("window", 4096, "ids per stripe")
	unscheduled := flag.Uint("unscheduled", 60000, "bytes without a grant")
	datagram := flag.Uint("datagram", 8972, "largest datagram")
	probes := flag.String("probe", "1472,4096,8972", "datagram sizes to try")
	curves := flag.String("curves", "", "TLS groups by number")
	keyName := flag.String("key-name", "", "registered keys: name")
	secret := flag.String("secret", "", "registered keys: secret, hex")
	ownIdentity := flag.String("own", "", "registered keys: identity of this client")
	peerIdentity := flag.String("peer", "", "registered keys: identity of the server")
	suite := flag.Uint("suite", 0x1301, "registered keys: suite")
	wait := flag.Duration("wait", 20*time.Second, "for each call")
	expectFail := flag.Bool("expect-refusal", false, "the handshake must fail")
	crowd := flag.Int("crowd", 0, "handshakes begun and left before, so that the server asks for a cookie")
	expectEnd := flag.String("expect-end", "", "how the session must end, in the midst of calls")
	partWindow := flag.Uint("part-window", 20000, "bytes of the parts of a call that it accepts at first; 0: no calls in parts")
	bundles := flag.Bool("bundles", true, "take bundles")
	inParts := flag.Bool("parts", false, "calls in parts alone, with a server that gives the parts back")
	zone := flag.String("ticket", "", "begin by the ticket of this zone file")
	zonePort := flag.Int("ticket-port", 0, "the port that the ticket is published for")
	init := flag.Bool("init", false, "by ticket: without forward secrecy")
	early := flag.Int("early", -1, "by ticket: a request of so many bytes in the first flight")
	replay := flag.Bool("replay", false, "by ticket: send flight 1 again from another port, and see that it is not run again")
	damage := flag.String("damage", "", "by ticket: signature, hash, binder or init is wrong")
	expectExchange := flag.Int("expect-exchange", -1, "0 TLS, 2 ticket")
	expectEarly := flag.Bool("expect-early", false, "the early request must be taken with the first flight")
	earlyMayFail := flag.Bool("early-may-fail", false, "the early request may be taken with the first flight or not")
	expectBadTicket := flag.String("expect-bad-ticket", "", "why the ticket must not verify")
	skipExtra := flag.Bool("calls-only", false, "no cancel, no one-way message")
	verbose := flag.Bool("v", false, "trace")
	flag.Parse()

	trace := func(format string, args ...any) {
		if *verbose {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}
	config := &Config{Deadline: 5 * time.Second, Trace: trace, Params: Params{Suites: []uint16{0x1301, 0x1302, 0x1303}, IndexBits: byte(*bits),
		RecordSize: uint16(*n), FirstRecordSize: uint16(*n0), Window: uint32(*window), MessageLimit: 64 << 20,
		Unscheduled: uint32(*unscheduled), DatagramLimit: uint16(*datagram), Stripes: byte(*k), PartWindow: uint32(*partWindow), TakesBundles: *bundles}}
	if *secret != "" {
		raw, err := hex.DecodeString(*secret)
		if err != nil {
			fatal(err)
		}
		for _, identity := range []string{*ownIdentity, *peerIdentity} {
			if identity == "" || len(identity) > 255 || *ownIdentity == *peerIdentity {
				fatal(fmt.Errorf("-own and -peer: two identities of 1 to 255 bytes"))
			}
		}
		config.Registered = &RegisteredKey{Secret: raw, Name: []byte(*keyName), Client: []byte(*ownIdentity), Server: []byte(*peerIdentity)}
		config.Params.Suites = []uint16{uint16(*suite)}
	} else {
		var err error
		if config.TLS, err = tlsConfig(*ca, *name, *cert, *key, *curves); err != nil {
			fatal(err)
		}
	}
	if *zone != "" {
		err := config.useTicket(*zone, *name, *zonePort, *damage == "signature")
		if *expectBadTicket != "" {
			step(err != nil && strings.Contains(err.Error(), *expectBadTicket), "the ticket is refused: %v", err)
			finish()
		}
		if err != nil {
			fatal(err)
		}
		t := config.Ticket.Ticket
		step(true, "ticket: %s, suites %04x, flags %d, %v, %d certificates", groupNames[t.Group], t.Suites, t.Flags, t.Names, len(t.Chain))
		config.Ticket.ForwardSecrecy, config.Ticket.Damage = !*init, *damage
		if *early >= 0 {
			config.Early = pattern(*early, 77)
			if t.Flags&takesEarlyData != 0 {
				config.Ticket.Early = earlyData(config.Early, config.Params.Unscheduled)
			}
		}
	}
	padding := Padding{Policy: *pad}
	if rest, ok := strings.CutPrefix(*pad, "block:"); ok {
		block, err := strconv.ParseUint(rest, 10, 32)
		if err != nil || block == 0 {
			fatal(fmt.Errorf("-pad %s", *pad))
		}
		padding = Padding{"block", block}
	}
	sizes, err := numbers(*sizeList)
	if err != nil {
		fatal(err)
	}
	probeSizes, err := numbers(*probes)
	if err != nil {
		fatal(err)
	}

	link, err := dial(*addr, *loss, *seed)
	if err != nil {
		fatal(err)
	}
	defer link.close()
	if *crowd > 0 {
		if err := begin(*addr, config, *crowd); err != nil {
			fatal(err)
		}
	}
	start := time.Now()
	e, err := connect(link, config)
	if *expectFail {
		step(err != nil, "refused: %v", err)
		finish()
	}
	if err != nil {
		fatal(err)
	}
	step(true, "connect: suite %04x, server index %016x, N0 %d, N %d, k %d, window %d, message limit %d, unscheduled %d, datagram %d, flight %d seen, %d packets in the longest flight, %d cookies, attempt %d, %d repeats, %v",
		e.Suite.ID, e.Peer.Index, e.Peer.FirstRecordSize, e.Peer.RecordSize, e.Peer.Stripes, e.Peer.Window, e.Peer.MessageLimit, e.Peer.Unscheduled,
		e.Peer.DatagramLimit, e.Flights, e.FlightMax, e.Cookies, e.Attempts, e.Resent, time.Since(start).Round(time.Microsecond))
	if *expectExchange >= 0 {
		step(int(e.Exchange) == *expectExchange, "key exchange %d", e.Exchange)
	}
	if *crowd > 0 {
		step(e.Cookies > 0, "%d cookies with a crowd of %d", e.Cookies, *crowd)
	}
	s := newSession(e, padding, probeSizes, trace)
	if s.early != nil {
		s.Run(func() bool { return s.early.ended }, earlyDeadline)
		step(s.early.Outcome == replied && bytes.Equal(s.early.Reply, config.Early), "the first request of %d bytes: %s, taken early: %v",
			len(config.Early), s.early.Outcome, e.EarlyTaken)
		step(*earlyMayFail || e.EarlyTaken == *expectEarly, "early data as expected")
	}
	if *replay {
		answer, err := repeatFirst(*addr, e)
		step(err == nil && len(answer) > 0 && answer[0] == 0, "flight 1 again: answered, and its early data is not taken: %v", err)
	}
	if *expectEnd != "" {
		s.Run(func() bool {
			if len(s.calls) == 0 {
				s.Start(pattern(100, 1), false, *wait)
			}
			return false
		}, *wait)
		step(strings.Contains(s.closed, *expectEnd), "the session ended: %s", s.closed)
		finish()
	}

	if *inParts {
		for range *count {
			callsInParts(s, *wait)
		}
		sizes, *skipExtra = nil, true
	}
	half := len(sizes) / 2
	for i, size := range sizes {
		echo(s, size, *count, *parallel, *wait, *update && i == half)
		if s.closed != "" {
			break
		}
	}
	if *update {
		step(s.Run(func() bool { return s.Send.Old == nil }, 5*time.Second), "EPOCH_ACK: epoch %d is done", s.Send.Current.Epoch-1)
	}
	if !*skipExtra {
		extra(s, *wait, *update)
	}
	s.Flush()
	s.Run(func() bool { return false }, 20*time.Millisecond)
	if s.closed == "" {
		s.Close()
		step(true, "close")
	} else {
		step(false, "the session ended: %s", s.closed)
	}
	report(s)
	finish()
}

// begin sends flight 1 from n addresses and nothing more (SPEC §6.4).
func begin(addr string, config *Config, n int) error {
	for i := 0; i < n; i++ {
		link, err := dial(addr, 0, 0)
		if err != nil {
			return err
		}
		a := &attempt{Established: &Established{Link: link, Own: config.Params}, config: config}
		a.Own.Index = nextIndex()
		a.Own.Versions = []byte{version1}
		t := newTLSClient(config.TLS)
		a.clientRaw = a.Own.encode()
		a.setFlight(1, t.step(nil))
		t.close()
		a.transmit()
		link.close()
	}
	return nil
}

func finish() {
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// echo calls with one size; midway moves to another epoch while calls are under way.
func echo(s *Session, size, count, parallel int, wait time.Duration, midway bool) {
	type flying struct {
		call    *Call
		payload []byte
	}
	var calls []flying
	start := time.Now()
	good, bad, begun := 0, 0, 0
	why := ""
	for good+bad < count {
		for begun < count && len(calls) < parallel {
			payload := pattern(size, uint64(size)<<32|uint64(begun))
			c, err := s.Start(payload, false, wait)
			if err == errBlocked {
				s.count("blocked by the window")
				s.AskWindow()
				break
			}
			if err != nil {
				begun++
				bad++
				why = err.Error()
				continue
			}
			begun++
			calls = append(calls, flying{c, payload})
			if midway && begun == (count+1)/2 {
				s.Run(func() bool { return c.out.sent > 0 }, wait)
				step(s.Update(), "key update mid-way, %d calls under way: own direction in epoch %d", len(calls), s.Send.Current.Epoch)
			}
		}
		s.Run(func() bool {
			for _, f := range calls {
				if f.call.ended {
					return true
				}
			}
			return len(calls) == 0
		}, min(wait+5*time.Second, 30*time.Second))
		if len(calls) == 0 {
			s.Run(func() bool { return false }, time.Millisecond)
		}
		rest := calls[:0]
		for _, f := range calls {
			switch {
			case !f.call.ended && s.closed == "":
				rest = append(rest, f)
			case f.call.Outcome == replied && bytes.Equal(f.call.Reply, f.payload):
				good++
			default:
				bad++
				if why = f.call.Outcome; f.call.Outcome == replied {
					why = fmt.Sprintf("another reply, %d bytes", len(f.call.Reply))
				} else if s.closed != "" {
					why = s.closed
				}
			}
		}
		calls = rest
		if s.closed != "" {
			bad += count - good - bad
		}
	}
	if good > 0 {
		passed += good - 1
	}
	if bad > 0 {
		failed += bad - 1
		step(false, "echo of %d bytes: %d of %d failed: %s", size, bad, count, why)
		if good > 0 {
			passed++
		}
		return
	}
	step(true, "echo of %d bytes: %d times, %v each, datagram %d", size, good, (time.Since(start) / time.Duration(count)).Round(time.Microsecond), s.datagram)
}

// extra checks all but calls that are answered.
func extra(s *Session, wait time.Duration, update bool) {
	ended := func(c *Call) func() bool { return func() bool { return c.ended } }

	ping := s.Ping()
	ok := false
	for try := 0; try < 20 && !ok; try++ {
		ok = s.Run(func() bool { return len(s.pings) == 0 }, 50*time.Millisecond)
		if !ok {
			delete(s.pings, ping)
			ping = s.Ping()
		}
	}
	step(ok, "ping")

	if c, err := s.Start(pattern(5000, 7), true, wait); err != nil {
		step(false, "one-way message: %v", err)
	} else {
		s.Run(ended(c), wait)
		step(c.Outcome == delivered, "one-way message of 5000 bytes: %s", c.Outcome)
	}
	if c, err := s.Start(pattern(300000, 8), true, wait); err != nil {
		step(false, "one-way message: %v", err)
	} else {
		s.Run(ended(c), wait)
		step(c.Outcome == delivered, "one-way message of 300000 bytes: %s", c.Outcome)
	}

	for _, t := range []struct {
		size  int
		after func(c *Call) func() bool
		name  string
		want  []byte
	}{
		{100, func(*Call) func() bool { return nil }, "before anything left", []byte{typeVoided}},
		{1000000, func(c *Call) func() bool { return func() bool { return c.out.sent > 0 } }, "half sent", []byte{typeVoided}},
		{1000000, func(c *Call) func() bool { return func() bool { return c.out.sent == c.out.stream } }, "wholly sent",
			[]byte{typeSeen, typeVoided, typeSeenAndGone}},
		{1000000, func(c *Call) func() bool { return func() bool { return c.in != nil && c.in.header != nil } }, "reply begun",
			[]byte{typeSeen, typeSeenAndGone}},
	} {
		c, err := s.Start(pattern(t.size, 9), false, wait)
		if err != nil {
			step(false, "cancel: %v", err)
			continue
		}
		if until := t.after(c); until != nil {
			s.Run(func() bool { return until() || c.ended }, wait)
		}
		s.Cancel(c)
		s.Run(ended(c), wait)
		if s.Link.loss > 0 { // a CANCEL repeated because VOIDED was lost is answered SEEN (SPEC §9.6)
			t.want = append(t.want, typeSeen)
		}
		step(contains(t.want, c.Answer), "cancel, %s: %s, %s", t.name, typeNames[c.Answer], c.Outcome)
	}
	if update {
		s.Run(func() bool { return s.Send.Old == nil }, 2*time.Second)
		step(s.Update(), "key update: own direction in epoch %d", s.Send.Current.Epoch)
		step(s.Run(func() bool { return s.Send.Old == nil }, 5*time.Second), "EPOCH_ACK: epoch %d is done", s.Send.Current.Epoch-1)
	}
	echo(s, 3000, 1, 1, wait, false)
}

func report(s *Session) {
	var keys []string
	for k := range s.Counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, s.Counts[k]))
	}
	fmt.Printf("counts: %s\n", strings.Join(parts, "; "))
	fmt.Printf("datagrams: sent %d (%d lost), received %d (%d lost); size %d\n", s.Link.Sent, s.Link.LostOut, s.Link.Got, s.Link.LostIn, s.datagram)
}

func numbers(list string) ([]int, error) {
	var out []int
	for _, f := range strings.Split(list, ",") {
		if f == "" {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func tlsConfig(ca, name, cert, key, curves string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"smt/1"}, ServerName: name, RootCAs: x509.NewCertPool()}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	ids, err := numbers(curves)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(id))
	}
	return c, nil
}

// useTicket takes the ticket of a zone file if it verifies; changed says to change its signature
// before.
func (c *Config) useTicket(zone, name string, port int, changed bool) error {
	rdata, err := recordInZone(zone, name, port)
	if err != nil {
		return err
	}
	b, chain, err := parseRecord(rdata)
	if err != nil {
		return err
	}
	if changed {
		b = bytes.Clone(b)
		b[len(b)-1] ^= 1
	}
	t, err := parseTicket(b)
	if err != nil {
		return err
	}
	if err := t.verify(chain, c.TLS.RootCAs, name, time.Now()); err != nil {
		return err
	}
	c.Ticket = &TicketPlan{Ticket: t}
	if len(c.TLS.Certificates) > 0 {
		c.Ticket.Identity = &c.TLS.Certificates[0]
	}
	return nil
}
