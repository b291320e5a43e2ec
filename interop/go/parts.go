// SPDX-License-Identifier: Apache-2.0 OR MIT

// Calls in parts (SPEC §5.9): the order and the window of the parts of one direction of a call.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const (
	partOverhead = 512 // what each part counts beside its body
	partPrefix   = 8   // the id of the request, before the body
)

var errPartViolation = errors.New("violation of the rules of parts")
var errPartWindow = errors.New("the window of parts is full")

func partCost(body []byte) uint64 { return partOverhead + uint64(len(body)) }

// partReader puts the parts that come in order.
type partReader struct {
	width   uint64 // own parameter
	limit   uint64 // as far as parts may count; 0 before it is told
	counted uint64 // by parts that wait and those that were read
	read    uint64
	next    uint32
	count   int64 // of parts, or -1 before it is known
	waiting map[uint32][]byte
}

// newPartReader makes the reader of a reply (its window is open) or of a request.
func newPartReader(width uint32, isOpen bool) *partReader {
	r := &partReader{width: uint64(width), count: -1, waiting: map[uint32][]byte{}}
	if isOpen {
		r.limit = r.width
	}
	return r
}

// accept takes a part that has come.
func (r *partReader) accept(number uint32, more bool, body []byte) error {
	if !more && len(body) == 0 {
		return r.endAt(number)
	}
	_, waits := r.waiting[number]
	cost := partCost(body)
	if number < r.next || waits || r.count >= 0 && int64(number) >= r.count || r.counted+cost > r.limit {
		return errPartViolation
	}
	r.waiting[number] = body
	r.counted += cost
	if more {
		return nil
	}
	return r.endAt(number + 1)
}

// endAt notes how many parts there are.
func (r *partReader) endAt(count uint32) error {
	if r.count >= 0 && r.count != int64(count) || count < r.next {
		return errPartViolation
	}
	for number := range r.waiting {
		if number >= count {
			return errPartViolation
		}
	}
	r.count = int64(count)
	return nil
}

// take gives the next part, if it has come, and the limit to tell, or 0. A limit is told once half
// of the window was read, and at the first look at a request.
func (r *partReader) take() (body []byte, ok bool, tell uint64) {
	if body, ok = r.waiting[r.next]; ok {
		delete(r.waiting, r.next)
		r.next++
		r.read += partCost(body)
	}
	if limit := r.read + r.width; r.count < 0 && limit-r.limit >= r.width/2 {
		r.limit, tell = limit, limit
	}
	return body, ok, tell
}

// asked gives the limit to a peer that asks for it: as large as it can be, since the part that
// waits may take more than half of the window (SPEC 5.9-14).
func (r *partReader) asked() uint64 {
	if r.limit > 0 {
		r.limit = r.read + r.width
	}
	return r.limit
}

func (r *partReader) isRead() bool { return r.count == int64(r.next) }

// partWriter numbers the parts that leave.
type partWriter struct {
	limit, counted uint64
	next           uint32
	ended          bool
	ask            time.Time // when to ask for a larger limit; zero if nobody waits
	interval       time.Duration
}

// number gives the next part its number, or errPartWindow.
func (w *partWriter) number(body []byte, more bool) (uint32, error) {
	if w.ended {
		return 0, errors.New("the last part has left")
	}
	if w.counted+partCost(body) > w.limit {
		return 0, errPartWindow
	}
	w.counted += partCost(body)
	w.ended = !more
	w.next++
	return w.next - 1, nil
}

// wait notes that the application waits for a larger limit.
func (w *partWriter) wait(now time.Time) {
	if w.ask.IsZero() {
		w.interval, w.ask = firstInterval, now.Add(firstInterval)
	}
}

// raise takes a limit that the reader tells.
func (w *partWriter) raise(limit uint64) {
	if limit > w.limit {
		w.limit, w.ask = limit, time.Time{}
	}
}

// takesParts says whether both sides said `part window`.
func (s *Session) takesParts() bool { return s.Own.PartWindow != 0 && s.Peer.PartWindow != 0 }

// StartInParts begins a call of which parts follow (more), or whose reply may come in parts.
func (s *Session) StartInParts(payload []byte, more, replyInParts bool, limit time.Duration) (*Call, error) {
	if !s.takesParts() {
		return nil, errors.New("the peer takes no parts")
	}
	fields := KindFields{Kind: kindRequest}
	if more {
		fields.Flags |= flagMore
	}
	if replyInParts {
		fields.Flags |= flagReplyInParts
	}
	c, err := s.begin(payload, fields)
	if err != nil {
		return nil, err
	}
	c.deadline = c.start.Add(limit)
	if more {
		c.writer = &partWriter{}
	}
	if replyInParts {
		c.reader = newPartReader(s.Own.PartWindow, true)
	}
	return c, nil
}

// SendPart sends a part of a request. It gives errPartWindow if its reader has no room for it yet,
// and errBlocked if no id may be issued now.
func (s *Session) SendPart(c *Call, body []byte, more bool) error {
	w := c.writer
	switch {
	case c.ended || c.cancelling || w == nil:
		return errors.New("the call takes no parts")
	case partCost(body) > uint64(s.Peer.PartWindow):
		return errors.New("above the peer's window of parts")
	case w.counted+partCost(body) > w.limit:
		w.wait(time.Now())
		return errPartWindow
	}
	payload := append(binary.BigEndian.AppendUint64(nil, c.id), body...)
	fields := KindFields{Kind: kindPart, Number: w.next}
	if more {
		fields.Flags = flagMore
	}
	if _, err := s.begin(payload, fields); err != nil {
		return err
	}
	_, err := w.number(body, more)
	return err
}

// ReadPart gives the next part of a reply, if it has come. The call ends with the last one, if the
// reply has come.
func (s *Session) ReadPart(c *Call) ([]byte, bool) {
	if c.ended || c.reader == nil {
		return nil, false
	}
	body, ok, tell := c.reader.take()
	if tell != 0 {
		s.control(typePartWindow, s.stripeOf(c.id), Body{Windows: []PartWindow{{c.id, tell}}})
	}
	s.endIfRead(c)
	return body, ok
}

// partIn takes a part of the peer that is whole.
func (s *Session) partIn(h *KindFields, application []byte) {
	if len(application) < partPrefix {
		s.count("part without the id of its request")
		return
	}
	c := s.calls[binary.BigEndian.Uint64(application)]
	if c == nil || c.cancelling || c.reader == nil {
		s.count("parts of calls that are over")
		return
	}
	c.busy()
	if err := c.reader.accept(h.Number, h.Flags&flagMore != 0, application[partPrefix:]); err != nil {
		s.count(fmt.Sprint("part: ", err))
		s.Cancel(c)
	}
}

// endIfRead ends a call whose reply has come and whose parts were all read.
func (s *Session) endIfRead(c *Call) {
	if c.isWhole() && (c.reader == nil || c.reader.isRead()) {
		s.end(c, c.replyOutcome)
	}
}

// partTimer asks for a larger limit (SPEC §5.9).
func (s *Session) partTimer(c *Call, now time.Time) {
	w := c.writer
	if w == nil || w.ask.IsZero() || now.Before(w.ask) {
		return
	}
	w.ask = now.Add(w.interval)
	w.interval = min(2*w.interval, lastInterval)
	s.control(typePartWindowRequest, s.stripeOf(c.id), Body{IDs: []uint64{c.id}})
}
