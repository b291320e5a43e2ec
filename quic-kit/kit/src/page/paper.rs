// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The paper's numbers: its plots are not read off, its text and its table are.

/// Section 2.2.
pub(super) const TABLE_2: &str = "Quant (netmap, kernel bypass) 4121 Mbit/s at 90.1 % CPU of \
the server and 88.2 % of the client; Quicly 463 Mbit/s at 54.8 and 52.3 %; Picoquic 489 Mbit/s at \
60.4 and 49.9 %; Mvfst 325 Mbit/s at 47.2 and 46.4 %. Two Xeon Silver 4114 at 2.2 GHz, 10 Gbit/s, \
without GSO.";
/// Section 2.2.
pub(super) const FIGURE_2: &str = "Packet I/O is over 40 % of the CPU time with sockets, 30 % with \
netmap, where crypto is over 40 %; of crypto, the AEAD is 89 % (server) and 92 % (client), or 75 \
to 80 % in section 3.1. Reordering and acknowledgements of Picoquic are 26 % with 1 % of packets \
out of order.";
/// Section 2.2.
pub(super) const FIGURE_3: &str = "Picoquic keeps its throughput; Quant, Quicly and Mvfst lose \
most of it with 1 % of packets out of order, for they take them as lost: congestion windows 30 to \
50 times smaller. Held packets stay within the packet threshold of loss detection.";
/// Section 2.2.
pub(super) const FIGURE_4: &str = "Picoquic with a splay tree and with a linear search: the search \
is better without loss, and loses throughput faster with it. No stack here has both: the column \
of reordering and acknowledgements tells what each has. `smt-nic`'s example `reordering_cost` \
compares list, tree and bitmap.";
/// Section 2.3.
pub(super) const FIGURE_5: &str = "21 of 40 cores and more: Quicly and Picoquic grow linearly up to \
50 connections, Mvfst up to 10; beyond 40, Picoquic and Mvfst are about 4 times as fast as Quicly. \
CPU time for sending is about 10 % more than with one connection. Here two cores have all \
processes: the sum cannot grow with connections, and what is shown is what more of them cost.";
/// Section 2.3.
pub(super) const FIGURE_7: &str = "Aggregate throughput of 21 connections falls as with one; \
Picoquic stays at about 3.2 Gbit/s.";
/// Section 2.3.
pub(super) const FIGURE_8: &str = "Quicly has almost the same throughput with 1 % of loss and with \
1 % out of order; Picoquic fluctuates around 3.2 Gbit/s; Mvfst falls with both.";
/// Section 5.
pub(super) const SETTINGS: &str = "Not investigated there (section 5): segmentation by the kernel \
(GSO, GRO) and pacing. ChaCha20-Poly1305 stands for a processor without instructions for AES.";
/// Section 3.
pub(super) const OFFLOAD: &str = "Proposed, not built. Here the engine is a model that runs on the \
host, with ciphers of RustCrypto, which are slower than the library's: its work would be the \
device's, and is a class of its own. The host's part is the rest. `in-software` has the engine's \
seams and no entry; quinn is as it is published.";
