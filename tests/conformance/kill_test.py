# SPDX-License-Identifier: Apache-2.0
"""Kills clients of a served device, then servers, at random points of a busy workload.

    kill_test.py PROGRAM --server TESSERA-SIM --smi XLA-SMI [--clients 200] [--servers 50]
                 [--seed N]

After each client killed: the next one finds an empty device and computes the same bytes; a
client of the server's second device, busy all the time, never sees others. In the end the
server has no more descriptors, mappings and memory than before, and xla-smi shows no device
memory in use. The same again with both clients on one device.

After each server killed: its client ends by itself with the reason, a new server takes the
folder over, and the next client works.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from run import Server

ENDS_WITHIN_S = 300
# What a process of threads may differ by without a leak: stacks come and go.
MAPS_SLACK, MEMORY_SLACK = 6, 8 << 20
MOST_DUMPS = 16         # of one user


class Failed(Exception):
    """Something that must hold does not."""


def expect(what, text):
    if not what:
        raise Failed(text)


class Client:
    """A `conformance --busy` on one device."""

    def __init__(self, program, device, pages, rounds=0):
        env = dict(os.environ, TESSERA_DEVICES=device, TESSERA_TELEMETRY_DIR=pages)
        self.process = subprocess.Popen([program, "--busy", str(rounds)], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill(self):
        self.process.kill()
        return self.end()

    def end(self):
        """(exit status, digests of its rounds, standard error), when it has ended."""
        try:
            out, err = self.process.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failed(f"a client did not end within {ENDS_WITHIN_S} s") from None
        # The last line may be cut by the kill.
        lines = out.split("\n")[:-1]
        return self.process.returncode, [line.split("\t")[2] for line in lines], err


def one_round(program, device, pages):
    status, digests, err = Client(program, device, pages, 1).end()
    expect(status == 0 and len(digests) == 1, f"the next client: status {status}: {err}")
    return digests[0]


def footprint(pid):
    """Descriptors, mappings and bytes (its own and shared, HBM among them) of a process."""
    proc = pathlib.Path(f"/proc/{pid}")
    status = (proc / "status").read_text()
    kib = sum(int(line.split()[1]) for line in status.splitlines()
              if line.startswith(("RssAnon", "RssShmem")))
    return {"descriptors": len(list((proc / "fd").iterdir())),
            "mappings": (proc / "maps").read_text().count("\n"),
            "threads": len(list((proc / "task").iterdir())), "bytes": kib << 10}


def settle(pid, before):
    """The footprint once the server has noticed that its client is gone."""
    deadline = time.monotonic() + 120
    while True:
        now = footprint(pid)
        if is_steady(before, now) or time.monotonic() > deadline:
            return now
        time.sleep(0.02)


def is_steady(before, now):
    return (now["descriptors"] <= before["descriptors"] and
            now["threads"] <= before["threads"] and
            now["mappings"] <= before["mappings"] + MAPS_SLACK and
            now["bytes"] <= before["bytes"] + MEMORY_SLACK)


def nobody_is_listed(smi, pages):
    env = dict(os.environ, TESSERA_TELEMETRY_DIR=pages)
    out = subprocess.run([smi, "--json"], env=env, capture_output=True, text=True, check=True)
    facts = json.loads(out.stdout)
    expect(not facts["processes"], f"xla-smi lists dead processes: {facts['processes']}")
    held = [d for d in facts["devices"] if d["memory_used_bytes"]]
    expect(not held, f"xla-smi shows memory in use: {held}")
    left = os.listdir(pages)
    # A server's death leaves evidence with its clients, so much and no more (hal/dump.h).
    dumps = [name for name in left if name.startswith("tessera-dump-")]
    expect(len(dumps) <= MOST_DUMPS, f"{len(dumps)} crash dumps are left, wanted {MOST_DUMPS}")
    left = sorted(set(left) - set(dumps))
    expect(not left, f"pages of dead processes are left: {left}")


def warm_up(a, server, pages, want):
    """Whatever clients come first takes memory of the server's that it keeps."""
    for i in range(2):
        clients = [Client(a.program, server.device(i), pages, 1) for _ in range(server.clients)]
        for client in clients:
            status, digests, err = client.end()
            expect(status == 0 and digests == [want], f"warming up: {status}: {err}")


def kill_clients(a, rng, want, kills, share):
    """Returns the count of rounds that another client did meanwhile, on another device or on
    the same (share)."""
    with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
        server = Server(a.server, clients=2 if share else 1)
        other = None
        try:
            for _ in range(2):
                warm_up(a, server, pages, want)
            time.sleep(0.1)
            idle = footprint(server.process.pid)
            with open(os.path.join(server.dir, "other"), "w+", encoding="ascii") as log:
                other = subprocess.Popen(
                    [a.program, "--busy", "0"], stdout=log, stderr=subprocess.STDOUT,
                    env=dict(os.environ, TESSERA_DEVICES=server.device(0 if share else 1),
                             TESSERA_TELEMETRY_DIR=pages))
                for i in range(kills):
                    client = Client(a.program, server.device(0), pages)
                    time.sleep(rng.uniform(0.001, a.span))
                    status, digests, err = client.kill()
                    expect(status == -signal.SIGKILL, f"kill {i}: ended before: {err}")
                    expect(set(digests) <= {want}, f"kill {i}: other bytes: {digests}")
                    expect(one_round(a.program, server.device(0), pages) == want,
                           f"kill {i}: the next client saw other bytes")
                # Others may have the cores: it has done a round before it is asked what it saw.
                while not os.path.getsize(log.name) and other.poll() is None:
                    time.sleep(0.02)
                expect(other.poll() is None, "the other client ended")
                other.kill()
                other.wait()
                log.seek(0)
                lines = log.read().split("\n")[:-1]
            expect(lines and all(line.split("\t")[2] == want for line in lines),
                   f"the other client saw other bytes: {set(lines)}")
            now = settle(server.process.pid, idle)
            expect(is_steady(idle, now), f"the server was {idle} and is {now}")
            print(f"  the server before {idle}\n  and after         {now}")
            nobody_is_listed(a.smi, pages)
            return len(lines)
        finally:
            if other and other.poll() is None:
                other.kill()
                other.wait()
            expect(server.stop() == 0, "the server did not end well")


def kill_servers(a, rng, want):
    """Returns how many clients were cut off in the middle of work or of opening."""
    cut = 0
    with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
        server = Server(a.server)
        try:
            for i in range(a.servers):
                client = Client(a.program, server.device(0), pages)
                time.sleep(rng.uniform(0.001, a.span))
                server.process.kill()
                server.process.wait()
                status, digests, err = client.end()
                expect(status in (1, 2), f"server {i}: the client's status is {status}: {err}")
                expect(server.dir in err, f"server {i}: the client says only: {err}")
                expect(set(digests) <= {want}, f"server {i}: other bytes: {digests}")
                cut += status == 1
                server = Server(a.server, folder=server.dir)
                expect(one_round(a.program, server.device(i % 2), pages) == want,
                       f"server {i}: the next client saw other bytes")
            nobody_is_listed(a.smi, pages)
        finally:
            server.stop()
    return cut


def main():
    p = argparse.ArgumentParser(description="kill -9 of clients and servers")
    p.add_argument("program")
    p.add_argument("--server", required=True)
    p.add_argument("--smi", required=True)
    p.add_argument("--clients", type=int, default=200)
    p.add_argument("--servers", type=int, default=50)
    p.add_argument("--seed", type=int, default=int(time.time()))
    a = p.parse_args()
    rng = random.Random(a.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="tessera-pages-") as pages:
            began = time.monotonic()
            want = one_round(a.program, "sim:hbm=64M,lanes=2", pages)
            # Up to a few rounds after the start, so that kills meet everything.
            a.span = 3 * (time.monotonic() - began)
        rounds = kill_clients(a, rng, want, a.clients, share=False)
        print(f"kill: {a.clients} clients killed, each next one saw {want}; "
              f"the other device's did {rounds} rounds of the same")
        kills = -(-a.clients // 4)
        rounds = kill_clients(a, rng, want, kills, share=True)
        print(f"kill: {kills} clients killed beside another one on the same device, "
              f"which did {rounds} rounds of the same")
        cut = kill_servers(a, rng, want)
        print(f"kill: {a.servers} servers killed, {cut} under a working client; "
              "each client said why, each folder was taken over")
    except (Failed, RuntimeError) as e:
        print(f"kill: FAILED (seed {a.seed}): {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
