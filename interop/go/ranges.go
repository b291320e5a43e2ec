// SPDX-License-Identifier: Apache-2.0 OR MIT

// Sets of byte ranges: which parts of a flight or of a record stream have come.
package main

import "sort"

type span struct{ from, to uint64 }

// ranges is sorted, disjoint and not touching.
type ranges []span

func (r *ranges) add(from, to uint64) {
	if from >= to {
		return
	}
	s := *r
	i := sort.Search(len(s), func(i int) bool { return s[i].to >= from })
	j := i
	for j < len(s) && s[j].from <= to {
		from, to = min(from, s[j].from), max(to, s[j].to)
		j++
	}
	out := append(ranges{}, s[:i]...)
	out = append(out, span{from, to})
	*r = append(out, s[j:]...)
}

func (r *ranges) remove(from, to uint64) {
	var out ranges
	for _, s := range *r {
		if s.to <= from || s.from >= to {
			out = append(out, s)
			continue
		}
		if s.from < from {
			out = append(out, span{s.from, from})
		}
		if s.to > to {
			out = append(out, span{to, s.to})
		}
	}
	*r = out
}

func (r ranges) covers(from, to uint64) bool {
	if from >= to {
		return true
	}
	i := sort.Search(len(r), func(i int) bool { return r[i].to > from })
	return i < len(r) && r[i].from <= from && r[i].to >= to
}

// gaps has the missing ranges below limit.
func (r ranges) gaps(limit uint64) []span {
	var out []span
	at := uint64(0)
	for _, s := range r {
		if s.from >= limit {
			break
		}
		if s.from > at {
			out = append(out, span{at, s.from})
		}
		at = s.to
	}
	if at < limit {
		out = append(out, span{at, limit})
	}
	return out
}

func (r ranges) total() uint64 {
	n := uint64(0)
	for _, s := range r {
		n += s.to - s.from
	}
	return n
}
