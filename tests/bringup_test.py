# SPDX-License-Identifier: Apache-2.0
"""tessera-bringup as a user has it: steps, reports, exit statuses.

    python3 tests/bringup_test.py build/opt/tessera-bringup build/opt/tessera-sim
"""

import ctypes
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest
import xml.etree.ElementTree as xml

BRINGUP, SERVER = sys.argv[1:3]
MODEL = "sim:hbm=64M,lanes=1"
LIMIT_S = 1500  # of a run, for ones that hang: others may have the cores


def run(*args, devices=MODEL, **kw):
    return subprocess.run([BRINGUP, *args], env={**os.environ, "TESSERA_DEVICES": devices},
                          text=True, capture_output=True, timeout=LIMIT_S, check=False, **kw)


def listed():
    """(number, level, name) of each step."""
    return [(int(m[1]), int(m[2]), m[3]) for m in
            re.finditer(r"^ *(\d+)  level (\d)  (\w+)", run("--list").stdout, re.M)]


def tree(page):
    """A page of HTML as XML, which shows that everything that is opened is closed."""
    page = page.replace("<!DOCTYPE html>\n", "").replace('charset="utf-8">', 'charset="u"/>')
    return xml.fromstring(page.replace("'unsafe-inline'\">", "'unsafe-inline'\"/>"))


def on_terminal(*args, columns=80, term="xterm", both=False):
    """Exit status, standard output, and what a terminal got as standard error, or as both."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    got = []

    def read():
        try:
            while part := os.read(master, 65536):
                got.append(part)
        except OSError:
            pass    # Linux has EIO for the end

    with subprocess.Popen([BRINGUP, *args], stderr=slave,
                          stdout=slave if both else subprocess.PIPE, text=True,
                          env={**os.environ, "TESSERA_DEVICES": MODEL, "TERM": term}) as p:
        os.close(slave)
        reader = threading.Thread(target=read)
        reader.start()
        out = None if both else p.stdout.read()
        p.wait(LIMIT_S)
        reader.join()
    os.close(master)
    return p.returncode, out, b"".join(got).decode()


# Owns the name by which libunity knows that a launcher is there, as long as its input is open.
LAUNCHER = """
import ctypes, sys
gio, glib = ctypes.CDLL("libgio-2.0.so.0"), ctypes.CDLL("libglib-2.0.so.0")
p, s, i = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
gio.g_bus_get_sync.restype, gio.g_bus_get_sync.argtypes = p, [i, p, p]
glib.g_variant_parse.restype, glib.g_variant_parse.argtypes = p, [p, s, p, p, p]
call = gio.g_dbus_connection_call_sync
call.restype, call.argtypes = p, [p, s, s, s, s, p, p, i, i, p, p]
bus = gio.g_bus_get_sync(2, None, None)
name = glib.g_variant_parse(None, b"('com.canonical.Unity', uint32 4)", None, None, None)
assert call(bus, b"org.freedesktop.DBus", b"/org/freedesktop/DBus", b"org.freedesktop.DBus",
            b"RequestName", name, None, 0, 10000, None, None)
print("owned", flush=True)
sys.stdin.read()
"""


class Desktop:
    """A session bus with a launcher, and what that hears."""

    def __init__(self):
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address"],
                                    **quiet)
        self.env = {**os.environ, "TESSERA_DEVICES": MODEL,
                    "DBUS_SESSION_BUS_ADDRESS": self.bus.stdout.readline().strip()}
        self.launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER], env=self.env,
                                         stdin=subprocess.PIPE, **quiet)
        assert self.launcher.stdout.readline() == "owned\n"
        self.monitor = subprocess.Popen(
            ["dbus-monitor", "--session", "interface=com.canonical.Unity.LauncherEntry",
             "member=NameOwnerChanged"], env=self.env, **quiet)
        # It listens once it has lost its name.
        while "member=NameLost" not in self.monitor.stdout.readline():
            assert self.monitor.poll() is None

    def run(self, *args):
        return subprocess.run([BRINGUP, *args], env=self.env, text=True, capture_output=True,
                              timeout=LIMIT_S, check=False)

    def end(self):
        """What the monitor said."""
        for p in (self.launcher, self.bus):
            p.kill()
        text = self.monitor.stdout.read()
        for p in (self.launcher, self.bus, self.monitor):
            p.communicate()
        return text

    def heard(self):
        """(key, value) of all properties, in order, until bringup has left the bus; the end of
        all. What it said before it ended may still be on its way."""
        text, line, left = "", " ", None
        limit = threading.Timer(LIMIT_S, self.bus.kill)
        limit.start()
        while line and not (left and text.endswith(left)):
            line = self.monitor.stdout.readline()
            text += line
            if not left and (who := re.search(r" sender=(\S+) .*; member=Update$", line)):
                left = f'   string "{who[1]}"\n   string "{who[1]}"\n   string ""\n'
        limit.cancel()
        text += self.end()
        assert 'string "application://tessera-bringup.desktop"' in text, text
        return re.findall(r'string "([a-z-]+)"\s+variant +\w+ ([^\s]+)', text)


def desktop_lacks():
    """What there must be for a desktop, and is not."""
    lacks = [f"{p} (packages: tools/packages.sh lint)" for p in ("dbus-daemon", "dbus-monitor")
             if not shutil.which(p)]
    try:
        ctypes.CDLL("libunity.so.9")
    except OSError as e:
        lacks.append(f"{e} (packages: tools/packages.sh lint)")
    return lacks


class Progress(unittest.TestCase):
    LONG = ("--only", "hbm_march_c,hbm_march_b", "--hbm", "32M")

    def bars(self, text):
        return re.findall(r"\[([#.]{24})\] +(\d+) %, step (\d+) of (\d+), (\w*)([^\r]*)", text)

    def test_a_terminal_has_a_bar(self):
        # What is left is told from half a second on.
        status, out, text = on_terminal(*self.LONG[:2], "--hbm", "64M")
        self.assertEqual(status, 0, text)
        self.assertRegex(out, r"\A30  hbm_march_c +pass .*\n31  hbm_march_b +pass .*\nsim:0 ")
        bars = self.bars(text)
        percents = [int(b[1]) for b in bars]
        self.assertEqual(percents, sorted(percents))
        self.assertEqual((percents[0], percents[-1]), (0, 100))
        self.assertGreater(len(set(percents)), 4)
        for full, percent, n, of, _, _ in bars:
            # One is cut off, the other rounded.
            self.assertAlmostEqual(full.count("#"), int(percent) * 24 / 100, delta=1.2)
            self.assertEqual(of, "2")
            self.assertIn(n, "12")
        self.assertEqual({b[4] for b in bars}, {"hbm_march_c", "hbm_march_b"})
        rates = re.findall(r", ([\d.]+) M accesses/s", text)
        self.assertGreater(len(rates), 2, text)
        self.assertTrue(all(float(r) > 0 for r in rates))
        self.assertRegex(text, r", \d+:\d\d left")
        # Nothing of it stays.
        self.assertTrue(text.endswith("\r\033[K"), repr(text[-40:]))

    def test_a_bar_is_no_longer_than_the_terminal(self):
        _, _, text = on_terminal(*self.LONG, columns=50)
        lines = [line for line in text.replace("\033[K", "").split("\r") if line]
        self.assertGreater(len(lines), 4)
        self.assertLessEqual(max(map(len, lines)), 49)

    def test_results_and_a_bar_share_a_terminal(self):
        status, _, text = on_terminal(*self.LONG, both=True)
        self.assertEqual(status, 0, text)
        # What is left when every line has been taken back that was.
        left = re.sub(r"[^\n]*\033\[K", "", text.replace("\r\n", "\n"))
        self.assertRegex(left, r"\A30  hbm_march_c +pass .*\n31  hbm_march_b +pass .*\nsim:0 ")
        self.assertTrue(self.bars(text))

    def test_what_is_no_terminal_has_none(self):
        r = run(*self.LONG)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertNotIn("\r", r.stdout)
        for term in ("dumb", ""):
            self.assertEqual(on_terminal("--only", "1", term=term)[2], "")

    def test_a_launcher_shows_progress_and_is_urgent_at_failure(self):
        lacks = desktop_lacks()
        if lacks:
            print(f"no launcher is tested: {'; '.join(lacks)}", file=sys.stderr)
            self.skipTest("; ".join(lacks))
        desktop = Desktop()
        r = desktop.run(*self.LONG)
        heard = desktop.heard()
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        progress = [float(v) for k, v in heard if k == "progress"]
        self.assertEqual(progress, sorted(progress))
        self.assertEqual((progress[0], progress[-1]), (0, 1))
        self.assertGreater(len(set(progress)), 4)
        self.assertNotIn(("urgent", "true"), heard)
        visible = [v for k, v in heard if k == "progress-visible"]
        self.assertEqual(visible[-2:], ["true", "false"])
        # There is no device of this number.
        desktop = Desktop()
        self.assertEqual(desktop.run("-d", "7").returncode, 1)
        self.assertIn(("urgent", "true"), desktop.heard())

    def test_no_desktop_is_needed(self):
        for address in ("", "nonsense", "unix:path=/nowhere/bus"):
            r = subprocess.run([BRINGUP, "--only", "1"], text=True, capture_output=True,
                               env={**os.environ, "TESSERA_DEVICES": MODEL,
                                    "DBUS_SESSION_BUS_ADDRESS": address}, check=False)
            self.assertEqual((r.returncode, r.stderr), (0, ""), address)
        needed = subprocess.run(["readelf", "-d", BRINGUP], text=True, capture_output=True,
                                check=True).stdout
        self.assertIn("NEEDED", needed)
        self.assertNotRegex(needed, "unity|glib|gio|dbus")

    def test_a_bus_that_hangs_holds_no_run_up(self):
        if lacks := desktop_lacks():
            self.skipTest("; ".join(lacks))
        desktop = Desktop()
        desktop.bus.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, desktop.bus.pid, os.WSTOPPED)
        try:
            r = subprocess.run([BRINGUP, "--only", "1,scratch"], env=desktop.env, text=True,
                               capture_output=True, timeout=LIMIT_S, check=False)
        finally:
            desktop.end()
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_a_desktop_that_ends_takes_no_run_with_it(self):
        if lacks := desktop_lacks():
            self.skipTest("; ".join(lacks))
        desktop = Desktop()
        with subprocess.Popen([BRINGUP, *self.LONG], env=desktop.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            while "member=Update" not in desktop.monitor.stdout.readline():
                self.assertIsNone(p.poll())
            # It stands still meanwhile, so that it can't have ended before.
            p.send_signal(signal.SIGSTOP)
            how = os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            desktop.end()
            p.send_signal(signal.SIGCONT)
            self.assertEqual(how.si_code, os.CLD_STOPPED)
            out, complaints = p.communicate(timeout=LIMIT_S)
        self.assertEqual((p.returncode, complaints), (0, ""))
        self.assertIn("2 passed, 0 failed", out)


class Bringup(unittest.TestCase):
    def test_steps_have_numbers_that_ascend_and_levels(self):
        steps = listed()
        self.assertGreater(len(steps), 15)
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(len({n for n, _, _ in steps}), len(steps))
        self.assertEqual({v for _, v, _ in steps} - {1, 2, 3, 4}, set())

    def test_levels_run_their_steps_and_those_below(self):
        for level in (1, 2):
            r = run("--level", str(level), "--json", "-")
            self.assertEqual(r.returncode, 0, r.stderr)
            report = json.loads(r.stdout)
            self.assertEqual([s["name"] for s in report["steps"]],
                             [n for _, v, n in listed() if v <= level])
            self.assertEqual(report["failed"], 0)
            self.assertEqual(report["passed"] + report["skipped"], len(report["steps"]))
            self.assertEqual(report["device"]["bus_id"], "sim:0")
            self.assertEqual(report["schema"], 1)
            for s in report["steps"]:
                self.assertTrue(s["text"], s)
                self.assertIn(s["result"], ("pass", "skip"), s)

    def test_steps_are_picked_by_name_and_number(self):
        r = run("--only", "scratch,51,1", "--json", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([s["number"] for s in json.loads(r.stdout)["steps"]], [1, 5, 51])

    def test_the_least_memory_is_64_bytes_at_each_end(self):
        r = run("--only", "hbm_march_c", "--hbm", "1", "--json", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        step, = json.loads(r.stdout)["steps"]
        self.assertEqual([a["bytes"] for a in step["memory"]["areas"]], [64, 64])

    def test_a_device_that_is_not_there_fails_the_first_step(self):
        r = run("--json", "-", devices="vfio-user:/nowhere.sock")
        self.assertEqual(r.returncode, 2 if not r.stdout else 1, r.stderr)
        self.assertIn("/nowhere.sock", r.stderr + r.stdout)

    def test_the_first_failure_ends_the_run_unless_told_otherwise(self):
        # There is no device of this number: every step fails in its own words.
        r = run("-d", "7", "--json", "-")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(len(json.loads(r.stdout)["steps"]), 1)
        r = run("-d", "7", "--keep-going", "--json", "-")
        self.assertEqual(r.returncode, 1)
        report = json.loads(r.stdout)
        self.assertEqual(report["failed"], sum(v == 1 for _, v, _ in listed()))
        self.assertEqual(report["passed"], 0)
        self.assertIn("registers: ", report["steps"][1]["state"])

    def test_figures_are_judged_by_expected_values(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "expected")

            def figures(text):
                with open(path, "w", encoding="ascii") as f:
                    f.write(text)
                r = run("--only", "latency", "--expected", path, "--json", "-")
                numbers = json.loads(r.stdout)["steps"][0]["numbers"] if r.stdout else []
                return r, {n["name"]: n for n in numbers}

            # A day is enough, a picosecond is not; what the file does not name is not judged.
            r, n = figures("# a day\n\nround_trip 8.64e10\n")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertGreater(n["round_trip"]["ratio"], 1)
            self.assertIsNone(n["submission"]["expected"])
            r, n = figures("submission 1e-6 # us\nround_trip 8.64e10\n")
            self.assertEqual(r.returncode, 1)
            self.assertLess(n["submission"]["ratio"], 0.75)
            self.assertIn("submission: ", r.stderr)
            self.assertIn("expected", r.stderr)
            self.assertEqual(len(n), 2)
            for text in ("round_trip", "round_trip 1 2", "round_trip 0", "round_trip nan",
                         "nonsense 1", "round_trip -1"):
                r, n = figures("# first\n" + text + "\n")
                self.assertEqual(r.returncode, 2, text)
                self.assertIn("expected:2: ", r.stderr)
        r = run("--expected", "/nowhere")
        self.assertEqual(r.returncode, 2)

    def test_every_instruction_is_tested_on_each_path_of_the_model(self):
        steps = "scalar_unit,vector_operations,vector_unit,matrix_unit"
        for path in ("portable", "avx2"):
            r = run("--only", steps, "--json", "-",
                    devices=f"sim:hbm=64M,lanes=2,path={path}")
            if f"this CPU has no {path}" in r.stderr:
                continue
            self.assertEqual(r.returncode, 0, r.stderr)
            report = json.loads(r.stdout)
            self.assertEqual([s["name"] for s in report["steps"]], steps.split(","))
            for s in report["steps"]:
                self.assertRegex(s["text"], r"^\d+ (instructions|operations),")

    def test_linked_devices_send_to_their_neighbours(self):
        names = "links,link_programs"
        r = run("--only", names, "--json", "-", devices="sim:devices=4,hbm=64M,lanes=1")
        self.assertEqual(r.returncode, 0, r.stderr)
        steps = json.loads(r.stdout)["steps"]
        self.assertEqual([(s["name"], s["text"][:12]) for s in steps],
                         [(name, "2 neighbours") for name in names.split(",")])
        r = run("--only", f"1,{names}", "--json", "-")
        self.assertEqual([s["result"] for s in json.loads(r.stdout)["steps"]],
                         ["pass", "skip", "skip"])

    def test_load_and_resets_are_borne(self):
        r = run("--only", "concurrency,reset_under_load,soak", "--soak", "0.5", "--hbm", "64K",
                "--json", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([s["result"] for s in json.loads(r.stdout)["steps"]], ["pass"] * 3)

    def test_the_model_warms_by_load_and_throttles_by_heat(self):
        r = run("--only", "load_ramp,throttle", "--json", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        ramp, throttle = json.loads(r.stdout)["steps"]
        n = {m["name"]: m["measured"] for m in ramp["numbers"] + throttle["numbers"]}
        for sensor in ("power", "temperature"):
            stages = [n[f"{sensor}_at_{share}"] for share in (25, 50, 75, 100)]
            self.assertEqual(stages, sorted(stages))
        self.assertLessEqual(n["power_at_100"], 300)
        self.assertTrue(90 <= n["throttled_at"] <= 92, n)
        self.assertTrue(83 <= n["throttled_until"] <= 85, n)

    def test_junit_is_what_its_readers_take(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "r.xml")
            r = run("--junit", path)
            self.assertEqual(r.returncode, 0, r.stderr)
            suite = xml.parse(path).getroot()
            self.assertEqual(suite.tag, "testsuite")
            cases = suite.findall("testcase")
            self.assertEqual(int(suite.get("tests")), len(cases))
            self.assertEqual(suite.get("failures"), "0")
            self.assertEqual(cases[0].get("name"), "01 enumeration")
            r = run("-d", "7", "--junit", path)
            self.assertEqual(r.returncode, 1)
            suite = xml.parse(path).getroot()
            self.assertEqual(suite.get("failures"), "1")
            self.assertIn("device 7 of 1", suite.find("testcase/failure").get("message"))

    def test_wrong_command_lines_are_refused(self):
        for args, says in ((("--level", "5"), "no level"), (("--level", "1.5"), "no level"),
                           (("--only", "nonsense"), "is no step"), (("--only", ""), "is no step"),
                           (("--only", "1,,2"), "is no step"),
                           (("--soak", "0"), "no time"), (("--hbm", "0"), "no size"),
                           (("--hbm", "1Q"), "no size"),
                           (("--hbm", "99999999999T"), "no size"), (("--hbm", "-1"), "no size"),
                           (("--json", "-", "--junit", "-"), "several reports"),
                           (("--nothing",), "is no option"), (("more",), "is no option"),
                           (("--device", "-1"), "no number"), (("--json",), "needs an argument")):
            r = run(*args)
            self.assertEqual((r.returncode, r.stdout), (2, ""), args)
            self.assertIn(says, r.stderr, args)
        r = run(devices="nonsense")
        self.assertEqual(r.returncode, 2)
        self.assertIn("TESSERA_DEVICES", r.stderr)

    def test_what_cannot_be_written_is_a_failure(self):
        for args in (("--json", "/dev/full"), ("--junit", "/nowhere/r.xml")):
            r = run("--only", "1", *args)
            self.assertEqual(r.returncode, 3, args)
            self.assertIn(args[1], r.stderr)
        with open("/dev/full", "w") as full:
            for args in (("--help",), ("--list",), ("--only", "1")):
                r = subprocess.run([BRINGUP, *args], stdout=full, stderr=subprocess.PIPE,
                                   env={**os.environ, "TESSERA_DEVICES": MODEL}, check=False)
                self.assertEqual(r.returncode, 3, args)

    def test_the_page_has_every_step_and_needs_nothing_else(self):
        with tempfile.TemporaryDirectory() as top:
            r = run("--only", "1,5,81", "--html", f"{top}/r.html", "--json", f"{top}/r.json")
            self.assertIn(r.returncode, (0, 1), r.stderr)   # a slow machine is no matter here
            with open(f"{top}/r.html", encoding="utf-8") as f:
                page = f.read()
            with open(f"{top}/r.json", encoding="utf-8") as f:
                steps = json.load(f)["steps"]
        for s in steps:
            self.assertIn(f"<td>{s['name']}</td><td class=\"{s['result']}\">", page)
        self.assertTrue(any(s["numbers"] for s in steps))
        expected = [n for s in steps for n in s["numbers"] if n["expected"]]
        self.assertEqual(page.count("<svg"), len(expected))
        self.assertNotRegex(page, r"(?:src|href)=|<script|<link|url\(|@import|https?://")
        tree(page)
        r = run("--only", "1", "--html", "-")
        self.assertTrue(r.stdout.startswith("<!DOCTYPE html>"))

    def test_bandwidth_by_size_is_plotted(self):
        with tempfile.TemporaryDirectory() as top:
            with open(f"{top}/expected", "w", encoding="ascii") as f:
                # What is expected of large copies, and of a round trip, in us.
                f.write("host_to_device 0.001\ndevice_to_host 0.001\nround_trip 10\n")
            r = run("--only", "bandwidth", "--html", f"{top}/r.html", "--json", f"{top}/r.json",
                    "--expected", f"{top}/expected")
            self.assertEqual(r.returncode, 0, r.stderr)
            with open(f"{top}/r.html", encoding="utf-8") as f:
                page = tree(f.read())
            with open(f"{top}/r.json", encoding="utf-8") as f:
                curves = json.load(f)["steps"][0]["curves"]
        self.assertEqual(list(curves), ["host_to_device", "device_to_host", "device_to_device"])
        plots = {s.get("data-series"): s for s in page.iter("svg") if s.get("class") == "curve"}
        self.assertEqual(set(plots), set(curves))
        for name, points in curves.items():
            self.assertEqual([p["bytes"] for p in points], [4096 * 4 ** i for i in range(7)])
            lines = {p.get("class"): [tuple(map(float, xy.split(","))) for xy in
                                      p.get("points").split()]
                     for p in plots[name].iter("polyline")}
            # Of device_to_device nothing was said, so there is no line of it.
            known = name != "device_to_device"
            self.assertEqual(set(lines), {"measured", "expected"} if known else {"measured"})
            rates = [float(t.text) for t in plots[name].iter("text") if t.get("class") == "rate"]
            for kind, line in lines.items():
                want = [p[kind] for p in points]
                self.assertEqual([round(x, 1) for x, _ in line],
                                 [round(60 + i * 560 / 6, 1) for i in range(7)])
                for (_, y), rate in zip(line, want, strict=True):
                    self.assertAlmostEqual((200 - y) / 180 * rates[-1], rate,
                                           delta=0.01 * rates[-1])
            for p in points:
                if known:
                    n = p["bytes"]
                    self.assertAlmostEqual(p["expected"], n / (10e3 + n / 0.001), delta=1e-9)
                else:
                    self.assertIsNone(p["expected"])
            titles = [t.text for t in plots[name].iter("title")]
            self.assertEqual([t.split(":")[0] for t in titles],
                             ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB"])

    def test_memory_that_was_read_wrong_is_mapped(self):
        with tempfile.TemporaryDirectory() as top:
            file = f"{top}/r.json"

            def both(*args):
                r = run("--resume", file, "--html", f"{top}/r.html", "--json", "-", *args)
                with open(f"{top}/r.html", encoding="utf-8") as f:
                    return json.loads(r.stdout), tree(f.read())

            report, page = both("--only", "1,hbm_march_c,hbm_hammer", "--hbm", "4K")
            size = 64 << 20
            self.assertEqual(report["device"]["hbm_bytes"], size)
            march = report["steps"][1]["memory"]
            self.assertEqual(march, {"areas": [{"offset": 0, "bytes": 2048},
                                               {"offset": size - 2048, "bytes": 2048}],
                                     "bad_reads": 0, "bad": []})
            self.assertEqual(len([s for s in page.iter("svg") if s.get("class") == "hbm"]), 2)
            self.assertFalse([s for s in page.iter("svg") if s.get("class") == "area"])
            self.assertFalse(list(page.iter("line")))
            # As if the march had seen this: a report that goes on has it as it was.
            march["bad_reads"] = 1000
            march["bad"] = [{"offset": 1024, "want": "0x0", "got": "0x8000000000000001"},
                            {"offset": size - 8, "want": "0xffffffffffffffff", "got": "0x0"}]
            with open(file, "w", encoding="utf-8") as f:
                json.dump(report, f)
            again, page = both("--level", "2")
            step = next(s for s in again["steps"] if s["name"] == "hbm_march_c")
            self.assertEqual(step["memory"], march)
            hbm = [s for s in page.iter("svg") if s.get("class") == "hbm"][0]
            areas = [s for s in page.iter("svg") if s.get("class") == "area"]
            self.assertEqual([float(b.get("x1")) for b in hbm.iter("line")], [0.01, 640.0])
            self.assertEqual([(int(a.get("data-offset")), int(a.get("data-bytes")))
                              for a in areas], [(0, 2048), (size - 2048, 2048)])
            self.assertEqual([[float(b.get("x1")) for b in a.iter("line")] for a in areas],
                             [[320.0], [637.5]])
            self.assertEqual(areas[0].find("line/title").text,
                             "0x400: 0x8000000000000001 instead of 0x0")
            self.assertIn("1000 wrong reads, the first 2 shown",
                          "".join(page.itertext()))

    def test_a_run_goes_on_where_another_ended(self):
        with tempfile.TemporaryDirectory() as top:
            file = f"{top}/r.json"
            first = run("--level", "1", "--resume", file)
            self.assertEqual(first.returncode, 0, first.stderr)
            with open(file, encoding="utf-8") as f:
                before = json.load(f)
            self.assertEqual({s["result"] for s in before["steps"]}, {"pass"})
            # Nothing is run again: a step that says something else shows it.
            before["steps"][1]["text"] = "as it was"
            before["steps"][2]["result"] = "skip"
            before["steps"][3]["result"] = "fail"
            with open(file, "w", encoding="utf-8") as f:
                json.dump(before, f)
            again = json.loads(run("--level", "1", "--resume", file, "--json", "-").stdout)
            self.assertEqual(again["steps"][1]["text"], "as it was")
            self.assertEqual([s["result"] for s in again["steps"]],
                             ["pass"] * len(before["steps"]))
            # The step that was in the way when the machine went.
            again["steps"][2]["result"] = "begun"
            del again["steps"][3:]
            with open(file, "w", encoding="utf-8") as f:
                json.dump(again, f)
            r = run("--level", "1", "--resume", file, "--keep-going", "--json", "-")
            self.assertEqual(r.returncode, 1)
            steps = json.loads(r.stdout)["steps"]
            self.assertEqual([s["result"] for s in steps if s["result"] != "pass"], ["fail"])
            self.assertIn("ended in this step", steps[2]["text"])
            self.assertEqual(len(steps), len(before["steps"]))
            # Asked for by name it is run.
            name = steps[2]["name"]
            r = run("--only", name, "--resume", file, "--json", "-")
            self.assertEqual([(s["name"], s["result"]) for s in json.loads(r.stdout)["steps"]],
                             [(name, "pass")])
            # What passed before is still in the file, and where it was.
            with open(file, encoding="utf-8") as f:
                kept = json.load(f)
            self.assertEqual([(s["name"], s["result"]) for s in kept["steps"]],
                             [(s["name"], "pass") for s in before["steps"]])
            self.assertEqual(kept["steps"][1]["text"], "as it was")
            self.assertEqual((kept["passed"], kept["failed"]), (len(before["steps"]), 0))

    def test_a_step_that_has_begun_is_in_the_file(self):
        with tempfile.TemporaryDirectory() as top:
            file = f"{top}/r.json"
            with subprocess.Popen([BRINGUP, "--only", "1,soak", "--soak", "600", "--resume", file],
                                  env={**os.environ, "TESSERA_DEVICES": MODEL},
                                  stdout=subprocess.PIPE) as p:
                for line in p.stdout:
                    if line.startswith(b" 1"):
                        break
                steps = []
                while p.poll() is None and len(steps) < 2:
                    with open(file, encoding="utf-8") as f:
                        steps = json.load(f)["steps"]   # whole, whenever it is read
                p.kill()
            self.assertEqual([s["result"] for s in steps], ["pass", "begun"])

    def test_files_to_go_on_from_that_are_none_are_refused(self):
        with tempfile.TemporaryDirectory() as top:
            file = f"{top}/r.json"
            other = {"schema": 1, "device": {"bus_id": "sim:7"}, "steps": []}
            hostile = {"schema": 1, "device": {"bus_id": "sim:0"},
                       "steps": [7, {"name": "device", "result": "pass", "numbers": 3},
                                 {"name": 4, "result": []}, None,
                                 {"name": "bar", "result": "pass", "memory": 7,
                                  "curves": {"x": [None, {"bytes": -1}], "y": 3,
                                             "z<": [{"bytes": 4, "measured": 1e999}] * 99}},
                                 {"name": "scratch", "result": "pass", "curves": [1],
                                  "memory": {"areas": [None] + [{"offset": "x"}] * 99,
                                             "bad_reads": 1 << 70, "bad": [3] * 99}}]}
            for text, says in (("", "no report"), ("{", "no report"), ("[1]", "no report"),
                               ('{"schema": 1}', "no report"), ("x" * 99, "no report"),
                               (json.dumps(other), "is of the device sim:7")):
                with open(file, "w", encoding="utf-8") as f:
                    f.write(text)
                r = run("--resume", file)
                self.assertEqual(r.returncode, 2, text)
                self.assertIn(says, r.stderr)
            with open(file, "w", encoding="utf-8") as f:
                json.dump(hostile, f)
            r = run("--resume", file, "--html", f"{top}/r.html")
            self.assertEqual(r.returncode, 0, r.stderr)
            with open(f"{top}/r.html", encoding="utf-8") as f:
                self.assertEqual(len([s for s in tree(f.read()).iter("svg")
                                      if s.get("data-series") == "z<"]), 1)
            r = run("--only", "1", "--resume", f"{top}/no/such/file")
            self.assertEqual(r.returncode, 2)
            self.assertIn("No such file", r.stderr)

    def test_a_served_device_passes_as_one_in_the_process(self):
        with tempfile.TemporaryDirectory() as top:
            with subprocess.Popen([SERVER, "--devices", "1", "--hbm", "64M", "--socket-dir", top],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
                try:
                    while not (line := server.stdout.readline()).startswith(b"serving"):
                        self.assertTrue(line)
                    r = run("--level", "2", "--json", "-", devices=f"vfio-user:{top}/0.sock")
                finally:
                    server.terminate()
            self.assertEqual(r.returncode, 0, r.stderr)
            report = json.loads(r.stdout)
            self.assertEqual((report["failed"], report["skipped"]), (0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
