// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of leader, followers and driver: the code that ships, over the primitives of a checker
//! that tries out the orders in which its threads may run (`sync`, docs/HACKING.md).
//!
//! 1. An endpoint under test is connected with its peer, a protocol core in a thread of its own,
//!    before anything else runs (`endpoint`, `peer`). Nothing is lost between them, and nothing is
//!    repeated (`carrier`).
//! 2. Tasks are threads of the checker; so are the driver and its timer (`runtime`). A timer that
//!    is only a safety net never goes off, and a sleep that is one never ends: a wake-up that was
//!    lost is a deadlock.
//! 3. Many orders are tried at random (`schedules`); a failure prints the seed that plays it again.
//!
//! Rules that were broken by hand, and who noticed:
//!
//! | rule | noticed by |
//! |---|---|
//! | a turn is awaited before the leader looks at what is untaken | `turns` |
//! | an outcome is counted before it is in its slot | `tasks`, `leading`, `ending` |
//! | what nobody takes is not counted any more | `ending`, `leading` |
//! | answers are looked at after a change, after a look, and after they were left | `answers` |
//! | answers are taken once | `turns` |
//! | the watch is on when nobody looks any more | `leading` |
//! | the corked messages leave then | `leading` |
//! | a future that may not spin turns on the watch that another left off | `leading`, without timers |
//! | a future that is dropped ceases to lead | `leading`, without timers |
//! | a future leads only as long as it looks | `leading` |
//! | a batch comes back from a carrier that panics | `ending`, `threads` |
//! | a driver that is dropped ends its endpoint | `ending` |
//! | a signal before the driver listens is kept | `ending` |
//! | an acceptor that is dropped passes on what it was woken for | `ending` |
//! | a thread that leaves hands over, also when it panics; so does the background thread | `threads` |
//! | a thread that was told meanwhile does not begin to lead | `threads` |
//!
//! Not noticed, since they cost a millisecond at most, which the driver's timer is for: the watch
//! is turned on before the corked messages leave; the driver is not woken when what was awaited is
//! dropped, or when a future begins to lead.

mod answers;
mod carrier;
mod ending;
mod endpoint;
mod leading;
mod peer;
mod runtime;
mod schedules;
mod tasks;
mod threads;
mod turns;
