# SPDX-License-Identifier: Apache-2.0
"""The plugin and the devices, for whichever framework asks; needs none itself.

TESSERA_PLUGIN names another build of the plugin than the one in this package.
"""

import os
import pathlib

PCI_VENDOR, PCI_DEVICE = "0x1234", "0x7e55"     # as hal/hw/regs.h


def library():
    """Where the plugin is. FileNotFoundError: it is not there."""
    named = os.environ.get("TESSERA_PLUGIN")
    path = pathlib.Path(named) if named else \
        pathlib.Path(__file__).parent / "pjrt_plugin_tessera.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: install the package again, or let "
                                "TESSERA_PLUGIN name a built pjrt_plugin_tessera.so")
    return str(path)


def devices(environ=os.environ, root="/"):
    """The devices that a client would find, each as TESSERA_DEVICES names it alone.

    Follows hal/enumerate.c and opens nothing. What is wrong in the variables is the
    client's to say: it counts as one device here.
    """
    named = environ.get("TESSERA_DEVICES", "")
    if named == "sim":
        return _models(environ.get("TESSERA_SIM", ""))
    if named.startswith("sim:"):
        return _models(named[4:])
    if named:
        return _named(named)
    return _accel(pathlib.Path(root)) + _functions(pathlib.Path(root)) or \
        _models(environ.get("TESSERA_SIM", ""))


def _models(options):
    count, others = 1, []
    for word in filter(None, options.split(",")):
        if word.startswith("devices="):
            count = int(word[8:]) if word[8:].isdecimal() else 1
        else:
            others.append(word)
    return ["sim:" + ",".join(["devices=1", *others])] * max(count, 1)


def _named(text):
    kind, found = "", []
    for word in filter(None, text.split(",")):
        for start in ("vfio-user:", "vfio:", "vfio-noiommu:", "accel:"):
            if word.startswith(start):
                kind, word = start, word[len(start):]
                break
        found.append(kind + word)
    return found


def _number(path):
    digits = path.name.removeprefix("accel")
    return (0, int(digits), "") if digits.isdecimal() else (1, 0, digits)


def _driver(function):
    link = function / "driver"
    return os.path.basename(os.readlink(link)) if link.is_symlink() else ""


def _accel(root):
    nodes = sorted((root / "sys/class/accel").glob("accel*"), key=_number)
    return [f"accel:/dev/accel/{n.name}" for n in nodes if _driver(n / "device") == "tessera"]


def _functions(root):
    """Functions of T1s that no driver of the kernel holds as a node."""
    found = []
    for f in sorted((root / "sys/bus/pci/devices").glob("*:*")):
        try:
            is_ours = ((f / "vendor").read_text().strip() == PCI_VENDOR and
                       (f / "device").read_text().strip() == PCI_DEVICE)
        except OSError:     # unplugged meanwhile
            continue
        if is_ours and _driver(f) != "tessera" and not (f / "accel").exists():
            found.append(f"vfio:{f.name}")
    return found
