# SPDX-License-Identifier: Apache-2.0
"""Programs that end in every way: `python ends.py WAY` on the device of PJRT_DEVICE.

A way's name says how; test_ends.py knows which exit code and output it must have.
"""

import os
import sys

import torch


def work(n=1):
    import torch_xla
    x = torch.ones(64, 64, device=torch_xla.device())
    for _ in range(n):
        x = x @ x / 64
        torch_xla.sync()
    return x


def check(x):
    assert x.sum().item() == 64 * 64


def in_flight():
    """Leaves without waiting for what it asked for, and without destroying the client."""
    work(20)


def raises():
    work(20)
    raise ValueError("with work in flight")


def leaves():
    work(20)
    sys.stdout.flush()
    os._exit(3)


def exits():
    check(work(2))
    sys.exit(4)


def thread():
    import threading
    threading.Thread(target=lambda: check(work(3))).start()


def child(rank, fails=False):
    check(work(2))
    if fails:
        raise ValueError("child's own words")
    # In one piece: threads of one process print at once.
    print(f"child done {rank}\n", end="", flush=True)


def fork():
    pid = os.fork()
    if not pid:
        child(0)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    check(work())


def forked_after():
    """The parent's device does not survive fork: the child is told, and ends."""
    x = work(2)
    check(x)
    pid = os.fork()
    if not pid:
        import signal
        signal.alarm(600)
        try:
            check(x + 1)
        except Exception as e:
            told = "survive fork" in str(e)
            os._exit(6 if told else 7)
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
    check(work())


def spawn():
    import torch.multiprocessing as mp
    mp.spawn(child, nprocs=2)
    check(work())


def spawn_fails():
    import torch.multiprocessing as mp
    mp.spawn(child, args=(True,), nprocs=2)


def spawn_killed():
    import signal
    import torch.multiprocessing as mp
    context = mp.spawn(sleep_on, nprocs=2, join=False)
    print("pids", *context.pids(), flush=True)
    os.kill(context.pids()[1], signal.SIGKILL)
    while not context.join():
        pass


def sleep_on(rank):
    import time
    check(work())
    time.sleep(600)


def xmp_one():
    import torch_xla.distributed.xla_multiprocessing as xmp
    xmp.spawn(child, nprocs=1)


def xmp_spawn():
    import torch_xla.distributed.xla_multiprocessing as xmp
    xmp.spawn(child)


def xmp_fork():
    import torch_xla.distributed.xla_multiprocessing as xmp
    xmp.spawn(child, start_method="fork")


def xmp_fails():
    import torch_xla.distributed.xla_multiprocessing as xmp
    xmp.spawn(child, args=(True,))


def xmp_many():
    """With two devices in TESSERA_DEVICES: a thread for each."""
    import torch_xla.distributed.xla_multiprocessing as xmp
    xmp.spawn(child)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
