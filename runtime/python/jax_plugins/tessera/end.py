# SPDX-License-Identifier: Apache-2.0
"""A process of jax.distributed says when it launches no more, and why: others fail then in what
they wait for, instead of waiting as long as JAX waits for them."""

import ctypes
import functools
import os
import sys

from tessera_pjrt.ranks import find_ranks

ALL_OF_THIS_PROCESS = -1
MOST_BYTES = 200    # of an error's text: others' messages have so much room
# Where others look for this process's card when they make their clients, and what lies there in
# its place: as runtime/world.c. JAX puts the platform's name before it.
CARD, NO_CARD = "tessera:tessera/process/{}", b"tessera no card\0"


def _why():
    """The error that ends this process, as far as can be told, for who waits for it."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if error is None or isinstance(error, SystemExit):
        return "its program has ended: all processes have to launch the same programs"
    text = type(error).__name__
    try:
        text = f"{text}: {error}".splitlines()[0]
    except Exception:   # its own __str__ failed
        pass
    text = text.encode(errors="replace")[:MOST_BYTES].decode(errors="ignore")
    return f"its program has ended, after {text}: see what it wrote"


def tell(state):
    """Has the class of JAX's distributed state do so before it shuts down."""
    ranks, pid, shutdown = find_ranks(), os.getpid(), state.shutdown

    @functools.wraps(shutdown)
    def tell_and_shutdown(self):
        if os.getpid() != pid:      # a child of fork, which is none of the job
            return
        if self.client is None:
            return shutdown(self)
        ranks.leave(ALL_OF_THIS_PROCESS, _why().encode())
        try:
            self.client.key_value_set_bytes(CARD.format(self.process_id),
                                            NO_CARD + _why().encode())
        except Exception:   # it has its card there, as it should; or the store is gone
            pass
        shutdown(self)
        # All were there. It may have been the user's own call: what is loaded may go on.
        ranks.enter(ALL_OF_THIS_PROCESS)

    state.shutdown = tell_and_shutdown


def keep_in_children(xla_bridge, mlir, state, tokens):
    """A child of fork never frees what has threads in its parent: jaxlib waits there for them, or
    crashes, when the child ends as programs do. Nor does it wait for effects
    of its parent's programs."""
    def ours():
        return [*xla_bridge._backends.values(), mlir.global_thread_pool, state.client,
                state.service, state.preemption_sync_manager, tokens.current_tokens,
                tokens.output_runtime_tokens]

    def keep():
        for shared in ours():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(shared))
        tokens.clear()
    ours()      # AttributeError: another JAX
    os.register_at_fork(after_in_child=keep)
