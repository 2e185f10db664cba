# SPDX-License-Identifier: Apache-2.0
"""Import this before jax: JAX's CPU backend with eight devices, to compare with.

XLA's CPU backend holds a thread for each member of a collective that waits for the others. It
has as many threads as devices, so two programs in flight can hold all of them with neither
complete; after 40 s it aborts the process. NPROC is how it is given more.
"""

import os

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                           " --xla_force_host_platform_device_count=8")
os.environ["NPROC"] = "64"
