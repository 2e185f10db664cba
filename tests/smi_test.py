# SPDX-License-Identifier: Apache-2.0
"""xla-smi as a user meets it: smi_test.py XLA-SMI [--update]

Folders with odd things in them, a full disk, pages of strangers, hardware that is a folder;
each command in each form as it is in data/smi, which --update writes. The layout of a page is
written down a second time here, from hal/telemetry.h.
"""

import csv
import ctypes
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIMIT_S = 300   # of what ends by itself: others may have the cores
NOBODY = 65534
SMI = ""
DATA = pathlib.Path(__file__).resolve().parent / "data/smi"
SHOWN = ("list", "info", "mem", "proc", "stats", "topo", "log")
FORMS = {"txt": (), "json": ("--json",), "csv": ("--csv",)}
UPDATE = False
SCHEMA = json.loads((DATA / "schema.json").read_text(encoding="utf-8"))


U32, U64, S64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
OWNERS, CELLS, EVENTS, LINKS = 16, 64, 32, 6
COUNTERS = ("time_ns", "busy_compute", "busy_dma", "hbm_read", "hbm_write", "dma_in", "dma_out",
            "n_execute", "n_copy", "n_fault", "n_insn", "matrix_ops", "vector_ops")
RAS = ("ecc_corrected", "ecc_uncorrected", "poisoned", "watchdog", "queue_resets",
       "function_resets", "fatal")


class Owner(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_char * 48), ("bytes", U64), ("n_blocks", U64)]


class Heap(ctypes.Structure):
    _fields_ = [(name, U64) for name in ("bytes", "in_use", "largest_free", "n_blocks",
                                         "n_holes", "changes", "read_at")] + [
        ("is_whole", U32), ("n_owners", U32), ("cells", ctypes.c_uint8 * CELLS),
        ("owners", Owner * OWNERS)]


class Event(ctypes.Structure):
    _fields_ = [("number", U64), ("time_ns", U64), ("device", U32), ("code", U32),
                ("text", ctypes.c_char * 240)]


class Link(ctypes.Structure):
    _fields_ = [("peer", ctypes.c_uint16), ("dim", ctypes.c_uint8), ("is_down", ctypes.c_uint8),
                ("is_", ctypes.c_uint8), ("zero", ctypes.c_uint8 * 3), ("tx_bytes", U64),
                ("rx_bytes", U64), ("n_packets", U64), ("n_errors", U64)]


class Device(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char * n) for name, n in (
        ("bus_id", 64), ("name", 32), ("serial", 32), ("driver", 32), ("state", 96),
        ("running", 64))] + [("is_model", U32), ("kind", U32)] + [
        (name, U64) for name in ("hbm", "used", "peak", "n_execute", "busy", "window", "read_at")
        ] + [("temperature_mc", U32), ("power_mw", U32), ("n_fault", U64)] + [
        (f"c_{name}", U64) for name in COUNTERS] + [
        (name, U32) for name in ("c_temperature", "c_power", "clock_khz", "throttle")] + [
        (f"r_{name}", U64) for name in RAS] + [("heap_changes", U64), ("heap", Heap),
        ("fabric", U64), ("chip", U32), ("n_chips", U32), ("coords", U32 * 3), ("shape", U32 * 3),
        ("n_links", U32), ("zero", U32), ("links", Link * LINKS)]


class Page(ctypes.Structure):
    _fields_ = [("magic", U64), ("version", U32), ("bytes", U32), ("sequence", U32),
                ("pid", U32), ("start", U64), ("command", ctypes.c_char * 64),
                ("n_devices", U32), ("socket", U32), ("n_events", U64),
                ("events", Event * EVENTS), ("devices", Device * 64)]


def page(pid, command=b"train", devices=1):
    p = Page(magic=0x314d535354455354, version=3, bytes=ctypes.sizeof(Page), pid=pid,
             command=command, n_devices=devices)
    for i in range(devices):
        p.devices[i] = Device(bus_id=b"sim:%d" % i, name=b"Tessera T1", driver=b"in-process",
                              state=b"ready", is_model=1, hbm=1 << 30, used=1 << 20)
    return p


def wrong(value, schema, where="$"):
    """What of `value` breaks the schema, in the part of JSON Schema that ours is written in."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    is_of = {"string": lambda v: isinstance(v, str), "null": lambda v: v is None,
             "boolean": lambda v: isinstance(v, bool), "object": lambda v: isinstance(v, dict),
             "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
             "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
             "array": lambda v: isinstance(v, list)}
    if not any(is_of[t](value) for t in types):
        return [f"{where}: {value!r} is no {types}"]
    found = []
    if isinstance(value, dict):
        known = schema["properties"]
        found += [f"{where}: no {k}" for k in schema["required"] if k not in value]
        found += [f"{where}: {k} is unknown" for k in value if k not in known]
        for k in value.keys() & known.keys():
            found += wrong(value[k], known[k], f"{where}.{k}")
    if isinstance(value, list):
        for i, v in enumerate(value):
            found += wrong(v, schema["items"], f"{where}[{i}]")
    return found


def build_preload(source, to, *flags):
    """A library that stands before the C library, of tests/fake."""
    top = DATA.parents[2]
    subprocess.run([*os.environ.get("CC", "cc").split(), "-Wall", "-Werror", "-shared", "-fPIC",
                    "-D_GNU_SOURCE", f"-I{top}", *flags, top / "tests/fake" / source, "-o", to,
                    "-ldl"], check=True)


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

    def rewrite(self, name, content):
        """What its process tells now."""
        with open(self.dir / name, "rb+") as f:
            f.write(bytes(content))

    def smi(self, *args, folder=None, **how):
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(folder or self.dir))
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([how.pop("program", SMI), *args], env=env, text=True, check=False,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, **how)

    def facts(self):
        done = self.smi("--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        self.assertEqual(told["schema"], "tessera-smi/2")
        self.assertEqual(wrong(told, SCHEMA), [])
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
        self.assertRegex(table, r"sim:0 .* 1\.0 MiB +1\.0 GiB")

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
            d.bus_id = "sim:é".encode() * 10
        self.publish("tessera-0-9", p)
        told = self.facts()
        self.assertEqual(told["processes"][0]["devices"], "sim:é" * 10 + " ...")
        self.assertEqual(told["processes"][0]["command"][:10], "?[2Jevil?x")
        self.assertEqual(told["processes"][0]["running"], "??")
        self.assertEqual(told["devices"][0]["memory_total_bytes"], (1 << 64) - 1)
        done = self.smi()
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("\x1b", done.stdout)

    def test_output_that_is_lost_is_a_failure(self):
        for args in ((), ("--json",), ("--csv",), ("--prometheus",), ("watch",), ("schema",),
                     ("record", "-"), ("--help",), ("--version",)):
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

    def test_it_links_no_part_of_the_model(self):
        listed = subprocess.run(["nm", "--defined-only", "--format=posix", SMI], text=True,
                                stdout=subprocess.PIPE, check=True, timeout=LIMIT_S).stdout
        names = [line.split()[0] for line in listed.splitlines()]
        self.assertIn("smi_gather", names)      # it is not stripped
        self.assertEqual([n for n in names if n.startswith(("sim_", "tc_", "rt_"))], [])
        self.assertLess(os.path.getsize(SMI), 1 << 20)

    def test_wrong_usage_is_told_apart(self):
        for args in (("--jsn",), ("--json", "x"), ("",), ("list", "x"), ("replay",), ("-d",),
                     ("--device", ""), ("-i", "0"), ("-i", "soon"), ("-n", "0"), ("-n", "1x"),
                     ("-n", "1.5"), ("serve", "-p", "80.5"), ("watch", "watch"),
                     ("replay", "f", "record"), ("record",)):
            done = self.smi(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage", done.stderr)
        # The letter, not the word that was read last.
        self.assertIn('"-z" is no option', self.smi("-zf").stderr)

    # ---- what a page tells, in each table ----

    def rich(self):
        p = page(7)
        d = p.devices[0]
        d.serial, d.running, d.peak, d.n_execute = b"SN1", b"jit_step", 5 << 20, 12
        d.read_at, d.c_temperature, d.c_power, d.clock_khz = 1, 41500, 72250, 1000000
        d.c_n_execute, d.c_hbm_read, d.r_ecc_corrected = 34, 1 << 40, 3
        d.heap_changes = 9
        d.heap = Heap(bytes=64 << 20, in_use=16 << 20, largest_free=36 << 20, n_blocks=3,
                      n_holes=2, changes=7, read_at=1, is_whole=1, n_owners=2)
        d.heap.cells[0], d.heap.cells[1], d.heap.cells[2] = 255, 128, 1
        d.heap.owners[0] = Owner(b"weights", 12 << 20, 1)
        d.heap.owners[1] = Owner(b"", 4 << 20, 2)
        p.n_events = 1
        p.events[0] = Event(1, 1700000000123000000, 0, 16 - 1, b"page poisoned")
        return p

    def one(self, command, table):
        rows = self.smi_json(command)[table]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def smi_json(self, *args, **how):
        done = self.smi(*args, "--json", **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        self.assertEqual(wrong(told, SCHEMA), [])
        return told

    def check(self, row, **expected):
        self.assertEqual({k: row[k] for k in expected}, expected)

    def test_every_table_is_filled_from_a_page(self):
        self.publish("tessera-0-7", self.rich())
        self.check(self.one("info", "devices"), bus_id="sim:0", kind="sim", serial="SN1",
                   uuid="tessera-SN1", pid=7, n_processes=1, temperature_c=41.5, power_w=72.25,
                   clock_mhz=1000, memory_largest_free_bytes=36 << 20, numa_node=None,
                   link_gts=None)
        self.check(self.one("stats", "devices"), n_execute=34, hbm_read_bytes=1 << 40,
                   ecc_corrected=3, fatal=0)
        self.check(self.one("mem", "heaps"), pid=7, total_bytes=64 << 20, used_bytes=16 << 20,
                   fragmentation_percent=25, n_blocks=3, n_holes=2, changes_since=2,
                   map="951" + "0" * 61)
        owners = self.smi_json("mem")["owners"]
        self.assertEqual([(o["tag"], o["bytes"], o["percent"]) for o in owners],
                         [("weights", 12 << 20, 75), ("(untagged)", 4 << 20, 25)])
        self.check(self.one("proc", "processes"), pid=7, holder_pid=os.getpid(),
                   running="jit_step", source="page")
        self.check(self.one("proc", "clients"), pid=7, bus_id="sim:0", n_execute=12,
                   memory_peak_bytes=5 << 20, memory_held_bytes=None)
        self.check(self.one("log", "events"), time="2023-11-14T22:13:20.123Z", code="DATA_LOSS",
                   text="page poisoned", bus_id="sim:0", pid=7)

    def test_what_nobody_told_is_unknown(self):
        self.publish("tessera-0-7", page(7))
        self.check(self.one("info", "devices"), temperature_c=None, power_w=None,
                   utilisation_percent=None, n_execute=None, memory_largest_free_bytes=None,
                   uuid="", firmware="")
        self.assertEqual(self.smi_json("mem")["heaps"], [])
        self.assertRegex(self.smi().stdout, r"MiB +1\.0 GiB +- +- +-  ready")

    def test_numbers_of_a_stranger_that_do_not_fit_are_survived(self):
        p = self.rich()
        p.n_events = (1 << 64) - 1
        for e in p.events:
            e.device, e.code, e.text = 0xffffffff, 0xffffffff, b"\xff" * 240
        p.events[5].device, p.events[5].time_ns = 0, (1 << 64) - 1
        h = p.devices[0].heap
        h.n_owners, h.in_use, h.largest_free, h.bytes = 0xffffffff, 1 << 63, (1 << 64) - 1, 5
        for o in h.owners:
            o.tag = b"\x1b" * 48
        self.publish("tessera-0-7", p)
        self.assertIsNone(self.one("mem", "heaps")["fragmentation_percent"])
        self.assertEqual(len(self.smi_json("mem")["owners"]), OWNERS)
        self.check(self.one("log", "events"), code="UNKNOWN", text="?" * 239)
        for command in SHOWN:
            for form in FORMS.values():
                done = self.smi(command, *form)
                self.assertEqual(done.returncode, 0)
                self.assertNotIn("\x1b", done.stdout)

    def test_devices_are_selected_by_each_of_their_names(self):
        p = page(7, devices=3)
        p.devices[1].serial = b"SN1"
        self.publish("tessera-0-7", p)
        self.publish("tessera-0-8", page(8))
        bus_ids = [d["bus_id"] for d in self.facts()["devices"]]
        self.assertEqual(bus_ids, ["sim:0", "sim:0", "sim:1", "sim:2"])
        for name in ("2", "sim:1", "tessera-SN1", "SN1"):
            told = self.smi_json("proc", "-d", name)
            self.assertEqual([c["bus_id"] for c in told["clients"]], ["sim:1"], name)
            self.assertEqual([c["pid"] for c in told["processes"]], [7])
        told = self.smi_json("-d", "0", "--device=3")
        self.assertEqual([(d["index"], d["bus_id"]) for d in told["devices"]],
                         [(0, "sim:0"), (3, "sim:2")])
        done = self.smi("-d", "sim:9")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn('there is no device "sim:9"', done.stderr)

    def test_a_watch_prints_a_line_each_time(self):
        self.publish("tessera-0-7", page(7))
        done = self.smi("watch", "--json", "-n", "3", "-i", "0.02")
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, len(lines)), (0, 3))
        for line in lines:
            self.assertEqual(wrong(json.loads(line), SCHEMA), [])
        done = self.smi("watch", "proc", "--csv", "-n", "2", "-i", "0.02")
        rows = list(csv.reader(done.stdout.splitlines()))
        self.assertEqual([r[0] for r in rows], ["pid", "7", "7"])
        done = self.smi("watch", "-n", "2", "-i", "0.02")
        self.assertEqual(done.stdout.count("BUS ID"), 2)
        self.assertNotIn("\x1b", done.stdout)

    def test_a_watch_that_was_stopped_makes_up_for_nothing(self):
        self.publish("tessera-a", page(os.getpid()))
        watch = subprocess.Popen(
            [SMI, "watch", "--json", "-i", "0.5"], stdout=subprocess.PIPE,
            env={**os.environ, "TESSERA_TELEMETRY_DIR": str(self.dir)})
        self.assertTrue(watch.stdout.readline())
        watch.send_signal(signal.SIGSTOP)
        time.sleep(6)
        watch.send_signal(signal.SIGCONT)
        time.sleep(1.2)
        watch.terminate()
        seen = len(watch.communicate()[0].splitlines())
        self.assertGreater(seen, 1)
        self.assertLess(seen, 8)        # 2 a second; 12 were missed

    def test_metrics_are_what_prometheus_reads(self):
        for pid in (7, 8):
            p = self.rich()
            p.pid, p.command = pid, b'a"b\\c'
            self.publish(f"tessera-0-{pid}", p)
        self.publish("tessera-0-8b", p)     # a second HAL of one process
        text = self.smi("--prometheus").stdout
        samples, types = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertNotIn(name, types)
                types[name] = kind
            elif not line.startswith("# HELP "):
                m = re.fullmatch(r'(\w+)((?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})?) (\S+)', line)
                self.assertIsNotNone(m, line)
                self.assertNotIn(m[1] + m[2], samples)
                samples[m[1] + m[2]] = float(m[3])
                self.assertEqual(list(types)[-1], m[1])     # together, behind its type
        self.assertEqual(samples[
            'tessera_device_temperature_c{bus_id="sim:0",uuid="tessera-SN1",pid="7"}'], 41.5)
        self.assertEqual(samples[
            'tessera_process_memory_used_bytes{pid="8",command="a\\"b\\\\c"}'], 1 << 20)
        self.assertEqual(types["tessera_device_n_execute_total"], "counter")
        self.assertEqual(types["tessera_device_power_w"], "gauge")

    # ---- hardware, on a sysfs and a /proc that are folders ----

    def root(self):
        """Two cards behind one switch and one at another node, held by process 41."""
        root = self.dir / "root"
        devices, group = root / "sys/bus/pci/devices", root / "sys/kernel/iommu_groups"
        devices.mkdir(parents=True)
        vfio = root / "sys/bus/pci/drivers/vfio-pci"
        vfio.mkdir(parents=True)
        (root / "dev/vfio").mkdir(parents=True)
        for i, (where, node) in enumerate((
                ("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:01.0/0000:03:00.0", 0),
                ("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:02.0/0000:04:00.0", 0),
                ("pci0000:80/0000:80:01.0/0000:81:00.0", 1))):
            d = root / "sys/devices" / where
            d.mkdir(parents=True)
            (group / str(7 + i) / "devices").mkdir(parents=True)
            for name, text in (
                    ("vendor", "0x1234"), ("device", "0x7e55"), ("class", "0x120000"),
                    ("numa_node", node), ("local_cpulist", f"{node * 8}-{node * 8 + 7}"),
                    ("current_link_speed", "8.0 GT/s PCIe"), ("current_link_width", 8),
                    ("max_link_speed", "16.0 GT/s PCIe"), ("max_link_width", 16),
                    ("irq", 0), ("aer_dev_correctable", "RxErr 1\nRollover 2\nTimeout 3\n"
                                 "TOTAL_ERR_COR 6"), ("aer_dev_fatal", "TOTAL_ERR_FATAL 0"),
                    ("resource", "0x0 0x0 0x0\n" * 2 + "0x4000000000 0x40ffffffff 0x14220c\n" +
                     "0x0 0x0 0x0")):
                (d / name).write_text(f"{text}\n")
            (d / "config").write_bytes(bytes.fromhex("3412557e") + bytes(252))
            (d.parent / "max_link_speed").write_text("32.0 GT/s PCIe\n")
            (d.parent / "max_link_width").write_text("16\n")
            (d / "iommu_group").symlink_to(group / str(7 + i))
            (d / "driver").symlink_to(vfio)
            (devices / d.name).symlink_to(os.path.relpath(d, devices))
            (root / f"dev/vfio/{7 + i}").touch()
        proc = root / "proc/41"
        (proc / "fd").mkdir(parents=True)
        (proc / "comm").write_text("train\x1b\n")
        (proc / "fd/5").symlink_to(root / "dev/vfio/8")
        return root

    def test_hardware_is_placed_and_its_holders_named(self):
        root = self.root()
        told = self.smi_json("topo", "--root", root)
        self.assertEqual([d["bus_id"] for d in told["devices"]],
                         ["0000:03:00.0", "0000:04:00.0", "0000:81:00.0"])
        self.check(told["devices"][2], kind="vfio", numa_node=1, cpus="8-15", iommu_group=9,
                   link_gts=8, link_width=8, link_max_gts=16, link_max_width=16,
                   port_max_gts=32, node="/dev/vfio/9", pcie_correctable=6, pcie_replay=5,
                   pcie_uncorrectable=0, memory_total_bytes=4 << 30, temperature_c=None)
        self.assertEqual([d["n_processes"] for d in told["devices"]], [0, 1, 0])
        ways = {(p["from"], p["to"]): (p["relation"], p["hops"]) for p in told["paths"]}
        self.assertEqual(ways[("0000:03:00.0", "0000:04:00.0")], ("PXB", 3))
        self.assertEqual(ways[("0000:81:00.0", "0000:04:00.0")], ("SYS", None))
        told = self.smi_json("proc", "--root", root, "-d", "/dev/vfio/8")
        self.assertEqual([(p["pid"], p["command"], p["source"]) for p in told["processes"]],
                         [(41, "train?", "proc")])
        self.assertRegex(self.smi("topo", "--root", root).stdout,
                         r"0000:03:00\.0 +X +PXB +SYS\n0000:04:00\.0 +PXB +X +SYS\n")

    def test_a_page_does_not_move_hardware(self):
        """A page tells of the card that its process has; it is one device, not two."""
        root, p = self.root(), page(41, devices=1)
        p.devices[0].bus_id, p.devices[0].kind = b"0000:04:00.0", 1
        p.devices[0].is_model, p.devices[0].driver = 0, b"another"
        self.publish("tessera-0-41", p)
        told = self.smi_json("proc", "--root", root)
        self.assertEqual([(q["pid"], q["devices"]) for q in told["processes"]],
                         [(41, "0000:04:00.0")])
        told = self.smi_json("--root", root)
        self.assertEqual([d["driver"] for d in told["devices"]], ["vfio-pci"] * 3)
        self.check(told["devices"][1], memory_used_bytes=1 << 20, n_processes=1, iommu_group=8)

    def test_held_devices_are_told_apart_by_whole_names(self):
        root = self.root()
        (root / "dev/accel").mkdir()
        for fd, name in ((3, "accel10"), (4, "accel1")):
            card = root / "sys/class/accel" / name / "device"
            card.mkdir(parents=True)
            (card / "driver").symlink_to("../../bus/pci/drivers/tessera")
            (root / "dev/accel" / name).touch()
            (root / f"proc/41/fd/{fd}").symlink_to(root / "dev/accel" / name)
        told = self.smi_json("proc", "--root", root)
        held = told["processes"][0]["devices"].split()
        self.assertTrue({"accel:accel1", "accel:accel10"} <= set(held), held)

    def test_what_a_server_gives_two_clients_is_two_devices(self):
        for pid in (41, 42):
            p = page(pid)
            p.devices[0].bus_id, p.devices[0].kind = b"vfio-user:/run/0.sock", 2
            p.devices[0].used = pid << 20
            self.publish(f"tessera-0-{pid}", p)
        told = [d for d in self.facts()["devices"] if d["kind"] == "vfio-user"]
        self.assertEqual([(d["pid"], d["memory_used_bytes"], d["memory_total_bytes"])
                          for d in told], [(41, 41 << 20, 1 << 30), (42, 42 << 20, 1 << 30)])

    # ---- golden: every command in every form, of a machine on record ----

    def golden(self, name, text):
        path = DATA / name
        if UPDATE:
            path.write_text(text, encoding="utf-8")
        self.assertEqual(path.read_text(encoding="utf-8"), text, f"{name}: --update writes it")

    def test_every_command_in_every_form_is_as_on_record(self):
        for command in (*SHOWN, "doctor", "report", "reg"):
            for suffix, form in FORMS.items():
                done = self.smi("replay", DATA / "node.json", command, *form)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.golden(f"{command}.{suffix}", done.stdout)
                if suffix == "json":
                    self.assertEqual(wrong(json.loads(done.stdout), SCHEMA), [])
        self.golden("prom", self.smi("replay", DATA / "node.json", "--prometheus").stdout)
        self.golden("schema.json", self.smi("schema").stdout)

    def test_a_record_is_replayed_as_it_was(self):
        root = self.root()
        self.publish("tessera-0-7", self.rich())
        self.assertEqual(self.smi("record", self.dir / "n", "--root", root).returncode, 0)
        for command in SHOWN:
            live = self.smi_json(command, "--root", root)
            told = self.smi_json("replay", self.dir / "n", command, "--root", "/none")
            for a in (live, told):
                del a["time"]
            self.assertEqual(live, told)
        for args, why in (((self.dir / "missing",), "No such file"),
                          ((self.dir,), "Is a directory"), (("/dev/null",), "is no record")):
            done = self.smi("replay", *args)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(why, done.stderr)
        (self.dir / "bad").write_text('{"schema":"tessera-smi/2","devices":[7,{"index":"x",'
                                      '"bus_id":"\\u001b[2J","time":3,"temperature_c":"hot"}]}')
        done = self.smi("replay", self.dir / "bad")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("\x1b", done.stdout)
        for text in ("1e999", "-1e999", "NaN"):
            (self.dir / "bad").write_text('{"schema":"tessera-smi/2","devices":'
                                          f'[{{"bus_id":"sim:0","temperature_c":{text}}}]}}')
            told = self.smi_json("replay", self.dir / "bad", "info")
            self.assertIsNone(told["devices"][0]["temperature_c"], text)

    def test_it_starts_at_once(self):
        """By the processor's time of the best, as others use the machine and its caches, too:
        30 ms are allowed, 5 usual."""
        self.publish("tessera-0-7", self.rich())
        times = []
        for _ in range(100):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.smi()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            if times[-1] < 0.03:
                return
        self.fail(f"{min(times)} s")

    # ---- on a terminal ----

    def tmux(self, *words, check=True):
        return subprocess.run(["tmux", "-S", self.socket, *words], text=True, check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_S).stdout

    def until(self, pattern, gone=False):
        """The screen, once it shows this, or no more."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            screen = self.tmux("capture-pane", "-p", "-t", "top")
            if bool(re.search(pattern, screen, re.M)) != gone:
                return screen
        raise AssertionError(f"no {pattern} in\n{screen}")

    @unittest.skipUnless(shutil.which("tmux"), "there is no tmux")
    def test_top_draws_sorts_and_filters(self):
        p = self.rich()
        p.command, p.devices[0].used = b"small", 1 << 20
        self.publish("tessera-0-7", p)
        q = page(8, command=b"large")
        q.devices[0].used = 700 << 20
        self.publish("tessera-0-8", q)
        for locale, mark in (("C.UTF-8", "\u2581"), ("C", "[.]")):
            self.socket = self.dir / f"tmux-{locale}"   # a server that ends keeps its own
            self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", "120", "-y",
                      "24", "-e", f"TESSERA_TELEMETRY_DIR={self.dir}", "-e", f"LC_ALL={locale}",
                      f"{SMI} top -i 0.1; echo ended with $?; exec cat")
            try:
                screen = self.until(r"^by memory +h help")
                self.assertRegex(screen, r"(?s)8 +\w+ +large .*7 +\w+ +small +1\.0M")
                self.assertRegex(screen, r"sim:0 .*42C .*72W")
                self.until(rf"sim:0.* {mark}{{3,}}")
                self.tmux("send-keys", "-t", "top", "ss")
                self.assertRegex(self.until(r"^by pid"), r"(?s)small.*large")
                self.tmux("send-keys", "-t", "top", "r")
                self.assertRegex(self.until(r"^by pid, reversed"), r"(?s)large.*small")
                self.tmux("send-keys", "-t", "top", "/lar")
                self.until(r"^filter: lar_")
                self.until(r"small", gone=True)
                self.tmux("send-keys", "-t", "top", "x", "Enter")
                self.until("no process fits the filter")
                self.tmux("send-keys", "-t", "top", "/", "Enter", "l")
                self.until("no process tells of links")
                p.devices[0].n_links, p.devices[0].fabric, p.devices[0].n_chips = 2, 9, 4
                p.devices[0].shape[:] = 2, 2, 1
                for i, port in enumerate(p.devices[0].links[:2]):
                    port.peer, port.dim, port.is_ = 1 + i, i, 1 + i
                    port.tx_bytes, port.rx_bytes, port.n_errors = 3 << 30, 5 << 20, 7 * i
                self.rewrite("tessera-0-7", p)
                self.until(r"^sim:0 +x\+ +1 +0B +0B +3.0G +5.0M +0 +up")
                self.until(r"^sim:0 +y\+ +2 +0B +0B +3.0G +5.0M +7 ")
                # Each look shows what went since the one before.
                end, screen = time.monotonic() + LIMIT_S, ""
                while not re.search(r"^sim:0 +x\+ +1 +[\d.]+[GT] +0B ", screen, re.M):
                    self.assertLess(time.monotonic(), end, screen)
                    p.devices[0].links[0].tx_bytes += 1 << 30
                    self.rewrite("tessera-0-7", p)
                    screen = self.tmux("capture-pane", "-p", "-t", "top")
                p.devices[0].n_links = 0
                self.rewrite("tessera-0-7", p)
                self.until("no process tells of links")
                self.tmux("send-keys", "-t", "top", "lh")
                self.until(r"^q quit  s sort")
                # A terminal that gets too small for it all.
                self.tmux("resize-window", "-t", "top", "-x", "20", "-y", "5")
                self.until(r"^q quit")
                self.tmux("resize-window", "-t", "top", "-x", "120", "-y", "24")
                self.until(r"large")
                # A device that comes, and one that goes.
                self.publish("tessera-0-9", page(9, command=b"fresh"))
                self.until(r"fresh")
                os.unlink(self.dir / "tessera-0-9")
                self.until(r"fresh", gone=True)
                self.tmux("send-keys", "-t", "top", "q")
                self.until(r"ended with 0")
            finally:
                self.tmux("kill-server", check=False)

    @unittest.skipUnless(shutil.which("tmux"), "there is no tmux")
    def test_top_counts_by_the_time_between_its_looks(self):
        p = page(7)
        p.devices[0].hbm, p.devices[0].used = 1, 1 << 63    # and a bar has an end
        p.devices[0].n_links, p.devices[0].fabric, p.devices[0].n_chips = 1, 9, 4
        p.devices[0].read_at = time.monotonic_ns()
        p.devices[0].shape[:] = 2, 2, 1
        port = p.devices[0].links[0]
        port.peer, port.is_, port.tx_bytes = 1, 1, 1 << 30
        self.publish("tessera-0-7", p)
        self.socket = self.dir / "tmux"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", "120", "-y", "24",
                  "-e", f"TESSERA_TELEMETRY_DIR={self.dir}", f"{SMI} top -i 4; exec cat")
        try:
            self.assertRegex(self.until(r"h help"), r"(?m)^0 +sim:0 .*[|]{10} ")
            port.tx_bytes += 1 << 40
            self.rewrite("tessera-0-7", p)
            self.tmux("send-keys", "-t", "top", "l")
            sent = re.search(r"^sim:0 +x\+ +1 +(\d+G)", self.until(r"^sim:0 +x\+ +1 +\d+G"),
                             re.M).group(1)
            self.tmux("send-keys", "-t", "top", "-", "-")
            self.assertRegex(self.until(r"every 1 s"), rf"(?m)^sim:0 +x\+ +1 +{sent} ")
        finally:
            self.tmux("kill-server", check=False)

    def test_top_asks_for_a_terminal(self):
        done = self.smi("top", stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("needs a terminal", done.stderr)

    # ---- help, manual, completion: of one table ----

    def complete(self, *words):
        script = ('source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); '
                  '_xla_smi "$2" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        top = pathlib.Path(__file__).resolve().parents[1]
        done = subprocess.run(["bash", "-c", script, "bash", top / "tools/completion/xla-smi",
                               SMI, *words], text=True, stdout=subprocess.PIPE, check=True,
                              timeout=LIMIT_S,
                              env=dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir)))
        return done.stdout.split()

    def test_completion_knows_what_help_knows(self):
        named = re.findall(r"^  ([a-z]+) ", self.smi("--help").stdout, re.M)
        self.assertTrue(set(SHOWN) <= set(named))
        self.assertEqual(self.complete(""), named)
        self.assertEqual(self.complete("re"), [n for n in named if n.startswith("re")])
        self.assertEqual(self.complete("list", "--j"), ["--json"])
        self.publish("tessera-0-7", page(7, devices=2))
        for word in ("-d", "reset", "reg"):
            self.assertEqual(self.complete(word, ""), ["sim:0", "sim:1"])
        (self.dir / "node.json").write_text("")
        for word in ("record", "replay", "report"):
            self.assertEqual(self.complete(word, f"{self.dir}/no"), [f"{self.dir}/node.json"])


if __name__ == "__main__":
    UPDATE = "--update" in sys.argv and not sys.argv.remove("--update")
    SMI = os.path.abspath(sys.argv.pop(1))
    unittest.main()
