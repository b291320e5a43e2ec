#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A TPM has the certificate of its endorsement key in an NV index, which may be longer than the
# certificate. tpm2_getekcertificate writes the index as it is, with the bytes behind the
# certificate. openssl passes over them; pyca's cryptography refuses the file, and nothing says that
# the certificate in it is sound.
#
# Seen with tpm2-tools 5.7-1 and swtpm 0.7.1-1.5 (Debian 13; tpm2-tools 5.4-1 of Debian 12 does the
# same), openssl 3.5.9, cryptography 50.0.2 (PyPI), Python 3.11, amd64, Linux, 2026-11-29, for an
# index with 50 bytes of ff behind:
#     ValueError: error parsing asn1 value: ParseError { kind: ExtraData }
# A reader takes as many bytes as the outer SEQUENCE of the certificate says, and has a test with an
# index that is too long.
set -euo pipefail
folder=$(mktemp -d)
end() {
    [[ ! -s $folder/tpm/pid ]] || kill "$(cat "$folder/tpm/pid")" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" tpm2-tools=5.7-1 swtpm=0.7.1-1.5 libtss2-tcti-swtpm0t64 openssl=3.5.9-1~deb13u1
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cryptography==50.0.2
run() { timeout 60 "$folder/debian/run" "$@"; }

printf '[req]\ndistinguished_name = name\n[name]\n' >"$folder/request"
run openssl req -x509 -config "$folder/request" -newkey rsa:2048 -nodes -keyout "$folder/key" -subj "/CN=A TPM" \
    -outform DER -out "$folder/certificate" 2>/dev/null
{ cat "$folder/certificate"; head -c 50 /dev/zero | tr '\0' '\377'; } >"$folder/index"

mkdir "$folder/tpm"
timeout 120 "$folder/debian/run" swtpm socket --tpm2 --flags not-need-init,startup-clear --tpmstate "dir=$folder/tpm" \
    --server "type=unixio,path=$folder/tpm/way" --ctrl "type=unixio,path=$folder/tpm/way.ctrl" \
    --pid "file=$folder/tpm/pid" >"$folder/log" 2>&1 &
for _ in $(seq 100); do
    [[ ! -S $folder/tpm/way.ctrl ]] || break
    sleep 0.1
done
export TPM2TOOLS_TCTI="swtpm:path=$folder/tpm/way"
run tpm2_nvdefine -Q -C p -s "$(stat -c %s "$folder/index")" \
    -a "ppread|ppwrite|ownerread|authread|no_da|platformcreate" 0x01c0000a
run tpm2_nvwrite -Q -C p -i "$folder/index" 0x01c0000a
run tpm2_getekcertificate -o "$folder/found"

cmp "$folder/found" "$folder/index" || { echo "tpm2_getekcertificate 5.7 writes another thing now" >&2; exit 1; }
run openssl x509 -inform DER -in "$folder/found" -noout || { echo "openssl 3.5.9 refuses the file now" >&2; exit 1; }
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import pathlib
import sys

from cryptography import x509

certificate = pathlib.Path(sys.argv[1], "certificate").read_bytes()
found = pathlib.Path(sys.argv[1], "found").read_bytes()
x509.load_der_x509_certificate(certificate)
try:
    x509.load_der_x509_certificate(found)
except ValueError as error:
    assert "ExtraData" in str(error), error
else:
    raise SystemExit("cryptography 50.0.2 takes bytes behind a certificate now")
# The length of the SEQUENCE stands in two bytes here.
assert found[:2] == b"\x30\x82"
assert found[: 4 + int.from_bytes(found[2:4], "big")] == certificate
PYTHON
echo "tpm2_getekcertificate 5.7 writes what stands behind the certificate too, and cryptography 50.0.2 refuses it"
