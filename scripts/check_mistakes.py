#!/usr/bin/env python3
"""Compiles the programs in tests/mistakes, which contain typical mistakes of users, and checks the messages
of the compiler.

Each program begins with lines `//! expected: TEXT`, whose TEXT is a part of a compiler message. The program
must not compile, and the compiler's messages must contain each TEXT. `--print` shows the messages. The script
can be run from any folder.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "//! expected: "


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--print", action="store_true", help="print the compiler's messages")
    flags = parser.parse_args()
    command = "cargo check --profile ci --package gfn-mistakes --bins --keep-going --message-format json"
    built = subprocess.run(command.split(), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    messages = {}
    for line in built.stdout.splitlines():
        line = json.loads(line)
        if line["reason"] == "compiler-message" and line["message"]["level"] == "error":
            name = line["target"]["name"]
            messages[name] = messages.get(name, "") + line["message"]["rendered"]
    programs = sorted((ROOT / "tests/mistakes/programs").glob("*.rs"))
    faults = [] if programs else ["tests/mistakes/programs has no programs"]
    for program in programs:
        message = messages.get(program.stem)
        expected = [line[len(MARK) :] for line in program.read_text().splitlines() if line.startswith(MARK)]
        if flags.print:
            print(f"== {program.stem}\n{message}")
        if message is None or not expected:
            faults.append(f"{program.stem}: {'it compiles' if message is None else 'nothing is expected'}")
        else:
            faults += [
                f"{program.stem}: no error has {text!r}:\n{message}"
                for text in expected
                if text not in message
            ]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(programs)} programs are refused with the words that help.")


if __name__ == "__main__":
    main()
