// SPDX-License-Identifier: Apache-2.0 OR MIT

// An SMT client from the specification alone.
module smt/interop

go 1.26.0

require golang.org/x/crypto v0.58.0

require golang.org/x/sys v0.49.0 // indirect
