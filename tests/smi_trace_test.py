# SPDX-License-Identifier: Apache-2.0
"""xla-smi trace: smi_trace_test.py XLA-SMI CONFORMANCE

What the devices of live processes do, as a file; processes that end, hang or may not be asked;
and ones that tell nonsense. The format is written down a second time here, from
hal/trace_wire.h.
"""

import contextlib
import errno
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import unittest

import smi_test
from smi_test import LIMIT_S, NOBODY, Smi, page

CONFORMANCE = ""
MAGIC, VERSION = 0x54535354, 1
HELLO, REFUSED, DEVICE, STARTED, STOPPED, TRACE, WORD, RECORDS, END = range(1, 10)
PROGRAM, GROUP, PARKED, COPY, WAIT = range(1, 6)
COMPUTE, DMA = 1, 2
ALREADY_EXISTS, UNIMPLEMENTED, INTERNAL = 6, 12, 13
ROW = {"compute queue": 1, "core": 2, "DMA queue": 3}


# ---- the format ----

def message(kind, body=b""):
    return struct.pack("II", kind, len(body)) + body


def hello(pid, magic=MAGIC, version=VERSION):
    return message(HELLO, struct.pack("4I", magic, version, pid, 0))


def refused(code, text):
    return message(REFUSED, struct.pack("II504s", code, 0, text))


def device(index=0, code=0, text=b"", name=b"sim:0"):
    return message(DEVICE, struct.pack("II64s32s480s", index, code, name, b"Tessera T1", text))


def started(n=1):
    return message(STARTED, struct.pack("qII", time.clock_gettime_ns(time.CLOCK_MONOTONIC), n, 0))


def stopped():
    return message(STOPPED, struct.pack("qII", 0, 0, 0))


def trace(n, lost=0, ended=1000):
    return message(TRACE, struct.pack("QQq", n, lost, ended))


def record(kind=GROUP, begin=10, end=20, words=(1, 2, 3, 4), cls=COMPUTE, code=0, tag=7, status=0):
    return struct.pack("qqQQIIIIIIBBBBHH", begin, end, 64, 0, tag, 1, *words, kind, cls, code, 0,
                       status, 0)


def records(*them):
    return message(RECORDS, b"".join(them))


def words(*texts):
    return b"".join(message(WORD, t) for t in texts)


def end(dropped=0):
    return message(END, struct.pack("Q", dropped))


# What a process says when it is asked, step by step: greeting, START, STOP, FETCH.
GOOD = (device(), trace(3), words(b"main", b"fusion(add)", b"jit(f)/add", b"f.py:3"),
        records(record(), record(begin=20, end=35), record(PROGRAM, 5, 40, (1, 0, 0, 0))), end())


def stop(p):
    """Stops the process p; returns when all its threads stand still."""
    p.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED)


def has_nameless(folder):
    """Whether there can be files without names."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError as e:
        if e.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        return False
    return True


class Traces(Smi):
    def trace(self, *args, **how):
        return self.smi("trace", *args, "-o", self.dir / "t.json", **how)

    def told(self):
        with open(self.dir / "t.json", encoding="utf-8") as f:
            return json.load(f)["traceEvents"]

    def left(self):
        """What is in the folder beside pages and sockets."""
        return sorted(n for n in os.listdir(self.dir) if not n.startswith("tessera-"))

    def failed(self, done, status, *texts):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    @contextlib.contextmanager
    def busy(self, devices="sim:hbm=64M,lanes=1", env=()):
        """A process that computes, copies and fails; its events are known."""
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir), TESSERA_CRASH_DUMPS="0",
                   TESSERA_DEVICES=devices, **dict(env))
        with subprocess.Popen([CONFORMANCE, "--busy", "0"], env=env, text=True,
                              stdout=subprocess.PIPE) as p:
            reader = threading.Thread(target=p.stdout.read)
            try:
                self.assertRegex(p.stdout.readline(), "^round")
                reader.start()
                yield p
            finally:
                p.kill()
                if reader.ident:
                    reader.join()

    def runs(self, p):
        rows = self.smi_json("proc")["clients"]
        return next(r["n_execute"] for r in rows if r["pid"] == p.pid)

    def work(self, p, rounds):
        """Waits until it has done so many rounds more, of three runs each, from now on: what its
        page tells first is of some time ago, and so may be the next that is written there."""
        known, limit = self.runs(p), time.monotonic() + LIMIT_S
        for more in (1, 1, 3 * rounds):
            while (now := self.runs(p)) < known + more:
                self.assertLess(time.monotonic(), limit)
            known = now

    def trace_runs(self, which, *processes, to="t.json"):
        """Traces until some of all that they do is there, for longer each time: others have the
        cores, too. What the tool did and said, the events, and for how long."""
        for seconds in (0.5, 2, 8, 32):
            done = self.smi("trace", str(which), "-s", str(seconds), "-o",
                            to if to == "-" else self.dir / to)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            events = json.loads(done.stdout)["traceEvents"] if to == "-" else self.told()
            told = {(e["pid"], e["name"]) for e in events}
            if {(p.pid, name) for p in processes for name in ("busy", "copy", "fill")} <= told:
                break
        return done, events, seconds

    @contextlib.contextmanager
    def begun(self, pid, *args):
        """A trace that is being recorded."""
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir))
        limit = time.monotonic() + LIMIT_S
        with contextlib.ExitStack() as stack:
            p, says = None, ""
            while not p or f"is traced already, by process {p.pid}:" not in says:
                self.assertLess(time.monotonic(), limit)
                # Of the two who ask, the other one may be the first.
                if not p or p.poll() is not None:
                    if p:
                        self.assertIn("is traced already", p.communicate()[1])
                    p = stack.enter_context(subprocess.Popen(
                        [smi_test.SMI, "trace", str(pid), "-s", "3500", "-o", self.dir / "t.json",
                         *args], env=env, text=True, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE))
                    stack.callback(p.kill)
                says = self.smi("trace", str(pid), "-s", "0.001", "-o", "/dev/null").stderr
            yield p


class Live(Traces):
    def check_busy(self, events, pid, seconds):
        """The rows, names and times of busy.c; how many runs there were."""
        rows = {e["tid"]: e["args"]["name"] for e in events
                if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == pid}
        self.assertEqual(sorted(rows.values()),
                         ["sim:0 DMA queue", "sim:0 compute queue", "sim:0 core"])
        mine = [e for e in events if e["ph"] == "X" and e["pid"] == pid]
        of = {row: [e for e in mine if rows[e["tid"]] == f"sim:0 {row}"] for row in ROW}
        for e in mine:
            self.assertGreaterEqual(e["ts"], 0)
            self.assertGreaterEqual(e["dur"], 0)
            # Others may have the cores between asking and stopping.
            self.assertLessEqual(e["ts"] + e["dur"], (seconds + LIMIT_S) * 1e6)
        self.assertLessEqual({"copy", "fill"}, {e["name"] for e in of["DMA queue"]})
        runs = {e["args"]["run_id"]: e for e in of["compute queue"] if e["name"] == "busy"}
        self.assertTrue(runs)
        ops = [e for e in of["core"] if e["args"]["hlo_module"] == "busy"]
        self.assertEqual({"fusion(multiply,xor)"}, {e["name"] for e in ops} - {"return"} -
                         {"transpose"})
        # A run that had begun before is not told of, nor are its operations.
        for e in ops:
            run = runs.get(e["args"]["run_id"])
            if run:
                self.assertLessEqual(run["ts"], e["ts"] + 0.002)
                self.assertLessEqual(e["ts"] + e["dur"], run["ts"] + run["dur"] + 0.002)
        self.assertEqual({e["args"]["run_id"] for e in ops} - set(runs), set())
        return len(runs)

    def test_what_a_live_process_does_is_told_by_name_and_time(self):
        with self.busy() as p:
            for _ in range(2):
                done, events, seconds = self.trace_runs(p.pid, p)
                self.assertRegex(done.stdout, r"t\.json: \d\.\d s of 1 devices of 1 processes, \d+ "
                                              r"events; ui\.perfetto\.dev opens it\n$")
                self.check_busy(events, p.pid, seconds)
                self.assertIn({"name": "process_name", "ph": "M", "pid": p.pid, "tid": 0,
                               "args": {"name": "conformance"}}, events)
                self.assertEqual(int(done.stdout.split(", ")[1].split()[0]),
                                 sum(e["ph"] == "X" for e in events))
            self.assertEqual(self.left(), ["t.json"])
            self.assertEqual(stat.S_IMODE(os.stat(self.dir / "t.json").st_mode), 0o644)
            self.assertIsNone(p.poll())

    def test_all_processes_and_devices_are_in_one_file(self):
        env = {"TESSERA_SIM": "devices=2"}
        with self.busy() as a, self.busy(env=env) as b:
            done, events, seconds = self.trace_runs("all", a, b)
            self.assertIn("of 2 processes", done.stdout)
            for p in (a, b):
                self.check_busy(events, p.pid, seconds)
            self.assertEqual({e["pid"] for e in events}, {a.pid, b.pid})
            # And one that is stopped is missed by name, not waited for.
            stop(a)
            done = self.trace("all", "-s", "0.5")
            self.assertEqual(done.returncode, 6)
            self.assertIn(f"process {a.pid} (conformance): it does not answer within 5 s: it is "
                          "stopped; let it go on (kill -CONT)", done.stderr)
            self.assertIn("of 1 processes", done.stdout)
            self.assertEqual({e["pid"] for e in self.told()}, {b.pid})
            a.send_signal(signal.SIGCONT)
            self.assertEqual(self.trace(str(a.pid), "-s", "0.1").returncode, 0)

    def test_a_process_that_is_killed_meanwhile_is_told_of(self):
        with self.busy() as p, self.begun(p.pid) as tool:
            p.kill()
            out, err = tool.communicate(timeout=LIMIT_S)
            self.assertEqual((tool.returncode, out), (6, ""))
            self.assertIn(f"process {p.pid} (conformance): it ended, or hung up: what it had "
                          "recorded is lost", err)
            self.assertEqual(self.left(), [])
            p.wait()
            # What it left is taken away with its page.
            self.assertEqual(len(os.listdir(self.dir)), 2)
            self.failed(self.trace(str(p.pid)), 3, f"there is no process {p.pid}")
            self.assertEqual(os.listdir(self.dir), [])

    def test_a_process_that_is_stopped_meanwhile_is_told_of(self):
        with self.busy() as p, self.begun(p.pid) as tool:
            stop(p)
            tool.send_signal(signal.SIGINT)
            out, err = tool.communicate(timeout=LIMIT_S)
            self.assertEqual((tool.returncode, out), (6, ""))
            self.assertIn("it is stopped", err)
            self.assertEqual(self.left(), [])

    def test_an_interrupt_ends_the_recording_and_keeps_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.busy() as p, self.begun(p.pid) as tool:
                self.work(p, 3)
                tool.send_signal(number)
                _, err = tool.communicate(timeout=LIMIT_S)
                self.assertEqual((tool.returncode, err), (0, ""))
            self.check_busy(self.told(), p.pid, LIMIT_S)

    def test_a_second_interrupt_gives_up(self):
        with self.busy() as p, self.begun(p.pid) as tool:
            stop(p)
            began = time.monotonic()
            while tool.poll() is None:      # two at once may be one
                tool.send_signal(signal.SIGINT)
                self.assertLess(time.monotonic() - began, LIMIT_S)
            out, err = tool.communicate()
            self.assertEqual((tool.returncode, out), (1, ""))
            self.assertIn("interrupted", err)
            self.assertEqual(self.left(), [])

    def test_a_tool_that_is_killed_leaves_the_process_to_the_next(self):
        with self.busy() as p:
            with self.begun(p.pid) as tool:
                done = self.smi("trace", str(p.pid), "-o", "/dev/null")
                self.failed(done, 4, f"process {p.pid} is traced already, by process {tool.pid}")
                tool.kill()
                tool.wait()
                # Its file has no name before it is whole.
                if has_nameless(self.dir):
                    self.assertEqual(self.left(), [])
            limit = time.monotonic() + LIMIT_S
            while self.trace(str(p.pid), "-s", "0.1").returncode:
                self.assertLess(time.monotonic(), limit)

    def test_who_may_not_is_told_so(self):
        if os.getuid():
            self.skipTest("needs root, to be somebody else")
        with self.busy() as p:
            done = self.smi("trace", str(p.pid), "-o", "-", **self.as_nobody())
            self.failed(done, 4, f"process {p.pid} (conformance): it is user root's: only that "
                                 "user and root may trace it")

    def test_pages_that_may_not_be_read_are_not_said_to_be_none(self):
        if os.getuid():
            self.skipTest("needs root, to be somebody else")
        self.publish("tessera-0-7", smi_test.page(7))
        (self.dir / "tessera-0-7").chmod(0)
        done = self.smi("trace", "all", "-o", "-", **self.as_nobody())
        self.failed(done, 4, f"pages in {self.dir} are not for this user to read")

    def test_a_device_is_not_what_is_traced(self):
        self.failed(self.trace("all", "-d", "0"), 2, 'leave out -d "0"')

    def test_files_of_every_kind(self):
        with self.busy() as p:
            args = ("trace", str(p.pid), "-s", "0.1", "-o")
            _, events, seconds = self.trace_runs(p.pid, p, to="-")
            self.check_busy(events, p.pid, seconds)
            self.assertEqual(self.smi(*args, "/dev/null").returncode, 0)
            self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
            self.failed(self.smi(*args, "/dev/full"), 1, "/dev/full: No space left")
            with open("/dev/full", "w", encoding="ascii") as full:
                self.assertEqual(self.smi(*args, "-", stdout=full).returncode, 1)
            # The trace's own file does not come to be standard output that was closed.
            done = self.smi(*args, "-", stdout=None, preexec_fn=lambda: os.close(1))
            self.assertEqual(done.returncode, 1)
            self.assertIn("could not be written", done.stderr)
            self.failed(self.smi(*args, self.dir / "none/t.json"), 1, "No such file or directory")
            # A link is replaced, and what it leads to stays; a file keeps who may read it.
            (self.dir / "real.json").write_text("old")
            (self.dir / "t.json").symlink_to("real.json")
            for mode in (0o644, 0o600):
                _, events, seconds = self.trace_runs(p.pid, p)
                self.check_busy(events, p.pid, seconds)
                self.assertFalse((self.dir / "t.json").is_symlink())
                self.assertEqual(stat.S_IMODE(os.stat(self.dir / "t.json").st_mode), mode)
                (self.dir / "t.json").chmod(0o600)
            self.assertEqual((self.dir / "real.json").read_text(), "old")
            self.assertEqual(self.left(), ["real.json", "t.json"])

    def test_a_file_system_may_have_no_files_without_names(self):
        before = self.dir / "before.so"
        smi_test.build_preload("no_tmpfile_preload.c", before)
        os.environ["LD_PRELOAD"] = str(before)
        try:
            with self.busy() as p:
                with self.begun(p.pid) as tool:
                    begun, = (name for name in self.left() if name != "before.so")
                    self.assertRegex(begun, r"^\.t\.json\.\w{6}$")
                    tool.send_signal(signal.SIGINT)
                    tool.communicate(timeout=LIMIT_S)
                    self.assertEqual(tool.returncode, 0)
                    self.assertEqual(self.left(), ["before.so", "t.json"])
                with self.begun(p.pid) as tool:
                    p.kill()
                    tool.communicate(timeout=LIMIT_S)
                    self.assertEqual((tool.returncode, self.left()), (6, ["before.so", "t.json"]))
        finally:
            del os.environ["LD_PRELOAD"]

    def test_processes_that_are_not_there(self):
        self.failed(self.trace("all"), 3, "no process has a telemetry page")
        self.failed(self.trace(str(os.getpid())), 3, "has no telemetry page in")
        self.failed(self.trace("4194999"), 3, "there is no process 4194999")
        for args in (("trace",), ("trace", "x"), ("trace", "0"), ("trace", "7x"), ("trace", "-7"),
                     ("trace", "all", "-s", "0"), ("trace", "all", "-s", "3601"),
                     ("trace", "all", "-o", "")):
            done = self.smi(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn("usage", done.stderr)
        old = page(4194999)
        old.version = 2
        self.publish("tessera-0-4194999-0123456789abcdef", old)
        self.failed(self.trace("4194999"), 1, "is of another version")
        self.failed(self.trace("all"), 1, f"pages in {self.dir} are of another version")
        self.assertEqual(self.left(), [])


class Fake(Traces):
    """Processes that are none, but have pages and sockets."""

    def setUp(self):
        super().setUp()
        self.threads, self.sockets = [], []

    def tearDown(self):
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        for t in self.threads:
            t.join()
        super().tearDown()

    def announce(self, pid, number):
        p = page(pid)
        p.socket = number
        self.publish(f"tessera-0-{pid}", p)
        return self.dir / f"tessera-trace-0-{pid}-{number:08x}"

    def serve(self, pid, *steps, number=0xabc):
        """Says the first of the steps to whoever comes, and one more for each request. A step may
        be a function that gives it, or a tuple of parts; None hangs up, there, too; after the last
        one it is silent."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.announce(pid, number)))
        listener.listen()
        self.sockets.append(listener)

        def talk():
            with contextlib.suppress(OSError), listener.accept()[0] as s:
                self.sockets.append(s)
                for step in steps:
                    step = step() if callable(step) else step
                    for part in step if isinstance(step, tuple) else (step,):
                        if part is None:
                            return
                        s.sendall(part)
                    if not s.recv(16):
                        return
                while s.recv(4096):
                    pass
        self.threads.append(threading.Thread(target=talk))
        self.threads[-1].start()

    def good(self, pid, told=GOOD, **how):
        self.serve(pid, hello(pid), lambda: device() + started(), stopped(), told, **how)

    def liar(self, *steps, what, status=1):
        """One that says this is left out, and nothing else suffers."""
        (self.dir / "t.json").write_text("as it was")
        self.serve(7, *steps)
        self.failed(self.trace("7", "-s", "0.01"), status, "process ", what)
        self.assertEqual((self.dir / "t.json").read_text(), "as it was")
        self.assertEqual(self.left(), ["t.json"])
        self.good(8, number=0xdef)
        done = self.smi("trace", "8", "-s", "0.01", "-o", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.forget()

    def forget(self):
        for name in os.listdir(self.dir):
            if name.startswith("tessera-"):
                (self.dir / name).unlink()
        while self.held:
            self.held.pop().close()

    def test_a_trace_by_hand(self):
        self.good(7)
        done = self.trace("7", "-s", "0.01")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        op, run = sorted((e for e in self.told() if e["ph"] == "X"), key=lambda e: e["name"])
        # Two groups of one operation are one event.
        self.check(op, name="fusion(add)", cat="op", dur=0.025, tid=2,
                   args={"hlo_op": "fusion(add)", "hlo_module": "main", "tf_op": "jit(f)/add",
                         "source": "f.py:3", "run_id": 7, "bytes_accessed": 128,
                         "instructions": 2})
        self.check(run, name="main", cat="program", dur=0.035, tid=1)
        self.assertAlmostEqual(op["ts"] - run["ts"], 0.005)

    def test_what_has_no_name_is_named_for_what_it_is(self):
        told = (device(), trace(4), records(
            record(COPY, cls=DMA, code=0x12, words=(0,) * 4, status=9),
            record(WAIT, cls=DMA, code=0x12, words=(0,) * 4),
            record(GROUP, words=(0,) * 4), record(PARKED, words=(0,) * 4)), end())
        with open(smi_test.DATA.parents[2] / "hal/hw/desc.def", encoding="utf-8") as f:
            fill, = (line for line in f if line.startswith("DESC(") and "FILL," in line)
        code = int(fill.split(",")[1], 0)
        told = tuple(part.replace(struct.pack("BBBB", COPY, DMA, 0x12, 0),
                                  struct.pack("BBBB", COPY, DMA, code, 0))
                     .replace(struct.pack("BBBB", WAIT, DMA, 0x12, 0),
                              struct.pack("BBBB", WAIT, DMA, code, 0)) for part in told)
        self.good(7, told)
        self.assertEqual(self.trace("7", "-s", "0.01").returncode, 0)
        events = {(e["name"], e["cat"]): e for e in self.told() if e["ph"] == "X"}
        self.assertEqual(set(events), {("fill", "copy"), ("wait: fill", "wait"), ("?", "op"),
                                       ("wait: ?", "wait")})
        self.assertTrue(events[("fill", "copy")]["args"]["status"])

    def test_hostile_texts_are_clean(self):
        evil = b'\x1b[2J"\\<script>\xff\n'
        self.good(7, (device(name=evil), trace(1), words(evil, b"\0", "é".encode(), b"x" * 1024),
                      records(record()), end()))
        self.assertEqual(self.trace("7", "-s", "0.01").returncode, 0)
        event, = (e for e in self.told() if e["ph"] == "X")
        self.check(event["args"], hlo_module='?[2J"\\<script>??', tf_op="é", source="x" * 1024)
        self.assertEqual(event["name"], '?[2J"\\<script>??')
        self.forget()
        self.serve(7, refused(UNIMPLEMENTED, evil))
        done = self.trace("7", "-s", "0.01")
        self.failed(done, 4, '?[2J"\\<script>??\n')
        self.assertNotIn("\x1b", done.stderr)

    def test_devices_that_are_not_traced(self):
        no = b"accel:0 can't be traced: its kernel driver takes no TRACE_START from programs"
        for code, status in ((UNIMPLEMENTED, 4), (ALREADY_EXISTS, 4), (INTERNAL, 1)):
            self.serve(7, hello(7), lambda c=code: device(0, c, no) + started(0), None)
            self.failed(self.trace("7", "-s", "0.01"), status, no.decode(),
                        "none of its devices is traced")
            self.assertEqual(self.left(), [])
            self.forget()
        self.serve(7, hello(7), lambda: started(0), None)
        self.failed(self.trace("7"), 3, "it has no device open")
        self.forget()
        # One of two: what the other did is there.
        self.serve(7, hello(7), lambda: device(0, UNIMPLEMENTED, no) + device(1) + started(1),
                   stopped(), GOOD)
        done = self.trace("7", "-s", "0.01")
        self.assertEqual(done.returncode, 4)
        self.assertIn(no.decode(), done.stderr)
        self.assertEqual(sum(e["ph"] == "X" for e in self.told()), 2)

    def test_records_that_were_lost_are_told_of(self):
        self.good(7, (device(), trace(1, lost=5), words(b"a", b"b", b"c", b"d"),
                      records(record()), end(dropped=3)))
        done = self.trace("7", "-s", "0.01")
        self.assertEqual(done.returncode, 1)
        self.assertIn("sim:0: 5 records were lost", done.stderr)
        self.assertIn("the traces of 3 devices", done.stderr)
        self.assertEqual(sum(e["ph"] == "X" for e in self.told()), 1)

    def test_greetings_that_are_none(self):
        for step in (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100, os.urandom(10000),
                     hello(8), hello(7, magic=1), started(), message(99), message(HELLO, b"short"),
                     struct.pack("II", HELLO, 0xffffffff), message(END, bytes(8))):
            self.liar(step, what="is no trace")
        self.liar(hello(7, version=2), what="it tells traces in version 2, this is 1")

    def test_ends_in_the_middle(self):
        whole = b"".join(GOOD)
        begin = hello(7), lambda: device() + started()
        for steps in ((None,), ((hello(7)[:9], None),), ((hello(7), None),), (hello(7), None),
                      (hello(7), lambda: (device(), None)), (*begin, None),
                      (*begin, stopped(), None), (*begin, stopped(), (whole[:700], None)),
                      (*begin, stopped(), (whole[:-1], None))):
            self.liar(*steps, what="it ended, or hung up", status=6)

    def test_silence_has_an_end(self):
        self.liar(b"", what="it does not answer within 5 s", status=6)
        self.liar(hello(7)[:-1], what="it does not answer within 5 s", status=6)

    def test_beginnings_that_are_none(self):
        self.liar(hello(7), lambda: device() * 2000 + started(), what="no begin")
        self.liar(hello(7), stopped(), what="no begin")
        self.liar(hello(7), lambda: started() * 2, stopped(), what="speaks without being asked")
        self.liar(hello(7), started, end(), what="no end")

    def test_records_that_are_none(self):
        four = words(b"a", b"b", b"c", b"d")
        for told, what in (
                ((device(), trace(1), records(record())), "a word that was not told"),
                ((device(), trace(1), four, records(record(words=(1, 2, 3, 5)))),
                 "a word that was not told"),
                ((device(), trace(1), four, records(record(begin=-1))), "a time outside"),
                ((device(), trace(1), four, records(record(begin=21))), "a time outside"),
                ((device(), trace(1), four, records(record(end=1001))), "a time outside"),
                ((device(), trace(1), four, records(record(kind=0))), "of no such kind"),
                ((device(), trace(1), four, records(record(kind=6))), "of no such kind"),
                ((device(), trace(1), four, records(record(cls=3))), "of no such kind"),
                ((device(), trace(1), four, records(record(), record())), "more records than"),
                ((device(), trace(2), four, records(record()), end()), "records are missing"),
                ((device(), trace(2), four, records(record()), device()), "records are missing"),
                ((trace(1),), "a trace of no device"),
                ((device(), trace(1 << 23)), "of too many records"),
                ((device(), trace(0), trace(0)), "a trace of no device"),
                ((device(), trace(0, ended=1 << 62)), "ends in the future"),
                ((device(), trace(0, ended=-1)), "ends in the future"),
                ((four,), "too many words"),
                ((device(), records(record())), "more records than"),
                ((message(RECORDS),), "no such kind or size"),
                ((message(RECORDS, bytes(65)),), "no such kind or size"),
                ((message(RECORDS, bytes(64 * 513)),), "no such kind or size"),
                ((message(WORD),), "no such kind or size"),
                ((message(WORD, b"x" * 1025),), "no such kind or size"),
                ((device() * 1025,), "too many traces"),
                ((hello(7),), "out of turn")):
            self.liar(hello(7), lambda: device() + started(), stopped(), told, what=what)

    def test_words_without_end_have_one(self):
        many = message(WORD, b"x" * 1024) * 1024
        self.liar(hello(7), lambda: device() + started(), stopped(),
                  (device(), trace(1)) + (many,) * 65, what="too many words")

    def test_what_a_liar_told_before_is_taken_back(self):
        for first, second in ((7, 8), (8, 7)):
            self.good(first, number=1)
            self.good(second, GOOD[:-2] + (records(record(), record(PROGRAM)), end()), number=2)
            done = self.trace("all", "-s", "0.01")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is no trace (records are missing)", done.stderr)
            self.assertEqual({e["pid"] for e in self.told()}, {os.getpid()})
            self.assertEqual(sum(e["ph"] == "X" for e in self.told()), 2)
            self.assertEqual(self.left(), ["t.json"])
            self.forget()

    def test_sockets_of_strangers_are_not_asked(self):
        # Another process listens than the one that has the page.
        path = self.announce(7, 5)
        ready, tell = os.pipe()
        child = os.fork()
        if not child:
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(str(path))
                s.listen()
                os.write(tell, b"x")
                signal.pause()
        try:
            os.read(ready, 1)
            self.failed(self.trace("7"), 4, f"is process {child} of user {os.getuid()}: a "
                                            "stranger, who is not asked")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(ready)
            os.close(tell)
        self.failed(self.trace("7"), 6, "nobody is at its socket")
        path.unlink()
        self.failed(self.trace("7"), 6, "nobody is at its socket")
        path.write_bytes(b"no socket")
        self.failed(self.trace("7"), 6, "nobody is at its socket")
        self.forget()
        if not os.getuid():
            self.good(7)
            os.chown(self.dir / "tessera-0-7", NOBODY, NOBODY)
            self.failed(self.trace("7"), 4, "of user 0: a stranger, who is not asked (the page is "
                                            f"user {NOBODY}'s)")
        self.assertEqual(self.left(), [])

    def test_a_page_without_a_socket(self):
        self.publish("tessera-0-7", page(7))
        self.failed(self.trace("7"), 4, "it can't be traced: its page names no socket")

    def test_a_process_is_known_by_its_own_number_and_by_ours(self):
        self.good(7)
        self.assertEqual(self.trace(str(os.getpid()), "-s", "0.01").returncode, 0)
        self.forget()
        # Of one process several HALs are several pages.
        self.good(7, number=1)
        self.good(8, number=2)
        done = self.trace(str(os.getpid()), "-s", "0.01")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("2 devices", done.stdout)
        self.assertEqual(sum(e["ph"] == "X" for e in self.told()), 4)
        self.forget()
        # Two that say they are one are not guessed at.
        self.good(7, number=1)
        code = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); " \
               "print(flush=True); time.sleep(1000)"
        other = self.dir / "tessera-0-7-b"
        other.write_bytes(bytes(page(7)))
        with subprocess.Popen([sys.executable, "-c", code, other], stdout=subprocess.PIPE) as p:
            try:
                p.stdout.readline()
                self.failed(self.trace("7"), 4, "more than one process says that it is 7")
            finally:
                p.kill()

    def test_more_wait_there_than_are_let_in(self):
        listener = socket.socket(socket.AF_UNIX)
        self.sockets.append(listener)
        listener.bind(str(self.announce(7, 1)))
        listener.listen(1)
        for _ in range(2):
            s = socket.socket(socket.AF_UNIX)
            self.sockets.append(s)
            s.connect(listener.getsockname())
        self.failed(self.trace("7"), 6, "it does not answer within 5 s")


def load_tests(loader, _tests, _pattern):
    """Not those of smi_test again, from which these come."""
    suite = unittest.TestSuite()
    for case in (Live, Fake):
        suite.addTests(case(name) for name in loader.getTestCaseNames(case)
                       if name in vars(case))
    return suite


if __name__ == "__main__":
    smi_test.SMI, CONFORMANCE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    unittest.main()
