# SPDX-License-Identifier: Apache-2.0
"""Two processes beside pytest's own: one on the device, one with PJRT_DEVICE=CPU."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

import pytest  # noqa: E402
import torch  # noqa: E402

from worker import Worker  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--exits", type=int, default=10,
                     help="how often each way to end a process is tried")


@pytest.fixture(scope="session")
def device():
    w = Worker("TESSERA").start()
    yield w
    assert w.stop() == 0


@pytest.fixture(scope="session")
def cpu():
    w = Worker("CPU").start()
    yield w
    w.stop()


@pytest.fixture(scope="session")
def both(device, cpu):
    """both(module, function, *args, rtol=, atol=): the device's result, which agrees with
    what XLA's CPU backend has for the same."""
    def ask(module, function, *args, rtol=2e-5, atol=2e-5):
        ours = device.ask(module, function, *args)
        agree(ours, cpu.ask(module, function, *args), rtol, atol)
        return ours
    return ask


@contextlib.contextmanager
def served(n):
    """n linked chips of a server of its own, as TESSERA_DEVICES names them."""
    top = pathlib.Path(__file__).parents[2]
    server = pathlib.Path(os.environ.get("TESSERA_BUILD", top / "build/opt")) / "tessera-sim"
    with tempfile.TemporaryDirectory() as folder:
        s = subprocess.Popen([server, "--devices", str(n), "--hbm", "256M", "--lanes", "1",
                              "--socket-dir", folder], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        try:
            assert s.stdout.readline().startswith("serving")
            yield ",".join(f"vfio-user:{folder}/{i}.sock" for i in range(n))
            s.send_signal(signal.SIGTERM)
            assert s.wait(60) == 0
        finally:
            s.kill()


def agree(a, b, rtol=2e-5, atol=2e-5, where="result"):
    assert type(a) is type(b), f"{where}: {type(a).__name__} and {type(b).__name__}"
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True,
                                   msg=lambda m: f"{where}: {m}")
    elif isinstance(a, list):
        assert len(a) == len(b), f"{where}: {len(a)} parts and {len(b)}"
        for k, (x, y) in enumerate(zip(a, b)):
            agree(x, y, rtol, atol, f"{where}[{k}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), f"{where}: {list(a)} and {list(b)}"
        for k in a:
            agree(a[k], b[k], rtol, atol, f"{where}[{k!r}]")
    elif isinstance(a, float):
        assert abs(a - b) <= atol + rtol * abs(b), f"{where}: {a} and {b}"
    else:
        assert a == b, f"{where}: {a} and {b}"


VERDICTS = {}


@pytest.fixture
def tally():
    """tally(verdict, case): counted for the summary."""
    return lambda verdict, name: VERDICTS.setdefault(verdict, []).append(name)


def pytest_terminal_summary(terminalreporter):
    for verdict, names in sorted(VERDICTS.items()):
        terminalreporter.line(f"operators: {verdict}: {len(names)} of {len(set(names))} cases")
