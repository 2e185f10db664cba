# SPDX-License-Identifier: Apache-2.0
"""Who calls whom, from the object files: no circles, nothing past a door, nothing for nobody,
and the walk.

tests/lint.py runs this on a tree that is built. Calls here are names: a file calls another
if its object needs a symbol that the other's defines, whether to call it or for its
address. Each check gives findings as (path, line, text).
"""

import collections
import fnmatch
import pathlib
import re
import subprocess

# Sources that are one object for each path of the host (the Makefile's EACH_PATH).
PATHS = ("portable", "avx2", "avx512")
# Folders and rooms whose files may still call each other in a ring. An entry whose ring
# is gone has to go, too.
KNOWN = set()

# The section of README.md that names the files which one launch passes.
WALK = "The life of one execute"
MAX_WALK = 12


def folder_of(name):
    return name.rpartition("/")[0]


def no_comments(text):
    """The text without comments and string literals, its lines as they were."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
                  lambda m: "\n" * m[0].count("\n") if m[0][0] == "/" else '""', text,
                  flags=re.S)


class Calls:
    """edges[a][b]: the symbols of b that a needs; both are names of .c files."""

    def __init__(self):
        self.edges = collections.defaultdict(lambda: collections.defaultdict(set))
        self.missing = []       # sources that have no object
        self.own = {}           # {symbol: its file}, of those that no other file needs

    def add_objects(self, build, sources):
        objects = {}
        for name in sources:
            stem = f"{build}/{name[:-2]}"
            found = [o for o in (f"{stem}.o", *(f"{stem}_{p}.o" for p in PATHS))
                     if pathlib.Path(o).exists() and
                     (o == f"{stem}.o" or o[len(f"{build}/"):-2] + ".c" not in sources)]
            objects.update((o, name) for o in found)
            if not found:
                self.missing.append(name)
        if not objects:
            return
        out = subprocess.run(["nm", "-A", "-P", *objects], capture_output=True, text=True,
                             check=True).stdout
        # Tools are programs of their own: what one defines is not there for another.
        defined, needed = {}, []
        for line in out.splitlines():
            file, symbol, kind = re.match(r"(.*?): (\S+) (\S)", line).groups()
            name = objects[file]
            if kind == "U":
                needed.append((name, symbol))
            elif kind in "TDBRVWC":
                defined[program_of(name), symbol] = name
        self.own = {symbol: name for (_, symbol), name in defined.items()}
        for name, symbol in needed:
            to = defined.get((program_of(name), symbol)) or defined.get(("", symbol))
            if to and to != name:
                self.edges[name][to].add(symbol)
                self.own.pop(symbol, None)

    def add_sources(self, texts):
        """Files of one folder that need not be compiled: {name: text}, by the names in it."""
        defined = {}
        bare = {name: no_comments(text) for name, text in texts.items()}
        for name, text in bare.items():
            for m in re.finditer(r"^(?!static|extern|typedef|#)\w[\w \t*]*?[\s*](\w+)"
                                 r"(?:\([^;{]*\)\s*\{|(?:\[\w*\])?\s*=\s)", text, re.M):
                # Of programs side by side each has its own.
                defined[m[1]] = None if m[1] in defined or m[1] == "main" else name
        for name, text in bare.items():
            for word in set(re.findall(r"\b[A-Za-z_]\w*\b", text)):
                if defined.get(word) not in (None, name) and \
                        not re.search(rf"^static\b[^;={{]*\b{word}\(", text, re.M):
                    self.edges[name][defined[word]].add(word)

    def between(self, group):
        """The same among groups of files, as group(name) says; None is no group."""
        out = Calls()
        for a, targets in list(self.edges.items()):
            for b, symbols in targets.items():
                if group(a) and group(b) and group(a) != group(b):
                    out.edges[group(a)][group(b)] |= symbols
        return out

    def rings(self, nodes):
        """Sets of more than one node each of which reaches all others, by Tarjan."""
        index, low, stack, found = {}, {}, [], []

        def visit(a):
            index[a] = low[a] = len(index)
            stack.append(a)
            for b in self.edges.get(a, ()):
                if b not in nodes:
                    continue
                if b not in index:
                    visit(b)
                    low[a] = min(low[a], low[b])
                elif b in stack:
                    low[a] = min(low[a], index[b])
            if low[a] == index[a]:
                ring = set(stack[stack.index(a):])
                del stack[stack.index(a):]
                if len(ring) > 1:
                    found.append(ring)

        for a in sorted(nodes):
            if a not in index:
                visit(a)
        return found

    def shortest(self, ring):
        """The shortest way from a node of the ring back to it, as [(node, symbol)...]."""
        best = None
        for start in sorted(ring):
            queue, came = collections.deque([start]), {}
            while queue and start not in came:
                a = queue.popleft()
                for b in sorted(set(self.edges[a]) & ring):
                    if b not in came:
                        came[b] = a
                        queue.append(b)
            way = [start]
            while len(way) == 1 or way[-1] != start:
                way.append(came[way[-1]])
            if best is None or len(way) < len(best):
                best = way
        best = best[::-1]
        return [(a, min(self.edges[a][b])) for a, b in zip(best, best[1:])]


def program_of(name):
    """A tool's name, or "": of what several programs link."""
    is_shared = not name.startswith("tools/") or \
        name.startswith(("tools/bringup/", "tools/common/"))
    return "" if is_shared else name.split("/")[1]


def say_ring(calls, ring):
    way = calls.shortest(ring)
    text = " -> ".join(f"{a} ({s})" for a, s in [*way, (way[0][0], "")])
    return f"{len(ring)} call each other in a ring: {text.removesuffix(' ()')}"


def check_circles(calls, names, room_of, known=KNOWN):
    """Among the files of a folder, and among rooms; `known` are those that may."""
    found, seen = [], set()
    folders = collections.defaultdict(set)
    for name in names:
        folders[folder_of(name)].add(name)
    cases = [(folder, calls, nodes) for folder, nodes in sorted(folders.items())]
    rooms = calls.between(room_of)
    cases.append((None, rooms, {room_of(n) for n in names} - {None}))
    for folder, graph, nodes in cases:
        for ring in graph.rings(nodes):
            place = folder or min(ring)
            seen.add(place)
            if place not in known:
                found.append((place, 0, say_ring(graph, ring)))
    for place in sorted(known - seen):
        found.append((place, 0, "the ring is gone: take it out of KNOWN in tests/lint_calls.py"))
    return found


def check_doors(calls, room_of, headers, may_include):
    """What a file needs of another room stands in a header that it may include.

    headers: {name: text}; may_include(room, header). Names that no header spells out
    (macros make them) are left to the compiler.
    """
    where = collections.defaultdict(set)
    for header, text in headers.items():
        for word in set(re.findall(r"\w+", no_comments(text))):
            where[word].add(header)
    found = []
    for a, targets in sorted(calls.edges.items()):
        for b, symbols in sorted(targets.items()):
            if room_of(a) == room_of(b):
                continue
            for s in sorted(symbols):
                if where[s] and not any(may_include(room_of(a), h) for h in where[s]):
                    found.append((a, 0, f"needs {s} of {b}, which no door of "
                                  f"{room_of(a)} declares"))
    return found


def check_scope(calls, headers, tests):
    """What a header declares is needed by some other file, or by a test: else it is static, or
    nothing. Libtessera's functions are there for others.

    headers, tests: {name: text}.
    """
    declared = {word for text in headers.values() for word in re.findall(r"\w+", no_comments(text))}
    named = {word for text in tests.values() for word in re.findall(r"\w+", no_comments(text))}
    return [(name, 0, f"{symbol} is declared in a header, and no other file needs it")
            for symbol, name in sorted(calls.own.items())
            if symbol in declared - named and not symbol.startswith("hal_") and
            not symbol.endswith(PATHS)]


# ---- the walk of a launch ----


def slots(headers):
    """The slots of each struct of functions: {struct: {slot}}."""
    found = {}
    for text in headers.values():
        for m in re.finditer(r"^struct (\w+) \{$(.*?)^\}", no_comments(text), re.M | re.S):
            found[m[1]] = set(re.findall(r"\(\*(\w+)\)\(", m[2]))
    return found


def does_call(calls, texts, tables, a, b):
    """Whether a calls b: by name, or through a slot of a table such as b fills."""
    if b in calls.edges.get(a, {}):
        return True
    filled = re.findall(r"^(?:static )?const struct (\w+) \w+ = \{", texts[b], re.M)
    wanted = {slot for struct in filled for slot in tables.get(struct, ())}
    return bool(wanted & set(re.findall(r"(?:->|\.)(\w+)\(", no_comments(texts[a]))))


def read_walk(readme, names):
    """[(line, name, files)] of the section WALK, each name once, where it comes first. A name
    with * is one step, and its files are those that it matches."""
    section = re.search(rf"^## {WALK}$(.*?)(?=^## |\Z)", readme, re.M | re.S)
    walk = {}
    for m in re.finditer(r"`([\w./*-]+\.c)`", section[1] if section else ""):
        line = readme.count("\n", 0, section.start(1) + m.start()) + 1
        walk.setdefault(m[1], (line, m[1], fnmatch.filter(names, m[1])))
    return list(walk.values())


def check_walk(calls, readme, texts, headers):
    """The files that one launch passes, as README.md says: each is called by one before it,
    none calls one before it, and there are at most MAX_WALK."""
    tables = slots(headers)
    walk = read_walk(readme, texts)
    if not walk:
        return [("README.md", 1, f'no section "{WALK}" that names files')]
    found = []
    if len(walk) > MAX_WALK:
        found.append(("README.md", walk[MAX_WALK][0],
                      f"a launch passes {len(walk)} files, at most {MAX_WALK}"))
    for i, (line, name, files) in enumerate(walk):
        before = [b for _, _, files in walk[:i] for b in files]
        if i and not any(does_call(calls, texts, tables, b, f) for b in before for f in files):
            found.append(("README.md", line, f"none of the files before it calls {name}"))
        for f in files:
            for b in before:
                if b not in files and b in calls.edges.get(f, {}):
                    found.append(("README.md", line, f"{f} calls {b}, which stands before it "
                                  f"({min(calls.edges[f][b])})"))
    return found
