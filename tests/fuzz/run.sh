#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz target given and closes with the sum of their runs. A finding ends it.
#
#	S=60 FUZZ_RUNS=-1 CORPUS=folder tests/fuzz/run.sh build/fuzz/fuzz/*_fuzz
#
# S: seconds at most for each target. FUZZ_RUNS: runs at most, -1: as S allows. What is
# found to reach new code is kept in CORPUS and read again the next time.
# FUZZ_SHARE=n: all HLO modules are read, one in n is compiled.
set -u
: "${S:=60}" "${FUZZ_RUNS:=-1}" "${CORPUS:?where to keep inputs}"
total=0
for program in "$@"; do
	name=$(basename "$program" _fuzz)
	mkdir -p "$CORPUS/$name"
	seeds=
	for folder in "tests/data/fuzz/$name"; do
		[ -d "$folder" ] && seeds="$seeds $folder"
	done
	length=4096
	case $name in
	bytecode)
		length=8192
		for folder in tests/data/programs tests/data/vectors tests/data/spmd/captured \
				tests/data/spmd/groups tests/data/dynamic; do
			[ -d "$folder" ] && seeds="$seeds $folder"
		done ;;
	hlo)
		length=8192
		seeds="$seeds $CORPUS/$name-seeds"
		mkdir -p "$CORPUS/$name-seeds"
		find tests/data/torch tests/data/hlo tests/data/dynamic -name '*.hlo' -size -8 \
			-exec cp {} "$CORPUS/$name-seeds" \; ;;
	image) length=32768 ;;
	options) length=256 ;;
	text) length=16384 ;;
	vfio_user)
		python3 tests/fuzz/vfio_user_seeds.py "$CORPUS/$name-seeds" || exit 1
		seeds="$seeds $CORPUS/$name-seeds" ;;
	esac
	log=$CORPUS/$name.log
	"$program" -max_total_time="$S" -runs="$FUZZ_RUNS" -max_len=$length -timeout=20 \
		-artifact_prefix="$CORPUS/$name-" "$CORPUS/$name" $seeds >"$log" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		grep -v '^#' "$log"
		echo "FAIL $name (exit $status): the input is named above"
		exit 1
	fi
	runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
	seconds=$(sed -n 's/^Done .* in \([0-9]*\) second.*/\1/p' "$log")
	also=$(sed -n 's/^handled \(.*\)/, \1/p' "$log")
	echo "ok   $name: $runs runs$also in $seconds s"
	total=$((total + runs))
done
echo "fuzz: $total runs, no finding"
