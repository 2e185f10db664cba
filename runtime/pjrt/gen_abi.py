# SPDX-License-Identifier: Apache-2.0
"""Writes pjrt_abi.h from the layout facts of the PJRT C API, and ffi_abi.h from those of XLA's FFI.

    python3 runtime/pjrt/gen_abi.py > runtime/pjrt/pjrt_abi.h
    python3 runtime/pjrt/gen_abi.py fields > tests/unit/pjrt/pjrt_fields.def
    python3 runtime/pjrt/gen_abi.py ffi > runtime/pjrt/ffi_abi.h

The facts (tests/data/pjrt_layout.json, ffi_layout.json) are names, offsets, sizes and types.
Function pointers are void pointers here; whoever calls one says its type. `fields` lists every
field for the test that compares it with the facts of each version.
"""

import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
facts = json.loads((TOP / "tests/data/pjrt_layout.json").read_text())
oldest = json.loads((TOP / "tests/data/pjrt_layout_75.json").read_text())["structs"]
# Younger than 0.75 and longer since: what their first version had.
FIRST = {"PJRT_Client_CreateErrorBuffer_Args": 96, "PJRT_Device_PoisonExecution_Args": 49}
structs = dict(facts["structs"])
# Handles whose content is ours (pjrt_wrap.h).
for name in ("PJRT_Error", "PJRT_Memory"):
    structs.pop(name)
for name, s in facts["extension_structs"].items():
    if name.startswith(("PJRT_Layouts_", "PJRT_Shardings_", "PJRT_Profiler_", "PLUGIN_",
                        "PJRT_FFI_", "PJRT_Gpu_", "PJRT_Custom_Partitioner_",
                        "PJRT_Register_Custom_Partitioner_", "JAX_CustomCallPartitioner_")):
        structs[name] = s
PLAIN = {"size_t", "int64_t", "int", "int32_t", "float", "uint64_t", "uintptr_t",
         "intptr_t", "char", "void", "_Bool", "bool"}
enums = facts["enums"] | {k: v for k, v in facts["extension_enums"].items() if "_FFI_" in k}


def c_type(text):
    text = text.replace("struct ", "")
    if "(" in text:
        return "void *"
    base = re.sub(r"const|\*", " ", text).strip()
    if base in enums:
        return re.sub(rf"\b{base}\b", "int", text)
    if base in PLAIN:
        return text
    if "*" not in text and base not in structs:
        return "void *"           # a named function pointer
    if base.startswith("PJRT_") and not base.endswith(("Error", "Callback", "_Extension")):
        if "Layouts_PJRT" in base or "Layouts_MemoryLayout_" in base or \
                base.startswith("PJRT_Shardings_"):
            return "void *"
        return re.sub(rf"\b{base}\b", f"struct {base}", text)
    if base == "PJRT_Error" or base.startswith("JAX_"):
        return re.sub(rf"\b{base}\b", f"struct {base}", text)
    return "void *"


def needs(name):
    return [t for t in structs[name]["types"].values() if t in structs]


order, done = [], set()


def visit(name):
    if name in done:
        return
    done.add(name)
    for n in needs(name):
        visit(n)
    order.append(name)


for name in structs:
    visit(name)

# In two parts, for it is the licence of what is made, not of this file.
licence = "/* SPDX-License-" "Identifier: Apache-2.0 */"


def ffi_type(text, ffi):
    """Handlers and API functions are void pointers, stages and the like ints."""
    base = re.sub(r"const|\*", " ", text).strip()
    if "(" in text or re.fullmatch(r"XLA_FFI_\w+\*", text) and \
            (base + "_Args" in ffi["structs"] or base in ("XLA_FFI_Handler", "XLA_FFI_Task")):
        return "void *"
    if base in ffi["enums"]:
        text = re.sub(rf"\b{base}\b", "int", text)
    elif base == "XLA_FFI_Handler_Traits":
        text = "uint32_t"
    elif base.startswith("XLA_FFI_"):
        text = re.sub(rf"\b{base}\b", f"struct {base}", text)
    return text.replace("*", " *", 1)


def print_ffi():
    ffi = json.loads((TOP / "tests/data/ffi_layout.json").read_text())
    print(f"""{licence}
/* XLA's FFI {ffi["version"][0]}.{ffi["version"][1]}, by which programs call functions of the host,
 * as laid out in memory. Made by gen_abi.py: do not edit. */
#ifndef PJRT_FFI_ABI_H
#define PJRT_FFI_ABI_H
#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_MAJOR {ffi["version"][0]}
#define XLA_FFI_MINOR {ffi["version"][1]}
""")
    for values in ffi["enums"].values():
        print("enum {")
        for name, value in values.items():
            print(f"\t{name} = {value},")
        print("};\n")
    for name, s in ffi["structs"].items():
        print(f"struct {name} {{")
        for field, _, _ in s["fields"]:
            text = ffi_type(s["types"][field], ffi)
            print(f"\t{text}{'' if text.endswith('*') else ' '}{field};")
        print(f"}};\n#define {name}_SIZE {s['struct_size']}u")
        print(f'_Static_assert(sizeof(struct {name}) == {s["size"]}, "{name}");')
        for field, offset, _ in s["fields"]:
            print(f'_Static_assert(offsetof(struct {name}, {field}) == {offset}, "{field}");')
        print()
    print("#endif")


if sys.argv[1:] == ["ffi"]:
    print_ffi()
    sys.exit()
if sys.argv[1:] == ["fields"]:
    print(licence + "\n/* Every field of pjrt_abi.h: "
          "FIELD(struct, field). Made by gen_abi.py: do not edit. */")
    for name in order:
        for f in structs[name]["fields"]:
            print(f"FIELD({name}, {f[0]})")
    sys.exit()
out = [licence,
       "/* The PJRT C API 0.%d as laid out in memory. Made by gen_abi.py: do not edit. */"
       % facts["version"][1],
       "#ifndef PJRT_PJRT_ABI_H", "#define PJRT_PJRT_ABI_H",
       "#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", ""]
for enum, values in enums.items():
    out.append("enum {")
    out += [f"\t{k} = {v}," for k, v in values.items()]
    out += ["};", ""]
opaque = {m for s in structs.values() for t in s["types"].values()
          for m in re.findall(r"PJRT_\w+", t)} - set(structs) - set(enums)
for o in sorted(opaque):
    out.append(f"struct {o};")
out.append("")
for name in order:
    s = structs[name]
    out.append(f"struct {name} {{")
    fields = s["fields"]
    i = 0
    while i < len(fields):
        same = [f for f in fields[i:] if f[1] == fields[i][1]]
        lines = []
        for f in same:
            t = re.sub(r" *\*", "*", c_type(s["types"].get(f[0], "void*")))
            t = t.replace("*const", "* const").replace("*", " *", 1)
            lines.append(f"{t}{'' if t.endswith('*') else ' '}{f[0]};")
        if len(same) == 1:
            out.append("\t" + lines[0])
        else:
            out.append("\tunion {")
            out += ["\t\t" + line for line in lines]
            out.append("\t};")
        i += len(same)
    out.append("};")
    last = fields[-1][0] if fields else None
    out.append(f"#define {name}_SIZE {s['struct_size']}u")
    if name.endswith("_Args"):
        least = FIRST.get(name) or oldest.get(name, s)["struct_size"]
        out.append(f"#define {name}_OLDEST {least}u")
    out.append(f'_Static_assert(sizeof(struct {name}) == {s["size"]}, "{name}");')
    for f in fields:
        out.append(f'_Static_assert(offsetof(struct {name}, {f[0]}) == {f[1]}, "{f[0]}");')
    out.append("")
out.append("/* Every slot of the function table: SLOT(name without PJRT_, byte offset). */")
out.append("#define PJRT_SLOTS(SLOT) \\")
out += [f"\tSLOT({n[5:]}, {o}) \\" for n, o in facts["api"]]
out += ["", f"#define PJRT_API_SIZE {facts['api_sizeof']}u",
        f"#define PJRT_API_MINOR {facts['version'][1]}", "", "#endif"]
print("\n".join(out))
