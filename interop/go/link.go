// SPDX-License-Identifier: Apache-2.0 OR MIT

// A UDP socket with loss injection on both directions (SPEC §15.1).
package main

import (
	"math/rand/v2"
	"net"
	"time"
)

// Link sends datagrams to one peer and receives its own.
type Link struct {
	conn    *net.UDPConn
	in      chan []byte
	loss    float64
	rand    *rand.Rand
	Sent    int
	Got     int
	LostOut int
	LostIn  int
}

func dial(addr string, loss float64, seed uint64) (*Link, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return nil, err
	}
	setDF(conn)
	conn.SetReadBuffer(4 << 20)
	conn.SetWriteBuffer(4 << 20)
	l := &Link{conn: conn, in: make(chan []byte, 4096), loss: loss, rand: rand.New(rand.NewPCG(seed, seed^0x534D54))}
	go l.read()
	return l, nil
}

func (l *Link) read() {
	defer close(l.in)
	for {
		b := make([]byte, 65536)
		n, err := l.conn.Read(b)
		if err != nil {
			if e, ok := err.(net.Error); ok && !e.Timeout() && !isClosed(err) {
				time.Sleep(time.Millisecond) // an unreachable hint ends nothing (SPEC §9.9)
				continue
			}
			return
		}
		l.in <- append([]byte(nil), b[:n]...)
	}
}

func isClosed(err error) bool {
	e, ok := err.(*net.OpError)
	return ok && e.Err == net.ErrClosed
}

func (l *Link) send(b []byte) {
	l.Sent++
	if l.loss > 0 && l.rand.Float64() < l.loss {
		l.LostOut++
		return
	}
	l.conn.Write(b)
}

// receive waits until a datagram is there or the time is over; nil then.
func (l *Link) receive(until time.Time) []byte {
	var b []byte
	var ok bool
	select {
	case b, ok = <-l.in:
	default:
		wait := time.Until(until)
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case b, ok = <-l.in:
		case <-timer.C:
			return nil
		}
	}
	if !ok {
		return nil
	}
	l.Got++
	if l.loss > 0 && l.rand.Float64() < l.loss {
		l.LostIn++
		return nil
	}
	return b
}

func (l *Link) close() { l.conn.Close() }
