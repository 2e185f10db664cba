# SPDX-License-Identifier: Apache-2.0
"""xla-smi as a user meets it: smi_test.py XLA-SMI

Folders with odd things in them, a full disk, pages of strangers. The layout of a page is
written down a second time here, from hal/telemetry.h.
"""

import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 20
NOBODY = 65534
SMI = ""


class Device(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * n) for name, n in (
        ("bus_id", 64), ("name", 32), ("serial", 32), ("driver", 32), ("state", 96),
        ("running", 64))] + [("is_model", ctypes.c_uint32), ("kind", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in (
            "hbm", "used", "peak", "n_execute", "busy", "window", "read_at")] + [
        ("temperature_mc", ctypes.c_uint32), ("power_mw", ctypes.c_uint32),
        ("n_fault", ctypes.c_uint64)]


class Page(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint64), ("version", ctypes.c_uint32),
                ("bytes", ctypes.c_uint32), ("sequence", ctypes.c_uint32),
                ("pid", ctypes.c_uint32), ("start", ctypes.c_uint64),
                ("command", ctypes.c_char * 64), ("n_devices", ctypes.c_uint32),
                ("zero", ctypes.c_uint32), ("devices", Device * 64)]


def page(pid, command=b"train", devices=1):
    p = Page(magic=0x314d535354455354, version=1, bytes=ctypes.sizeof(Page), pid=pid,
             command=command, n_devices=devices)
    for i in range(devices):
        p.devices[i] = Device(bus_id=b"sim:%d" % i, name=b"Tessera T1", driver=b"in-process",
                              state=b"ready", is_model=1, hbm=1 << 30, used=1 << 20)
    return p


class Smi(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tessera-smi-"))
        self.dir.chmod(0o755)
        self.held = []

    def tearDown(self):
        for f in self.held:
            f.close()
        self.dir.chmod(0o755)
        shutil.rmtree(self.dir)

    def publish(self, name, content):
        """A page whose process lives, as the lock says."""
        f = open(self.dir / name, "wb+")    # pylint: disable=consider-using-with
        f.write(bytes(content))
        f.flush()
        fcntl.flock(f, fcntl.LOCK_EX)
        self.held.append(f)

    def smi(self, *args, folder=None, **how):
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(folder or self.dir))
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([how.pop("program", SMI), *args], env=env, text=True, check=False,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, **how)

    def facts(self):
        done = self.smi("--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        self.assertEqual(told["schema"], "tessera-smi/1")
        self.assertIsNone(told["problem"])
        return told

    def test_an_empty_folder_is_a_success(self):
        self.assertEqual(self.facts()["processes"], [])
        done = self.smi()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout)

    def test_what_is_no_page_neither_hangs_nor_hurts(self):
        os.mkfifo(self.dir / "tessera-0-1")
        (self.dir / "tessera-0-2").mkdir()
        (self.dir / "tessera-0-3").symlink_to("/dev/zero")
        (self.dir / "tessera-0-4").write_bytes(b"notes" * 1000)
        (self.dir / "tessera-0-5").write_bytes(b"")
        (self.dir / "other").write_bytes(bytes(page(1)))
        before = sorted(os.listdir(self.dir))
        self.assertEqual(self.facts()["processes"], [])
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_pages_of_the_living_are_shown_and_of_the_dead_removed(self):
        self.publish("tessera-0-7", page(7, devices=3))
        (self.dir / "tessera-0-8").write_bytes(bytes(page(8)))
        told = self.facts()
        self.assertEqual([(p["pid"], p["command"], p["devices"], p["memory_used_bytes"])
                          for p in told["processes"]],
                         [(7, "train", "sim:0 sim:1 sim:2", 3 << 20)])
        mine = [d for d in told["devices"] if d["pid"] == 7]
        self.assertEqual([d["bus_id"] for d in mine], ["sim:0", "sim:1", "sim:2"])
        self.assertEqual({d["memory_total_bytes"] for d in mine}, {1 << 30})
        self.assertEqual(os.listdir(self.dir), ["tessera-0-7"])
        table = self.smi().stdout
        self.assertIn("train", table)
        self.assertIn("1.0 / 1024", table)

    def test_hundreds_of_processes_are_all_shown(self):
        for i in range(1, 301):
            self.publish(f"tessera-0-{i}", page(i))
        told = self.facts()
        self.assertEqual(sorted(p["pid"] for p in told["processes"]), list(range(1, 301)))
        self.assertGreaterEqual(len(told["devices"]), 300)

    def test_a_page_of_a_stranger_breaks_neither_form(self):
        p = page(9, command=b"\x1b[2Jevil\xff" + b"x" * 54, devices=64)
        for d in p.devices:
            d.used = d.hbm = d.busy = (1 << 64) - 1
            d.running = b"\xe2\x82"
        self.publish("tessera-0-9", p)
        told = self.facts()
        self.assertEqual(told["processes"][0]["command"][:10], "?[2Jevil?x")
        self.assertEqual(told["processes"][0]["running"], "??")
        self.assertEqual(told["devices"][0]["memory_total_bytes"], (1 << 64) - 1)
        done = self.smi()
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("\x1b", done.stdout)

    def test_output_that_is_lost_is_a_failure(self):
        for args in ((), ("--json",), ("--help",), ("--version",)):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = self.smi(*args, stdout=full)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn("could not be written: No space left", done.stderr)
        done = self.smi(stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)

    def test_a_folder_that_is_none_is_a_failure(self):
        (self.dir / "file").write_bytes(b"")
        for folder, why in ((self.dir / "missing", "No such file"),
                            (self.dir / "file", "Not a directory")):
            done = self.smi(folder=folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{folder}, can't be read: {why}", done.stderr)
            self.assertNotIn("No device", done.stdout)
            self.assertNotIn("no process uses", done.stdout)
            done = self.smi("--json", folder=folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("can't be read", json.loads(done.stdout)["problem"])

    def as_nobody(self):
        """The same program, as a user whom permissions bind."""
        if os.getuid():
            return {}
        (self.dir / "bin").mkdir()
        shutil.copy(SMI, self.dir / "bin/xla-smi")
        return {"program": str(self.dir / "bin/xla-smi"), "preexec_fn": lambda: os.setuid(NOBODY)}

    def test_a_folder_that_may_not_be_read_is_a_failure(self):
        how, closed = self.as_nobody(), self.dir / "closed"
        closed.mkdir(mode=0)
        done = self.smi(folder=closed, **how)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{closed}, can't be read: Permission denied", done.stderr)

    def test_a_page_that_may_not_be_read_is_spoken_of(self):
        how = self.as_nobody()
        self.publish("tessera-0-7", page(7))
        self.publish("tessera-0-8", page(8))
        (self.dir / "tessera-0-7").chmod(0)
        done = self.smi("--json", **how)
        self.assertEqual(done.returncode, 0)
        self.assertIn("may not read the telemetry pages of 1 processes", done.stderr)
        self.assertEqual([p["pid"] for p in json.loads(done.stdout)["processes"]], [8])

    def test_wrong_usage_is_told_apart(self):
        for args in (("--jsn",), ("--json", "x"), ("",)):
            done = self.smi(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    SMI = os.path.abspath(sys.argv.pop(1))
    unittest.main()
