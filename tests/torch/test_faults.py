# SPDX-License-Identifier: Apache-2.0
"""Errors of the device reach the user, and the next program runs; donated memory is reused."""

import pytest

from conftest import agree
from worker import Worker


def ask(function, **environ):
    w = Worker("TESSERA", **environ)
    try:
        return w.ask("faults", function)
    finally:
        w.stop()


@pytest.mark.parametrize("function", ["upload", "allocate"])
def test_out_of_memory_is_a_runtime_error_with_the_heap(function):
    text, good = ask(function, TESSERA_DEVICES="sim:hbm=64M")
    assert "RESOURCE_EXHAUSTED" in text or "out of" in text.lower(), text
    assert "free" in text and ("largest" in text or "in use" in text), text
    assert good == 30


def test_what_fails_while_it_runs_is_said_when_it_is_read():
    text, good = ask("too_long", TESSERA_LIMIT_MS="50", XLA_IR_DEBUG="1", XLA_HLO_DEBUG="1")
    assert "ran past its deadline" in text, text
    assert "faults.py" in text, text        # the line of the operator
    assert good == 30


def test_the_training_step_donates_what_it_does_elsewhere(device, cpu):
    ours, theirs = (w.ask("faults", "mnist") for w in (device, cpu))
    agree(ours[0], theirs[0], 1e-4, 1e-4)
    assert ours[1] == theirs[1]
    assert max(n for n in ours[1] if n) >= 29


def test_donation_shows_in_the_peak():
    with_, value = ask("peak", TESSERA_DEVICES="sim:hbm=512M")
    without, _ = ask("peak", TESSERA_DEVICES="sim:hbm=512M", XLA_ENABLE_PARAM_ALIASING="0")
    assert value == 4
    assert with_ < 1.3 and without > 1.9, (with_, without)
