# SPDX-License-Identifier: Apache-2.0
"""Arrays that go to PyTorch and come from it without torch_xla's own moves: by DLPack. Those of
torch_xla's device; those of JAX's; one of each in one process."""

import numpy as np
import torch
from torch.utils import dlpack

TYPES = {"bool": torch.bool, "uint8": torch.uint8, "int32": torch.int32, "int64": torch.int64,
         "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
         "float64": torch.float64, "complex64": torch.complex64}


def raised(f):
    try:
        return f"nothing raised: {f()}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"


# ---- torch_xla ----

def to_torch(dtype):
    """A tensor still to be computed, a view at that; who takes it may write to it."""
    import torch_xla
    from torch_xla.utils.dlpack import to_dlpack
    x = (torch.arange(6, device=torch_xla.device()) % 4).to(TYPES[dtype]).reshape(2, 3).T
    there = dlpack.from_dlpack(to_dlpack(x))
    seen = there.clone()
    there.zero_()
    return [there.device.type, seen, x]


def from_torch(dtype):
    """Of a tensor, a view with gaps, a capsule, and numpy's array; none is written through."""
    import torch_xla
    from torch_xla.utils.dlpack import from_dlpack
    t = (torch.arange(24) % 5).to(TYPES[dtype]).reshape(4, 6)
    got = [from_dlpack(t), from_dlpack(t.T[::2]), from_dlpack(dlpack.to_dlpack(t))]
    if dtype != "bfloat16":
        got.append(from_dlpack(t.numpy()))
    assert all(x.device == torch_xla.device() for x in got)
    t.zero_()
    return got + [x + x for x in got]


def refused_by_torch_xla():
    import torch_xla
    from torch_xla.utils.dlpack import from_dlpack, to_dlpack
    x = torch.ones(3, device=torch_xla.device())
    return [raised(lambda: torch.from_dlpack(x)), raised(lambda: to_dlpack(torch.ones(3))),
            raised(lambda: from_dlpack(3)), torch.from_dlpack(x.cpu())]


# ---- JAX ----

def device_of_jax():
    import jax
    return jax.devices("tessera")[0]


def jax_to_torch(dtype, size):
    import jax
    import jax.numpy as jnp
    with jax.enable_x64(True):
        x = jax.device_put(jnp.arange(size) % 4, device_of_jax()).astype(dtype)
        taken = [torch.from_dlpack(x), dlpack.from_dlpack(x), torch.from_dlpack(x, copy=True)]
        first = [np.asarray(t.float() if dtype == "bfloat16" else t).tolist() for t in taken]
        for t in taken:     # theirs to write to: neither JAX nor the next sees it
            t.zero_()
        after = np.asarray(x.astype("float32") if dtype == "bfloat16" else x).tolist()
        again = torch.from_dlpack(x).clone()
        del x
    return [first[0] == first[1] == first[2] == after, [str(t.dtype) for t in taken],
            torch.equal(again, (torch.arange(size) % 4).to(TYPES[dtype]))]


def torch_to_jax(dtype):
    import jax
    import jax.numpy as jnp
    t = (torch.arange(6) % 4).to(TYPES[dtype]).reshape(2, 3)
    with jax.enable_x64(True):
        on_cpu = jnp.from_dlpack(t)     # the CPU's memory is both's: no copy
        got = [on_cpu, jnp.from_dlpack(t, device=device_of_jax()),
               jax.device_put(jnp.from_dlpack(t.T), device_of_jax()).T]
        back = [torch.from_dlpack(x) for x in got]
        doubled = torch.from_dlpack(got[1] + got[2])
    return [[d.platform for x in got for d in x.devices()],
            on_cpu.unsafe_buffer_pointer() == t.data_ptr(),
            all(torch.equal(b, t) for b in back), torch.equal(doubled, t + t)]


def refused_by_jax():
    import jax
    import jax.numpy as jnp
    x = jax.device_put(jnp.ones(3), device_of_jax())
    deleted = x + 1
    deleted.delete()
    return [raised(lambda: torch.from_dlpack(x, copy=False)),
            raised(lambda: jnp.from_dlpack(torch.ones(3), device=device_of_jax(), copy=False)),
            raised(lambda: torch.from_dlpack(jax.device_put(jnp.ones(3, "int4"),
                                                            device_of_jax()))),
            raised(lambda: torch.from_dlpack(deleted))]


# ---- both ----

def through_both():
    """A parameter of PyTorch on the device, JAX's gradient for it, PyTorch's step."""
    import jax
    import jax.numpy as jnp
    import torch_xla
    from torch_xla.utils.dlpack import from_dlpack, to_dlpack
    w = torch.linspace(-1, 1, 5, device=torch_xla.device())
    slope = jax.jit(jax.grad(lambda w: (jnp.tanh(w) ** 2).sum()))
    for _ in range(3):
        here = jnp.from_dlpack(dlpack.from_dlpack(to_dlpack(w)), device=device_of_jax())
        w = w - 0.5 * from_dlpack(dlpack.to_dlpack(dlpack.from_dlpack(slope(here))))
    want = torch.linspace(-1, 1, 5, requires_grad=True)
    for _ in range(3):
        g, = torch.autograd.grad((want.tanh() ** 2).sum(), want)
        want = (want - 0.5 * g).detach().requires_grad_()
    return [w, want]
