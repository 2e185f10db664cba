# SPDX-License-Identifier: Apache-2.0
"""torch_xla finds this through its entry point and calls plugin(), whatever PJRT_DEVICE is.

Importing this imports no framework; torch_xla is there when it calls.
"""

import atexit
import functools
import os
import socket
from multiprocessing import util

import tessera_pjrt
from tessera_pjrt.ranks import find_ranks


def _watch_ranks(is_ours):
    """Has torch_xla tell the plugin when the function of a rank ends, by an exception or because
    it returns, since the others may wait for it in their collectives."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.runtime as xr
    from torch_xla._internal import pjrt
    run = pjrt._run_thread_per_device

    # By the same name, since torch_xla pickles it for the process that runs it.
    @functools.wraps(run)
    def run_thread_per_device(local_rank, local_world_size, fn, initializer_fn):
        if not is_ours():
            return run(local_rank, local_world_size, fn, initializer_fn)
        ranks = None

        def initialize(*args):
            nonlocal ranks
            initializer_fn(*args)
            ranks = find_ranks()
            for device in xm.get_xla_supported_devices():
                ranks.enter(torch_xla._XLAC._xla_get_device_ordinal(device))

        @functools.wraps(fn)
        def until_it_ends():
            why = "its function has returned"
            try:
                return fn()
            except BaseException as e:
                why = f"{type(e).__name__}: {e}"
                raise
            finally:
                try:
                    # What it launched before has come by then.
                    xm.wait_device_ops(xm.xla_real_devices([torch_xla.device()]))
                finally:
                    ranks.leave(xr.global_ordinal(), why.encode())

        return run(local_rank, local_world_size, until_it_ends, initialize)

    pjrt._run_thread_per_device = run_thread_per_device


def _enable_dlpack(is_ours):
    """DLPack has no number for our device: others get a copy in the CPU's memory, and what they
    give is copied to the device. torch_xla's own functions, which know no device but the CPU's,
    end the process when a tensor is still to be computed."""
    import torch
    import torch_xla
    import torch_xla.utils.dlpack as xdl
    give, take = xdl.to_dlpack, xdl.from_dlpack

    @functools.wraps(give)
    def to_dlpack(xla_tensor):
        if not is_ours():
            return give(xla_tensor)
        if xla_tensor.device.type != "xla":
            raise ValueError(f"torch_xla's to_dlpack takes tensors on its devices, and this one is "
                             f"on {xla_tensor.device}: torch.utils.dlpack.to_dlpack takes it")
        return torch.utils.dlpack.to_dlpack(xla_tensor.detach().cpu())

    @functools.wraps(take)
    def from_dlpack(ext_tensor):
        if not is_ours():
            return take(ext_tensor)
        return torch.utils.dlpack.from_dlpack(ext_tensor).to(torch_xla.device())

    xdl.to_dlpack, xdl.from_dlpack = to_dlpack, from_dlpack


def _settle_at_exit():
    """Others may still write to this process's devices when it has its result, and torch_xla
    never frees its client."""
    settle = find_ranks().settle
    util.Finalize(None, settle, exitpriority=1)     # of a process that multiprocessing started
    atexit.register(settle)


def _processes():
    """So many xmp.spawn is to start."""
    text = os.environ.get("TESSERA_PROCESSES", "1")
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"tessera: TESSERA_PROCESSES={text} is no number of processes")
    return int(text)


def _free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def _part(devices, rank, n):
    """The devices of process `rank` of n on this host."""
    if any(d.startswith("sim:") for d in devices):
        raise ValueError(
            f"tessera: {n} processes can't share models of one process ({devices[0]}). Serve "
            "linked chips, and name them to all: tessera-sim --devices 8 --socket-dir DIR, then "
            "TESSERA_DEVICES=vfio-user:DIR/0.sock,vfio-user:DIR/1.sock")
    # A rank of torchrun has one device, and so has one of xmp.spawn; SPMD takes all.
    share = len(devices) // n if os.environ.get("XLA_USE_SPMD") == "1" else 1
    if share * n != len(devices):
        raise ValueError(f"tessera: {n} processes were to share {len(devices)} devices, "
                         f"{', '.join(devices)}: let TESSERA_DEVICES name one for each, or in "
                         "SPMD mode as many for each")
    return ",".join(devices[rank * share:(rank + 1) * share])


def plugin():
    from torch_xla.experimental import plugins

    class TesseraPlugin(plugins.DevicePlugin):
        """One process with all devices, a thread for each, or a process for each device: then
        XLA's coordinator is where these find each other."""

        def __init__(self):
            super().__init__()
            self._options, self._processes = {}, 1
            _watch_ranks(self._is_used)
            _enable_dlpack(self._is_used)

        def _is_used(self):
            return plugins.using_dynamic_plugins() and plugins.default() is self

        def library_path(self):
            return tessera_pjrt.library()

        def client_create_options(self):
            return self._options

        def requires_xla_coordinator(self):
            return self._processes > 1

        def physical_chip_count(self):
            """How many processes xmp.spawn starts."""
            n = _processes()
            if n > 1:   # each has the coordinator's port from here
                os.environ.setdefault("XLA_COORDINATOR_PORT", str(_free_port()))
            return n

        def configure_single_process(self):
            """A world of one: the first of the devices."""
            n = os.environ.get("WORLD_SIZE", "1")
            if n != "1":
                raise NotImplementedError(
                    f"tessera: torchrun started {n} processes (WORLD_SIZE), one on each host; "
                    "programs run over the processes of one host: start torchrun on one, with "
                    f"--nproc-per-node {n}")
            self._options = {"devices": tessera_pjrt.devices()[0]}

        def configure_multiprocess(self, local_rank, local_world_size):
            """One of several: as torchrun says, or xmp.spawn with TESSERA_PROCESSES."""
            self._processes = int(os.environ.get("WORLD_SIZE", local_world_size))
            if self._processes == 1:
                return
            self._options = {
                "devices": _part(tessera_pjrt.devices(), local_rank, local_world_size),
                "node_id": int(os.environ.get("RANK", local_rank)), "num_nodes": self._processes}
            _settle_at_exit()

    return TesseraPlugin()
