# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of the documents from the .def files.

    python3 tests/docs.py --check     fails if a table is stale
    python3 tests/docs.py --write     writes them

A table stands between `<!-- generated: NAME -->` and `<!-- end -->`, in a manual between
`.\\" generated: NAME` and `.\\" end`; NAME is a row of TABLES below.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]


def rows(path, macro):
    """The arguments of each `MACRO(...)` line of a .def file; quotes are dropped."""
    text = re.sub(r"/\*.*?\*/", "", (TOP / path).read_text(), flags=re.S)
    for m in re.finditer(rf"^{macro}\((.*)\)\s*$", text, re.M):
        yield [a.strip().strip('"') for a in
               re.findall(r'\s*("(?:\\.|[^"\\])*"|[^,]+)\s*(?:,|$)', m[1])]


def table(head, lines):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
    return "\n".join(out)


def regs():
    return table(["offset", "register", "bytes", "access", "reset", "meaning"],
                 [[f"`{o}`", n, b, a, "its own" if r == "OWN" else r, m] for n, o, b, a, r, m
                  in rows("hal/hw/regs.def", "REG")])


def desc():
    return table(["code", "request", "queues", "built", "effect"],
                 [[f"`{c}`", n, q, "yes" if s == "NOW" else "later", e]
                  for n, c, q, s, e in rows("hal/hw/desc.def", "DESC")])


def fault():
    return table(["number", "status", "error code", "meaning"],
                 [[i, n, c, t] for n, i, c, t in rows("hal/hw/fault.def", "FAULT")])


def err():
    return table(["code", "name", "severity", "meaning", "next step"],
                 [[i, n, s.lower(), m, t]
                  for n, i, s, m, t in rows("hal/base/err.def", "ERR")])


def cell():
    return table(["kind", "name", "class", "cells", "the cell"],
                 [[i, n, c, {"ONE": "1", "TWO": "2", "NUMBER": "1, N"}[k], m] for n, i, c, k, m
                  in rows("hal/hw/cell.def", "CELL")])


def trace():
    return table(["kind", "name", "a record of it is of", "pc"],
                 [[i, n, w, p] for n, i, w, p in rows("hal/hw/trace.def", "TRACE")])


def isa():
    return table(["opcode", "mnemonic", "layout", "built", "effect"],
                 [[f"`{c}`", m, f"`{s}`", "yes" if w == "NOW" else "later", f"`{e}`"]
                  for _, c, m, s, w, e in rows("hal/hw/isa.def", "INSN")])


def uop():
    return table(["code", "mnemonic", "arguments", "types", "result", "effect"],
                 [[f"`{c}`", m, a, t, r, e]
                  for _, c, m, a, t, r, e in rows("hal/hw/uop.def", "UOP")])


def alu():
    return table(["number", "mnemonic", "effect"],
                 [[c, m, f"`{e}`"] for _, c, m, e in rows("hal/hw/alu.def", "ALU")])


def elem():
    return table(["number", "type", "bytes", "bits"],
                 [[c, t, b, w] for _, c, t, b, w, _ in rows("hal/base/elem.def", "ELEM")
                  if b != "0"])


def unimplemented():
    return table(["where", "what", "why"], [[f"`{s}`" if s.startswith("PJRT_") else s, a, w]
                                            for _, s, a, w in
                                            rows("runtime/pjrt/unimplemented.def", "PART")])


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def tagged(lines):
    """Paragraphs of a manual: (what, in italics, meaning)."""
    return "\n".join(f".TP\n\\fB{roff(a)}\\fR{f' {chr(92)}fI{roff(b)}{chr(92)}fR' if b else ''}\n"
                     f"{roff(c)}." for a, b, c in lines)


def smi_commands():
    return tagged((n, a, m) for n, _, a, m in rows("tools/xla-smi/commands.def", "COMMAND"))


def smi_options():
    return tagged((("" if x == "0" else f"-{x[1]}, ") + f"--{n.replace('_', '-')}", a, m)
                  for n, x, a, m in rows("tools/xla-smi/options.def", "OPTION"))


def smi_exits():
    return tagged((i, "", m) for _, i, m in rows("tools/xla-smi/exits.def", "EXIT"))


def bringup_steps():
    return tagged((f"{i} {n}", f"level {v}", m)
                  for i, n, v, m in rows("tools/bringup/steps.def", "STEP"))


def bringup_options():
    return tagged((("" if x == "0" else f"-{x[1]}, ") + f"--{n.replace('_', '-')}", a, m)
                  for n, x, a, m in rows("tools/tessera-bringup/options.def", "OPTION"))


def bringup_exits():
    return tagged((i, "", m) for _, i, m in rows("tools/tessera-bringup/exits.def", "EXIT"))


def smi_causes():
    return tagged((c, s, m) for c, s, m in rows("tools/xla-smi/causes.def", "CAUSE"))


def smi_fields():
    """A section for each table: its fields, their units where they have one."""
    out = []
    for name, _, meaning in rows("tools/xla-smi/fields.def", "TABLE"):
        out.append(f".SS {name}\n{roff(meaning[0].upper() + meaning[1:])}.")
        out.append(tagged((f, "", m) for f, _, _, _, _, _, m in
                          rows("tools/xla-smi/fields.def", name.upper())))
    return "\n".join(out)


KINDS = {"cast": "conversions", "cb": "calls of the host", "conv": "convolutions",
         "cplx": "complex numbers", "ctl": "loops and branches", "elt": "elementwise functions",
         "fft": "Fourier transforms", "idx": "gathers and scatters", "int": "integers",
         "linalg": "linear algebra", "misc": "others", "mm": "products of matrices",
         "model": "training and inference of models", "nn": "layers", "pool": "pools",
         "red": "reductions", "rng": "random numbers", "shape": "moves of elements",
         "sort": "sorts", "spec": "special functions"}


def numerics():
    """A row for each kind of program: how many, how many are exact, the others' bounds."""
    kinds = {}
    for line in (TOP / "tests/jax/units.txt").read_text().splitlines():
        if line and line[0] != "#":
            name, _, bound, _ = line.split(None, 3)
            kinds.setdefault(name.split("/")[0], []).append((float(bound), name))
    lines = []
    for kind, bounds in sorted(kinds.items()):
        others = sorted(b for b in bounds if b[0] > 0.5)
        middle = f"{others[len(others) // 2][0]:g}" if others else ""
        worst = ", ".join(f"`{n}` {b:g}" for b, n in others[:-4:-1])
        lines.append([KINDS[kind], len(bounds), len(bounds) - len(others), middle, worst])
    return table(["programs", "how many", "exact", "the others' median bound", "largest bounds"],
                 [[str(x) for x in line] for line in lines])


def functions():
    """A row for each elementary function: its largest error, of each type."""
    lines, kinds = {}, ("f4E2M1FN", "f8E8M0FNU", "8 bits", "f16", "bf16", "f32", "f64")
    for line in (TOP / "tests/data/numerics.txt").read_text().splitlines():
        name, kind, _, units, *_ = line.split()
        if kind.startswith("complex"):
            continue
        kind = "8 bits" if kind.startswith("f8") and kind not in kinds else kind
        row = lines.setdefault(name.removeprefix("tc."), {})
        row[kind] = max(row.get(kind, 0), float(units))
    assert all(set(row) == set(kinds) for row in lines.values())
    return table(["function", *kinds],
                 [[f"`{name}`", *(f"{row[k]:.2f}" for k in kinds)] for name, row in lines.items()])


def complex_functions():
    """The same of complex numbers: by norm, and of each part where that is measured."""
    lines, kinds = {}, ("complex<f32>", "complex<f64>")
    for line in (TOP / "tests/data/numerics.txt").read_text().splitlines():
        name, kind, _, norm, part, *_ = line.split()
        if kind in kinds:
            part = "" if part == "-" else f"{float(part):.2f}"
            lines.setdefault(name, {})[kind] = [f"{float(norm):.2f}", part]
    assert all(set(row) == set(kinds) for row in lines.values())
    return table(["function", *(f"{k}, {what}" for k in ("c64", "c128") for what in
                                ("by norm", "of a part"))],
                 [[f"`{name}`", *(x for k in kinds for x in row[k])]
                  for name, row in lines.items()])


TABLES = {"tools/xla-smi/xla-smi.1": {"commands": smi_commands, "options": smi_options,
                                      "exits": smi_exits, "causes": smi_causes,
                                      "fields": smi_fields},
          "tools/tessera-bringup/tessera-bringup.1": {"steps": bringup_steps,
                                                      "options": bringup_options,
                                                      "exits": bringup_exits},
          "hal/base/README.md": {"err": err},
          "runtime/NUMERICS.md": {"functions": functions, "numerics": numerics,
                                  "complex": complex_functions},
          "runtime/pjrt/README.md": {"unimplemented": unimplemented},
          "hal/hw/DEVICE.md": {"regs": regs, "desc": desc, "fault": fault, "cell": cell,
                               "trace": trace},
          "hal/hw/ISA.md": {"isa": isa, "uop": uop, "alu": alu, "elem": elem}}


def main(write):
    stale = []
    for name, tables in TABLES.items():
        path = TOP / name
        old = path.read_text()

        begin, middle, end = ('.\\" generated: ', "", '.\\" end') if name[-1].isdigit() else \
            ("<!-- generated: ", " -->", "<!-- end -->")

        def fill(m, tables=tables, name=name, around=(begin, middle, end)):
            if m[1] not in tables:
                sys.exit(f"{name}: no table is called {m[1]}")
            return f"{around[0]}{m[1]}{around[1]}\n{tables[m[1]]()}\n{around[2]}"

        new = re.sub(rf"{re.escape(begin)}(\w+){middle}\n.*?{re.escape(end)}", fill, old,
                     flags=re.S)
        missing = [t for t in tables if f"{begin}{t}{middle}" not in old]
        if missing:
            sys.exit(f"{name}: no place for the table {missing[0]}")
        if new != old:
            stale.append(name)
            if write:
                path.write_text(new)
    if stale and not write:
        print("stale, run `make docs`:", *stale)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["--check"], ["--write"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1] == "--write"))
