# SPDX-License-Identifier: Apache-2.0
"""What xla-smi finds in the way and what it does to devices: smi_doctor_test.py XLA-SMI

Each cause of tools/xla-smi/causes.def is provoked on a sysfs, /proc and /dev that are a folder;
the kernel driver's node is a file, answered for by fake/node_preload.c.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import smi_test
from smi_test import LIMIT_S, NOBODY, SCHEMA, page, wrong

TOP = pathlib.Path(__file__).resolve().parents[1]
BDF = "0000:03:00.0"
BIND = TOP / "tools/tessera-vfio-bind"
PRELOAD = {}


def preload(folder):
    """The library that stands for the kernel driver, built once."""
    if not PRELOAD:
        flags = subprocess.run(["pkg-config", "--cflags", "libdrm"], text=True, check=True,
                               stdout=subprocess.PIPE).stdout.split()
        PRELOAD["path"] = pathlib.Path(folder) / "node_preload.so"
        smi_test.build_preload("node_preload.c", PRELOAD["path"], *flags)
    return str(PRELOAD["path"])


class Machine(smi_test.Smi):
    """One card in order, with vfio-pci or the kernel driver."""

    def setUp(self):
        super().setUp()
        root = self.card = self.dir / "root"
        self.function = d = root / "sys/devices/pci0000:00/0000:00:1c.0" / BDF
        d.mkdir(parents=True)
        for name, text in (
                ("vendor", "0x1234"), ("device", "0x7e55"), ("class", "0x120000"),
                ("numa_node", "0"), ("local_cpulist", "0-1023"), ("irq", "0"), ("reset", ""),
                ("current_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "16"),
                ("max_link_speed", "16.0 GT/s PCIe"), ("max_link_width", "16"),
                ("resource", "0x0 0x0 0x0")):
            self.put(d / name, text)
        (d / "config").write_bytes(bytes.fromhex("3412557e") + bytes(252))
        self.put(d.parent / "max_link_speed", "32.0 GT/s PCIe")
        self.put(d.parent / "max_link_width", "16")
        devices = root / "sys/bus/pci/devices"
        devices.mkdir(parents=True)
        (devices / BDF).symlink_to(os.path.relpath(d, devices))
        self.group = root / "sys/kernel/iommu_groups/7"
        (self.group / "devices").mkdir(parents=True)
        (self.group / "devices" / BDF).symlink_to(d)
        (d / "iommu_group").symlink_to(self.group)
        self.put(root / "dev/vfio/7", "")
        self.env = {}
        self.bind("vfio-pci")

    def put(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n" if text else "", encoding="utf-8")

    def bind(self, driver, function=None):
        link = (function or self.function) / "driver"
        link.unlink(missing_ok=True)
        if driver:
            at = self.card / "sys/bus/pci/drivers" / driver
            at.mkdir(parents=True, exist_ok=True)
            link.symlink_to(at)

    def with_driver(self, **fake):
        """The kernel driver has the card, and is as `fake` says."""
        self.bind("tessera")
        (self.function / "accel/accel0").mkdir(parents=True)
        (self.card / "sys/class/accel/accel0").mkdir(parents=True)
        (self.card / "sys/class/accel/accel0/device").symlink_to(self.function)
        self.put(self.card / "dev/accel/accel0", "")
        self.env = {"LD_PRELOAD": preload(PRELOAD_DIR), **fake}

    def hold(self, state):
        self.put(self.card / "proc/41/comm", "train")
        self.put(self.card / "proc/41/status", f"Name:\ttrain\nState:\t{state}")
        (self.card / "proc/41/fd").mkdir()
        (self.card / "proc/41/fd/5").symlink_to(self.card / "dev/vfio/7")

    def run_smi(self, *args, **how):
        keep = dict(os.environ)
        os.environ.update(self.env)
        os.environ.pop("VIRTUAL_ENV", None)
        os.environ.update({k: v for k, v in self.env.items() if k == "VIRTUAL_ENV"})
        try:
            return self.smi(*args, "--root", self.card, **how)
        finally:
            os.environ.clear()
            os.environ.update(keep)

    def vfio_bind(self, *args):
        """tessera-vfio-bind; its code, what it says, and what it wrote of the card's driver."""
        sys = self.card / "bound"
        card = sys / "bus/pci/devices/0000:01:00.0"
        for path in (card, sys / "bus/pci/drivers/vfio-pci"):
            path.mkdir(parents=True, exist_ok=True)
        for name, text in (("vendor", "0x1234"), ("device", "0x7e55"), ("class", "0x120000"),
                           ("driver_override", "")):
            (card / name).write_text(text)
        r = subprocess.run([BIND, *args], env=os.environ | {"SYSFS": str(sys)},
                           capture_output=True, text=True, check=False)
        return r.returncode, r.stdout + r.stderr, (card / "driver_override").read_text()

    def test_binding_reads_all_it_is_told_before_it_writes(self):
        for late in ("--dry-run", "--unbind", "0000:02:00.0", "nonsense"):
            code, said, written = self.vfio_bind("0000:01:00.0", late)
            self.assertNotEqual(code, 0, said)
            self.assertIn(late, said)
            self.assertEqual(written, "")
        code, said, written = self.vfio_bind("--dry-run", "0000:01:00.0")
        self.assertEqual((code, written), (0, ""), said)
        self.assertEqual(self.vfio_bind("0000:01:00.0")[2], "vfio-pci\n")

    def doctor(self, **how):
        done = self.run_smi("doctor", "--json", **how)
        told = json.loads(done.stdout)
        self.assertEqual(wrong(told, SCHEMA), [])
        rows = told["findings"]
        for row in rows:
            self.assertTrue(row["evidence"] and row["fix"] and row["subject"], row)
        has_error = any(r["severity"] == "error" for r in rows)
        self.assertEqual(done.returncode, 5 if has_error else 0, done.stderr)
        return {r["code"]: r for r in rows}

    def alone(self, code, evidence="", fix="", **how):
        """The cause is found, and no other."""
        rows = self.doctor(**how)
        # Without CAP_IPC_LOCK that is as this machine has it.
        if code != "MEMLOCK" and (os.getuid() or how):
            rows.pop("MEMLOCK", None)
        self.assertEqual(list(rows), [code], rows)
        self.assertIn(evidence, rows[code]["evidence"])
        self.assertIn(fix, rows[code]["fix"])

    def nobody(self, limit=65536):
        if os.getuid():
            self.skipTest("needs root to become somebody without rights")
        (self.dir / "bin").mkdir()
        shutil.copy(smi_test.SMI, self.dir / "bin/xla-smi")
        self.dir.chmod(0o777)

        def become():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return {"program": str(self.dir / "bin/xla-smi"), "preexec_fn": become}


class Doctor(Machine):
    def test_a_machine_in_order_has_no_findings(self):
        rows = self.doctor()
        if os.getuid():
            rows.pop("MEMLOCK", None)
        self.assertEqual(rows, {})
        self.with_driver()
        self.assertEqual([c for c in self.doctor() if c != "MEMLOCK"], [])

    def test_every_cause_is_provoked_here(self):
        text = (TOP / "tools/xla-smi/causes.def").read_text(encoding="utf-8")
        for code in re.findall(r"^CAUSE\((\w+)", text, re.M):
            self.assertTrue(hasattr(self, f"test_{code.lower()}"), code)

    def test_not_on_bus(self):
        (self.card / "sys/bus/pci/devices" / BDF).unlink()
        self.alone("NOT_ON_BUS", "none of 0 PCI functions", "rescan")
        for chosen in ("sim", "sim:devices=2"):
            self.env = {"TESSERA_DEVICES": chosen}
            self.assertEqual(self.doctor(), {})

    def test_no_driver(self):
        self.bind(None)
        self.alone("NO_DRIVER", "the module tessera is not loaded", f"tessera-vfio-bind {BDF}")

    def test_other_driver(self):
        self.bind("nvme")
        self.alone("OTHER_DRIVER", "is bound to nvme", f"tessera-vfio-bind {BDF}")

    def test_driver_failed(self):
        self.bind("tessera")
        self.alone("DRIVER_FAILED", "no accel node", "dmesg")

    def test_node_missing(self):
        (self.card / "dev/vfio/7").unlink()
        self.alone("NODE_MISSING", "/dev/vfio/7: No such file", "--device /dev/vfio/7")

    def test_node_permission(self):
        how = self.nobody()
        (self.card / "dev/vfio/7").chmod(0o600)
        self.alone("NODE_PERMISSION", "mode 600", "70-tessera.rules", **how)

    def test_not_in_group(self):
        how = self.nobody()
        os.chown(self.card / "dev/vfio/7", 0, 12345)
        (self.card / "dev/vfio/7").chmod(0o660)
        self.alone("NOT_IN_GROUP", "(12345), mode 660", "usermod -aG", **how)

    def test_cgroup(self):
        self.with_driver(FAKE_OPEN="1")
        self.alone("CGROUP", "which would do; opening it: Operation not permitted",
                   "DeviceAllow=/dev/accel/accel0")

    def test_version_skew(self):
        self.with_driver(FAKE_ABI="0")
        self.alone("VERSION_SKEW", "too old", "dkms install")

    def test_given_up(self):
        self.with_driver(FAKE_USABLE="0")
        self.alone("GIVEN_UP", "gave the device", "unbind")

    def test_iommu_off(self):
        (self.function / "iommu_group").unlink()
        self.alone("IOMMU_OFF", "has no IOMMU group", "intel_iommu=on")

    def test_group_not_viable(self):
        other = self.function.parent / "0000:03:00.1"
        other.mkdir()
        self.put(other / "vendor", "0x8086")
        self.put(other / "device", "0x1")
        self.bind("snd", other)
        for at in (self.card / "sys/bus/pci/devices", self.group / "devices"):
            (at / other.name).symlink_to(other)
        self.alone("GROUP_NOT_VIABLE", "0000:03:00.1 of snd", "tessera-vfio-bind 0000:03:00.1")
        self.bind("pcieport", other)
        self.assertNotIn("GROUP_NOT_VIABLE", self.doctor())

    def test_held(self):
        self.hold("S (sleeping)")
        self.alone("HELD", "process 41 (train) has /dev/vfio/7 open", "kill 41")

    def test_stale_holder(self):
        self.hold("T (stopped)")
        self.alone("STALE_HOLDER", "State: T (stopped)", "kill 41")

    def test_dead(self):
        p = page(7)
        p.devices[0].state = b"dead: the device is in its fatal state"
        self.publish("tessera-0-7", p)
        self.alone("DEAD", "process 7 says: dead: the device", "restart process 7")

    def test_memory_errors(self):
        p = page(7)
        p.devices[0].r_ecc_uncorrected, p.devices[0].read_at = 2, 1
        self.publish("tessera-0-7", p)
        self.alone("MEMORY_ERRORS", "2 uncorrected", "reset sim:0")

    def linked(self, state, refused=0, others=True):
        """A chip whose link to the other one of two is so."""
        p = page(7, devices=2 if others else 1)
        for i, d in enumerate(p.devices[:p.n_devices]):
            d.fabric, d.chip, d.n_chips, d.read_at, d.n_links = 5, i, 2, 1, 1
            d.coords[0], d.shape[0], d.shape[1], d.shape[2] = i, 2, 1, 1
            d.links[0].peer, d.links[0].is_ = 1 - i, 1 if i else state
            d.links[0].n_packets, d.links[0].n_errors = 40, 0 if i else refused
        while self.held:    # the page of before
            self.held.pop().close()
        self.publish("tessera-0-7", p)

    def test_link_down(self):
        self.linked(2)
        self.alone("LINK_DOWN", "link x+ to sim:1: neighbour fatal, as process 7 read it",
                   "restart the process that has sim:1")
        self.linked(9)
        self.alone("LINK_DOWN", "link x+ to sim:1: unknown (9)")

    def test_link_unused(self):
        self.linked(3)
        self.alone("LINK_UNUSED", "link x+ to sim:1: neighbour off", "TESSERA_DEVICES")
        # Who uses one chip of two misses nobody.
        self.linked(3, others=False)
        self.assertEqual(self.doctor().keys() - {"MEMLOCK"}, set())

    def test_link_refuses(self):
        self.linked(1)
        self.assertEqual(self.doctor().keys() - {"MEMLOCK"}, set())
        self.linked(1, refused=3)
        self.alone("LINK_REFUSES", "link x+ to sim:1 refused 3 writes since this chip's reset and "
                   "sent 40 packets", "xla-smi log")

    def test_huge_pages(self):
        self.put(self.group / "name", "vfio-noiommu")
        self.put(self.card / "dev/vfio/noiommu-7", "")
        self.alone("HUGE_PAGES", "free huge pages of 2 MiB: none", "nr_hugepages")
        self.put(self.card / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5")
        self.alone("HUGE_PAGES", "2 MiB: 5", "nr_hugepages")
        self.put(self.card / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "64")
        self.assertNotIn("HUGE_PAGES", self.doctor())

    def test_selection(self):
        for chosen in ("vfio-user:/nowhere/0.sock", "vfio:0000:09:00.0", "accel:/dev/accel/accel5"):
            self.env = {"TESSERA_DEVICES": chosen}
            self.alone("SELECTION", chosen, "unset TESSERA_DEVICES")
        self.env = {"TESSERA_DEVICES": f"vfio:{BDF}"}
        self.assertNotIn("SELECTION", self.doctor())

    def test_memlock(self):
        how = self.nobody()
        (self.card / "dev/vfio/7").chmod(0o666)
        self.alone("MEMLOCK", "65536 bytes may be pinned", "ulimit -l", **how)

    def test_link_degraded(self):
        self.put(self.function / "current_link_width", "8")
        self.alone("LINK_DEGRADED", "16 GT/s x8, where the device can 16 GT/s x16", f"-s {BDF}")
        self.put(self.function.parent / "max_link_width", "8")
        self.assertEqual(self.doctor().keys() - {"MEMLOCK"}, set())
        self.put(self.function / "current_link_speed", "2.5 GT/s PCIe")
        self.alone("LINK_DEGRADED", "2.5 GT/s x8")
        # A function that has no link.
        for name, text in (("current_link_speed", "Unknown"), ("current_link_width", "0"),
                           ("max_link_speed", "Unknown"), ("max_link_width", "255")):
            self.put(self.function / name, text)
        self.assertNotIn("LINK_DEGRADED", self.doctor())

    def test_numa_mismatch(self):
        self.put(self.function / "local_cpulist", "900-903,905")
        self.alone("NUMA_MISMATCH", "900-903,905", "numactl --cpunodebind=0")

    def test_telemetry(self):
        self.env = {"TESSERA_TELEMETRY_DIR": "/nowhere"}
        self.alone("TELEMETRY", "/nowhere, can't be read", "ls -ld /nowhere",
                   folder=pathlib.Path("/nowhere"))

    def packages(self, *names):
        self.env = {"VIRTUAL_ENV": "/venv"}
        for name in names:
            (self.card / "venv/lib/python3.11/site-packages" / f"{name}.dist-info").mkdir(
                parents=True)

    def test_package_skew(self):
        self.packages("tessera_pjrt-0.0.9")
        self.alone("PACKAGE_SKEW", "tessera_pjrt 0.0.9", "make wheel")

    def test_framework(self):
        self.packages("tessera_pjrt-0.1.0", "jax-0.4.30", "jaxlib-0.10.2", "torch_xla-2.9.0")
        self.alone("FRAMEWORK", "jax 0.4.30; the tests run with 0.10.x", "jax==0.10.*")

    def test_findings_are_recorded_and_replayed(self):
        self.bind("nvme")
        live = self.doctor()
        self.assertEqual(self.run_smi("record", self.dir / "n").returncode, 0)
        done = self.smi("replay", self.dir / "n", "doctor", "--json")
        self.assertEqual(done.returncode, 5)
        self.assertEqual({r["code"]: r for r in json.loads(done.stdout)["findings"]}, live)
        self.assertIn("OTHER_DRIVER", self.run_smi("doctor").stdout)


class Acts(Machine):
    def reset(self, *args):
        done = self.run_smi("reset", *args)
        return done.returncode, done.stdout, done.stderr, \
            (self.function / "reset").read_text(encoding="utf-8")

    def test_a_reset_says_what_it_does_and_looks_afterwards(self):
        status, out, err, written = self.reset(BDF, "--dry-run")
        self.assertEqual((status, err, written), (0, "", ""))
        self.assertIn("a function reset by the PCI core: all contexts", out)
        status, out, err, written = self.reset(BDF)
        self.assertEqual((status, err, written), (0, "", "1"))
        self.assertIn("reset, and it answers", out)
        (self.function / "config").write_bytes(b"\xff" * 256)
        status, out, err, _ = self.reset(BDF)
        self.assertEqual(status, 1)
        self.assertIn("did not come back: its configuration space reads ffff:ffff", err)
        self.assertNotIn("it answers", out)

    def test_a_reset_is_refused_while_others_use_the_device(self):
        self.hold("S (sleeping)")
        status, out, err, written = self.reset(BDF)
        self.assertEqual((status, written), (4, ""))
        self.assertIn("used by process 41 (train)", out)
        self.assertIn("--force", err)
        self.assertEqual(self.reset("0", "--force")[0::3], (0, "1"))

    def test_what_can_not_be_reset_is_refused(self):
        (self.function / "reset").unlink()
        done = self.run_smi("reset", BDF)
        self.assertEqual(done.returncode, 4)
        self.assertIn("knows no way", done.stderr)
        self.publish("tessera-0-7", page(7))
        self.assertEqual(self.run_smi("reset", "sim:0").returncode, 4)
        self.assertEqual(self.run_smi("reset", "sim:9").returncode, 3)

    def test_a_reset_by_the_driver_looks_afterwards(self):
        self.with_driver()
        done = self.run_smi("reset", "accel:accel0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("by the kernel driver", done.stdout)
        self.env["FAKE_DIES"] = "1"
        done = self.run_smi("reset", "tessera-T1-7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not come back: the kernel driver gave the device", done.stderr)
        self.env["FAKE_RESET"] = "13"
        self.assertEqual(self.run_smi("reset", "0").returncode, 4)

    def open_node(self, pid, command, *ids):
        """A process has the driver's node open, once for each of these clients."""
        self.put(self.card / f"proc/{pid}/comm", command)
        self.put(self.card / f"proc/{pid}/status", f"Name:\t{command}\nState:\tS (sleeping)")
        (self.card / f"proc/{pid}/fd").mkdir()
        for fd, client in enumerate(ids, 5):
            (self.card / f"proc/{pid}/fd/{fd}").symlink_to(self.card / "dev/accel/accel0")
            self.put(self.card / f"proc/{pid}/fdinfo/{fd}",
                     f"drm-driver:\ttessera\ndrm-client-id:\t{client}\n")

    def reset_client(self, pid, *args):
        done = self.run_smi("reset", "accel:accel0", "--client", pid, *args)
        return done.returncode, done.stdout, done.stderr, \
            (self.function / "reset_client").read_text(encoding="utf-8")

    def test_the_part_of_one_process_is_reset(self):
        self.with_driver()
        self.put(self.function / "reset_client", "")
        self.open_node(41, "train", 7, 7)
        self.open_node(42, "child", 7)
        self.open_node(43, "serve", 8)
        status, out, err, written = self.reset_client("41", "--dry-run")
        self.assertEqual((status, err, written), (0, "", ""))
        self.assertIn("what process 41 (train) has on it: its contexts", out)
        self.assertIn("process 42 (child) shares an open file", out)
        self.assertNotIn("serve", out)
        status, out, err, written = self.reset_client("41")
        self.assertEqual((status, written), (4, ""))
        self.assertIn("alive and has it open; --force", err)
        status, out, err, written = self.reset_client("41", "--force")
        self.assertEqual((status, err, written), (0, "", "7\n"))
        self.assertIn("all that process 41 had on it has ended, and it answers", out)
        self.env["FAKE_CTX"] = "19"
        status, out, err, written = self.reset_client("43", "--force")
        self.assertEqual((status, written), (1, "8\n"))
        self.assertIn("gives no context: the kernel driver gave the device", err)
        self.env["FAKE_CTX"] = "28"
        self.assertEqual(self.reset_client("43", "--force")[0], 0)

    def test_a_part_that_can_not_be_reset_is_refused(self):
        self.hold("S (sleeping)")
        done = self.run_smi("reset", BDF, "--client", "41", "--force")
        self.assertEqual(done.returncode, 4)
        self.assertIn("only the kernel driver and tessera-sim tell their clients apart",
                      done.stderr)
        for bad in ("0", "-1", "x", "1.5", ""):
            self.assertEqual(self.run_smi("reset", BDF, "--client", bad).returncode, 2, bad)
        self.with_driver()
        done = self.run_smi("reset", "accel:accel0", "--client", "43", "--force")
        self.assertEqual(done.returncode, 4)
        self.assertIn("process 43 has not opened accel:accel0", done.stderr)
        self.open_node(43, "serve", 8)
        done = self.run_smi("reset", "accel:accel0", "--client", "43", "--force")
        self.assertEqual(done.returncode, 4)
        self.assertIn("older than this xla-smi", done.stderr)
        self.put(self.function / "reset_client", "")
        self.env["FAKE_RESET"] = "13"
        self.assertEqual(self.reset_client("43", "--force")[0::3], (4, ""))
        self.env["FAKE_RESET"] = "2"
        status, out, err, _ = self.reset_client("43", "--force")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("has closed it meanwhile", out)

    def test_the_drivers_own_word_is_shown(self):
        """And a page that says otherwise is not believed."""
        self.with_driver()
        p = page(41)
        d = p.devices[0]
        d.bus_id, d.kind, d.driver, d.read_at = b"accel:accel0", 3, b"tessera", 1
        d.c_n_execute, d.c_temperature, d.used = 77, 99000, 1 << 20
        self.publish("tessera-0-41", p)
        done = self.run_smi("info", "--json")
        told, = json.loads(done.stdout)["devices"]
        self.check(told, bus_id="accel:accel0", pci=BDF, uuid="tessera-T1-7", firmware="1.2",
                   memory_total_bytes=1 << 30, memory_used_bytes=3 << 20, n_execute=9,
                   memory_largest_free_bytes=5 << 20, temperature_c=51.5, ecc_corrected=2,
                   pid=None, n_processes=1, node="/dev/accel/accel0")

    def test_diag_runs_bringup_on_an_idle_device(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        (folder / "xla-smi").write_bytes(pathlib.Path(smi_test.SMI).read_bytes())
        (folder / "tessera-bringup").write_text(
            '#!/bin/sh\necho "$TESSERA_DEVICES" "$@"\nexit "${ENDS:-0}"\n', encoding="ascii")
        for name in ("xla-smi", "tessera-bringup"):
            (folder / name).chmod(0o755)

        self.with_driver()

        def diag(*args, ends=0):
            return subprocess.run([folder / "xla-smi", "--root", self.card, "diag", *args],
                                  env={**os.environ, **self.env, "ENDS": str(ends),
                                       "TESSERA_TELEMETRY_DIR": str(self.dir)}, text=True,
                                  capture_output=True, timeout=LIMIT_S, check=False)

        done = diag("accel:accel0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^accel:\S*/dev/accel/accel0 --level 1\n$")
        done = diag("accel:accel0", "3", "--json")
        self.assertRegex(done.stdout, r" --level 3 --json -\n$")
        # A step that fails is another thing than a run that could not be.
        for ends, status in ((1, 5), (2, 1), (3, 1)):
            self.assertEqual(diag("accel:accel0", ends=ends).returncode, status)
        for level in ("0", "5", "12", "x", ""):
            self.assertEqual(diag("accel:accel0", level).returncode, 2, level)
        self.assertEqual(diag("accel:accel7").returncode, 3)
        # Somebody has it open: that is refused, and done if it must be.
        p = page(41)
        p.n_devices = 1
        d = p.devices[0]
        d.bus_id, d.kind, d.driver, d.read_at = b"accel:accel0", 3, b"tessera", 1
        self.publish("tessera-0-41", p)
        done = diag("accel:accel0", "--json")
        self.assertEqual((done.returncode, "--level" in done.stdout), (4, False))
        self.assertIn("--force", done.stderr)
        self.assertIn("--level 2", diag("accel:accel0", "2", "-f").stdout)

    def test_errors_are_injected_through_the_driver_and_only_by_force(self):
        self.with_driver()
        at = self.card / "sys/kernel/debug/accel" / BDF / "inject"
        self.put(at, "")
        done = self.run_smi("inject", "accel:accel0", "ecc", "5")
        self.assertEqual((done.returncode, at.read_text()), (4, ""))
        for args, text in (("ecc", "5"), "1 5"), (("poison", "0x1000"), "2 0x1000"), \
                (("fatal",), "3 3"), (("drop-irq", "2"), "4 2"), (("hang",), "12 1"), \
                (("air", "60000"), "15 60000"), \
                (("hang", "2"), "12 2"), (("bus", "3"), "13 3"), (("link-down",), "14 0"), \
                (("thermal",), "3 4"), (("firmware",), "3 5"), (("pcie",), "3 6"):
            at.write_text("")
            done = self.run_smi("inject", "accel:accel0", *args, "--force")
            self.assertEqual((done.returncode, at.read_text()), (0, text), done.stderr)
        for args in ("flood",), ("ecc", "x"), ("ecc", "-1"), ("thermal", "1"):
            self.assertEqual(self.run_smi("inject", "accel:accel0", *args, "-f").returncode, 2)
        self.publish("tessera-0-7", page(7))
        self.assertEqual(self.run_smi("inject", "sim:0", "ecc", "-f").returncode, 4)

    def test_containers_get_the_files_of_each_device(self):
        spec = json.loads(self.run_smi("cdi").stdout)
        self.assertEqual((spec["cdiVersion"], spec["kind"]), ("0.6.0", "tessera/accel"))
        nodes = {d["name"]: [n["path"] for n in d["containerEdits"]["deviceNodes"]]
                 for d in spec["devices"]}
        self.assertEqual(nodes, {"0": ["/dev/vfio/7", "/dev/vfio/vfio"],
                                 "all": ["/dev/vfio/7", "/dev/vfio/vfio"]})
        self.with_driver()
        spec = json.loads(self.run_smi("cdi").stdout)
        self.assertEqual([d["name"] for d in spec["devices"]], ["0", "tessera-T1-7", "all"])
        self.publish("tessera-0-7", page(7))
        spec = json.loads(self.run_smi("cdi", "-d", "sim:0").stdout)
        self.assertEqual(spec["devices"], [])

    def test_metrics_are_served_to_this_machine_alone(self):
        with self.serving() as server:
            url = server.stdout.readline().strip()
            self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/metrics$")
            port = int(url.split(":")[2].split("/")[0])
            with urllib.request.urlopen(url, timeout=LIMIT_S) as got:
                self.assertIn("text/plain", got.headers["Content-Type"])
                self.assertIn(f'tessera_device_link_width{{bus_id="{BDF}"}} 16\n',
                              got.read().decode())
            with urllib.request.urlopen(url.replace("metrics", "json"), timeout=LIMIT_S) as got:
                self.assertEqual(wrong(json.load(got), SCHEMA), [])
            with self.assertRaises(urllib.error.HTTPError) as e:
                urllib.request.urlopen(url + "s", timeout=LIMIT_S)
            self.assertEqual(e.exception.code, 404)
            e.exception.close()
            # Who says nothing, or too much, keeps nobody.
            with socket.create_connection(("127.0.0.1", port)) as silent, \
                    socket.create_connection(("127.0.0.1", port)) as loud:
                silent.send(b"GET")
                loud.send(b"x" * 9000)
                with urllib.request.urlopen(url, timeout=LIMIT_S) as got:
                    self.assertEqual(got.status, 200)
            listening = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii")
            self.assertIn(f"0100007F:{port:04X} 00000000:0000 0A", listening)
            done = self.smi("serve", "--port", str(port))
            self.assertEqual(done.returncode, 1)
            self.assertIn("Address already in use", done.stderr)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(LIMIT_S), 0)


    def ask(self, port, request):
        """The status and the text of the answer."""
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as s:
            s.sendall(request)
            got = b""
            while part := s.recv(65536):
                got += part
        return int(got.split()[1]), got.decode()

    @contextlib.contextmanager
    def serving(self, *args):
        """Ends it whatever the test finds: who waits for it would wait for ever."""
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir))
        with subprocess.Popen([smi_test.SMI, "serve", "--port", "0", "--root", self.card, *args],
                              stdout=subprocess.PIPE, text=True, env=env) as server:
            try:
                yield server
            finally:
                server.kill()

    def test_the_page_lives_and_is_for_this_machine_alone(self):
        self.publish("tessera-0-7", page(7, command=b"first<b>"))
        with self.serving("--ui", "-i", "3") as server:
            url = server.stdout.readline().strip()
            self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/$")
            port = int(url.split(":")[2].strip("/"))
            with urllib.request.urlopen(url, timeout=LIMIT_S) as got:
                self.assertIn("text/html", got.headers["Content-Type"])
                self.assertIn("default-src 'none'", got.headers["Content-Security-Policy"])
                text = got.read().decode()
            self.assertIn('<meta http-equiv="refresh" content="3">', text)
            self.assertIn("first&lt;b&gt;", text)
            self.assertNotIn("What stands in the way", text)    # that would try the devices
            # Nothing of it leads elsewhere.
            self.assertEqual([a for a in re.findall(r'(?:src|href)="([^"]*)"', text)
                              if not a.startswith("#")], [])
            self.assertNotRegex(text, r"<script|<link|url\(|@import|https?://")
            self.publish("tessera-0-8", page(8, command=b"second"))
            with urllib.request.urlopen(url, timeout=LIMIT_S) as got:
                self.assertIn("second", got.read().decode())
            for host in ("127.0.0.1", f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}",
                         f"[::1]:{port}"):
                self.assertEqual(self.ask(port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"
                                          .encode())[0], 200, host)
            for head in ("Host: evil.example", f"Host: evil.example:{port}", "X: 1",
                         "Host: 127.0.0.1:1", "Host: 127.0.0.1.evil.example",
                         "Host: localhost\r\nHost: evil.example", f"X-Host: 127.0.0.1:{port}"):
                for path in ("/", "/metrics", "/json"):
                    self.assertEqual(self.ask(port, f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n"
                                              .encode())[0], 421, head)
            self.assertEqual(self.ask(port, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")[0],
                             405)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(LIMIT_S), 0)
        with self.serving() as server:
            port = int(server.stdout.readline().split(":")[2].split("/")[0])
            text = self.ask(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")[1]
            self.assertNotIn("<html", text)
            server.terminate()

    def test_slow_clients_keep_nobody_and_are_bounded(self):
        with self.serving("--ui") as server:
            port = int(server.stdout.readline().split(":")[2].strip("/\n"))
            slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
            for i, s in enumerate(slow):
                # Half a request; all of one, whose answer nobody reads.
                s.sendall(b"GET / HT" if i % 2 else b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            begin = time.monotonic()
            for _ in range(5):
                self.assertEqual(self.ask(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")[0],
                                 200)
            # In turn, not behind them: each of those would be waited for a second and more.
            self.assertLess(time.monotonic() - begin, 80)
            files = os.listdir(f"/proc/{server.pid}/fd")
            self.assertLess(len(files), 50)
            # Whoever is slow is left.
            end = time.monotonic() + LIMIT_S
            while len(os.listdir(f"/proc/{server.pid}/fd")) > 8 and time.monotonic() < end:
                time.sleep(0.05)
            self.assertLess(len(os.listdir(f"/proc/{server.pid}/fd")), 9)
            for s in slow:
                s.close()
            server.terminate()

    CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

    @unittest.skipUnless(CHROMIUM, "there is no chromium: apt-get install chromium")
    def test_a_browser_shows_the_page(self):
        self.publish("tessera-0-7", page(7, command=b"in-a-browser"))
        with self.serving("--ui", "-i", "3600") as server:      # it is read once
            url = server.stdout.readline().strip()
            done = subprocess.run(
                [self.CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                 f"--user-data-dir={self.dir / 'browser'}", "--window-size=1200,800",
                 "--enable-logging=stderr",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                 f"--screenshot={self.dir / 'page.png'}", "--dump-dom", url], timeout=LIMIT_S,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            server.terminate()
        self.assertIn("in-a-browser", done.stdout, done.stderr[-2000:])
        self.assertRegex(done.stdout, r"<h2>Devices</h2>")
        # The page's own policy forbids nothing that it has.
        self.assertNotIn("Content Security Policy", done.stderr)
        self.assertNotIn("Refused to", done.stderr)
        if os.environ.get("SMI_PICTURE"):
            shutil.copy(self.dir / "page.png", os.environ["SMI_PICTURE"])


def load_tests(loader, _tests, _pattern):
    """Not those of smi_test again, from which these come."""
    suite = unittest.TestSuite()
    for case in (Doctor, Acts):
        suite.addTests(case(name) for name in loader.getTestCaseNames(case)
                       if name in vars(case))
    return suite


if __name__ == "__main__":
    smi_test.SMI = os.path.abspath(sys.argv.pop(1))
    import tempfile
    with tempfile.TemporaryDirectory() as PRELOAD_DIR:
        unittest.main()
