# SPDX-License-Identifier: Apache-2.0
"""Chips that are linked as xla-smi shows them: smi_link_test.py XLA-SMI LIBTESSERA TESSERA-SIM

A process that has models open, in itself or served by tessera-sim, and what the tool tells of
their links; pages of strangers; the page of HTML; registers of a card that is a folder.
"""

import contextlib
import ctypes
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

import smi_doctor_test
import smi_test
from smi_test import DATA, LIMIT_S, SCHEMA, Smi, page, wrong

TOP = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = SIM = ""
FATAL = 3       # HW_INJECT_FATAL
UP, PEER_FATAL, PEER_OFF = 1, 2, 3


# ---- a process that uses linked chips, which is told by lines what to do ----

class Client:
    """The HAL through its library."""

    def __init__(self, library, devices):
        class Options(ctypes.Structure):
            _fields_ = [("devices", ctypes.c_char_p), ("sim", ctypes.c_char_p)]
        self.lib, self.err = ctypes.CDLL(library), ctypes.create_string_buffer(4096)
        self.lib.hal_device_queue.restype = ctypes.c_void_p
        self.lib.hal_device_queue.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.hal = ctypes.c_void_p()
        self.call("hal_create", ctypes.byref(Options(devices.encode(), None)),
                  ctypes.byref(self.hal))
        self.devices = {}

    def call(self, name, *args):
        if getattr(self.lib, name)(*args, self.err):
            raise OSError(f"{name}: {self.err.raw[4:300]!r}")

    def open(self, i):
        self.devices[i] = ctypes.c_void_p()
        self.call("hal_device_open", self.hal, i, ctypes.byref(self.devices[i]))

    def memory(self, i, n):
        m = ctypes.c_void_p()
        self.call("hal_mem_alloc", self.devices[i], 0, ctypes.c_uint64(n), b"test",
                  ctypes.byref(m))
        return m

    def copy(self, i, k, n, after=None):
        """n bytes from chip i to chip k; gives the queue and the number of the submission."""
        q = ctypes.c_void_p(self.lib.hal_device_queue(self.devices[i], 1))
        value = ctypes.c_uint64()
        self.call("hal_queue_copy", q, self.memory(k, n), ctypes.c_uint64(0), self.memory(i, n),
                  ctypes.c_uint64(0), ctypes.c_uint64(n), after, 1 if after else 0,
                  ctypes.byref(value))
        return q, value

    def wait(self, q, value):
        self.call("hal_queue_wait", q, value, ctypes.c_int64((1 << 63) - 1))

    def fill(self, i):
        q = ctypes.c_void_p(self.lib.hal_device_queue(self.devices[i], 0))
        value = ctypes.c_uint64()
        self.call("hal_queue_fill", q, self.memory(i, 64), ctypes.c_uint64(0), ctypes.c_uint64(64),
                  ctypes.c_uint64(0), ctypes.byref(value))
        return q, value

    def send(self, i, k, n):
        self.wait(*self.copy(i, k, n))

    def refuse(self, i, k):
        """A copy from chip i to k that begins when k has failed."""
        class After(ctypes.Structure):
            _fields_ = [("queue", ctypes.c_void_p), ("value", ctypes.c_uint64)]
        q, value = self.fill(i)
        copied = self.copy(i, k, 64, ctypes.byref(After(q, value.value + 1)))
        self.call("hal_device_inject", self.devices[k], FATAL, ctypes.c_uint64(0))
        self.fill(i)
        try:
            self.wait(*copied)
        except OSError as e:
            assert "failed" in str(e), e
        else:
            raise AssertionError("it was not refused")


def be_client(client):
    """Does what its input says, line by line."""
    print("ready", flush=True)
    for line in sys.stdin:
        name, *args = line.split()
        getattr(client, name)(*map(int, args))
        print("done", flush=True)


class Linked(Smi):
    @contextlib.contextmanager
    def client(self, devices, *commands):
        """A process that has done these."""
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir))
        with subprocess.Popen([sys.executable, __file__, "--client", LIBRARY, devices], env=env,
                              text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            for command in commands:
                print(command, file=p.stdin, flush=True)
                self.assertEqual(p.stdout.readline(), "done\n", command)
            yield p
            p.stdin.close()
            self.assertEqual(p.wait(LIMIT_S), 0)

    def until(self, command, is_so):        # pylint: disable=arguments-differ
        """What the tool tells, once it is so: pages are written some time after the work."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            told = json.loads(self.smi(command, "--json").stdout)
            self.assertEqual(wrong(told, SCHEMA), [])
            if is_so(told):
                return told
        raise AssertionError(told)

    def test_eight_chips_of_a_process_are_a_torus_of_links_that_work(self):
        with self.client("sim:devices=8,hbm=64M", *(f"open {i}" for i in range(8))):
            told = self.until("topo", lambda t: sum(x["up"] for x in t["links"]) == 24)
            self.assertEqual(len({d["fabric"] for d in told["devices"]}), 1)
            self.assertRegex(told["devices"][0]["fabric"], "^[0-9a-f]{16}$")
            for i, d in enumerate(told["devices"]):
                self.check(d, bus_id=f"sim:{i}", chip=i, n_chips=8, shape="4x2x1",
                           coords=f"{i % 4},{i // 4},0", links="3 of 3 work")
            ways = {(x["chip"], x["port"]): (x["peer_chip"], x["peer_bus_id"])
                    for x in told["links"]}
            for i in range(8):
                row = i & 4
                self.assertEqual(ways[(i, "x+")][0], row | (i + 1) & 3)
                self.assertEqual(ways[(i, "x-")][0], row | (i - 1) & 3)
                self.assertEqual(ways[(i, "y+")], (i ^ 4, f"sim:{i ^ 4}"))
            self.assertEqual(len(told["hops"]), 56)
            for h in told["hops"]:
                a, b = h["from_chip"], h["to_chip"]
                x = abs(a % 4 - b % 4)
                self.assertEqual(h["hops"], min(x, 4 - x) + (a // 4 != b // 4))
            self.assertEqual(len(self.smi_json("list")["devices"]), 8)
            self.assertRegex(self.smi("info", "-d", "sim:6").stdout,
                             r"FABRIC +[0-9a-f]{16}\nSHAPE +4x2x1\nCHIP +6\nCHIPS +8\n"
                             r"COORDS +2,1,0\nLINKS +3 of 3 work\n")
            text = self.smi("topo").stdout
            self.assertRegex(text, r"sim:6 +3 +2 +1 +2 +2 +1 +0 +1\n")
            codes = {r["code"] for r in self.smi_json_of("doctor")["findings"]}
            self.assertFalse(codes & {"LINK_DOWN", "LINK_UNUSED", "LINK_REFUSES"})

    def smi_json_of(self, *args):
        return json.loads(self.smi(*args, "--json").stdout)

    def test_bytes_are_counted_on_every_link_of_the_way(self):
        with self.client("sim:devices=4,hbm=64M", *(f"open {i}" for i in range(4)),
                         "send 0 3 8192"):
            def counted(told):
                x = {(x["chip"], x["port"]): x for x in told["links"]}
                # 0 is at (0, 0), 3 at (1, 1): by way of 1, x first. What only receives or
                # passes on has no interrupt to tell it.
                return len(x) == 8 and x[(0, "x+")]["tx_bytes"] == 8192 and x
            told = self.until("stats", counted)
            x = {(x["chip"], x["port"]): x for x in told["links"]}
            self.check(x[(0, "x+")], rx_bytes=0, n_packets=1, n_refused=0, up=1, state="up")
            self.assertEqual(x[(0, "y+")]["tx_bytes"], 0)
            text = self.smi("--prometheus").stdout
            self.assertRegex(text, r'tessera_link_tx_bytes_total\{bus_id="sim:0",pid="\d+",'
                                   r'port="x\+",peer_chip="1"\} 8192\n')
            self.assertIn("# TYPE tessera_link_up gauge\n", text)

    def test_a_chip_that_fails_is_found_by_its_neighbours(self):
        with self.client("sim:devices=2,hbm=64M", "open 0", "open 1", "refuse 0 1"):
            told = self.until("topo", lambda t: any(x["n_refused"] for x in t["links"]
                                                    if x["chip"] == 0))
            x, = (x for x in told["links"] if x["chip"] == 0)
            self.check(x, state="neighbour fatal", up=0, n_refused=1, peer_bus_id="sim:1")
            self.assertEqual(told["devices"][0]["links"], "0 of 1 work")
            told = self.until("doctor", lambda t: ("DEAD", "sim:1") in {
                (r["code"], r["subject"]) for r in t["findings"]})
            found = {(r["code"], r["subject"]): r for r in told["findings"]}
            self.assertIn("link x+ to sim:1: neighbour fatal, as process",
                          found[("LINK_DOWN", "sim:0")]["evidence"])
            self.assertIn("refused 1 writes", found[("LINK_REFUSES", "sim:0")]["evidence"])

    def test_served_chips_tell_of_their_links_through_their_clients(self):
        sockets = self.dir / "sockets"
        log = (self.dir / "log").open("w+")
        with log, subprocess.Popen([SIM, "--socket-dir", sockets, "--devices", "3", "--hbm",
                                    "64M"], stdout=log) as server:
            try:
                end = time.monotonic() + LIMIT_S
                while "serving" not in (self.dir / "log").read_text():
                    self.assertLess(time.monotonic(), end)
                names = [f"vfio-user:{sockets}/{i}.sock" for i in range(2)]
                with self.client(names[0], "open 0"), self.client(names[1], "open 0"):
                    told = self.until("topo", lambda t: sum(
                        x["peer_chip"] < 2 and x["up"] for x in t["links"]) == 2)
                    self.assertEqual(len({d["fabric"] for d in told["devices"]}), 1)
                    self.assertEqual([(d["kind"], d["chip"], d["n_chips"], d["links"])
                                      for d in told["devices"]],
                                     [("vfio-user", 0, 3, "1 of 2 work"),
                                      ("vfio-user", 1, 3, "1 of 2 work")])
                    off = {(x["chip"], x["peer_chip"], x["state"], x["peer_bus_id"])
                           for x in told["links"] if not x["up"]}
                    self.assertEqual(off, {(0, 2, "neighbour off", ""),
                                           (1, 2, "neighbour off", "")})
                    row, _ = (r for r in self.smi_json_of("doctor")["findings"]
                              if r["code"] == "LINK_UNUSED")
                    self.assertRegex(row["evidence"],
                                     r"to chip 2 of fabric [0-9a-f]{16}: neighbour off")
            finally:
                server.terminate()

    def test_who_uses_one_chip_of_many_hears_of_no_neighbours(self):
        with self.client("sim:devices=4,hbm=64M", "open 0"):
            told = self.until("topo", lambda t: t["links"])
            self.check(told["devices"][0], n_chips=4, links="0 of 2 work")
            codes = {r["code"] for r in self.smi_json_of("doctor")["findings"]}
            self.assertFalse(codes & {"LINK_DOWN", "LINK_UNUSED", "LINK_REFUSES"})

    def test_links_and_hops_follow_the_devices_that_are_selected(self):
        self.publish("tessera-0-7", linked(7, 4))
        self.publish("tessera-0-8", linked(8, 2, fabric=2))
        told = self.smi_json("topo", "-d", "2", "-d", "sim:3")
        self.assertEqual([d["chip"] for d in told["devices"]], [1, 3])
        self.assertEqual({(x["pid"], x["chip"]) for x in told["links"]}, {(7, 1), (7, 3)})
        self.assertEqual([(h["from_chip"], h["to_chip"], h["hops"]) for h in told["hops"]],
                         [(1, 3, 2), (3, 1, 2)])

    def test_places_and_links_of_a_stranger_that_do_not_fit_are_survived(self):
        p = linked(7, 64)
        for d in p.devices:
            d.chip, d.n_links = 0xffffffff, 0xffffffff
            d.coords[0] = d.shape[1] = 0xffffffff
            for x in d.links:
                x.peer, x.dim, x.is_, x.tx_bytes = 0xffff, 255, 255, (1 << 64) - 1
        self.publish("tessera-0-7", p)
        told = self.smi_json("topo")
        self.assertEqual(len(told["links"]), 64 * 6)
        self.check(told["links"][0], port="255+", peer_chip=0xffff, state="unknown (255)", up=0,
                   peer_bus_id="")
        self.assertEqual({h["hops"] for h in told["hops"]}, {None})
        for command in ("topo", "stats", "doctor"):
            self.assertEqual(self.smi(command, "--root", "/none").stderr, "")
        self.assertEqual(self.smi("report", self.dir / "r.html").returncode, 0)

    def test_a_place_outside_the_torus_has_no_hops(self):
        for last, hops in ((3, 1), (4, None)):
            p = linked(7, 4)
            p.devices[3].coords[0] = last
            self.publish(f"tessera-0-{last}", p)
            rows = self.smi_json("topo")["hops"]
            told = {(h["from_chip"], h["to_chip"]): h["hops"] for h in rows}
            self.assertEqual((told[(0, 3)], told[(3, 0)], told[(0, 2)]), (hops, hops, 2))
            self.held.pop().close()

    def test_more_chips_than_hops_are_counted_for_are_told_of(self):
        for pid in range(1, 6):
            self.publish(f"tessera-0-{pid}", linked(pid, 64))
        done = self.smi("topo", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not all hops are counted", done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["hops"]), 65536)

    def test_links_that_nobody_tells_of_are_unknown_and_not_none(self):
        told = self.smi_json("topo", "--root", self.root())
        self.assertEqual({d["links"] for d in told["devices"]},
                         {"unknown: only who has the device open can ask, and no process tells"})
        self.assertEqual((told["links"], told["hops"]), ([], []))
        p = linked(7, 2)
        p.devices[0].read_at = 0
        p.devices[1].n_links = 0
        self.publish("tessera-0-7", p)
        self.publish("tessera-0-8", page(8))
        self.assertEqual([d["links"] for d in self.smi_json("topo")["devices"]],
                         ["unknown: process 7 has not told of them", "none",
                          "unknown: process 7 has not told of them"])


def linked(pid, n, fabric=1):
    """A page of n chips in a row of a torus, as they work."""
    p = page(pid, devices=n)
    for i in range(n):
        d = p.devices[i]
        d.fabric, d.chip, d.n_chips, d.read_at, d.n_links = fabric, i, n, 1, 2
        d.coords[0] = i
        d.shape[0], d.shape[1], d.shape[2] = n, 1, 1
        for k, x in enumerate(d.links[:2]):
            x.peer, x.dim, x.is_down, x.is_ = (i + (n - 1 if k else 1)) % n, 0, k, UP
            x.tx_bytes, x.rx_bytes, x.n_packets = 100 + i, 200 + i, 3
    return p


class DriverLinks(smi_doctor_test.Machine):
    def test_the_kernel_driver_is_not_said_to_have_no_links(self):
        self.with_driver(FAKE_FABRIC="7")
        told, = json.loads(self.run_smi("topo", "--json").stdout)["devices"]
        self.check(told, fabric=f"{7:016x}", chip=1, n_chips=2, coords="1,0,0", shape="2x1x1",
                   links="unknown: the kernel driver is too old to tell")
        # A driver that can be asked, of each state.
        for state, word, up in ((1, "up", 1), (2, "neighbour fatal", 0), (4, "down", 0)):
            self.env["FAKE_LINK"] = str(state)
            told = json.loads(self.run_smi("topo", "--json").stdout)
            self.check(told["devices"][0], links=f"{up} of 1 work")
            row, = told["links"]
            self.check(row, bus_id="accel:accel0", pid=None, chip=1, port="x-", peer_chip=0,
                       state=word, up=up, tx_bytes=5, rx_bytes=6, n_packets=7, n_refused=0,
                       age_ns=0)
            found = {r["code"]: r for r in self.doctor().values()}
            self.assertEqual("LINK_DOWN" in found, not up)
        self.assertIn("down, as the kernel driver says", found["LINK_DOWN"]["evidence"])
        self.assertIn("xla-smi reset accel:accel0", found["LINK_DOWN"]["fix"])
        self.env["FAKE_REFUSED"] = "3"
        self.assertIn("refused 3 writes", self.doctor()["LINK_REFUSES"]["evidence"])
        self.env.pop("FAKE_FABRIC")
        told, = json.loads(self.run_smi("topo", "--json").stdout)["devices"]
        self.check(told, fabric="", chip=None, links="none")


# ---- registers ----

class Registers(smi_doctor_test.Machine):
    VALUES = {0x0: 0x7e551234, 0x4: 0x00010003, 0x8: 0x0001001000200040, 0x14: 1,
              0x30: 1 << 30, 0x40: 123456789, 0x48: 0, 0x4c: 5}

    def setUp(self):
        super().setUp()
        self.decode(True)
        bar = bytearray(0x80000)
        for at, value in self.VALUES.items():
            bar[at:at + 8] = value.to_bytes(8, "little") if at in (0x8, 0x30, 0x40) else \
                value.to_bytes(4, "little") + bar[at + 4:at + 8]
        bar[0x18:0x20] = bytes([0xaa] * 8)      # ASQ, which nobody may see
        (self.function / "resource0").write_bytes(bar)

    def decode(self, is_on):
        config = bytearray(bytes.fromhex("3412557e") + bytes(252))
        config[4] = 2 if is_on else 0
        (self.function / "config").write_bytes(config)

    def test_registers_that_only_tell_are_read_by_name(self):
        done = self.run_smi("reg", smi_doctor_test.BDF, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        told = json.loads(done.stdout)
        self.assertEqual(wrong(told, SCHEMA), [])
        text = (TOP / "hal/hw/regs.def").read_text(encoding="utf-8")
        expected = []
        for name, at, size in re.findall(r"^REG\((\w+), +(\w+), (\d), RO", text, re.M):
            value = self.VALUES[int(at, 16)]
            expected.append((name, at, f"0x{value:0{2 * int(size)}x}"))
        self.assertEqual([(r["name"], r["offset"], r["value"]) for r in told["registers"]],
                         expected)
        done = self.run_smi("reg", "0", "clock")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"REGISTER.*\nCLOCK +0x0040 +0x00000000075bcd15 +device "
                                      r"clock.*\n$")
        self.assertEqual(self.run_smi("reg", "0", "CLOCK", "--csv").stdout.splitlines()[1][:60],
                         '0000:03:00.0,CLOCK,0x0040,0x00000000075bcd15,"device clock, ')

    def test_a_register_with_an_effect_is_refused_by_name(self):
        for name in ("CTRL", "asq", "SCRATCH"):
            done = self.run_smi("reg", "0", name)
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertIn(f"register {name.upper()} is RW", done.stderr)
        done = self.run_smi("reg", "0", "CLICK")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('no register "CLICK". Those that may be read: ID VERSION CAP STATUS',
                      done.stderr)

    def refused(self, device, why, status=4):
        done = self.run_smi("reg", device)
        self.assertEqual((done.returncode, done.stdout), (status, ""))
        self.assertIn(why, done.stderr)

    def test_where_registers_can_not_be_read_is_said(self):
        self.refused("9", 'no device "9"', 3)
        p = page(7, devices=2)
        p.devices[1].kind, p.devices[1].bus_id = 2, b"/run/0.sock"
        self.publish("tessera-0-7", p)
        self.refused("sim:0", "a model inside its process")
        self.refused("/run/0.sock", "a served device answers its one client alone")
        self.decode(False)
        self.refused(smi_doctor_test.BDF, "does not decode memory")
        (self.function / "config").write_bytes(b"\xff" * 256)
        self.refused(smi_doctor_test.BDF, "configuration space does not answer")
        self.decode(True)
        (self.function / "resource0").write_bytes(bytes(4095))
        self.refused(smi_doctor_test.BDF, "is smaller than the registers are")
        (self.function / "resource0").unlink()
        self.refused(smi_doctor_test.BDF, "resource0: No such file")


# ---- the page of HTML ----

class Checker(html.parser.HTMLParser):
    """Elements are closed in order, there is nothing that acts or is elsewhere."""

    VOID = {"meta", "rect"}
    KNOWN = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "thead",
             "tbody", "tr", "th", "td", "nav", "a", "section", "div", "p", "svg", "rect", "line",
             "text"}
    ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "href", "id", "class", "title",
                  "viewbox", "width", "height", "role", "aria-label", "x", "y", "x1", "y1", "x2",
                  "y2", "rx", "fill", "stroke", "stroke-width", "stroke-dasharray",
                  "text-anchor", "font-size"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.texts, self.ids, self.targets, self.wrong = [], [], [], [], []
        self.cells = []
        self.feed(text)
        self.close()
        self.wrong += [f"{name} is not closed" for name in self.open]
        self.wrong += [f"{t} leads nowhere" for t in self.targets if t[1:] not in self.ids]

    def handle_starttag(self, tag, attrs):
        if tag not in self.KNOWN:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in self.ATTRIBUTES:
                self.wrong.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.targets.append(value)
        if tag == "td":
            self.cells.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.wrong.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data

    def handle_comment(self, data):
        self.wrong.append(f"<!--{data}")

    def unknown_decl(self, data):
        self.wrong.append(f"<![{data}")


class Report(Smi):
    def report(self, *args):
        done = self.smi("report", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def checked(self, text):
        c = Checker(text)
        self.assertEqual(c.wrong, [])
        self.assertNotRegex(text, r"(?i)https?:|url\(|@import|<script|javascript:")
        return c

    def test_the_page_of_a_machine_on_record_is_as_on_record(self):
        text = self.report("-", DATA / "node.json")
        self.golden("report.html", text)
        c = self.checked(text)
        node = json.loads((DATA / "node.json").read_text(encoding="utf-8"))
        shown = set(c.cells)
        for table in ("devices", "links", "heaps", "processes"):
            for row in node[table]:
                self.assertIn(row.get("bus_id") or str(row["pid"]), shown)
        for row in node["events"] + node["findings"]:
            self.assertIn(row.get("text") or row["evidence"], shown)
        views = re.findall(r"^VIEW\(report,", (TOP / "tools/xla-smi/commands.def").read_text(
            encoding="utf-8"), re.M)
        self.assertEqual(len(c.ids), len(views))

    def test_texts_of_strangers_stay_texts(self):
        evil = ['</td><script>alert(1)</script>', "<img src=x onerror='a()'>", '"><svg/onload=1>',
                "&lt;b&gt; &amp", "\u202egnp.exe", "<!-- <![CDATA[ ]]>", "\x1b[2J\x9b2J",
                "</title></style></svg>"]
        node = json.loads((DATA / "node.json").read_text(encoding="utf-8"))
        fields, seen = [], set()
        for name, schema in SCHEMA["properties"].items():
            if "items" not in schema:
                continue
            for i, row in enumerate(node[name]):
                for k, (key, kind) in enumerate(schema["items"]["properties"].items()):
                    if kind["type"] == "string" and key not in ("fabric", "coords", "shape"):
                        row[key] = evil[(i + k) % len(evil)]
                        fields.append((name, key))
        for key in ("host", "time", "looked_for"):
            node[key] = evil[0]
        path = self.dir / "evil.json"
        path.write_text(json.dumps(node), encoding="utf-8")
        c = self.checked(self.report("-", path))
        self.assertGreater(len(set(fields)), 30)
        for text in evil[:1] + evil[3:5]:
            self.assertTrue(any(text.startswith(cell.rstrip("?")) and cell for cell in c.cells),
                            text)
            seen.add(text)
        self.assertFalse([t for t in c.texts if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", t)])

    def test_a_report_is_of_this_machine_if_no_record_is_named(self):
        p = self.rich()
        p.devices[0].running = b"<b>step"
        self.publish("tessera-0-7", p)
        at = self.dir / "r.html"
        self.assertEqual(self.report(at), "")
        c = self.checked(at.read_text(encoding="utf-8"))
        self.assertIn("<b>step", c.cells)
        self.assertIn("page poisoned", c.cells)
        self.assertTrue(any("no device is on PCI" in t for t in c.texts))
        done = self.smi("report", self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Is a directory", done.stderr)
        done = self.smi("report", "-", self.dir / "none.json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        with open("/dev/full", "w", encoding="ascii") as full:
            done = self.smi("report", "-", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)

    def test_an_empty_machine_has_a_page(self):
        c = self.checked(self.report("-", "--root", "/none"))
        self.assertTrue(any("no process uses a device" in t for t in c.texts))
        self.assertTrue(any("no chips are linked" in t for t in c.texts))

    def test_nothing_is_written_if_a_device_is_not_there(self):
        at = self.dir / "r.html"
        done = self.smi("report", at, "-d", "sim:9")
        self.assertEqual((done.returncode, at.exists()), (3, False))


def load_tests(loader, _tests, _pattern):
    """Not those of smi_test again, from which these come."""
    suite = unittest.TestSuite()
    for case in (Linked, DriverLinks, Registers, Report):
        suite.addTests(case(name) for name in loader.getTestCaseNames(case)
                       if name in vars(case))
    return suite


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        sys.exit(be_client(Client(*sys.argv[2:])))
    smi_test.UPDATE = "--update" in sys.argv and not sys.argv.remove("--update")
    smi_test.SMI, LIBRARY, SIM = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    import tempfile
    with tempfile.TemporaryDirectory() as smi_doctor_test.PRELOAD_DIR:
        unittest.main()
