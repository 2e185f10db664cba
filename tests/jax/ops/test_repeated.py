# SPDX-License-Identifier: Apache-2.0
"""Elements that come several times side by side: a few times each, and so often that each is a row,
in copies and as operands of what is calculated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PROGRAMS = {
    "copied": lambda x, y, z: jnp.broadcast_to(x[..., None], y.shape),
    "repeated": lambda x, y, z: jnp.repeat(x, y.shape[-1], axis=1),
    "in the middle": lambda x, y, z: jnp.broadcast_to(x[:, None, :], (x.shape[0], z.size,
                                                                     x.shape[1])),
    "beside an array": lambda x, y, z: x[..., None] + y,
    "beside a row": lambda x, y, z: x[..., None] * z,
    "folded": lambda x, y, z: (x[..., None] - y).max(0),
    "chosen": lambda x, y, z: jnp.where(x[..., None] > z, y, x[..., None]),
    "of every second": lambda x, y, z: jnp.repeat(x[:, ::2], z.size, axis=1),
    "along both": lambda x, y, z: jnp.repeat(jnp.repeat(x, z.size, axis=0), 3, axis=1),
    "the last first": lambda x, y, z: jnp.repeat(jnp.repeat(x, 2, axis=1), z.size, axis=0),
    "of three": lambda x, y, z: jnp.repeat(jnp.repeat(jnp.repeat(y, 2, axis=2), 3, axis=0), 2,
                                           axis=1),
    "twice along one": lambda x, y, z: jnp.repeat(jnp.repeat(x, 2, axis=1), z.size, axis=1),
    "looked at between": lambda x, y, z: (t := jnp.repeat(x, z.size, axis=0),
                                          jnp.repeat(t, 2, axis=1))[1] + t.sum().astype(x.dtype),
    "backwards": lambda x, y, z: jnp.repeat(x[:, ::-1], z.size, axis=1),
}


@pytest.mark.parametrize("k,dtype", [(k, "float32") for k in (1, 2, 3, 4, 7, 16, 31, 33)] +
                         [(k, t) for k in (2, 3, 33) for t in ("int8", "bfloat16", "complex64")])
@pytest.mark.parametrize("what", PROGRAMS)
def test_each_comes_as_often_as_asked(what, dtype, k, device, cpu):
    if dtype == "complex64" and what in ("folded", "chosen"):
        dtype = "int32"     # complex numbers have no order
    rng = np.random.default_rng(k)
    args = [jnp.asarray(rng.integers(-9, 9, shape)).astype(dtype)
            for shape in ((5, 131), (5, 131, k), (k,))]
    f = jax.jit(PROGRAMS[what])
    got, want = (np.asarray(f(*(jax.device_put(a, d) for a in args))) for d in (device, cpu))
    np.testing.assert_array_equal(got, want)
