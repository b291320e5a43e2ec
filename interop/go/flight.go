// SPDX-License-Identifier: Apache-2.0 OR MIT

// TLS 1.3 over an in-memory connection, cut into flights (SPEC §6.1).
package main

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// pipe is the net.Conn that TLS reads and writes; it tells when TLS waits for more.
type pipe struct {
	mu     sync.Mutex
	cond   *sync.Cond
	in     []byte
	out    []byte
	closed bool
	idle   chan struct{} // TLS has read everything and waits
}

func newPipe() *pipe {
	p := &pipe{idle: make(chan struct{}, 1)}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.in) == 0 && !p.closed {
		p.idle <- struct{}{}
		for len(p.in) == 0 && !p.closed {
			p.cond.Wait()
		}
	}
	if len(p.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, b...)
	return len(b), nil
}

func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.cond.Broadcast()
	return nil
}

func (p *pipe) LocalAddr() net.Addr              { return &net.UDPAddr{} }
func (p *pipe) RemoteAddr() net.Addr             { return &net.UDPAddr{} }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// tlsClient runs one TLS handshake flight by flight.
type tlsClient struct {
	pipe     *pipe
	conn     *tls.Conn
	result   chan error
	finished bool
	err      error
}

func newTLSClient(config *tls.Config) *tlsClient {
	p := newPipe()
	c := &tlsClient{pipe: p, conn: tls.Client(p, config), result: make(chan error, 2)}
	go func() {
		err := c.conn.Handshake()
		c.result <- err
		if err == nil { // an alert may come behind the handshake: read it
			_, err = c.conn.Read(make([]byte, 1))
			c.result <- err
		}
	}()
	return c
}

// step gives TLS a flight (nothing at first) and takes what it has to send next.
func (c *tlsClient) step(in []byte) []byte {
	c.pipe.mu.Lock()
	c.pipe.in = append(c.pipe.in, in...)
	c.pipe.mu.Unlock()
	c.pipe.cond.Broadcast()
	select {
	case <-c.pipe.idle:
		select {
		case err := <-c.result: // the idle read is that behind the handshake
			c.settle(err)
		default:
		}
	case err := <-c.result:
		c.settle(err)
		if err == nil {
			<-c.pipe.idle // the read behind the handshake
		}
	}
	c.pipe.mu.Lock()
	defer c.pipe.mu.Unlock()
	out := c.pipe.out
	c.pipe.out = nil
	return out
}

func (c *tlsClient) settle(err error) {
	if err == nil {
		c.finished = true
	} else {
		c.err = err
	}
}

func (c *tlsClient) close() { c.pipe.Close() }
