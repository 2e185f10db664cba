# SPDX-License-Identifier: Apache-2.0
"""What the runtime answers in protobufs, read by XLA's own parser.

The bytes are those of tests/data/xla_protos.def, which rt_proto_test holds the runtime to.
"""

import pathlib
import re

import numpy as np
import pytest
from jax._src.lib import xla_client

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/xla_protos.def"
SHAPES = re.findall(r'^SHAPE\((\w+), (\w+), "([\d ]*)", "(\w+)"\)', DATA.read_text(), re.M)
ASSIGNMENTS = re.findall(r'^ASSIGNMENT\("([\d ]+)", "(\w+)"\)', DATA.read_text(), re.M)
HOST_SPACE = 5


def field(number, value):
    """A field of bytes of a protobuf message."""
    size, n = b"", len(value)
    while n > 127:
        size += bytes([n & 127 | 128])
        n >>= 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + value


def parse(shape):
    """XLA reads shapes from bytes as a module's: HloModuleProto.host_program_shape."""
    module = field(1, b"m") + field(4, field(2, shape))
    return xla_client.XlaComputation(module).program_shape().result_shape()


def test_there_are_shapes_and_assignments():
    assert len(SHAPES) > 50 and len(ASSIGNMENTS) > 5


@pytest.mark.parametrize("elem,kind,dims,data", SHAPES)
def test_xla_reads_the_shape(elem, kind, dims, data):
    shape = parse(bytes.fromhex(data))
    dims = dims.split()
    order = ",".join(str(d) for d in reversed(range(len(dims))))
    order += f":S({HOST_SPACE})" if kind != "DEVICE" else ""
    assert str(shape) == f"{elem.lower()}[{','.join(dims)}]" + (f"{{{order}}}" if order else "")
    assert not shape.is_dynamic()


@pytest.mark.parametrize("devices,data", ASSIGNMENTS)
def test_xla_writes_the_same_assignment(devices, data):
    ids = [[int(d)] for d in devices.split()]
    own = xla_client.DeviceAssignment.create(np.array(ids, np.int32))
    assert own.serialize() == bytes.fromhex(data)
