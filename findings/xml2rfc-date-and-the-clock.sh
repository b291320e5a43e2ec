#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# xml2rfc's option --date is to "run as if the date is DATE", so that a draft renders the same on
# any day. The warning about a document's date compares with the clock all the same: a build that
# treats warnings as errors turns red four days after the draft was dated, with no change to
# anything.
#
# Seen with xml2rfc 3.34.1 (PyPI), Python 3.11, Linux, 2026-11-29, with --date 2020-01-15 and
# without:
#     Warning: The document date (2020-01-15) is more than 3 days away from today's date
# A build that is to be the same every day drops that one line before it judges warnings.
set -euo pipefail
version=3.34.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "xml2rfc==$version"

cat >"$folder/draft-dated-00.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<rfc ipr="trust200902" docName="draft-dated-00" category="info" submissionType="IETF" version="3">
  <front>
    <title>A Dated Draft</title>
    <seriesInfo name="Internet-Draft" value="draft-dated-00"/>
    <author fullname="A. Author"><address><email>author@example.org</email></address></author>
    <date year="2020" month="January" day="15"/>
    <abstract><t>A draft of one paragraph.</t></abstract>
  </front>
  <middle><section><name>Introduction</name><t>Its date is in the past.</t></section></middle>
</rfc>
XML

warning="The document date (2020-01-15) is more than 3 days away from today's date"
for options in "" "--date 2020-01-15"; do
    # shellcheck disable=SC2086 # two words or none
    said=$("$folder/venv/bin/xml2rfc" --no-network --v3 --text $options --out "$folder/out.txt" "$folder/draft-dated-00.xml" 2>&1)
    [[ $said == *"$warning"* ]] || { echo "xml2rfc $version warns no more with '$options': $said" >&2; exit 1; }
done
echo "xml2rfc $version: --date does not reach the comparison of a draft's date with the clock"
