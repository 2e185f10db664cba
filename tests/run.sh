#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each test program given and closes with a count of programs. A program that
# exits 77 was skipped and has said why. Each may take TESSERA_TEST_SECONDS (120).
# TESSERA_EMULATOR runs programs of another architecture.
set -u
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
for program in "$@"; do
	name=$(basename "$program")
	timeout "${TESSERA_TEST_SECONDS:-120}" ${TESSERA_EMULATOR-} "$program" >"$log" 2>&1
	status=$?
	case $status in
	0) passed=$((passed + 1)); echo "ok   $name: $(grep -c '\[ *OK \]' "$log") tests" ;;
	77) skipped=$((skipped + 1)); echo "skip $name"; cat "$log" ;;
	*) failed=$((failed + 1)); echo "FAIL $name (exit $status)"; cat "$log" ;;
	esac
done
echo "C programs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
