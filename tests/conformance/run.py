# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suite on every way to a device that is here, as one table.

    run.py PROGRAM [--server TESSERA-SIM] [--quick] [--only WORD]... [--ways sim,vfio-user]
           [--results NAME=FILE]...     columns that were run elsewhere
    run.py PROGRAM --update             write the digests of checks.def anew
    run.py PROGRAM --program-only DIR   put the program and what it needs into DIR

Rows are checks, columns ways: the model in the process, the model behind a vfio-user
socket, VFIO functions (type 1 or iommufd, as the kernel has it), the kernel driver, and
what TESSERA_DEVICES names, if it is set.
Cells are ok, FAIL, n.a. (with the reason below) or "not here". Fails if a check fails or
is missing, if a column ends early, or if two columns saw different bytes.

With --program-only nothing runs: carry DIR into a guest and there run

    TESSERA_DEVICES=vfio:0000:00:04.0 DIR/run [--quick] >FILE 2>ERRORS
    echo "exit $?" >>FILE; cat ERRORS >>FILE

FILE is then what --results takes, and is judged as a column that ran here.
"""

import argparse
import glob
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
CHECKS = TOP / "tests/conformance/checks.def"
HBM_MIB = 64
LIMIT_S = 300


class Way:
    """A column: its name, TESSERA_DEVICES, and why it is not here."""

    def __init__(self, name, devices=None, reason=""):
        self.name, self.devices, self.reason = name, devices, reason
        self.results, self.broken, self.seconds = {}, "", 0.0


class Server:
    """A tessera-sim of two devices, with so much HBM for each client that may share one, in
    a folder of its own or in one that a server left."""

    def __init__(self, program, folder=None, clients=1):
        self.clients = clients
        self.dir = folder or tempfile.mkdtemp(prefix="tessera-")
        self.process = subprocess.Popen(
            [program, "--devices", "2", "--hbm", f"{HBM_MIB * clients}M", "--lanes", "2",
             "--clients", str(clients), "--socket-dir", self.dir],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        line = self.process.stdout.readline() if ready else b""
        if not line.startswith(b"serving"):
            self.stop()
            raise RuntimeError(f"{program} does not serve")

    def device(self, i):
        return f"vfio-user:{self.dir}/{i}.sock"

    def stop(self):
        self.process.terminate()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        return status


def vfio_functions():
    """Functions of ours that vfio-pci holds, as TESSERA_DEVICES words."""
    found = []
    for path in sorted(glob.glob("/sys/bus/pci/devices/*")):
        ids = [(pathlib.Path(path) / f).read_text().strip() for f in ("vendor", "device")]
        driver = os.path.basename(os.path.realpath(path + "/driver"))
        if ids == ["0x1234", "0x7e55"] and driver == "vfio-pci":
            found.append("vfio:" + os.path.basename(path))
    return found


def accel_nodes():
    """Nodes of the kernel driver."""
    return [f"accel:{i}" for i in range(64)
            if os.path.basename(os.path.realpath(
                f"/sys/class/accel/accel{i}/device/driver")) == "tessera"]


def find_ways(server, wanted):
    """Every way; the server, where there is one, is the caller's to stop."""
    functions, nodes = vfio_functions(), accel_nodes()
    ways = [Way("sim", f"sim:devices=2,hbm={HBM_MIB}M,lanes=2"),
            Way("vfio-user", f"{server.device(0)},{server.device(1)}" if server else None,
                "no tessera-sim given"),
            Way("vfio", ",".join(functions) or None, "no 1234:7e55 bound to vfio-pci"),
            Way("accel", ",".join(nodes) or None, "no /dev/accel node of the driver")]
    # A device that the caller's environment names has a column of its own.
    if os.environ.get("TESSERA_DEVICES"):
        ways.append(Way("named", os.environ["TESSERA_DEVICES"]))
    return [w for w in ways if not wanted or w.name in wanted]


def run(program, way, options):
    """Fills way.results: {check: (area, result, digest, milliseconds, reason)}."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
        env = dict(os.environ, TESSERA_DEVICES=way.devices, TESSERA_TELEMETRY_DIR=pages)
        try:
            p = subprocess.run([program, *options], env=env, capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
            out, status, errors = p.stdout, p.returncode, p.stderr
        except subprocess.TimeoutExpired as e:
            out, status = (e.stdout or b"").decode(), "no end"
            errors = f"not done after {LIMIT_S} s"
    take(way, out, status, errors)
    way.seconds = time.monotonic() - began


def read_results(text):
    """A column NAME=FILE that ran elsewhere: FILE has lines, "exit STATUS" and errors."""
    name, _, path = text.partition("=")
    way = Way(name, "elsewhere")
    lines = pathlib.Path(path).read_text(errors="replace").splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if re.fullmatch(r"exit \d+\n?", line)),
               len(lines))
    status = int(lines[end].split()[1]) if end < len(lines) else "none"
    take(way, "".join(lines[:end]), status, "".join(lines[end + 1:]))
    way.seconds = sum(r[3] for r in way.results.values()) / 1000
    return way


def take(way, out, status, errors):
    """What the program said, however it ended."""
    strange = []
    for line in out.splitlines():
        m = re.fullmatch(r"(\w+)\t(\w+)\t(ok|FAIL|n\.a\.)\t(\w+|-)\t(\d+)\t(.*)", line)
        if m:
            way.results[m[2]] = (m[1], m[3], m[4], int(m[5]), m[6])
        else:
            strange.append(line)
    if status not in (0, 1):
        way.broken = f"exit status {status}: {errors.strip()[-1500:]}"
    elif status == 1 and not any(r[1] == "FAIL" for r in way.results.values()):
        way.broken = f"ended early: {errors.strip()[-1500:]}"
    elif strange:
        way.broken = f"not a result: {strange[0]}"


def find_missing(ways, rows):
    """A column that is here has all rows."""
    for w in ways:
        missing = [name for _, name in rows if name not in w.results]
        if w.devices and missing and not w.broken:
            w.broken = f"{len(missing)} checks were not run: {', '.join(missing[:5])}"


def cell(way, name):
    if way.devices is None:
        return "not here"
    return way.results[name][1] if name in way.results else "not run"


def differences(ways, names):
    """Checks whose digests are not the same in all columns that have one."""
    found = []
    for name in names:
        seen = {w.name: w.results[name][2] for w in ways
                if name in w.results and w.results[name][2] != "-"}
        if len(set(seen.values())) > 1:
            found.append(f"{name}: " + ", ".join(f"{k} {v}" for k, v in seen.items()))
    return found


def print_table(ways, rows):
    wide = max(len(name) for _, name in rows) + 2
    def line(area, name, cells):
        columns = (f"{text:<{max(len(w.name) + 2, 10)}}" for w, text in zip(ways, cells))
        print(f"{area:<11}{name:<{wide}}{''.join(columns)}".rstrip())

    line("area", "check", [w.name for w in ways])
    for area, name in rows:
        line(area, name, [cell(w, name) for w in ways])
    print()
    for w in ways:
        if w.devices is None:
            print(f"{w.name}: not here: {w.reason}")
            continue
        for name, (_, result, _, _, reason) in w.results.items():
            if result != "ok":
                print(f"{w.name}: {result} {name}: {reason}")
        count = [sum(r[1] == k for r in w.results.values()) for k in ("ok", "FAIL", "n.a.")]
        print(f"{w.name}: {count[0]} ok, {count[1]} failed, {count[2]} not applicable, "
              f"{w.seconds:.1f} s")
        if w.broken:
            print(f"{w.name}: {w.broken}")


def update(program):
    way = Way("sim", f"sim:devices=2,hbm={HBM_MIB}M,lanes=2")
    run(program, way, [])

    def renew(m):
        digest = way.results[m[2]][2]
        return f"CHECK({m[1]}, {m[2]}, {m[3]}, {'0' if digest == '-' else '0x' + digest})"

    text = CHECKS.read_text()
    CHECKS.write_text(re.sub(r"^CHECK\((\w+), (\w+), (\w+), \w+\)", renew, text, flags=re.M))


def bundle(program, folder):
    """The program, its libraries and loader, and `run`, which uses none of the guest's."""
    to = pathlib.Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, to / "conformance")
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    files = re.findall(r"(/\S+) \(0x", listing.stdout)
    for f in files:
        shutil.copy2(f, to / os.path.basename(f))
    loader = next(os.path.basename(f) for f in files if "/ld-" in f)
    (to / "run").write_text("#!/bin/sh\n" 'here=${0%/*}\n'
                            f'exec "$here/{loader}" --library-path "$here" '
                            '"$here/conformance" "$@"\n')
    (to / "run").chmod(0o755)
    print(f"{folder}: {len(files) + 2} files; there: TESSERA_DEVICES=... {folder}/run --quick")


def main():
    p = argparse.ArgumentParser(description="conformance on every way to a device")
    p.add_argument("program")
    p.add_argument("--server")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--ways", default="")
    p.add_argument("--results", action="append", default=[], metavar="NAME=FILE")
    p.add_argument("--update", action="store_true")
    p.add_argument("--program-only", metavar="DIR")
    p.add_argument("--brief", action="store_true", help="the table only if something failed")
    a = p.parse_args()
    if a.update:
        return update(a.program)
    if a.program_only:
        return bundle(a.program, a.program_only)
    options = ["--quick"] * a.quick + [w for word in a.only for w in ("--only", word)]
    server = Server(a.server) if a.server else None
    try:
        ways = find_ways(server, [w for w in a.ways.split(",") if w])
        for w in ways:
            if w.devices:
                run(a.program, w, options)
    finally:
        status = server.stop() if server else 0
    ways += [read_results(text) for text in a.results]
    listing = subprocess.run([a.program, "--list"], capture_output=True, text=True, check=True)
    rows = [line.split("\t")[:2] for line in listing.stdout.splitlines()]
    rows = [r for r in rows if any(r[1] in w.results for w in ways)]
    find_missing(ways, rows)
    bad = differences(ways, [name for _, name in rows])
    failed = bad or status or not rows or any(
        w.broken or any(r[1] == "FAIL" for r in w.results.values()) for w in ways)
    if failed or not a.brief:
        print_table(ways, rows)
    for b in bad:
        print("the bytes differ: " + b)
    if status:
        print(f"tessera-sim ended with status {status}")
    here = [w for w in ways if w.devices]
    print(f"conformance: {len(rows)} checks on {len(here)} ways "
          f"({', '.join(w.name for w in here)}): {'FAILED' if failed else 'all agree'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
