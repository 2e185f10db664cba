# SPDX-License-Identifier: Apache-2.0
"""Guests: a kernel and a few programs under QEMU without KVM, and what they said.

Packages come from Debian into a cache (fetch.sh); nothing of the system changes and no root
is needed. A test takes a Machine, calls run_guest() with the shell lines that the guest
runs, and gets the number of checks that passed; Skip says why it can't, Failure what broke.
"""

import gzip
import lzma
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
DRM = ("drm_panel_orientation_quirks", "drm")
# Tiers that run at once share the cache: one at a time fills it or builds with what is there.
FILLING = threading.RLock()
VFIO = ("irqbypass", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")
BAD_IN_DMESG = re.compile(
    r"BUG:|WARNING:|Oops|INFO: task|refcount_t|list_(add|del) corr|DMAR:.*fault")

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mkdir -p /dev/shm
for p in /sys/class/virtio-ports/*; do
	[ "$(cat $p/name)" != result ] || exec >/dev/${p##*/} 2>&1
done
for m in @MODULES@; do
	[ ! -f /modules/$m.ko ] || insmod /modules/$m.ko || echo "FAILED insmod $m"
done
addresses() {	# VENDOR DEVICE: of the functions that are
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat $d/vendor):$(cat $d/device)" != 0x$1:0x$2 ] || echo ${d##*/}
	done
}
check() {	# NAME COMMAND...
	name=$1
	shift
	echo "begin $name"
	if "$@"; then echo "ok $name"; else echo "FAILED $name: status $?"; fi
}
@SCRIPT@
echo "--- kernel"
dmesg
echo "--- end"
echo finished
sync
poweroff -f
"""

# In a guest's script: the kernel driver, after VFIO had the devices.
LOAD_DRIVER = """
for m in /modules/late/*.ko; do insmod $m || echo "FAILED insmod $m"; done
"""


class Skip(Exception):
    """Why a tier can't run here."""


class Failure(Exception):
    """What went wrong in a tier."""


def say(text):
    print(text, flush=True)


class Machine:
    """Packages, and guests made of them. line: which kernel, "" is bookworm's 6.12; "debug" and
    "debug-7.2": with the checks that Debian's are built without."""

    def __init__(self, cache, build, verbose, line=""):
        self.cache = cache
        self.build = build
        self.verbose = verbose
        self.line = line

    def of_line(self, line):
        return Machine(self.cache, self.build, self.verbose, line)

    def patience(self, seconds):
        """How long to wait for what takes so long at most on Debian's kernels."""
        return seconds * (6 if self.line.startswith("debug") else 1)

    def fill(self, script, *parts):
        with FILLING:
            return subprocess.run(["sh", str(HERE / script), str(self.cache), *parts],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fetch(self, *parts):
        done = self.fill("fetch.sh", *parts)
        if done.returncode == 77:
            raise Skip(done.stderr.strip())
        if done.returncode:
            raise Failure(f"fetch.sh: {done.stderr.strip()}")

    def one(self, pattern):
        found = sorted(self.cache.glob(pattern))
        if not found:
            raise Failure(f"{self.cache}: nothing there is {pattern}; remove it and try again")
        return found[0]

    def qemu(self):
        root = self.cache / "qemu"
        libs = root / "usr/lib/x86_64-linux-gnu"
        os.environ["QEMU_MODULE_DIR"] = str(libs / "qemu")
        return [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path",
                f"{libs}:{libs / 'pulseaudio'}", str(root / "usr/bin/qemu-system-x86_64"),
                "-L", str(root / "usr/share/qemu"), "-L", str(root / "usr/share/seabios")]

    def make(self, script, *arguments):
        """Has a script build what Debian has not."""
        done = self.fill(script, *arguments)
        if done.returncode == 77:
            raise Skip(done.stderr.strip())
        if done.returncode:
            raise Failure(f"{script}: {done.stderr.strip()}")

    def fetch_kernel(self, for_modules=False):
        """for_modules: and what builds modules for it."""
        if self.line.startswith("debug"):
            version = self.line.removeprefix("debug").removeprefix("-")
            self.fetch(f"source-{version}" if version else "source")
            return self.make("debug_kernel.sh", *([version] if version else []))
        if not self.line:
            return self.fetch("kernel", *(["kbuild"] if for_modules else []))
        return self.fetch(f"kernel-{self.line}",
                          *([f"kbuild-{self.line}", "gcc-14"] if for_modules else []))

    def kernel(self):
        return self.one(f"kernel-{self.line}/usr/lib/modules/*/vmlinuz" if self.line else
                        "kernel/boot/vmlinuz-*")

    def modules(self):
        """The folder of the kernel's modules, whose name is its version."""
        return self.one(f"kernel-{self.line}/usr/lib/modules/*" if self.line else
                        "kernel/lib/modules/*")

    def version(self):
        return self.modules().name

    def module(self, name):
        """The module's bytes, or None where the kernel has it built in."""
        for path in self.modules().rglob(f"{name}.ko*"):
            data = path.read_bytes()
            return lzma.decompress(data) if path.suffix == ".xz" else data
        return None


def copy_program(root, path):
    """A program and the libraries that it needs, at the same places."""
    shutil.copy(path, root / "bin" / path.name)
    listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True)
    for library in re.findall(r"(/\S+) \(0x", listed.stdout):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def make_initrd(work, machine, programs, modules, script, extra=None):
    """modules: name -> bytes, or None for what the kernel has."""
    root = work / "root"
    for d in ("bin", "dev", "proc", "sys", "tmp", "modules"):
        (root / d).mkdir(parents=True)
    busybox = machine.one("busybox/usr/bin/busybox")
    shutil.copy(busybox, root / "bin/busybox")
    for p in programs:
        copy_program(root, p)
    if extra:
        extra(root, machine)
    for name, data in modules.items():
        if data is not None:
            (root / "modules" / f"{name}.ko").write_bytes(data)
    init = INIT.replace("@MODULES@", " ".join(modules)).replace("@SCRIPT@", script)
    (root / "init").write_text(init)
    (root / "init").chmod(0o755)
    names = subprocess.run(["find", "."], cwd=root, stdout=subprocess.PIPE, check=True)
    cpio = subprocess.run([str(busybox), "cpio", "-o", "-H", "newc"], cwd=root,
                          input=names.stdout, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    (work / "initrd.gz").write_bytes(gzip.compress(cpio.stdout, 1))
    shutil.rmtree(root)


class Server:
    """tessera-sim with some devices, for the time of a guest."""

    def __init__(self, machine, work, n, hbm="256M"):
        self.sockets = work / "sock"
        self.process = None
        self.n = n
        if not n:
            return
        self.log = open(work / "server.log", "w")
        self.process = subprocess.Popen(
            [str(machine.build / "tessera-sim"), "--devices", str(n), "--hbm", hbm,
             "--socket-dir", str(self.sockets)], stdout=subprocess.PIPE, stderr=self.log,
            text=True)
        if not self.process.stdout.readline():
            raise Failure(f"tessera-sim did not start: {(work / 'server.log').read_text()}")

    def options(self):
        for i in range(self.n):
            yield from ("-device", '{"driver":"vfio-user-pci","x-msg-timeout":600000,'
                        f'"socket":{{"type":"unix","path":"{self.sockets}/{i}.sock"}}}}')

    def stop(self):
        if not self.process:
            return
        self.process.terminate()
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.log.close()
        if status:
            raise Failure(f"tessera-sim ended with {status}")


def ask_monitor(work, *commands):
    """What QEMU says of its guest; the reason if it does not answer."""
    said = b""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(f"{work}/monitor.sock")
            s.sendall("".join(f"{c}\n" for c in commands).encode())
            while said.count(b"(qemu)") <= len(commands) and (more := s.recv(65536)):
                said += more
    except OSError as e:
        said += f"\n(the monitor: {e})".encode()
    return said.decode(errors="replace")


def where_it_is(qemu, work):
    """Of a guest that does not end: its CPUs, calls of QEMU's threads, and the server's log."""
    text = ask_monitor(work, "info status", "info registers -a") + "\n"
    for task in pathlib.Path(f"/proc/{qemu.pid}/task").glob("*"):
        try:
            text += f"{(task / 'comm').read_text().strip()}: {(task / 'syscall').read_text()}"
        except OSError as e:
            text += f"{e}\n"
    log = work / "server.log"
    return text + (log.read_text(errors="replace") if log.exists() else "")


def boot(machine, work, devices, limit, memory, iommu):
    """Runs the guest to its end; what it said."""
    unit = ["-device", "intel-iommu,intremap=on,caching-mode=on"] if iommu else []
    argv = machine.qemu() + [
        "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", memory, "-nodefaults",
        "-display", "none", "-no-reboot", "-M", "q35,kernel-irqchip=split,memory-backend=mem0",
        "-object", f"memory-backend-memfd,id=mem0,size={memory},share=on",
        *unit, *devices,
        "-device", "virtio-serial-pci", "-chardev", f"file,id=result,path={work}/result.log",
        "-device", "virtserialport,chardev=result,name=result",
        "-kernel", str(machine.kernel()), "-initrd", f"{work}/initrd.gz",
        "-append", "console=ttyS0 panic=-1 quiet no_timer_check"
        + (" intel_iommu=on" if iommu else ""),
        "-serial", f"file:{work}/console.log",
        "-monitor", f"unix:{work}/monitor.sock,server=on,wait=off"]
    try:
        qemu = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except OSError as e:
        raise Skip(f"QEMU does not start: {e}") from e
    try:
        _, said = qemu.communicate(timeout=machine.patience(limit))
        status = f"QEMU ended with {qemu.returncode}: {said.strip()}"
    except subprocess.TimeoutExpired:
        status = f"no end after {machine.patience(limit)} s\n{where_it_is(qemu, work)}"
    finally:
        qemu.kill()
        qemu.communicate()
    result = work / "result.log"
    text = result.read_text(errors="replace") if result.exists() else ""
    if "\nfinished" not in text:
        console = work / "console.log"
        tail = console.read_text(errors="replace")[-3000:] if console.exists() else ""
        raise Failure(f"the guest did not finish ({status})\n{text}\n{tail}")
    return text


def why_failed(checks, passed):
    """What the checks that failed said, and last, for a log that is cut, their names."""
    parts = re.split(r"^(?=begin )", checks, flags=re.M)
    failed = [p for p in parts[1:] if not re.search(rf"^ok {re.escape(p.split()[1])}$", p, re.M)]
    names = ", ".join(p.split()[1] for p in failed) or "none of the checks: " + checks
    return f"{''.join(failed)}\nfailed: {names} ({passed} passed)"


def judge(text, n_checks):
    """The number of checks that passed; Failure if one did not, or is missing."""
    checks, _, kernel = text.partition("--- kernel")
    passed = len(re.findall(r"^ok ", checks, re.M))
    begun = len(re.findall(r"^begin ", checks, re.M))
    bad = [line for line in kernel.splitlines() if BAD_IN_DMESG.search(line)]
    if bad:
        raise Failure("the guest's kernel complains:\n" + "\n".join(bad) + "\n" + checks)
    if re.search(r"^FAILED", checks, re.M) or passed != begun:
        raise Failure(why_failed(checks, passed))
    if passed != n_checks:
        raise Failure(f"{passed} checks passed, {n_checks} were expected\n{checks}")
    return passed


def run_guest(machine, script, devices, n_served, n_checks, programs, modules, limit=180,
              extra=None, memory="1G", inspect=None, hbm="256M", iommu=True):
    """inspect: judges what the guest said, too; hbm: of each device that is served."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        paths = [machine.build / p for p in programs]
        make_initrd(work, machine, paths + [TOP / "tools/tessera-vfio-bind"], modules, script,
                    extra)
        server = Server(machine, work, n_served, hbm)
        try:
            text = boot(machine, work, [*devices, *server.options()], limit, memory,
                        iommu)
        finally:
            server.stop()
        if machine.verbose:
            say(text)
        passed = judge(text, n_checks)
        if inspect:
            inspect(text)
        return passed
    finally:
        shutil.rmtree(work, ignore_errors=True)


def stock_modules(machine):
    return {m: machine.module(m) for m in VFIO}


def iommufd_modules(machine):
    """Debian's kernels have no iommufd and let no device without an IOMMU be used: modules
    that are built for both."""
    machine.fetch("busybox", "qemu", "kernel", "kbuild", "source")
    machine.make("modules.sh")
    built = machine.cache / "modules" / machine.version()
    modules = {"irqbypass": machine.module("irqbypass")}
    for name in ("iova_bitmap", "iommufd", "vfio", "vfio_iommu_type1", "vfio-pci-core",
                 "vfio-pci"):
        modules[name] = (built / f"{name}.ko").read_bytes()
    return modules


def run_or_fail(what, argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **more)
    if done.returncode == 77:
        raise Skip(f"{what}: {done.stdout.strip()}")
    if done.returncode:
        # What failed may stand far before the end.
        failed = "\n".join(re.findall(r"^(?:not ok|FAIL).*", done.stdout, re.M)[:100])
        raise Failure(f"{what} ended with {done.returncode}:\n{failed}\n{done.stdout[-120000:]}")
    return done.stdout


def build_driver(machine, work):
    """The module, at work/src/kernel-uapi/driver/tessera.ko; the arguments of its make."""
    machine.fetch_kernel(for_modules=True)
    uapi = ["make", "-s", "-C", str(TOP / "kernel-uapi")]
    run_or_fail("the driver's sources", [*uapi, "dkms-tree", f"DKMS={work}/src"])
    with FILLING:
        headers, compiler = run_or_fail(
            "headers.sh", ["sh", str(HERE / "headers.sh"), str(machine.cache),
                           *([machine.line] if machine.line else [])]).split()
        run_or_fail("building the driver", ["make", "-C", f"{work}/src/kernel-uapi/driver",
                                            f"KDIR={headers}", f"CC={compiler}"])
    return uapi


def copy_driver(root, machine, work):
    """Puts what build_driver built, and what it needs, where LOAD_DRIVER has it from."""
    late = root / "modules/late"
    late.mkdir()
    for i, m in enumerate(DRM):
        if (data := machine.module(m)) is not None:
            (late / f"{i}-{m}.ko").write_bytes(data)
    shutil.copy(work / "src/kernel-uapi/driver/tessera.ko", late / "9-tessera.ko")
