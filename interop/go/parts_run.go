// SPDX-License-Identifier: Apache-2.0 OR MIT

// Calls in parts with a server that gives back what it gets, by the marks of the request (-parts).
package main

import (
	"bytes"
	"time"
)

// callsInParts makes one call of each form.
func callsInParts(s *Session, wait time.Duration) {
	lengths := []int{100, 0, 1142, 5000, 1, 14000, 3000, 1000, 512}
	var parts [][]byte
	for i, n := range lengths {
		parts = append(parts, pattern(n, uint64(i)))
	}
	request := pattern(50_500, 77)

	got, c := exchange(s, request, nil, true, wait)
	var chunks [][]byte
	for at := 0; at < len(request); at += 1000 {
		chunks = append(chunks, request[at:min(at+1000, len(request))])
	}
	step(c != nil && c.Outcome == replied && len(c.Reply) == 0 && same(got, chunks), "a reply in %d parts: %s", len(got), outcome(c))

	_, c = exchange(s, []byte("asked"), parts, false, wait)
	step(c != nil && c.Outcome == replied && bytes.Equal(c.Reply, bytes.Join(parts, nil)), "a request in %d parts: %s", len(parts), outcome(c))

	got, c = exchange(s, []byte("asked"), parts, true, wait)
	step(c != nil && c.Outcome == replied && string(c.Reply) == "asked" && same(got, parts), "parts both ways, %d of them: %s", len(got), outcome(c))
}

func outcome(c *Call) string {
	if c == nil {
		return "not begun"
	}
	return c.Outcome
}

func same(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// exchange sends the parts of a request, the end as a part of its own, and reads those of the
// reply.
func exchange(s *Session, request []byte, parts [][]byte, replyInParts bool, wait time.Duration) (got [][]byte, c *Call) {
	c, err := s.StartInParts(request, parts != nil, replyInParts, wait)
	if err != nil {
		step(false, "call in parts: %v", err)
		return nil, nil
	}
	if parts != nil {
		parts = append(parts[:len(parts):len(parts)], nil)
	}
	s.Run(func() bool {
		for len(parts) > 0 {
			if err := s.SendPart(c, parts[0], len(parts) > 1); err != nil {
				if err != errPartWindow && err != errBlocked {
					s.Cancel(c)
				}
				break
			}
			parts = parts[1:]
		}
		for {
			body, ok := s.ReadPart(c)
			if !ok {
				break
			}
			got = append(got, body)
		}
		return c.ended
	}, wait)
	return got, c
}
