# SPDX-License-Identifier: Apache-2.0
"""Trains two small classifiers on scikit-learn's handwritten digits in plain torch_xla.

    python torch_digits.py                  the device beside PJRT_DEVICE=CPU, with a verdict
    python torch_digits.py --worker MODEL   one model on the device of PJRT_DEVICE

A convolutional net, and a transformer whose products are bfloat16 by torch.autocast. Both
start from the same weights and see the same batches on either device. Half-way each writes
a checkpoint, forgets what it had and goes on from the file. The run compares: test
accuracy of both >= 0.95, and the losses of the first 50 steps within 1e-3 of each other.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

EPOCHS = 40
BATCH = 128
STEPS_PER_EPOCH = 1437 // BATCH
STEPS = EPOCHS * STEPS_PER_EPOCH
COMPARED = 50        # steps whose losses must agree
TOLERANCE = 1e-3
ACCURACY = 0.95
RATE = {"conv_net": 2e-3, "transformer": 4e-4}


# ---- the models -------------------------------------------------------------

def conv_net():
    """3x3 convolutions 1 -> 16 -> 32 (the second with stride 2) with batch norm, then linear."""
    from torch import nn
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Linear(512, 10))


def transformer():
    """Each row of the image is a token; two pre-norm blocks, mean over tokens."""
    import torch
    from torch import nn
    width = 32

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Linear(8, width)
            self.place = nn.Parameter(0.02 * torch.randn(8, width))
            self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
                norm_first=True) for _ in range(2)))
            self.out = nn.Linear(width, 10)

        def forward(self, x):
            return self.out(self.blocks(self.embed(x) + self.place).mean(1))
    return Net()


MODELS = {"conv_net": conv_net, "transformer": transformer}
AUTOCAST = {"conv_net": False, "transformer": True}


# ---- one model on one device ------------------------------------------------

def load():
    """(training, test) sets of images and labels, on the CPU."""
    import numpy
    import torch
    from sklearn.datasets import load_digits
    digits = load_digits()
    order = numpy.random.default_rng(0).permutation(len(digits.target))
    images = torch.tensor(digits.images[order] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target[order])
    split = 1437
    return ((images[:split], labels[:split]), (images[split:], labels[split:]))


class Training:
    """A model, its optimizer and its batches."""

    def __init__(self, name, device, data):
        import torch
        import torch_xla.distributed.parallel_loader as pl
        torch.manual_seed(0)        # the same weights whatever the device
        self.name, self.device = name, device
        self.model = MODELS[name]().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE[name],
                                          capturable=True)
        self.order = torch.Generator().manual_seed(1)
        batches = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(*data), batch_size=BATCH, shuffle=True,
            drop_last=True, generator=self.order)
        self.loader = pl.MpDeviceLoader(batches, device)

    def predict(self, x):
        import torch
        with torch.autocast("xla", dtype=torch.bfloat16, enabled=AUTOCAST[self.name]):
            return self.model(x)

    def epoch(self):
        """The losses of its steps, and the seconds that tracing took."""
        import torch
        import torch_xla.core.xla_model as xm
        self.model.train()
        losses, traced = [], 0.0
        for x, y in self.loader:    # going on to the next batch runs what was traced
            began = time.perf_counter()
            self.optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(self.predict(x).float(), y)
            loss.backward()
            xm.optimizer_step(self.optimizer)
            losses.append(loss.detach())
            traced += time.perf_counter() - began
        return torch.stack(losses).tolist(), traced

    def accuracy(self, x, y):
        import torch
        self.model.eval()
        with torch.no_grad():
            found = self.predict(x.to(self.device)).argmax(1).cpu()
        return (found == y).float().mean().item()

    def save(self, path):
        import torch_xla.core.xla_model as xm
        xm.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "order": self.order.get_state()}, path)

    def restore(self, path):
        import torch
        state = torch.load(path)    # on the CPU: loading copies to the device
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"])


def work(name):
    """Trains and prints one JSON object a line: the parent reads them."""
    import torch_xla
    import torch_xla.core.xla_model as xm

    def say(**fields):
        print(json.dumps(fields), flush=True)

    device = torch_xla.device()
    say(hardware=xm.xla_device_hw(device), device=str(device))
    train, test = load()
    training = Training(name, device, train)
    spent, tracing = [], []
    for epoch in range(1, EPOCHS + 1):
        began = time.perf_counter()
        losses, traced = training.epoch()
        spent.append((time.perf_counter() - began) / STEPS_PER_EPOCH)
        tracing.append(traced / STEPS_PER_EPOCH)
        say(done=epoch * STEPS_PER_EPOCH, losses=losses)
        if epoch == EPOCHS // 2:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "half-way.pt")
                training.save(path)
                training = Training(name, device, train)
                training.restore(path)
    middle = sorted(range(EPOCHS), key=spent.__getitem__)[EPOCHS // 2]
    say(accuracy=training.accuracy(*test), first_s=spent[0] * STEPS_PER_EPOCH,
        step_ms=1e3 * spent[middle], tracing_ms=1e3 * tracing[middle])


# ---- side by side -----------------------------------------------------------

def bar(label, done, loss):
    width = 30
    full = width * done // STEPS
    sys.stderr.write(f"\r{label:<24} [{'#' * full}{'.' * (width - full)}] {done:4d}/{STEPS}"
                     f"  loss {loss:.4f}")
    sys.stderr.flush()


def run_worker(name, device):
    """The worker's results as one dict."""
    env = dict(os.environ, PJRT_DEVICE=device)
    got = {"losses": []}
    with subprocess.Popen([sys.executable, __file__, "--worker", name], env=env,
                          stdout=subprocess.PIPE, text=True) as worker:
        for line in worker.stdout:
            fields = json.loads(line)
            got["losses"] += fields.pop("losses", [])
            got.update(fields)
            if "done" in fields:
                bar(f"{name} on {got['hardware']}", fields["done"], got["losses"][-1])
    sys.stderr.write("\n")
    if worker.returncode or "accuracy" not in got:
        sys.exit(f"{name} on {device}: the worker failed (exit {worker.returncode})")
    return got


def compare():
    failures = []
    rows = [("model", "device", "accuracy", "loss@1", f"loss@{COMPARED}", "ms/step",
             "tracing ms", "first epoch s")]
    for name in MODELS:
        ours, cpu = run_worker(name, "TESSERA"), run_worker(name, "CPU")
        for r in ours, cpu:
            rows.append((name, r["hardware"], f"{r['accuracy']:.4f}", f"{r['losses'][0]:.5f}",
                         f"{r['losses'][COMPARED - 1]:.5f}", f"{r['step_ms']:.2f}",
                         f"{r['tracing_ms']:.2f}", f"{r['first_s']:.2f}"))
            if r["accuracy"] < ACCURACY:
                failures.append(f"{name} on {r['hardware']}: accuracy {r['accuracy']:.4f}, "
                                f"wanted {ACCURACY}")
        far = [abs(a - b) for a, b in zip(ours["losses"][:COMPARED],
                                          cpu["losses"][:COMPARED], strict=True)]
        apart = max(far, key=lambda x: (x != x, x))     # NaN is the worst
        print(f"{name}: losses of the first {COMPARED} steps are at most {apart:.1e} apart; "
              f"{cpu['step_ms'] / ours['step_ms']:.2f}x the speed of XLA's CPU backend")
        if not apart <= TOLERANCE:
            failures.append(f"{name}: losses are {apart:.1e} apart, wanted {TOLERANCE:.0e}")
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())
    for f in failures:
        print("FAILED:", f)
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", choices=MODELS, help="train one model here")
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
    else:
        sys.exit(compare())
