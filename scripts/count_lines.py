#!/usr/bin/env python3
"""Counts lines and tokens of code for each package and for each module ("room") of the core:
scripts/count_lines.py [--json] [--files PACKAGE].

A line of code is a line of Rust that isn't blank, a comment, documentation or part of a test. A token is a
word or a punctuation character in such a line, so the number of tokens doesn't fall if lines are made longer.
The exported names of the core are the `pub use` and `pub` items of its public modules. `tests/rooms.rs`
compares all numbers with the largest allowed numbers.
"""

import argparse
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The folder of each package. A file in the folder of a nested package is counted only there.
PACKAGES = {
    "core": "src",
    "gym": "gym",
    "molecules": "gym/molecules",
    "dags": "gym/dags",
    "plot": "plot",
    "dist": "dist",
    "judge": "judge",
    "extras": "extras",
    "python": "python",
    "solver": "examples/solver",
    "reproduce": "examples/reproduce",
    "examples": "examples",
    "benches": "benches",
}
TOKEN = re.compile(r"\w+|[^\w\s]")
ITEM = re.compile(r"pub (?:unsafe |const |async )*(?:struct|enum|trait|fn|const|static|type|union) (\w+)")


def code_lines(text):
    """Returns the lines of code in the text of a file."""
    code, lines, at = [], text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        stripped = line.strip()
        if stripped == "#[cfg(test)]":
            at += 1
            while lines[at].strip().startswith("#["):
                at += 1
            if lines[at].rstrip().endswith("{"):
                # An item that is compiled only for tests ends at the closing brace that has the same
                # indentation as the item's first line.
                end = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "}"
                while not lines[at].startswith(end):
                    at += 1
        elif stripped and not stripped.startswith("//"):
            code.append(line)
        at += 1
    return code


def sources(folder, others):
    """Yields the files of a package, except for tests and for files of nested packages."""
    for path in sorted(folder.rglob("*.rs")):
        inside = path.relative_to(folder).parts
        foreign = any(
            other != folder and other.is_relative_to(folder) and path.is_relative_to(other)
            for other in others
        )
        # Files in a build folder of cargo, `target`, aren't files of the package.
        if not foreign and path.name != "tests.rs" and "tests" not in inside[:-1] and inside[0] != "target":
            yield path


def count_exports(path):
    """Returns the number of names that a module and its public submodules export."""
    names, code = set(), "\n".join(code_lines(path.read_text()))
    for used in re.findall(r"^pub use ([^;]+);", code, re.M):
        inner = re.search(r"\{(.*)\}", used, re.S)
        for name in inner[1].split(",") if inner else [used]:
            name = name.split(" as ")[-1].split("::")[-1].strip()
            if name and name not in ("self", "*"):
                names.add(name)
    names.update(re.findall(r"^" + ITEM.pattern, code, re.M))
    folder = path.parent if path.name in ("mod.rs", "lib.rs") else path.parent / path.stem
    total = len(names)
    for module in re.findall(r"^pub mod (\w+);", code, re.M):
        if module != "prelude":
            inner = folder / (module + ".rs")
            total += count_exports(inner if inner.exists() else folder / module / "mod.rs")
    return total


def count():
    folders = [ROOT / folder for folder in PACKAGES.values()]
    packages, rooms, files, tokens = {}, {}, {}, {}
    for (name, _), folder in zip(PACKAGES.items(), folders):
        packages[name] = tokens[name] = 0
        files[name] = {}
        for path in sources(folder, folders) if folder.exists() else ():
            code = code_lines(path.read_text())
            lines = len(code)
            packages[name] += lines
            tokens[name] += sum(len(TOKEN.findall(line)) for line in code)
            inside = path.relative_to(folder)
            files[name][str(inside)] = lines
            if name == "core":
                room = inside.parts[0].removesuffix(".rs")
                rooms[room] = rooms.get(room, 0) + lines
    return {
        "packages": packages,
        "rooms": rooms,
        "tokens": tokens,
        "files": files,
        "total": sum(packages.values()),
        "total_tokens": sum(tokens.values()),
        "exported": count_exports(ROOT / "src/lib.rs"),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--files", metavar="PACKAGE", choices=PACKAGES, help="list a package's files")
    flags = parser.parse_args()
    found = count()
    if flags.json:
        del found["files"]
        print(json.dumps(found))
        return
    if flags.files:
        table = found["files"][flags.files]
    else:
        table = {"core/" + room: lines for room, lines in sorted(found["rooms"].items())} | found["packages"]
    for name, lines in table.items():
        tokens = f"{found['tokens'][name]:9,} tokens" if name in found["tokens"] else ""
        print(f"{lines:7,} {name:24} {tokens}".rstrip())
    print(
        f"{found['total']:7,} lines and {found['total_tokens']:,} tokens in all; the core exports "
        f"{found['exported']} names"
    )


if __name__ == "__main__":
    main()
