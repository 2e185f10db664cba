#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each test program given and closes with a count of programs. A program that
# exits 77 was skipped and has said why. Each may take TESSERA_TEST_SECONDS (120);
# TESSERA_TEST_JOBS (1) run at a time. TESSERA_EMULATOR runs programs of another
# architecture.
set -u

# As `run.sh --one FOLDER PROGRAM`: runs one, and leaves its exit status in the folder.
if [ "${1-}" = --one ]; then
	name=$(basename "$3")
	log=$2/$name.log
	timeout "${TESSERA_TEST_SECONDS:-120}" ${TESSERA_EMULATOR-} "$3" >"$log" 2>&1
	status=$?
	case $status in
	0) echo "ok   $name: $(grep -c '\[ *OK \]' "$log") tests" ;;
	77) printf 'skip %s\n%s\n' "$name" "$(cat "$log")" ;;
	*) printf 'FAIL %s (exit %s)\n%s\n' "$name" "$status" "$(cat "$log")" ;;
	esac
	echo "$status" >"$2/$name.status"
	exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf '%s\n' "$@" | xargs -P "${TESSERA_TEST_JOBS:-1}" -I '{}' sh "$0" --one "$folder" '{}'
passed=0 failed=0 skipped=0
for program in "$@"; do
	# One without a status never ended.
	case $(cat "$folder/$(basename "$program").status" 2>/dev/null) in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
done
echo "C programs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
