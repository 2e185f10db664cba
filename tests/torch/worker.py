# SPDX-License-Identifier: Apache-2.0
"""Runs functions of this folder's modules on the device of PJRT_DEVICE, one after the other.

Not called by hand: Worker starts a process for a device and asks it. A pickle goes in,
(module, function, arguments), and one comes out, ("ok", result) or ("error", text).
Tensors of a result are the CPU's.
"""

import os
import pickle
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """The function raised, or the process died: the text says which."""


class Worker:
    """A process on a device; starts when first asked, and anew after it died."""

    def __init__(self, device, **environ):
        self.device, self.environ, self.process = device, environ, None

    def start(self):
        if self.process is None:
            env = {**os.environ, "PJRT_DEVICE": self.device, "TESSERA_CACHE": "off",
                   **self.environ}
            self.process = subprocess.Popen([sys.executable, __file__], env=env, cwd=HERE,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def ask(self, module, function, *args, **kwargs):
        """What the function returns. Failed: it raised, in its words."""
        p = self.start().process
        try:
            pickle.dump((module, function, args, kwargs), p.stdin)
            p.stdin.flush()
            how, what = pickle.load(p.stdout)
        except (EOFError, BrokenPipeError):
            self.process = None
            raise Failed(f"the process died: exit {p.wait()} in {module}.{function}") from None
        if how == "error":
            raise Failed(what)
        return what

    def stop(self):
        """The exit code, 0 if it never ran."""
        if self.process is None:
            return 0
        p, self.process = self.process, None
        p.stdin.close()
        p.stdout.close()
        return p.wait(timeout=60)


def to_cpu(x):
    import torch
    if isinstance(x, torch.Tensor):
        return x.detach().cpu().resolve_conj().resolve_neg().clone()
    if isinstance(x, (list, tuple)):
        return [to_cpu(v) for v in x]
    if isinstance(x, dict):
        return {k: to_cpu(v) for k, v in x.items()}
    return x


def serve():
    import importlib
    import warnings
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)           # what functions print must not mix with answers
    warnings.simplefilter("ignore")
    sys.path.insert(0, HERE)
    while True:
        try:
            module, function, args, kwargs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found = getattr(importlib.import_module(module), function)
            answer = ("ok", to_cpu(found(*args, **kwargs)))
        except Exception:
            answer = ("error", traceback.format_exc())
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
