#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tshark 4.4 runs no script of Lua for root. This is its policy (`run_user_scripts_when_superuser`
# of init.lua, which is off where there is no init.lua, and no such file comes with 4.4 any more).
# But tshark has no word about it, not even of a script that is not there: its packets look as if no
# script were given, and its exit code is 0. 4.0 of Debian 12 comes with an init.lua that has it on.
#
# Seen with tshark 4.4.19 (Debian 13), amd64, Linux, 2026-11-29, for `tshark -X lua_script:FILE`:
#     root       nothing but 'Running as user "root" [...] This could be dangerous.', as without -X
#     a user     the script runs; of a missing file: The file [...] doesn't exist.
# Debian 12's tshark 4.0.17 runs the script for root too.
#
# A test by a dissector in Lua that may be started by root, as in a container, calls tshark as
# another user, and looks for a line that only its script prints before it judges packets.
set -euo pipefail
version=4.4.19-0+deb13u1
[[ $(id -u) == 0 ]] || { echo "takes root" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" "tshark=$version" "libwireshark18=$version"

# A capture without packets: the head of a file of pcap, for Ethernet.
printf '\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0' >"$folder/capture"
echo 'print("the script runs")' >"$folder/script.lua"
chmod 755 "$folder"
tshark() {
    HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent "${as[@]}" "$folder/debian/run" tshark -r "$folder/capture" "$@" 2>&1 |
        grep -v '^Running as user "root"' || true
}
expect() {
    [[ $2 == "$1" ]] || { echo "tshark $version as ${as[*]:-root} says: '$2'" >&2; exit 1; }
}
as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
expect "the script runs" "$(tshark -X "lua_script:$folder/script.lua")"
[[ $(tshark -X "lua_script:$folder/none.lua") == *"doesn't exist"* ]] || { echo "a user is told nothing of a missing script" >&2; exit 1; }
as=(env)
expect "" "$(tshark -X "lua_script:$folder/script.lua")"
expect "" "$(tshark -X "lua_script:$folder/none.lua")"
echo "tshark $version runs no Lua for root, and does not say so"
