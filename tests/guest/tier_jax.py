# SPDX-License-Identifier: Apache-2.0
"""JAX trains in a guest, on the host's Python: on each way to a device, and twice on one."""

import json
import os
import pathlib
import shutil
import tempfile

from guest import (LOAD_DRIVER, TOP, Failure, Skip, build_driver, copy_driver, run_guest,
                   run_or_fail, stock_modules)

SHARING = ("netfs", "9pnet", "9pnet_virtio", "9p")
DIGITS = TOP / "runtime/python/examples/digits.py"
MODEL = "conv_net"

# The host's file system, read only, with a /tmp of its own: its Python is the guest's.
HOST_SCRIPT = """
mkdir /host
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
mount -t tmpfs none /host/tmp
for d in proc sys dev; do mount --bind /$d /host/$d; done
host_python() {	# DEVICES ARGUMENT...
	devices=$1
	shift
	exec chroot /host /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp JAX_PLATFORMS=tessera,cpu \\
		TESSERA_PLUGIN=@PLUGIN@ TESSERA_CACHE=off TESSERA_DEVICES=$devices \\
		@PYTHON@ "$@"
}
train() { host_python $1 @DIGITS@ --worker @MODEL@; }
"""

ONE_SCRIPT = HOST_SCRIPT + """
alone() { echo "devices $1"; (train $1); }
for a in $(addresses 1234 7e55); do
	check bind tessera-vfio-bind $a
	check vfio alone vfio:$a
	check unbind tessera-vfio-bind --unbind $a
done
@LOAD_DRIVER@
check node test -c /dev/accel/accel0
check driver alone accel:/dev/accel/accel0
traced() { (host_python $1 @TRACED@); }
check profile traced accel:/dev/accel/accel0
"""

# Of two that train beside each other the first is killed, of two more the second; the others
# come to their ends. The faster to start is held up until the other has started too.
TWO_SCRIPT = HOST_SCRIPT + """
@LOAD_DRIVER@
check node test -c /dev/accel/accel0
start() {	# NAME
	(train accel:/dev/accel/accel0) >/tmp/$1.log 2>&1 &
	eval "pid_$1=$!"
}
done_of() { grep -c '"done"' /tmp/$1.log; }
lives() { eval "grep -q '^State:[[:space:]]*[^ZX]' /proc/\$pid_$1/status"; }
reaches() {	# NAME HOW-MANY
	for i in $(seq 1200); do
		[ $(done_of $1) -lt $2 ] || return 0
		lives $1 || return 1
		sleep 1
	done
	return 1
}
goes_on() { reaches $1 $(($(done_of $1) + $2)); }	# NAME HOW-MANY
signal() { eval "kill -$1 \$pid_$2"; }
meet() {	# NAME NAME
	held=
	for i in $(seq 1200); do
		for n in $1 $2; do
			case $held in *$n*) continue; esac
			lives $n || return 1
			[ $(done_of $n) -ge 1 ] || continue
			signal STOP $n
			held=$held$n
		done
		if [ ${#held} = 2 ]; then
			signal CONT $1
			signal CONT $2
			return 0
		fi
		sleep 1
	done
	return 1
}
killed() { signal KILL $1; eval "wait \$pid_$1"; [ $? -eq 137 ]; }
ends() { eval "wait \$pid_$1"; }
start a
start b
check a_and_b_meet meet a b
check a_works goes_on a 1
check b_works goes_on b 1
echo "smi two"; xla-smi --json; echo "smi end"
echo "pids $pid_a $pid_b"
check a_is_killed killed a
check b_goes_on goes_on b 2
check b_ends ends b
start c
start d
check c_and_d_meet meet c d
check c_works goes_on c 1
check d_works goes_on d 1
check d_is_killed killed d
check c_goes_on goes_on c 2
check c_ends ends c
for n in a b c d; do echo "devices $n"; cat /tmp/$n.log; done
echo "left $(cat /sys/module/tessera/refcnt)"
"""


def losses_of(lines):
    """Of a worker of digits.py, which prints JSON."""
    return [x for line in lines if line.startswith("{")
            for x in json.loads(line).get("losses", [])]


def run_jax(machine, script, n_checks, programs, for_vfio, judge, limit):
    """judge: of what the guest said, and the losses of the host's model."""
    python = os.environ.get("TESSERA_VM_PYTHON", "")
    if not os.access(python, os.X_OK):
        raise Skip("TESSERA_VM_PYTHON names no Python with JAX: make check-vm-jax does")
    for path in (python, str(TOP), str(machine.build)):
        if os.path.realpath(path).startswith("/tmp/"):
            raise Skip(f"{path} is below /tmp, of which the guest has its own: have the tree "
                       "elsewhere")
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    plugin = machine.build / "pjrt_plugin_tessera.so"
    worker = [python, str(DIGITS), "--worker", MODEL]
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu", TESSERA_PLUGIN=str(plugin),
               TESSERA_CACHE="off", TESSERA_DEVICES="sim")
    want = losses_of(run_or_fail("training on the host", worker, env=env).splitlines())
    for name, value in (("PLUGIN", plugin), ("PYTHON", python), ("DIGITS", DIGITS),
                        ("MODEL", MODEL), ("TRACED", TOP / "tests/guest/traced.py"),
                        ("LOAD_DRIVER", LOAD_DRIVER)):
        script = script.replace(f"@{name}@", str(value))
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        build_driver(machine, work)
        modules = (stock_modules(machine) if for_vfio else {}) | \
            {m: machine.module(m) for m in SHARING}
        share = ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on",
                 "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
        return run_guest(machine, script, share, 1, n_checks, programs, modules, limit,
                         lambda root, m: copy_driver(root, m, work), "4G",
                         lambda text: judge(text, want))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def told_losses(text):
    """Name of each training, and its losses."""
    for part in text.split("\ndevices ")[1:]:
        yield part.split()[0], losses_of(part.splitlines())


def judge_whole(text, want, names=None):
    for name, got in told_losses(text):
        if (names is None or name in names) and (not got or got != want):
            raise Failure(f"{name}: {len(got)} losses, the host has {len(want)}; "
                          f"the first: {got[:3]}, {want[:3]}\n{text}")


def judge_two(text, want):
    """Both were seen; who was killed had the right losses so far, who was not has all of them."""
    judge_whole(text, want, "bc")
    for name, got in told_losses(text):
        if not got or got != want[:len(got)]:
            raise Failure(f"{name}: wrong losses: {got[:3]}, {want[:3]}\n{text}")
    seen = json.loads(text.partition("smi two\n")[2].partition("smi end")[0])["processes"]
    pids = {int(pid) for pid in text.partition("\npids ")[2].splitlines()[0].split()}
    if {p["pid"] for p in seen} != pids or not all(p["memory_used_bytes"] for p in seen):
        raise Failure(f"xla-smi: {seen}, not processes {pids} with memory\n{text}")
    if "\nleft 0\n" not in text:
        raise Failure(f"the driver is still used\n{text}")


def tier_jax(machine):
    """JAX trains in a guest, through VFIO and through the driver, as it does on the host, and
    its profiler sees what ran by the driver."""
    return run_jax(machine, ONE_SCRIPT, 6, [], True, judge_whole, 1500)


def tier_two(machine):
    """Two at a time on one card of the driver, each killed beside another."""
    return run_jax(machine, TWO_SCRIPT, 13, ["xla-smi"], False, judge_two, 3000)
