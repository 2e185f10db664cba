# SPDX-License-Identifier: Apache-2.0
"""tessera-bringup as a user has it: steps, reports, exit statuses.

    python3 tests/bringup_test.py build/opt/tessera-bringup build/opt/tessera-sim
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

BRINGUP, SERVER = sys.argv[1:3]
MODEL = "sim:hbm=64M,lanes=1"


def run(*args, devices=MODEL, **kw):
    return subprocess.run([BRINGUP, *args], env={**os.environ, "TESSERA_DEVICES": devices},
                          text=True, capture_output=True, timeout=300, check=False, **kw)


def listed():
    """(number, level, name) of each step."""
    return [(int(m[1]), int(m[2]), m[3]) for m in
            re.finditer(r"^ *(\d+)  level (\d)  (\w+)", run("--list").stdout, re.M)]


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

    def test_linked_devices_send_to_their_neighbours(self):
        r = run("--only", "links", "--json", "-", devices="sim:devices=4,hbm=64M,lanes=1")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("2 neighbours", json.loads(r.stdout)["steps"][0]["text"])
        r = run("--only", "1,links", "--json", "-")
        self.assertEqual(json.loads(r.stdout)["steps"][1]["result"], "skip")

    def test_load_and_resets_are_borne(self):
        r = run("--only", "concurrency,reset_under_load,soak", "--soak", "0.5", "--hbm", "64K",
                "--json", "-")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([s["result"] for s in json.loads(r.stdout)["steps"]], ["pass"] * 3)

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

    def test_a_served_device_passes_as_one_in_the_process(self):
        with tempfile.TemporaryDirectory() as top:
            with subprocess.Popen([SERVER, "--devices", "1", "--hbm", "64M", "--socket-dir", top],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
                try:
                    while not os.path.exists(f"{top}/0.sock"):
                        self.assertIsNone(server.poll())
                    r = run("--level", "2", "--json", "-", devices=f"vfio-user:{top}/0.sock")
                finally:
                    server.terminate()
            self.assertEqual(r.returncode, 0, r.stderr)
            report = json.loads(r.stdout)
            self.assertEqual((report["failed"], report["skipped"]), (0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
