# SPDX-License-Identifier: Apache-2.0
"""Copies pytest's output and exits as pytest's own closing line says.

A filter for `pytest -rs | fold_skips.py`: the pipe hides pytest's status, and
hundreds of skip reasons read better counted by reason than one by one.
"""

import collections
import re
import sys

reasons, failed, closing = collections.Counter(), True, ""
for line in sys.stdin:
    skip = re.match(r"SKIPPED \[(\d+)\] [^ ]+: (.*)", line)
    if skip:
        reasons[re.sub(r"(, at| at ).*", "", skip[2].strip())[:90]] += int(skip[1])
        continue
    if re.search(r"\d+ (passed|failed|error|skipped)", line) and " in " in line:
        closing = line
        failed = bool(re.search(r"\d+ (failed|error)", line)) or "passed" not in line
        break
    sys.stdout.write(line)
    sys.stdout.flush()
for reason, n in reasons.most_common():
    print(f"skipped {n:4d}: {reason}")
sys.stdout.write(closing)
sys.exit(1 if failed else 0)
