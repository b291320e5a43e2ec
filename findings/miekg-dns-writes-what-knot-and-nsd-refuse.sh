#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The Go library miekg/dns writes the parameter no-default-alpn of SVCB as `no-default-alpn=""`. The
# value has to be empty (RFC 9460 7.1.1), and it is. But Knot DNS and NSD refuse a zone with these
# two quotes, while BIND takes it. Each takes `no-default-alpn` alone.
#
# Seen with github.com/miekg/dns v1.1.73, Go 1.26, and of Debian 13, amd64, kzonecheck 3.4.6-2,
# nsd-checkzone 4.12.0-1 ("params with value in SVCB") and named-checkzone 9.20.30, Linux,
# 2026-11-29. NSD 4.6.1 of Debian 12 took it, so a zone can cease to load with a new NSD.
#
# A program that writes zones by that library takes the `=""` off, or writes the generic form of RFC
# 3597, and checks a zone with the server that is to load it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" knot-dnssecutils=3.4.6-2 nsd=4.12.0-1 "bind9-utils=1:9.20.30-1~deb13u1"

export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-modcacherw GOTOOLCHAIN=local
mkdir "$folder/writer"
cat >"$folder/writer/main.go" <<'GO'
package main

import (
	"fmt"

	"github.com/miekg/dns"
)

func main() {
	header := dns.RR_Header{Name: "own.test.", Rrtype: dns.TypeSVCB, Class: dns.ClassINET, Ttl: 60}
	record := dns.SVCB{Hdr: header, Priority: 1, Target: "."}
	record.Value = []dns.SVCBKeyValue{&dns.SVCBAlpn{Alpn: []string{"h2"}}, &dns.SVCBNoDefaultAlpn{}}
	fmt.Println(record.String())
}
GO
written=$(cd "$folder/writer" && go mod init writer 2>/dev/null && go get github.com/miekg/dns@v1.1.73 2>/dev/null && go run .)
expected=$'own.test.\t60\tIN\tSVCB\t1 . alpn="h2" no-default-alpn=""'
[[ $written == "$expected" ]] || { echo "miekg/dns 1.1.73 writes another thing: $written" >&2; exit 1; }

zone() {
    # shellcheck disable=SC2016 # $TTL is the zone's
    printf '$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n%s\n' "$1" >"$folder/zone"
}
check() {
    case $1 in
        knot) "$folder/debian/run" kzonecheck -o own.test "$folder/zone" ;;
        nsd) "$folder/debian/run" nsd-checkzone own.test "$folder/zone" ;;
        bind) "$folder/debian/run" named-checkzone own.test "$folder/zone" ;;
    esac >"$folder/said" 2>&1
}
zone "${written%=*}"
for server in knot nsd bind; do
    check "$server" || { echo "$server refuses the sound zone:" >&2; cat "$folder/said" >&2; exit 1; }
done
zone "$written"
check bind || { echo "bind refuses the quotes now:" >&2; cat "$folder/said" >&2; exit 1; }
! check knot || { echo "knot takes the quotes now" >&2; exit 1; }
! check nsd || { echo "nsd takes the quotes now" >&2; exit 1; }
grep -q "params with value in SVCB" "$folder/said" || { echo "nsd says another thing:" >&2; cat "$folder/said" >&2; exit 1; }
echo "miekg/dns 1.1.73 writes no-default-alpn=\"\", which Knot DNS 3.4.6 and NSD 4.12.0 refuse"
