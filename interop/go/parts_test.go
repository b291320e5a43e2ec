// SPDX-License-Identifier: Apache-2.0 OR MIT

// The rules of parts (SPEC §5.9) that no conversation breaks.
package main

import (
	"errors"
	"testing"
	"time"
)

func TestPartsAreReadInTheOrderOfTheirNumbers(t *testing.T) {
	r := newPartReader(4096, true)
	for _, number := range []uint32{2, 0, 1} {
		if err := r.accept(number, true, []byte{byte(number)}); err != nil {
			t.Fatal(err)
		}
	}
	for want := range 3 {
		if body, ok, _ := r.take(); !ok || body[0] != byte(want) {
			t.Fatalf("part %d is %x", want, body)
		}
	}
	if _, ok, _ := r.take(); ok || r.isRead() {
		t.Fatal("a fourth part, or the end")
	}
	if r.endAt(3) != nil || !r.isRead() {
		t.Fatal("the reply says three parts")
	}
}

func TestALastPartWithoutABodyIsNoPart(t *testing.T) {
	r := newPartReader(4096, true)
	if r.accept(1, false, nil) != nil || r.accept(0, true, []byte("x")) != nil {
		t.Fatal("refused")
	}
	if _, ok, _ := r.take(); !ok || !r.isRead() {
		t.Fatal("the end is not known")
	}
}

func TestAReaderRefusesPartsThatBreakTheRules(t *testing.T) {
	type say struct {
		number uint32
		more   bool
		length int
	}
	for name, parts := range map[string][]say{
		"a number that comes twice":      {{0, true, 1}, {0, true, 1}},
		"a part behind the end":          {{0, false, 1}, {1, true, 1}},
		"an end before parts":            {{1, true, 1}, {0, false, 1}},
		"another end":                    {{1, false, 1}, {3, false, 0}},
		"a part beyond the window":       {{0, true, 4096 - 511}},
		"parts beyond the window":        {{0, true, 2000}, {1, true, 2000}},
		"many empty parts":               {{0, true, 0}, {1, true, 0}, {2, true, 0}, {3, true, 0}, {4, true, 0}, {5, true, 0}, {6, true, 0}, {7, true, 0}, {8, true, 0}},
		"the number after the last, end": {{0, false, 0}, {0, true, 1}},
	} {
		r := newPartReader(4096, true)
		for i, p := range parts {
			err := r.accept(p.number, p.more, make([]byte, p.length))
			if last := i == len(parts)-1; errors.Is(err, errPartViolation) != last {
				t.Errorf("%s, part %d: %v", name, i, err)
			}
		}
	}
	r := newPartReader(4096, true)
	r.accept(1, true, nil)
	if r.endAt(1) == nil {
		t.Error("a reply that says fewer parts than have come")
	}
	if r := newPartReader(4096, false); r.accept(0, true, nil) == nil {
		t.Error("a part before the window of a request was told")
	}
}

func TestAReaderTellsALimitOnceHalfOfTheWindowWasRead(t *testing.T) {
	r := newPartReader(4096, false)
	if _, _, tell := r.take(); tell != 4096 {
		t.Fatalf("the first look at a request tells %d", tell)
	}
	for number := range uint32(4) {
		if err := r.accept(number, true, nil); err != nil {
			t.Fatal(err)
		}
	}
	for number, want := range []uint64{0, 0, 0, 6144} {
		if _, _, tell := r.take(); tell != want {
			t.Errorf("after part %d it tells %d", number, tell)
		}
	}
}

func TestAWriterStopsAtTheLimitAndAsks(t *testing.T) {
	w := &partWriter{}
	if _, err := w.number(nil, true); err != errPartWindow {
		t.Fatal("no limit was told")
	}
	now := time.Now()
	w.wait(now)
	first := w.ask
	w.wait(now.Add(time.Second))
	if first.IsZero() || w.ask != first {
		t.Fatal("the question is put off")
	}
	w.raise(1024)
	w.raise(512)
	if !w.ask.IsZero() || w.limit != 1024 {
		t.Fatal("limits do not go back, and a larger one ends the wait")
	}
	if n, err := w.number(make([]byte, 512), false); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := w.number(nil, true); err == nil || err == errPartWindow {
		t.Fatal("a part behind the last")
	}
}
