# SPDX-License-Identifier: Apache-2.0
"""torch_xla finds this through its entry point and calls plugin(), whatever PJRT_DEVICE is.

Importing this imports no framework; torch_xla is there when it calls.
"""

import tessera_pjrt


def plugin():
    from torch_xla.experimental.plugins import DevicePlugin

    class TesseraPlugin(DevicePlugin):
        """One process on one device, so far: see configure_multiprocess()."""

        def __init__(self):
            super().__init__()
            self._options = {}

        def library_path(self):
            return tessera_pjrt.library()

        def client_create_options(self):
            return self._options

        def requires_xla_coordinator(self):
            return False

        def physical_chip_count(self):
            return len(tessera_pjrt.devices())

        def configure_single_process(self):
            """A world of one: the first of the devices."""
            self._options = {"devices": tessera_pjrt.devices()[0]}

        def configure_multiprocess(self, local_rank, local_world_size):
            # A process that believes to be alone would skip its collectives in silence.
            if local_world_size != 1:
                raise NotImplementedError(
                    f"tessera: {local_world_size} processes were to share the devices "
                    f"{', '.join(tessera_pjrt.devices())}; programs over several devices do not "
                    "run yet. Let TESSERA_DEVICES name one device, or pass nprocs=1")

    return TesseraPlugin()
