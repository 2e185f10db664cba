# SPDX-License-Identifier: Apache-2.0
"""The Python package without any framework: which devices it counts, what it imports.

    python3 tests/package_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "runtime/python"
sys.path.insert(0, str(PACKAGE))

import tessera_pjrt  # noqa: E402


def machine(folder, *, accel=(), functions=()):
    """A made-up sysfs: accel nodes (name, driver), functions (address, ids, driver)."""
    root = pathlib.Path(folder)
    for name, driver in accel:
        node = root / "sys/class/accel" / name / "device"
        node.mkdir(parents=True)
        (node / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    for address, (vendor, device), driver in functions:
        f = root / "sys/bus/pci/devices" / address
        f.mkdir(parents=True)
        (f / "vendor").write_text(vendor + "\n")
        (f / "device").write_text(device + "\n")
        if driver:
            (f / "driver").symlink_to(f"../../drivers/{driver}")
    return folder


class Devices(unittest.TestCase):
    def count(self, root="/nonexistent", **environ):
        return tessera_pjrt.devices(environ, root)

    def test_models_are_counted_by_their_options(self):
        self.assertEqual(self.count(), ["sim:devices=1"])
        self.assertEqual(self.count(TESSERA_SIM="hbm=64M,devices=3"),
                         ["sim:devices=1,hbm=64M"] * 3)
        self.assertEqual(self.count(TESSERA_DEVICES="sim", TESSERA_SIM="devices=2"),
                         ["sim:devices=1"] * 2)
        self.assertEqual(self.count(TESSERA_DEVICES="sim:devices=4,lanes=1",
                                    TESSERA_SIM="devices=2"), ["sim:devices=1,lanes=1"] * 4)
        self.assertEqual(len(self.count(TESSERA_DEVICES="sim:devices=many")), 1)

    def test_named_devices_are_counted_with_the_kind_before_them(self):
        self.assertEqual(self.count(TESSERA_DEVICES="vfio-user:/run/a.sock,vfio-user:/run/b.sock"),
                         ["vfio-user:/run/a.sock", "vfio-user:/run/b.sock"])
        self.assertEqual(self.count(TESSERA_DEVICES="vfio:0000:01:00.0,0000:02:00.0"),
                         ["vfio:0000:01:00.0", "vfio:0000:02:00.0"])
        self.assertEqual(self.count(TESSERA_DEVICES="vfio-noiommu:0000:01:00.0,accel:1"),
                         ["vfio-noiommu:0000:01:00.0", "accel:1"])

    def test_hardware_is_counted_in_sysfs(self):
        ours = ("0x1234", "0x7e55")
        with tempfile.TemporaryDirectory() as folder:
            machine(folder, accel=[("accel10", "tessera"), ("accel2", "tessera"),
                                   ("accel0", "habanalabs")],
                    functions=[("0000:03:00.0", ours, "vfio-pci"),
                               ("0000:04:00.0", ours, "tessera"),
                               ("0000:05:00.0", ("0x8086", "0x7e55"), None),
                               ("0000:06:00.0", ours, None)])
            self.assertEqual(self.count(folder), [
                "accel:/dev/accel/accel2", "accel:/dev/accel/accel10",
                "vfio:0000:03:00.0", "vfio:0000:06:00.0"])
            self.assertEqual(len(self.count(folder, TESSERA_DEVICES="sim")), 1)


class Package(unittest.TestCase):
    def test_a_missing_plugin_is_named(self):
        program = "import tessera_pjrt; tessera_pjrt.library()"
        r = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           env={"PYTHONPATH": str(PACKAGE), "TESSERA_PLUGIN": "/no/such.so"})
        self.assertIn("FileNotFoundError: /no/such.so is not there", r.stderr)

    def test_what_entry_points_name_needs_no_framework(self):
        project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
        points = project["entry-points"]
        self.assertEqual(set(points), {"jax_plugins", "torch_xla.plugins"})
        for group, attribute in (("jax_plugins", "initialize"), ("torch_xla.plugins", "plugin")):
            # torch_xla takes the name for the platform, in capitals and without "_".
            name, place = points[group].popitem()
            self.assertEqual(name, "tessera")
            module, _, named = place.partition(":")
            self.assertIn(named, ("", attribute))
            program = (f"import importlib, sys; m = importlib.import_module({module!r})\n"
                       f"assert callable(m.{attribute})\n"
                       "print(sorted({'jax', 'jaxlib', 'torch', 'torch_xla'} & set(sys.modules)))")
            r = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                               env={"PYTHONPATH": str(PACKAGE)})
            self.assertEqual(r.stdout.strip(), "[]", r.stderr)


if __name__ == "__main__":
    unittest.main()
