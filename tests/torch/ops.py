# SPDX-License-Identifier: Apache-2.0
"""What cases of operators are: (name, function, inputs), for every element type that the
function takes on the CPU. The cases are in ops_table.py and ops_nn.py.

`op(name, function, inputs...)` adds a case. Inputs are drawn from a generator that the
case's name seeds: n any value, p positive, u inside (-1, 1), d without ties, i an index
below its first number, m a mask, s a matrix that is symmetric, positive and well
conditioned. An index or mask keeps its type; the others get the type that is tried.
"""

import dataclasses
import zlib

import torch

from worker import Failed

INT = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOAT = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
TYPES = [*FLOAT, torch.bool, *INT, *COMPLEX]


@dataclasses.dataclass
class Input:
    kind: str
    shape: tuple
    below: int = 0


def n(*shape):
    return Input("n", shape)


def p(*shape):
    return Input("p", shape)


def u(*shape):
    return Input("u", shape)


def d(*shape):
    return Input("d", shape)


def i(below, *shape):
    return Input("i", shape, below)


def m(*shape):
    return Input("m", shape)


def s(*shape):
    return Input("s", shape)


def make(spec, dtype, generator):
    """The tensor on the CPU."""
    if not isinstance(spec, Input):
        return spec
    shape = spec.shape
    g = {"generator": generator}
    if spec.kind == "i":
        return torch.randint(0, spec.below, shape, **g)
    if spec.kind == "m":
        return torch.rand(shape, **g) < 0.5
    if spec.kind == "s":
        a = torch.randn(shape, dtype=torch.float64, **g)
        a = a @ a.mT + shape[-1] * torch.eye(shape[-1], dtype=torch.float64)
        return a.to(dtype)
    if spec.kind == "d":
        count = torch.Size(shape).numel()
        x = torch.randperm(count, **g).reshape(shape) - count // 2
        if not dtype.is_signed:
            x = x + count // 2
        return (x / 4).to(dtype) if dtype.is_floating_point else x.to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, **g) < (0.8 if spec.kind == "p" else 0.5)
    if dtype.is_complex:
        parts = torch.randn((*shape, 2), dtype=torch.float64, **g)
        if spec.kind == "u":
            parts = 0.6 * torch.tanh(parts)
        elif spec.kind == "p":
            parts = parts.abs() + 0.2
        return torch.view_as_complex(parts).to(dtype)
    if not dtype.is_floating_point:
        low, high = {"n": (-5, 6), "p": (1, 6), "u": (-1, 2)}[spec.kind]
        return torch.randint(low if dtype.is_signed else max(low, 0), high, shape, **g).to(dtype)
    x = torch.randn(shape, dtype=torch.float64, **g)
    if spec.kind == "p":
        x = x.abs() + 0.2
    elif spec.kind == "u":
        x = 0.9 * torch.tanh(x)
    return x.to(dtype)


@dataclasses.dataclass
class Case:
    name: str
    function: object
    inputs: tuple
    types: list         # None: each that the CPU takes
    grad: bool          # gradients in float32 too
    loose: float        # how many times the common tolerance
    is_random: bool     # shape and type are what can be compared


CASES = {}


def op(name, function, *inputs, types=None, grad=True, loose=1.0, is_random=False):
    assert name not in CASES, name
    CASES[name] = Case(name, function, inputs, types, grad, loose, is_random)


def arguments(case, dtype):
    generator = torch.Generator().manual_seed(zlib.crc32(case.name.encode()))
    return [make(a, dtype, generator) for a in case.inputs]


def evaluate(case, dtype, device, with_grad=False):
    """The results as a flat list, on `device`; with_grad: gradients of what takes them."""
    given = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments(case, dtype)]
    if not with_grad:
        with torch.no_grad():
            return flat(case.function(*given))
    for a in given:
        if isinstance(a, torch.Tensor) and a.is_floating_point():
            a.requires_grad_(True)
    results = [r for r in flat(case.function(*given)) if r.requires_grad]
    if not results:
        return []
    total = 0
    for k, r in enumerate(results):
        # Weights that differ, so that no gradient is that of a plain sum.
        w = torch.linspace(0.5, 1.5, r.numel(), dtype=torch.float64) + k
        total = total + (r * w.reshape(r.shape).to(r.dtype).to(device)).sum()
    wanted = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    return [g for g in found if g is not None]


def flat(x):
    if isinstance(x, (list, tuple)):
        return [v for part in x for v in flat(part)]
    return [x if isinstance(x, torch.Tensor) else torch.tensor(x)]


def run(name, dtype, with_grad):
    """In a worker: results, and the operators that torch_xla gave to the host."""
    import torch_xla
    import torch_xla.debug.metrics as met
    met.clear_counters()
    results = evaluate(CASES[name], dtype, torch_xla.device(), with_grad)
    results = [r.cpu() for r in results]
    host = [c[6:] for c in met.counter_names() if c.startswith("aten::")]
    return results, host


# ---- verdicts ----

# rtol and atol of results, in the type that they have.
TOLERANCE = {torch.float64: (1e-7, 1e-7), torch.float32: (2e-5, 2e-5),
             torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2),
             torch.complex128: (1e-7, 1e-7), torch.complex64: (2e-5, 2e-5)}


def difference(found, wanted, case, is_grad):
    """None where they agree, else what is different."""
    if len(found) != len(wanted):
        return f"{len(found)} results, wanted {len(wanted)}"
    for k, (a, b) in enumerate(zip(found, wanted)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return (f"result {k} is {a.dtype} {tuple(a.shape)}, wanted {b.dtype} "
                    f"{tuple(b.shape)}")
        if case.is_random:
            continue
        rtol, atol = (x * case.loose * (4 if is_grad else 1)
                      for x in TOLERANCE.get(b.dtype, (0, 0)))
        try:
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as e:
            return f"result {k}: " + " ".join(str(e).split())[:300]
    return None


def error_line(text):
    """What a traceback says last, on one line."""
    lines = [x for x in text.strip().splitlines() if x and not x.startswith((" ", "Exception"))]
    return (lines[-1] if lines else "nothing")[:200]


def judge(name, dtype, with_grad, device, oracle):
    """(verdict, text) of one case in one type: "agrees", "agrees on the host", "torch_xla"
    (XLA's CPU backend fails too, or has our numbers), "refused", "wrong"; None where torch's
    CPU does not take the type. device and oracle are workers."""
    case = CASES[name]
    try:
        wanted = evaluate(case, dtype, "cpu", with_grad)
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return None
    if not wanted:
        return None
    wanted = [w.detach().resolve_conj().resolve_neg() for w in wanted]
    found = theirs = error = failed = None
    try:
        found, host = device.ask("ops_nn", "run", name, dtype, with_grad)
        differs = difference(found, wanted, case, with_grad)
        if not differs:
            return ("agrees on the host" if set(host) - QUIET else "agrees"), ",".join(host)
    except Failed as e:
        error = error_line(str(e))
    try:
        theirs, _ = oracle.ask("ops_nn", "run", name, dtype, with_grad)
    except Failed as e:
        failed = error_line(str(e))
    if error:
        return ("torch_xla" if failed else "refused"), error
    if theirs is None:
        return "wrong", f"{differs}; XLA's CPU: {failed}"
    # Their own tolerance: both round in their own ways, but not far from one another.
    return ("wrong" if difference(found, theirs, case, with_grad) else "torch_xla"), differs


# Not a fallback of the operator: reading a result.
QUIET = {"_local_scalar_dense", "equal"}
