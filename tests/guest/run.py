# SPDX-License-Identifier: Apache-2.0
"""Tests in a virtual machine: a guest kernel, QEMU without KVM, devices of ours and of QEMU's.

    python3 tests/guest/run.py --build build/opt [T1 T2 ...]

A tier is one kind of guest and the checks that run in it:

    T1  QEMU's edu, a device that we did not write, through the HAL's VFIO layer
    T2  one T1 and three, served by tessera-sim, through groups and type 1
    T3  the same through device files and iommufd, with modules built for it
    T4  the udev rules: who may open what, with a real udevd
    T5  the kernel driver
    FUZZ on request only: a million random ioctls against the driver
    JAX on request only: a model trains in the guest, through VFIO and through the driver,
        with the same losses as on the host

Packages come from Debian into TESSERA_VM_CACHE (fetch.sh); nothing of the system changes and
no root is needed. A tier that can't run says why and counts as skipped, never as passed; the
exit status is 1 if one failed, 77 if all were skipped.
"""

import argparse
import gzip
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
SHARING = ("netfs", "9pnet", "9pnet_virtio", "9p")
DRM = ("drm_panel_orientation_quirks", "drm")
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

SCRIPTS = {
    "edu": """
for a in $(addresses 1234 11e8); do check bind tessera-vfio-bind $a; done
check edu edu $(addresses 1234 11e8)
""",
    "t1": """
for a in $(addresses 1234 7e55); do check bind-$a tessera-vfio-bind $a; done
for a in $(addresses 1234 7e55); do
	group=$(readlink /sys/bus/pci/devices/$a/iommu_group)
	check kernel-$a vfio ${group##*/} $a
done
check hal hal $(addresses 1234 7e55)
first=$(addresses 1234 7e55 | head -n 1)
check conformance env TESSERA_DEVICES=vfio:$first conformance --quick
for a in $(addresses 1234 7e55); do check unbind-$a tessera-vfio-bind --unbind $a; done
""",
    "cdev": """
for a in $(addresses 1234 7e55); do check bind-$a tessera-vfio-bind $a; done
check nodes test -c /dev/iommu -a -c /dev/vfio/devices/vfio0
check by-iommufd sh -c 'TESSERA_LOG=info hal "$@" >/tmp/log 2>&1; s=$?; cat /tmp/log
	grep -q "device file and iommufd" /tmp/log && exit $s' sh $(addresses 1234 7e55)
rm /dev/iommu
check by-group hal $(addresses 1234 7e55)
""",
}


UDEV_SCRIPT = """
printf 'root:x:0:\\nrender:x:105:\\n' >/etc/group
echo root:x:0:0::/:/bin/sh >/etc/passwd
mkdir -p /run /lib/udev
udev() { /udev/ld.so --library-path /udev --argv0 "$@"; }
check verify udev udevadm /udev/udevadm verify --resolve-names=never /etc/udev/rules.d
check daemon udev systemd-udevd /udev/udevadm --daemon
for a in $(addresses 1234 7e55) $(addresses 1234 11e8); do
	check bind-$a tessera-vfio-bind $a
done
udev udevadm /udev/udevadm trigger --action=add
check settle udev udevadm /udev/udevadm settle --timeout=60
group() {
	g=$(readlink /sys/bus/pci/devices/$1/iommu_group)
	echo /dev/vfio/${g##*/}
}
cdev() { for d in /sys/bus/pci/devices/$1/vfio-dev/*; do echo /dev/vfio/devices/${d##*/}; done; }
is() {	# FILE MODE:GROUP
	ls -l $1
	[ "$(stat -c %a:%g $1)" = $2 ]
}
t1=$(addresses 1234 7e55) edu=$(addresses 1234 11e8)
check our-group is $(group $t1) 660:105
check our-file is $(cdev $t1) 660:105
check iommu is /dev/iommu 660:105
check other-group is $(group $edu) 600:0
check other-file is $(cdev $edu) 600:0
check link sh -c 'ls -l /dev/vfio/by-path && [ /dev/vfio/by-path/* -ef '$(cdev $t1)' ]'
"""


class Skip(Exception):
    """Why a tier can't run here."""


class Failure(Exception):
    """What went wrong in a tier."""


def say(text):
    print(text, flush=True)


class Machine:
    """Packages, and guests made of them."""

    def __init__(self, cache, build, verbose):
        self.cache = cache
        self.build = build
        self.verbose = verbose

    def fetch(self, *parts):
        done = subprocess.run(["sh", str(HERE / "fetch.sh"), str(self.cache), *parts],
                              stderr=subprocess.PIPE, text=True)
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

    def version(self):
        return self.one("kernel/boot/vmlinuz-*").name.removeprefix("vmlinuz-")

    def module(self, name):
        """The module's bytes, or None where the kernel has it built in."""
        for path in (self.cache / "kernel").rglob(f"{name}.ko*"):
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


def copy_udev(root, machine):
    """udevd with libraries of its own: it may be newer than the system's."""
    libs = machine.cache / "udev/usr/lib/x86_64-linux-gnu"
    loader = machine.cache / "udev/usr/lib64/ld-linux-x86-64.so.2"
    program = machine.one("udev/usr/bin/udevadm")
    target = root / "udev"
    target.mkdir()
    shutil.copy(loader, target / "ld.so")
    shutil.copy(program, target / "udevadm")
    listed = subprocess.run([str(loader), "--library-path", f"{libs}:{libs}/systemd", "--list",
                             str(program)], capture_output=True, text=True)
    for library in re.findall(r"=> (/\S+) \(0x", listed.stdout):
        shutil.copy(library, target / pathlib.Path(library).name)
    rules = root / "etc/udev/rules.d"
    rules.mkdir(parents=True)
    shutil.copy(TOP / "udev/70-tessera.rules", rules)


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

    def __init__(self, machine, work, n):
        self.sockets = work / "sock"
        self.process = None
        self.n = n
        if not n:
            return
        self.log = open(work / "server.log", "w")
        self.process = subprocess.Popen(
            [str(machine.build / "tessera-sim"), "--devices", str(n), "--hbm", "256M",
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


def boot(machine, work, devices, limit, memory):
    """Runs the guest to its end; what it said."""
    argv = machine.qemu() + [
        "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", memory, "-nodefaults",
        "-display", "none", "-no-reboot", "-M", "q35,kernel-irqchip=split,memory-backend=mem0",
        "-object", f"memory-backend-memfd,id=mem0,size={memory},share=on",
        "-device", "intel-iommu,intremap=on,caching-mode=on", *devices,
        "-device", "virtio-serial-pci", "-chardev", f"file,id=result,path={work}/result.log",
        "-device", "virtserialport,chardev=result,name=result",
        "-kernel", str(machine.one("kernel/boot/vmlinuz-*")), "-initrd", f"{work}/initrd.gz",
        "-append", "console=ttyS0 panic=-1 quiet no_timer_check intel_iommu=on",
        "-serial", f"file:{work}/console.log"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, timeout=limit)
        status = f"QEMU ended with {done.returncode}: {done.stderr.strip()}"
    except subprocess.TimeoutExpired:
        status = f"no end after {limit} s"
    except OSError as e:
        raise Skip(f"QEMU does not start: {e}") from e
    result = work / "result.log"
    text = result.read_text(errors="replace") if result.exists() else ""
    if "\nfinished" not in text:
        console = work / "console.log"
        tail = console.read_text(errors="replace")[-3000:] if console.exists() else ""
        raise Failure(f"the guest did not finish ({status})\n{text}\n{tail}")
    return text


def judge(text, n_checks):
    """The number of checks that passed; Failure if one did not, or is missing."""
    checks, _, kernel = text.partition("--- kernel")
    passed = len(re.findall(r"^ok ", checks, re.M))
    begun = len(re.findall(r"^begin ", checks, re.M))
    bad = [line for line in kernel.splitlines() if BAD_IN_DMESG.search(line)]
    if bad:
        raise Failure("the guest's kernel complains:\n" + "\n".join(bad) + "\n" + checks)
    if re.search(r"^FAILED", checks, re.M) or passed != begun:
        raise Failure(checks)
    if passed != n_checks:
        raise Failure(f"{passed} checks passed, {n_checks} were expected\n{checks}")
    return passed


def run_guest(machine, script, devices, n_served, n_checks, programs, modules, limit=180,
              extra=None, memory="1G", inspect=None):
    """inspect: judges what the guest said, too."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        paths = [machine.build / p for p in programs]
        make_initrd(work, machine, paths + [TOP / "tools/tessera-vfio-bind"], modules, script,
                    extra)
        server = Server(machine, work, n_served)
        try:
            text = boot(machine, work, [*devices, *server.options()], limit, memory)
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


def tier_edu(machine):
    machine.fetch("busybox", "qemu", "kernel")
    return run_guest(machine, SCRIPTS["edu"], ["-device", "edu"], 0, 2, ["guest/edu"],
                     stock_modules(machine))


def tier_type1(machine):
    machine.fetch("busybox", "qemu", "kernel")
    passed = 0
    for n in (1, 3):
        passed += run_guest(machine, SCRIPTS["t1"], [], n, 3 * n + 2,
                            ["guest/vfio", "guest/hal", "conformance/conformance"],
                            stock_modules(machine), 400)
    return passed


def iommufd_modules(machine):
    """Debian's kernels have no iommufd: modules that are built for one."""
    machine.fetch("busybox", "qemu", "kernel", "kbuild", "source")
    done = subprocess.run(["sh", str(HERE / "modules.sh"), str(machine.cache)],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode == 77:
        raise Skip(done.stderr.strip())
    if done.returncode:
        raise Failure(f"modules.sh: {done.stderr.strip()}")
    built = machine.cache / "modules" / machine.version()
    modules = {"irqbypass": machine.module("irqbypass")}
    for name in ("iova_bitmap", "iommufd", "vfio", "vfio_iommu_type1", "vfio-pci-core",
                 "vfio-pci"):
        modules[name] = (built / f"{name}.ko").read_bytes()
    return modules


def tier_iommufd(machine):
    return run_guest(machine, SCRIPTS["cdev"], [], 2, 5, ["guest/hal"],
                     iommufd_modules(machine), 300)


def tier_udev(machine):
    modules = iommufd_modules(machine)
    machine.fetch("udev")
    return run_guest(machine, UDEV_SCRIPT, ["-device", "edu"], 1, 11, [], modules,
                     extra=copy_udev)


def run_or_fail(what, argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **more)
    if done.returncode == 77:
        raise Skip(f"{what}: {done.stdout.strip()}")
    if done.returncode:
        raise Failure(f"{what} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def build_driver(machine, work):
    """The module, at work/src/kernel-uapi/driver/tessera.ko; the arguments of its make."""
    headers, compiler = run_or_fail(
        "modules.sh", ["sh", str(HERE / "modules.sh"), str(machine.cache), "headers"]).split()
    uapi = ["make", "-s", "-C", str(TOP / "kernel-uapi")]
    run_or_fail("the driver's sources", [*uapi, "dkms-tree", f"DKMS={work}/src"])
    run_or_fail("building the driver", ["make", "-C", f"{work}/src/kernel-uapi/driver",
                                        f"KDIR={headers}", f"CC={compiler}"])
    return uapi


def tier_driver(machine, program="kmod_test", arguments="", limit=240):
    """The kernel driver, which brings a guest of its own: tests/kmod/guest.sh."""
    guest = TOP / "tests/kmod/guest.sh"
    if not guest.exists():
        raise Skip("this tree has no tests/kmod")
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        uapi = build_driver(machine, work)
        run_or_fail("building its test",
                    [*uapi, f"OUT={work}/test", f"{work}/test/{program}"])
        env = dict(os.environ, QEMU=" ".join(machine.qemu()), WORK=f"{work}/guest",
                   LIMIT=str(limit), TEST_ARGS=arguments,
                   KERNEL=str(machine.one("kernel/boot/vmlinuz-*")),
                   MODULES=str(machine.one("kernel/lib/modules/*")),
                   BUSYBOX=str(machine.one("busybox/usr/bin/busybox")),
                   SERVER=str(machine.build / "tessera-sim"))
        text = run_or_fail("the driver's guest",
                           ["sh", str(guest), f"{work}/src/kernel-uapi/driver/tessera.ko",
                            f"{work}/test/{program}"], env=env)
        if machine.verbose:
            say(text)
        if program == "kmod_fuzz":
            say("".join(re.findall(r"# .* calls,.*", text)).strip())
            return 1
        passed = len(re.findall(r"^ok ", text, re.M))
        if not passed or re.search(r"^not ok", text, re.M):
            raise Failure(text)
        return passed
    finally:
        shutil.rmtree(work, ignore_errors=True)


DIGITS = TOP / "runtime/python/examples/digits.py"
MODEL = "conv_net"

# The host's file system, read only, with a /tmp of its own: its Python is the guest's.
JAX_SCRIPT = """
mkdir /host
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
mount -t tmpfs none /host/tmp
for d in proc sys dev; do mount --bind /$d /host/$d; done
train() {	# DEVICES
	echo "devices $1"
	chroot /host /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp JAX_PLATFORMS=tessera,cpu \\
		TESSERA_PLUGIN=@PLUGIN@ TESSERA_CACHE=off TESSERA_DEVICES=$1 \\
		@PYTHON@ @DIGITS@ --worker @MODEL@
}
for a in $(addresses 1234 7e55); do
	check bind tessera-vfio-bind $a
	check vfio train vfio:$a
	check unbind tessera-vfio-bind --unbind $a
done
for m in /modules/late/*.ko; do insmod $m || echo "FAILED insmod $m"; done
check node test -c /dev/accel/accel0
check driver train accel:/dev/accel/accel0
"""


def losses_of(lines):
    """Of a worker of digits.py, which prints JSON."""
    return [x for line in lines if line.startswith("{")
            for x in json.loads(line).get("losses", [])]


def tier_jax(machine):
    """JAX trains in a guest, through VFIO and through the driver, as it does on the host."""
    python = os.environ.get("TESSERA_VM_PYTHON", "")
    if not os.access(python, os.X_OK):
        raise Skip("TESSERA_VM_PYTHON names no Python with JAX: make check-vm-jax does")
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    plugin = machine.build / "pjrt_plugin_tessera.so"
    worker = [python, str(DIGITS), "--worker", MODEL]
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu", TESSERA_PLUGIN=str(plugin),
               TESSERA_CACHE="off", TESSERA_DEVICES="sim")
    want = losses_of(run_or_fail("training on the host", worker, env=env).splitlines())

    def inspect(text):
        for part in text.split("\ndevices ")[1:]:
            got = losses_of(part.splitlines())
            if not got or got != want:
                raise Failure(f"{part.split()[0]}: {len(got)} losses, the host has {len(want)}; "
                              f"the first: {got[:3]}, {want[:3]}\n{text}")

    script = JAX_SCRIPT
    for name, value in (("PLUGIN", plugin), ("PYTHON", python), ("DIGITS", DIGITS),
                        ("MODEL", MODEL)):
        script = script.replace(f"@{name}@", str(value))
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        build_driver(machine, work)

        def copy_driver(root, machine):
            late = root / "modules/late"
            late.mkdir()
            for i, m in enumerate(DRM):
                if (data := machine.module(m)) is not None:
                    (late / f"{i}-{m}.ko").write_bytes(data)
            shutil.copy(work / "src/kernel-uapi/driver/tessera.ko", late / "9-tessera.ko")

        modules = stock_modules(machine) | {m: machine.module(m) for m in SHARING}
        share = ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on",
                 "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
        return run_guest(machine, script, share, 1, 5, [], modules, 1500, copy_driver, "4G",
                         inspect)
    finally:
        shutil.rmtree(work, ignore_errors=True)


TIERS = {"T1": tier_edu, "T2": tier_type1, "T3": tier_iommufd, "T4": tier_udev,
         "T5": tier_driver}
ON_REQUEST = {"JAX": tier_jax,
              "FUZZ": lambda machine: tier_driver(machine, "kmod_fuzz", "1000000", 3000)}


def main():
    parser = argparse.ArgumentParser(description="Tests in a virtual machine.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--verbose", action="store_true", help="print what guests say")
    parser.add_argument("tier", nargs="*", choices=[[], *TIERS, *ON_REQUEST],
                        help="default: all")
    args = parser.parse_args()
    cache = pathlib.Path(os.environ.get("TESSERA_VM_CACHE", "build/vm")).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    machine = Machine(cache, args.build.absolute(), args.verbose)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in args.tier or TIERS:
        began = time.monotonic()
        try:
            passed = (TIERS | ON_REQUEST)[name](machine)
            counts["passed"] += 1
            say(f"ok   {name}: {passed} checks, {time.monotonic() - began:.0f} s")
        except Skip as why:
            counts["skipped"] += 1
            say(f"skip {name}: {why}")
        except Failure as why:
            counts["failed"] += 1
            say(f"FAIL {name}: {why}")
    say("guest tiers: " + ", ".join(f"{n} {word}" for word, n in counts.items()))
    return 1 if counts["failed"] else 0 if counts["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
