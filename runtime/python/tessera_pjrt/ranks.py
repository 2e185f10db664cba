# SPDX-License-Identifier: Apache-2.0
"""The plugin's own extension, by which ranks and processes say that they begin and leave."""

import ctypes

import tessera_pjrt

RANKS_EXTENSION = 0x7e55    # as runtime/pjrt/pjrt_wrap.h


class _Api(ctypes.Structure):       # what PJRT_Api begins with
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("type", ctypes.c_int),
                ("next", ctypes.c_void_p)]


class _Ranks(ctypes.Structure):     # runtime/pjrt/pjrt_ranks.c
    _fields_ = [("base", _Extension), ("enter", ctypes.CFUNCTYPE(None, ctypes.c_int)),
                ("leave", ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)),
                ("settle", ctypes.CFUNCTYPE(None))]


def find_ranks():
    """The plugin's extension by which ranks begin and leave."""
    get = ctypes.CDLL(tessera_pjrt.library()).GetPjrtApi
    get.restype = ctypes.POINTER(_Api)
    at = get().contents.extension
    while at:
        extension = _Extension.from_address(at)
        if extension.type == RANKS_EXTENSION:
            return _Ranks.from_address(at)
        at = extension.next
    raise RuntimeError(f"tessera: {tessera_pjrt.library()} is of another version than the "
                       "package: install the package again, or build the plugin again")
