# SPDX-License-Identifier: Apache-2.0
"""Writes sessions as clients lead them into a folder, for vfio_user_fuzz to start from.

    python3 tests/fuzz/vfio_user_seeds.py FOLDER

The form of an input is described in vfio_user_fuzz.c, the messages in hal/bus/vfio_user.h.
"""

import pathlib
import random
import struct
import sys

(VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IO_FDS, IRQ_INFO, SET_IRQS, READ, WRITE,
 DMA_READ, DMA_WRITE, RESET, DIRTY, MULTI, FEATURE) = range(1, 17)
BAR0, BAR2, CONFIG, MSIX = 0, 2, 7, 2
MEMFD, EVENTFD = 0, 1


def message(command, body=b"", fds=0, kind=MEMFD):
    return struct.pack("<BBH", command, fds | kind << 3, len(body)) + body


def version(text=b'{"capabilities":{"max_msg_fds":8,"write_multiple":true}}\0'):
    return message(VERSION, struct.pack("<HH", 0, 1) + text)


def dma_map(iova, count, fds=1):
    return message(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, iova, count), fds)


def dma_unmap(iova, count, flags=0):
    return message(DMA_UNMAP, struct.pack("<IIQQ", 24, flags, iova, count))


def read(region, offset, count):
    return message(READ, struct.pack("<QII", offset, region, count))


def write(region, offset, data):
    return message(WRITE, struct.pack("<QII", offset, region, len(data)) + data)


def multi(*stores):
    body = struct.pack("<Q", len(stores))
    for region, offset, data in stores:
        body += struct.pack("<QII", offset, region, len(data)) + data.ljust(8, b"\0")
    return message(MULTI, body)


def set_irqs(flags, start, count, fds=0, data=b""):
    return message(SET_IRQS, struct.pack("<IIIII", 20 + len(data), flags, MSIX, start, count) +
                   data, fds, EVENTFD)


def queries():
    yield message(GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))
    for i in range(10):
        yield message(REGION_INFO, struct.pack("<IIIIQQ", 64, 0, i, 0, 0, 0))
    for i in range(6):
        yield message(IRQ_INFO, struct.pack("<IIII", 16, 0, i, 0))
    yield message(IO_FDS, struct.pack("<IIII", 4096, 0, BAR0, 0))


def configuration():
    for offset in range(0, 256, 4):
        yield read(CONFIG, offset, 4)
    for offset in range(0x10, 0x28, 4):
        yield write(CONFIG, offset, b"\xff" * 4)
        yield read(CONFIG, offset, 4)
    yield write(CONFIG, 4, struct.pack("<H", 6))


def registers():
    for offset in range(0, 0x80, 4):
        yield read(BAR0, offset, 4)
    for offset in (0x8000, 0xc000, 0x10000, 0x11000, 0x7fffc):
        yield write(BAR0, offset, struct.pack("<I", 1))
        yield read(BAR0, offset, 8)
    yield write(BAR2, 4096, bytes(range(64)))
    yield read(BAR2, 4096, 64)


def memory():
    for i in range(1, 9):
        yield dma_map(i << 16, 0x10000, i % 3 != 0)
    for i in range(1, 9):
        yield dma_unmap(i << 16, 0x10000)
    yield dma_map(0x100000, 0x10000)
    yield dma_unmap(0, 1 << 63)
    yield dma_unmap(0, 0, 2)


def interrupts():
    yield set_irqs(4 | 32, 0, 4, 4)
    for i in range(4):
        yield set_irqs(2 | 8, i, 1, data=b"\1")
        yield set_irqs(1 | 16, i, 1)
        yield set_irqs(1 | 32, i, 1)
    yield set_irqs(4 | 32, 1, 2)
    yield set_irqs(1 | 32, 0, 0)


def bring_up():
    """Admin rings, the function enabled, a request."""
    yield write(CONFIG, 4, struct.pack("<H", 6))
    yield dma_map(0x10000, 0x10000)
    for reg, value in ((0x18, 0x10000), (0x20, 0x11000), (0x28, 32)):
        yield write(BAR0, reg, struct.pack("<Q", value))
    yield write(BAR0, 0x10, struct.pack("<I", 1))
    yield read(BAR0, 0x14, 4)
    yield multi(*[(BAR0, 0x10000 + 4096 * i, struct.pack("<I", 1)) for i in range(4)])
    yield write(BAR0, 0x10000, struct.pack("<I", 1))
    yield message(RESET)


def feature():
    for bits in (0x10000, 0x20000, 0x30000, 0x40000):
        yield message(FEATURE, struct.pack("<II", 16, bits | 3) + bytes(8))
    yield message(DIRTY, bytes(16))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    parts = [queries, configuration, registers, memory, interrupts, bring_up, feature]
    for part in parts:
        (folder / f"seed-{part.__name__}").write_bytes(b"\1" + version() + b"".join(part()))
    order = random.Random(1)
    for i in range(8):
        some = [m for part in parts for m in part()]
        order.shuffle(some)
        (folder / f"seed-mixed{i}").write_bytes(b"\1" + b"".join(some[:80]))


if __name__ == "__main__":
    main()
