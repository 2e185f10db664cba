# SPDX-License-Identifier: Apache-2.0
"""Both backends in one process: tessera is the default, cpu is the oracle.

The plugin is found as a user finds it, through the installed package's entry point.
"""

import gc
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ.setdefault("TESSERA_CACHE", "off")   # compile what the tree compiles
# The CPU's programs run once each: they need not be fast.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 "
                      "--xla_llvm_disable_expensive_passes=true")

# numpy's BLAS has a thread for each core, which spins where another worker has that core: what
# takes a millisecond by itself takes hundreds.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax  # noqa: E402
import pytest  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--one-of", type=int, default=1, metavar="N",
                     help="of each test's cases run the first, and each Nth after it")


def pytest_collection_modifyitems(config, items):
    every, seen, kept, left_out = config.getoption("--one-of"), {}, [], []
    for item in items:
        name = item.nodeid.split("[")[0]
        seen[name] = seen.get(name, -1) + 1
        (left_out if seen[name] % every else kept).append(item)
    items[:] = kept
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def device():
    return jax.devices("tessera")[0]


@pytest.fixture(scope="session")
def cpu():
    return jax.devices("cpu")[0]


@pytest.fixture(scope="session")
def eventually():
    """Waits for what another thread does after the results of a run are there, such as letting
    go of the run's executable."""
    def wait(holds, seconds=120):
        deadline = time.monotonic() + seconds
        while not holds() and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)
        assert holds()
    return wait
