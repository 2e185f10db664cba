# SPDX-License-Identifier: Apache-2.0
"""What an operator does to chips that tessera-sim serves to several processes:
smi_served_test.py XLA-SMI LIBTESSERA TESSERA-SIM

Resets and injected errors by xla-smi: who hears of them and who does not, who may, and who is asked
first; askers and servers that talk nonsense.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

import smi_doctor_test
import smi_link_test
import smi_test
from smi_test import LIMIT_S, Smi

LIBRARY = SIM = ""
HEARD_S = 1.0           # until a process has heard of what happened to its chip
NOBODY = 65534
MAGIC, VERSION = 0x54535343, 1
ASK, ANSWER_BYTES = struct.Struct("=IIIIIiIIQ"), 784
LOOK, RESET = 1, 2
IN_USE, FAILED = 2, 6


# ---- a process that uses chips, which is told by lines what to do ----

class Client(smi_link_test.Client):
    def works(self, i):
        self.wait(*self.fill(i))

    def hears(self, i):
        """Waits for the chip's death, asking nothing of it; when and why."""
        end = time.monotonic() + LIMIT_S
        while not self.lib.hal_device_error(self.devices[i], self.err):
            assert time.monotonic() < end, "nothing was heard"
            time.sleep(0.001)
        text = self.err.raw[20:].split(b"\0")[0].decode()     # struct err.msg
        print(json.dumps({"at": time.monotonic(), "why": text}), flush=True)

    def revive(self, i):
        self.call("hal_device_reset", self.devices[i])
        self.works(i)


class Served(Smi):
    @contextlib.contextmanager
    def serve(self, *options):
        """The folder of a server's sockets."""
        folder = self.dir / "sockets"
        with open(self.dir / "log", "w", encoding="utf-8") as log, subprocess.Popen(
                [SIM, "--socket-dir", folder, "--hbm", "64M", *options], text=True,
                stdout=subprocess.PIPE, stderr=log) as server:
            self.assertTrue(server.stdout.readline().startswith("serving"))
            try:
                yield folder
            finally:
                server.terminate()
                self.assertEqual(server.wait(LIMIT_S), 0)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["lock"])

    @contextlib.contextmanager
    def client(self, name):
        """A process that has opened the chip."""
        env = dict(os.environ, TESSERA_TELEMETRY_DIR=str(self.dir))
        with subprocess.Popen([sys.executable, __file__, "--client", LIBRARY, name], env=env,
                              text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            self.tell(p, "open 0")
            yield p
            p.stdin.close()
            self.assertEqual(p.wait(LIMIT_S), 0)

    def tell(self, p, command):
        print(command, file=p.stdin, flush=True)
        self.assertEqual(p.stdout.readline(), "done\n", command)

    def heard(self, p, since, why):
        """The process has heard of it soon, and why."""
        print("hears 0", file=p.stdin, flush=True)
        told = json.loads(p.stdout.readline())
        self.assertEqual(p.stdout.readline(), "done\n")
        self.assertIn(why, told["why"])
        self.assertLess(told["at"] - since, HEARD_S)

    def act(self, status, *args, err="", out=(), **more):
        """When the tool was started, which ends and says so."""
        began = time.monotonic()
        done = self.smi(*args, **more)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        self.assertIn(err, done.stderr)
        for part in out:
            self.assertIn(part, done.stdout)
        return began

    def test_a_chip_that_somebody_has_is_reset_by_force_alone(self):
        with self.serve("--devices", "2") as at:
            names = [f"vfio-user:{at}/{i}.sock" for i in range(2)]
            with self.client(names[0]) as one, self.client(names[1]) as other:
                used = f"used by process {one.pid} (python"
                for args in ((), ("--client", str(one.pid))):
                    self.act(4, "reset", names[0], *args, err="--force", out=(used, "of root"))
                    self.act(0, "reset", names[0], *args, "--dry-run", out=(used,))
                self.tell(one, "works 0")
                began = self.act(0, "reset", names[0], "--force", out=(used, "reset, and its"))
                self.heard(one, began, f"{at}/0.sock died: somebody else reset the function")
                self.tell(other, "works 0")
                self.tell(one, "revive 0")
                told = self.until("log", lambda t: any("somebody else" in e["text"]
                                                       for e in t["events"]))
                self.assertTrue(all(e["pid"] == one.pid for e in told["events"]))
                # By its number in the list, too: device 1 is the other one's.
                began = self.act(0, "reset", "1", "--force", out=(f"process {other.pid} ",))
                self.heard(other, began, "1.sock died: somebody else reset the function")
                self.tell(one, "works 0")
                self.tell(other, "revive 0")
        log = (self.dir / "log").read_text(encoding="utf-8")
        self.assertEqual(log.count("0: reset by an operator"), 1, log)

    def until(self, command, is_so):        # pylint: disable=arguments-differ
        end = time.monotonic() + LIMIT_S
        while True:
            told = json.loads(self.smi(command, "--json").stdout)
            if is_so(told):
                return told
            self.assertLess(time.monotonic(), end, told)

    def test_an_error_is_injected_into_one_chip(self):
        with self.serve("--devices", "2") as at:
            names = [f"vfio-user:{at}/{i}.sock" for i in range(2)]
            with self.client(names[0]) as one, self.client(names[1]) as other:
                self.act(4, "inject", names[0], "fatal", err="--force")
                self.tell(one, "works 0")
                began = self.act(0, "inject", names[0], "thermal", "--force",
                                 out=(f"used by process {one.pid} ", "thermal 4"))
                self.heard(one, began, "too hot")
                self.tell(other, "works 0")
                self.tell(one, "revive 0")
                # Another page than there is.
                self.act(1, "inject", names[0], "poison", str(1 << 60), "--force",
                         err="can't be injected")
                self.act(2, "inject", names[0], "nonsense", "--force", err="usage")
                self.tell(one, "works 0")
                self.act(0, "inject", names[1], "ecc", "7", "--force")
                self.until("stats", lambda t: [d["ecc_corrected"] for d in t["devices"]
                                               if d["bus_id"] == names[1]] == [7]
                           or self.tell(other, "works 0"))

    def test_one_client_of_several_is_reset(self):
        with self.serve("--clients", "2", "--hbm", "128M") as at:
            name = f"vfio-user:{at}/0.sock"
            with self.client(name) as one, self.client(name) as other:
                began = self.act(0, "reset", name, "--client", str(other.pid), "--force",
                                 out=(f"used by process {other.pid} ",))
                self.heard(other, began, "somebody else reset")
                self.tell(one, "works 0")
                self.tell(other, "revive 0")
                self.act(4, "reset", name, "--client", str(os.getpid()), "--force",
                         err=f"process {os.getpid()} has nothing of {name}")
                began = self.act(0, "inject", name, "fatal", "--client", str(one.pid), "--force")
                self.heard(one, began, "fatal state")
                self.tell(other, "works 0")
                began = self.act(0, "reset", name, "--force", out=(
                    f"used by process {one.pid} ", f"used by process {other.pid} "))
                self.heard(other, began, "somebody else reset")
                for p in (one, other):
                    self.tell(p, "revive 0")

    def test_a_chip_that_nobody_has_is_reset_without_force(self):
        with self.serve("--devices", "2") as at:
            self.act(0, "reset", f"vfio-user:{at}/1.sock", out=("reset, and its server answers",))
            self.act(3, "reset", f"vfio-user:{at}/2.sock", err="it serves the devices 0 to 1")
            self.act(0, "inject", f"vfio-user:{at}/1.sock", "fatal", "--force")
            with self.client(f"vfio-user:{at}/1.sock") as p:    # who opens it resets it
                self.tell(p, "works 0")
        self.act(1, "reset", f"vfio-user:{at}/1.sock", err="nobody takes requests at")
        self.act(3, "reset", "vfio-user:nowhere", err="there is no device")

    def other_user(self):
        """What starts a process as somebody who may come to the sockets' folder."""
        if os.geteuid():
            self.skipTest("only root can be somebody else")
        self.dir.chmod(0o755)
        return {"user": NOBODY, "group": NOBODY, "extra_groups": ()}

    def test_only_root_and_the_servers_user_may(self):
        as_other = self.other_user()
        tool = self.dir / "xla-smi"     # the tree may be root's alone
        tool.write_bytes(pathlib.Path(smi_test.SMI).read_bytes())
        tool.chmod(0o755)
        with self.serve("--mode", "666") as at, \
                self.client(f"vfio-user:{at}/0.sock") as one:
            args = [tool, "reset", f"vfio-user:{at}/0.sock", "--force"]
            for mode in (0o600, 0o666):     # the second: a socket that somebody opened to all
                (at / "control.sock").chmod(mode)
                done = subprocess.run(args, capture_output=True, text=True, check=False,
                                      cwd="/", **as_other)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn("only root and the user that tessera-sim runs as", done.stderr)
            self.tell(one, "works 0")

    def ask(self, at, data):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT_S)
            s.connect(str(at / "control.sock"))
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: s.recv(4096), b""))
        if not got:
            return None
        self.assertEqual(len(got), ANSWER_BYTES)
        magic, version, outcome, n = struct.unpack_from("=IIII", got)
        self.assertEqual((magic, version), (MAGIC, VERSION))
        return outcome, n, got[16:272].split(b"\0")[0].decode()

    def test_nonsense_is_refused_and_harms_nobody(self):
        with self.serve("--devices", "2") as at, \
                self.client(f"vfio-user:{at}/0.sock") as one:
            good = [MAGIC, VERSION, RESET, 0, 0, 0, 0, 0, 0]
            self.assertEqual(self.ask(at, ASK.pack(*good)), (IN_USE, 1, "somebody has it"))
            for place, value, says in ((0, 1, "one release"), (1, 2, "one release"),
                                       (2, 0, "no sense"), (2, 4, "no sense"),
                                       (2, 0xffffffff, "no sense"), (4, 2, "no sense"),
                                       (5, -1, "no sense"), (7, 1, "no sense")):
                bad = list(good)
                bad[4], bad[place] = 1, value
                outcome, n, text = self.ask(at, ASK.pack(*bad))
                self.assertEqual((outcome, n), (FAILED, 0), bad)
                self.assertIn(says, text)
            for data in (b"", b"x", ASK.pack(*good)[:-1]):
                self.assertIsNone(self.ask(at, data))
            # One that says nothing is sent away, and those behind it are served.
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(str(at / "control.sock"))
                self.assertEqual(self.ask(at, ASK.pack(MAGIC, VERSION, LOOK, 1, *[0] * 5)),
                                 (1, 0, ""))
                self.assertEqual(s.recv(1), b"")
            self.tell(one, "works 0")

    def test_one_that_says_nothing_holds_up_no_shutdown(self):
        with socket.socket(socket.AF_UNIX) as s:
            with self.serve() as at:
                s.connect(str(at / "control.sock"))
                s.sendall(b"x")
                end = time.monotonic() + LIMIT_S
                # Until the server has taken that, and waits for more.
                while struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.001)
        log = (self.dir / "log").read_text(encoding="utf-8")
        self.assertIn("asked for nothing\n", log)
        self.assertNotIn("in time", log)

    def test_a_server_that_talks_nonsense_is_survived(self):
        at = self.dir / "odd"
        at.mkdir()
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(at / "control.sock"))
            s.listen()
            whole = struct.pack("=IIII256s512s", MAGIC, VERSION, 1, 0, b"", b"")
            for data, says in ((b"", "did not answer"), (whole[:-1], "did not answer"),
                               (b"\xff" * ANSWER_BYTES, "makes no sense"),
                               (struct.pack("=IIII", MAGIC, VERSION, 1, 65) + whole[16:],
                                "makes no sense"),
                               (struct.pack("=IIII", MAGIC, VERSION, 7, 0) + whole[16:],
                                "makes no sense"),
                               (struct.pack("=IIII", MAGIC, VERSION, FAILED, 0) + b"a\x1b" * 384,
                                "a?a?")):
                def answer(data=data):
                    with s.accept()[0] as c:
                        c.recv(ASK.size)
                        c.sendall(data)
                t = threading.Thread(target=answer)
                t.start()
                self.act(1, "reset", f"{at}/0.sock", "--force", err=says)
                t.join()


def load_tests(loader, _tests, _pattern):
    """Not those of smi_test again, from which these come."""
    return unittest.TestSuite(Served(name) for name in loader.getTestCaseNames(Served)
                              if name in vars(Served))


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        sys.exit(smi_link_test.be_client(Client(*sys.argv[2:])))
    smi_test.SMI, LIBRARY, SIM = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
    with tempfile.TemporaryDirectory() as smi_doctor_test.PRELOAD_DIR:
        unittest.main()
