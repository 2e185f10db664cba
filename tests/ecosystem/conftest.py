# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects, on the device and on JAX's CPU backend in one process."""

import datetime
import os
import pathlib
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "tessera,cpu")
os.environ.setdefault("TESSERA_CACHE", "off")   # compile what the tree compiles

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import results  # noqa: E402

TIMES = []      # (test, platform, first, second), in seconds


def compare(path, got, want, rtol, atol):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, path
    if want.dtype.kind in "fcV":
        got, want = (x.astype("complex128" if x.dtype.kind == "c" else "float64")
                     for x in (got, want))
        assert np.isfinite(want).all(), f"{path}: the CPU's is not finite"
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=path)
    else:
        np.testing.assert_array_equal(got, want, err_msg=path)


@pytest.fixture
def both(request):
    """Runs a program twice on each, and compares what it returns. The first time compiles."""
    def run(program, rtol=1e-4, atol=1e-5):
        results = {}
        for platform in ("tessera", "cpu"):
            device, seconds = jax.devices(platform)[0], []
            with jax.default_device(device):
                for _ in range(2):
                    begin = time.perf_counter()
                    results[platform] = jax.block_until_ready(program())
                    seconds.append(time.perf_counter() - begin)
            arrays = [x for x in jax.tree.leaves(results[platform]) if isinstance(x, jax.Array)]
            assert arrays and all(x.devices() == {device} for x in arrays)
            TIMES.append((request.node.name, platform, *seconds))
        got, want = (jax.tree_util.tree_flatten_with_path(results[p])[0]
                     for p in ("tessera", "cpu"))
        assert len(got) == len(want)
        for (path, g), (_, w) in zip(got, want):
            compare(jax.tree_util.keystr(path), g, w, rtol, atol)
        return results["tessera"]
    return run


def pytest_addoption(parser):
    parser.addoption("--write", metavar="FILE",
                     help="the table of times goes there, too, if every test passed")


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Seconds. The first run of a program includes what is compiled."""
    if not TIMES:
        return
    say = terminalreporter.write_line
    say(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, which JAX's CPU backend and "
        "the model share; CPU / device above 1: the device is faster")
    say(f"{'program':58} {'first':>7} {'(CPU)':>7} {'again':>7} {'(CPU)':>7} {'CPU/dev':>8}")
    rows = {}
    for name, platform, first, second in TIMES:
        rows.setdefault(name[5:], {})[platform] = first, second
    lines = []
    for name, row in rows.items():
        if len(row) == 2:
            (a, b), (c, d) = row["tessera"], row["cpu"]
            say(f"{name:58} {a:7.2f} {c:7.2f} {b:7.3f} {d:7.3f} {d / b:8.2f}")
            lines.append(f"| {name.replace('_', ' ')} | {results.show(a)} | {results.show(c)} | "
                         f"{results.show(b)} | {results.show(d)} | {d / b:.2f}x |")
    if config.option.write and exitstatus == 0:
        write(config.option.write, lines)


def write(path, lines):
    results.put(path, results.ECOSYSTEM, [
        f"{datetime.date.today()}; {results.cpu_name()}; jax {jax.__version__}; load "
        f"{os.getloadavg()[0]:.1f}.",
        "`make bench-ecosystem` prints and writes this: the programs of `tests/ecosystem`, whose "
        "results were compared.",
        "The first run of a program compiles; so does the next where it makes a function anew. A "
        "ratio above 1 means that the",
        "device is faster the second time.",
        "",
        "| program | first | on XLA:CPU | again | on XLA:CPU | ratio |",
        "|---|--:|--:|--:|--:|--:|", *lines])
