# SPDX-License-Identifier: Apache-2.0
"""Every program of the corpus on the device against JAX's CPU backend.

A program with an op that the compiler refuses (UNIMPLEMENTED), or for which JAX has
no lowering on a new platform, is skipped with that reason; the last test asks that
enough of them ran.
"""

import collections
import re

import jax
import pytest

import compare
import corpus

ENOUGH = 330

# Programs whose result is not determined, with the reason.
FREE = {"red/reduce_gen": "its body is not associative, and the order is free"}
# Both backends are as far from the exact result: a matrix with a condition of 1e4, vectors of
# singular values that lie close together.
ILL_CONDITIONED = {"model/gp": 2e-3, "linalg/svd": 5e-3}
# Eigenvectors and singular vectors are free in sign or phase: magnitudes are compared.
FREE_SIGN = {"linalg/eigh", "linalg/eigh_c64", "linalg/svd"}

outcomes = collections.Counter()
refused = collections.Counter()


def run_on(where, f, args):
    args = jax.device_put(args, where)
    with jax.default_device(where):
        return jax.block_until_ready(jax.jit(f)(*args))


@pytest.mark.parametrize("name", sorted(corpus.C))
def test_program_agrees_with_cpu(name, device, cpu):
    if name in FREE:
        outcomes["free"] += 1
        pytest.skip(FREE[name])
    f, shapes = corpus.C[name]
    args = compare.make_inputs(name, shapes)
    # The CPU backend is the oracle: what it does not run can't be judged.
    try:
        want = run_on(cpu, f, args)
    except Exception as e:
        outcomes["not on cpu"] += 1
        pytest.skip(f"the CPU backend does not run it: {str(e)[:120]}")
    try:
        got = run_on(device, f, args)
    except (NotImplementedError, ValueError) as e:
        outcomes["no lowering"] += 1
        pytest.skip(f"JAX has no lowering: {str(e)[:120]}")
    except jax.errors.JaxRuntimeError as e:
        if not str(e).startswith("UNIMPLEMENTED"):
            outcomes["failed"] += 1
            raise
        outcomes["refused"] += 1
        refused[re.split(r"[:,]", str(e))[1].strip()] += 1
        pytest.skip(str(e)[:200])
    if name in FREE_SIGN:
        got, want = (jax.tree.map(abs, jax.device_get(x)) for x in (got, want))
    wrong = compare.differences(got, want, ILL_CONDITIONED.get(name))
    outcomes["wrong" if wrong else "passed"] += 1
    assert not wrong, "; ".join(wrong)


def test_enough_programs_ran(request):
    chosen = sum(outcomes.values())
    if chosen < len(corpus.C):
        pytest.skip(f"only {chosen} of {len(corpus.C)} programs were chosen")
    print(f"\ncorpus: {dict(outcomes)} of {len(corpus.C)}; refused: {dict(refused)}")
    assert outcomes["passed"] >= ENOUGH
