# SPDX-License-Identifier: Apache-2.0
"""Hands functions and types of XLA's FFI to the plugin, by its extensions: jaxlib leaves that to
each plugin's own library. Structs are those of the PJRT C API (runtime/pjrt/pjrt_abi.h)."""

import ctypes
import functools

import tessera_pjrt

GPU_CUSTOM_CALL, FFI = 0, 5     # types of extensions; the first takes handlers of all stages
STAGES = ("instantiate", "prepare", "initialize", "execute")
_pointer, _size = ctypes.c_void_p, ctypes.c_size_t


def _struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [("struct_size", _size), *fields]})


_Base = _struct("PJRT_Extension_Base", ("type", ctypes.c_int), ("next", _pointer))
_Api = _struct("PJRT_Api", ("extension_start", _pointer))
_Handler = _struct("PJRT_FFI_Register_Handler_Args", ("target_name", ctypes.c_char_p),
                   ("target_name_size", _size), ("handler", _pointer),
                   ("platform_name", ctypes.c_char_p), ("platform_name_size", _size),
                   ("traits", ctypes.c_int))
_Bundle = _struct("PJRT_Gpu_Register_Custom_Call_Args", ("function_name", ctypes.c_char_p),
                  ("function_name_size", _size), ("api_version", ctypes.c_int),
                  *((stage, _pointer) for stage in STAGES))
_Type = _struct("PJRT_FFI_Type_Register_Args", ("extension_start", _pointer),
                ("type_name", ctypes.c_char_p), ("type_name_size", _size),
                ("type_id", ctypes.c_int64), ("type_info", _pointer))
_Info = type("PJRT_FFI_Type_Info", (ctypes.Structure,), {
    "_fields_": [("deleter", _pointer), ("serialize", _pointer), ("deserialize", _pointer)]})
_TypeInfo = _struct("XLA_FFI_TypeInfo", ("extension_start", _pointer), ("deleter", _pointer))
_Message = _struct("PJRT_Error_Message_Args", ("extension_start", _pointer), ("error", _pointer),
                   ("message", _pointer), ("message_size", _size))
_Destroy = _struct("PJRT_Error_Destroy_Args", ("extension_start", _pointer), ("error", _pointer))


@functools.cache
def _api():
    get = ctypes.CDLL(tessera_pjrt.library()).GetPjrtApi
    get.restype = _pointer
    return get()


def _function(address, restype=_pointer):
    """The one that a table has at this address."""
    return ctypes.CFUNCTYPE(restype, _pointer)(_pointer.from_address(address).value)


def _extension(kind):
    at = _Api.from_address(_api()).extension_start
    while at and _Base.from_address(at).type != kind:
        at = _Base.from_address(at).next
    return at


def _call(extension, slot, args):
    """The extension's function at this place, whose error is raised."""
    args.struct_size = ctypes.sizeof(args) if not isinstance(args, _Handler) else \
        _Handler.traits.offset + _Handler.traits.size
    error = _function(_extension(extension) + ctypes.sizeof(_Base) + 8 * slot)(ctypes.byref(args))
    if not error:
        return
    first = _api() + 40         # PJRT_Error_Destroy, PJRT_Error_Message
    said = _Message(ctypes.sizeof(_Message), None, error)
    _function(first + 8, None)(ctypes.byref(said))
    text = ctypes.string_at(said.message, said.message_size).decode(errors="replace")
    _function(first, None)(ctypes.byref(_Destroy(ctypes.sizeof(_Destroy), None, error)))
    raise ValueError(text)


def _content(capsule):
    """What a PyCapsule holds, whatever it is called."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = _pointer, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = _pointer
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, _pointer]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def register_target(name, fn, platform, api_version=1, traits=0):
    name = name if isinstance(name, bytes) else name.encode()
    if api_version == 1 and not isinstance(fn, dict):
        _call(FFI, 2, _Handler(0, name, len(name), _content(fn), platform.encode(), len(platform),
                               int(traits)))
        return
    stages = fn if isinstance(fn, dict) else {"execute": fn}
    unknown = set(stages) - set(STAGES)
    if unknown:
        raise ValueError(f"stages of the function {name.decode()} are {', '.join(STAGES)}; there "
                         f"is {', '.join(sorted(unknown))}")
    _call(GPU_CUSTOM_CALL, 0, _Bundle(0, name, len(name), api_version, *(
        _content(stages[s]) if s in stages else None for s in STAGES)))


def register_type(name, registration):
    """The number that the type gets is written where its library keeps it."""
    name = name if isinstance(name, bytes) else name.encode()
    if not isinstance(registration, dict):
        registration = {"type_id": registration}
    number = ctypes.c_int64.from_address(_content(registration["type_id"]))
    info = None
    if registration.get("type_info") is not None:
        theirs = _TypeInfo.from_address(_content(registration["type_info"]))
        info = _Info(theirs.deleter)
    args = _Type(0, None, name, len(name), number.value,
                 ctypes.addressof(info) if info is not None else None)
    _call(FFI, 0, args)
    number.value = args.type_id
