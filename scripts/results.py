#!/usr/bin/env python3
"""Makes the runs for docs/results.md, stores their JSON, and writes docs/results.md and the results in
README.md.

    scripts/results.py run
        makes the runs of scripts/results_runs.py that aren't stored in docs/results/runs.jsonl; it can be
        interrupted
    scripts/results.py write
        writes both files from the stored JSON
    scripts/results.py check
        fails if one of the files differs from the stored JSON

`run --only NAME...` makes only the runs for the table rows of these names, `--again` repeats stored runs, and
`--minutes N` starts no further run after N minutes. Rows with measurements of speed are skipped while other
programs use the machine, unless `--loaded` is given. The script builds `reproduce` from a clean checkout.
With `--binary PATH --commit HASH` it uses a program that was built from that commit.
"""

import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import time

from doctor import folder
from fetch_libtorch import version_of
from results_cells import ResultsError, cell
from results_runs import HEADLINES, SECTIONS

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORE, PEERS = ROOT / "docs/results/runs.jsonl", ROOT / "docs/results/peers.md"
RESULTS, README = ROOT / "docs/results.md", ROOT / "README.md"
BLOCK = ("<!-- results: written by scripts/results.py -->", "<!-- end of results -->")
# The files from which the program is built. These files must have no uncommitted changes, so that a result
# belongs to a commit.
SOURCES = ["src", "gym", "judge", "extras", "examples", "build.rs", "Cargo.toml", "Cargo.lock"]
# The number of seconds after which a run is ended, and the largest load average of a machine that counts as
# quiet. The limit of the load average is above 1, because the run that has just ended still adds 1 to it.
LIMIT, QUIET = 14_400, 1.3


def no_json(name):
    raise ValueError(f"{name} isn't valid in JSON")


# --- The store.


def read_store():
    runs = {}
    for line in STORE.read_text().splitlines() if STORE.exists() else []:
        run = json.loads(line, parse_constant=no_json)
        missing = {
            "command",
            "seed",
            "arguments",
            "result",
            "commit",
            "date",
            "machine",
            "tch",
            "libtorch",
            "load",
            "cpu_s",
        } - set(run)
        if missing:
            raise ResultsError(f"{STORE.name}: a run doesn't have {', '.join(sorted(missing))}: {line[:80]}")
        if runs.setdefault((run["command"], run["seed"]), run) is not run:
            raise ResultsError(f"{STORE.name}: `{run['command']}`, seed {run['seed']}, is stored twice")
    return runs


def write_store(runs):
    """Replaces the file of stored runs atomically. Runs are written in the order of the tables."""
    order = {key: place for place, (key, _) in enumerate(required_runs())}
    lines = [
        json.dumps(runs[key], sort_keys=True, allow_nan=False)
        for key in sorted(runs, key=lambda key: (order.get(key, 1e9), key))
    ]
    new = STORE.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    os.replace(new, STORE)


def rows():
    """Returns a dictionary from the name of each row to the pair (table, row)."""
    found = {}
    for table in (table for _, tables in SECTIONS for table in tables):
        for row in table["rows"]:
            if found.setdefault(row.name, (table, row))[1] is not row:
                raise ResultsError(f"scripts/results_runs.py has two rows named {row.name}")
    return found


def required_runs():
    """Returns ((command, seed), names) for every run in the tables, ordered by seed. `names` are the names of
    the rows that show the run."""
    found = {}
    for _, row in rows().values():
        for seed in row.seeds:
            found.setdefault((row.command, seed), []).append(row.name)
    return sorted(found.items(), key=lambda item: item[0][1])


def check_run(table, row, run):
    """Returns the run. Raises an error if its JSON lacks a number that the table shows, or has another value
    than the table requires of all its runs (`must`)."""
    for key, value in table["must"].items():
        if run["result"].get(key) != value:
            raise ResultsError(
                f"`{run['command']}`, seed {run['seed']}: `{key}` is {run['result'].get(key)!r}, expected "
                f"{value!r}"
            )
    for column in columns_of(table, row):
        cell([run], *column)
    return run


def columns_of(table, row):
    """Returns the kind and the keys of each column, with the key of the row in place of `*`."""
    return [(kind, *(key.replace("*", row.key) for key in keys)) for _, kind, *keys in table["columns"]]


def runs_of(name, runs):
    """Returns the stored runs of a row, at least one. Seeds that haven't been run are left out."""
    table, row = rows()[name]
    found = [
        check_run(table, row, runs[row.command, seed]) for seed in row.seeds if (row.command, seed) in runs
    ]
    if not found:
        raise ResultsError(f"`{row.command}` isn't stored; run scripts/results.py run --only {name}")
    return found


def is_stored(name, runs):
    """Returns whether a row has at least one stored run."""
    row = rows()[name][1]
    return any((row.command, seed) in runs for seed in row.seeds)


# --- Running.


def output(*command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def build_program():
    """Builds `reproduce` from a clean checkout. Returns the path of the program and the commit."""
    edited = output("git", "status", "--porcelain", "--", *SOURCES)
    if edited:
        raise ResultsError(
            f"the measured sources have changes that aren't committed; commit these files:\n{edited}"
        )
    command = [
        "cargo",
        "build",
        "--release",
        "--example",
        "reproduce",
        "--message-format=json-render-diagnostics",
    ]
    for line in output(*command).splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "reproduce":
            return message["executable"], output("git", "rev-parse", "HEAD")
    raise ResultsError("cargo build didn't make the program `reproduce`")


def processor():
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def describe_machine(commit):
    lock = output("git", "show", f"{commit}:Cargo.lock")
    libtorch = version_of(folder())
    if libtorch is None:
        raise ResultsError(
            f"{folder()} has no libtorch: run `make setup`, or set LIBTORCH to the libtorch with which the "
            "program was built"
        )
    return {
        "commit": commit,
        "machine": {"processor": processor(), "cores": os.cpu_count()},
        "tch": re.search(r'^name = "tch"\nversion = "(.+)"$', lock, re.M)[1],
        "libtorch": libtorch.split("+")[0],
    }


def processor_time():
    """Returns the processor time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(binary, command, seed):
    """Runs a command of the tables: a task of `reproduce`, or a Python script that may call `reproduce`."""
    arguments = command.split() + ["--seed", str(seed), "--json"]
    program = sys.executable if arguments[0].endswith(".py") else binary
    before, began, used = os.getloadavg()[0], time.monotonic(), processor_time()
    try:
        done = subprocess.run(
            [program] + arguments,
            cwd=ROOT,
            env={**os.environ, "REPRODUCE": binary},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise ResultsError(f"`{command}`, seed {seed}, took more than {LIMIT} s") from None
    if done.returncode != 0:
        raise ResultsError(
            f"`{command}`, seed {seed}, failed with exit code {done.returncode}:\n{done.stderr[-2000:]}"
        )
    try:
        result = json.loads(done.stdout.splitlines()[-1], parse_constant=no_json)
    except (IndexError, ValueError) as error:
        raise ResultsError(f"`{command}`, seed {seed}: the last line isn't valid JSON: {error}") from None
    return {
        "command": command,
        "seed": seed,
        "arguments": arguments,
        "result": result,
        "wall_s": round(time.monotonic() - began, 1),
        "cpu_s": round(processor_time() - used, 1),
        "load": [round(value, 2) for value in (before, os.getloadavg()[0])],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def run(args):
    names = set(rows())
    if args.only:
        found = {pattern: fnmatch.filter(rows(), pattern) for pattern in args.only}
        unknown = [pattern for pattern, matching in found.items() if not matching]
        if unknown:
            raise ResultsError(f"no row has the name {', '.join(unknown)}; the rows are {', '.join(rows())}")
        names = set().union(*found.values())
    if bool(args.binary) != bool(args.commit):
        raise ResultsError("only one of --binary and --commit is given, expected both or neither")
    runs, began, failed = read_store(), time.monotonic(), []
    remaining = [
        (key, shown)
        for key, shown in required_runs()
        if names & set(shown) and (args.again or key not in runs)
    ]
    if not remaining:
        print("all runs are stored")
        return
    if args.binary:
        binary, commit = os.path.abspath(args.binary), output(
            "git", "rev-parse", "--verify", f"{args.commit}^{{commit}}"
        )
    else:
        binary, commit = build_program()
    machine = describe_machine(commit)
    for place, ((command, seed), shown) in enumerate(remaining, 1):
        name = shown[0]
        if args.minutes is not None and time.monotonic() - began > 60 * args.minutes:
            print(f"{len(remaining) - place + 1} runs are left for another time")
            break
        if ("load", "load") in rows()[name][0]["columns"] and os.getloadavg()[0] > QUIET and not args.loaded:
            print(
                f"{place} of {len(remaining)}: {name}, seed {seed}: left out, the load average is "
                f"{os.getloadavg()[0]:.1f}",
                flush=True,
            )
            continue
        try:
            measured = {**measure(binary, command, seed), **machine}
            for table, row in (rows()[each] for each in shown):
                check_run(table, row, measured)
            runs[command, seed] = measured
        except ResultsError as wrong:
            # A run that fails doesn't stop the runs after it.
            failed.append(name)
            print(f"{place} of {len(remaining)}: {name}: error: {wrong}", file=sys.stderr, flush=True)
            continue
        write_store(runs)
        print(
            f"{place} of {len(remaining)}: {name}, seed {seed}: {runs[command, seed]['wall_s']} s", flush=True
        )
    if failed:
        raise ResultsError(f"these rows failed: {', '.join(dict.fromkeys(failed))}")


# --- Writing.


def line(cells):
    return "| " + " | ".join(cells) + " |"


def provenance_letters(shown):
    """Assigns a letter to each combination of commit, day, machine and libtorch with which the shown runs
    were made."""
    found = {}
    for run in shown:
        found.setdefault(provenance(run), chr(ord("a") + len(found)))
    return found


def provenance(run):
    machine = f"{run['machine']['processor']}, {run['machine']['cores']} cores"
    return (
        f"commit {run['commit'][:7]}, {run['date']}, {machine}, tch {run['tch']}, libtorch {run['libtorch']}"
    )


def results(runs):
    stored = [name for name in rows() if is_stored(name, runs)]
    shown = [run for name in stored for run in runs_of(name, runs)]
    forgotten = set(runs) - {(run["command"], run["seed"]) for run in shown}
    if forgotten:
        raise ResultsError(
            f"{STORE.name} has runs that no table shows; remove their lines, or add them to a "
            f"table:\n{sorted(forgotten)}"
        )
    letters = provenance_letters(shown)
    lines = [
        "# Results",
        "",
        "Written by `scripts/results.py write` from [results/runs.jsonl](results/runs.jsonl), which has each "
        "run's command, seed, JSON, commit, machine and date; not edited by hand. `scripts/results.py run` "
        "takes the figures again. Speeds of other libraries that were measured beside ours are in "
        "[results/peers.md](results/peers.md).",
        "",
        "A figure is the median over the seeds (where a table says so, the mean), with its range in "
        "brackets. One thread on the CPU; processor time is of the whole run, evaluation included. Reward "
        "calls are the objects whose reward was computed while the method ran. The command of each row "
        "stands below its table: `cargo run --release --example reproduce -- COMMAND --seed SEED --json`; "
        "commands that begin with the path of a Python script take the same last flags. Files in `out/data` "
        "are described in [reproduce.md](reproduce.md).",
        "",
        "Measured at:" if len(letters) == 1 else "Measured at (the column `at` says which):",
        "",
    ]
    lines += [f"* {text}" if len(letters) == 1 else f"* {mark}: {text}" for text, mark in letters.items()]
    loads, cores = [max(run["load"]) for run in shown], min(run["machine"]["cores"] for run in shown)
    lines += [
        "",
        f"The load average was {min(loads):.1f} to {max(loads):.1f} beside the runs, on {cores} cores; a run "
        f"alone makes 1. Where it was more, the machine was "
        "shared, and speeds are lower than on a quiet one. Distances don't depend on it.",
    ]
    for title, tables in SECTIONS:
        lines += ["", f"## {title}"]
        for table in tables:
            if any(row.name in stored for row in table["rows"]):
                lines += table_lines(table, runs, letters)
    waiting = dict.fromkeys(row.command for name, (_, row) in rows().items() if name not in stored)
    if waiting:
        lines += ["", "## Not run yet", "", "```text", *waiting, "```"]
    return "\n".join(lines) + "\n"


def table_lines(table, runs, letters):
    """Returns the lines of a table of the page, with its title, its text and its commands."""
    shown = [row for row in table["rows"] if is_stored(row.name, runs)]
    has_beside = any(row.beside for row in shown)
    has_published = any(row.published for row in shown)
    titles = ["", *[title for title, *_ in table["columns"]]]
    titles += ["beside"] * has_beside + ["published"] * has_published + ["seeds"]
    titles += ["at"] * (len(letters) > 1)
    lines = ["", f"### {table['title']}", "", table["text"], "", line(titles), "|---" * len(titles) + "|"]
    for row in shown:
        row_runs = runs_of(row.name, runs)
        cells = [row.what, *[cell(row_runs, *column) for column in columns_of(table, row)]]
        if has_beside:
            others = [
                f"{label} {cell(runs_of(other, runs), *column)}"
                for label, other, *column in row.beside
                if is_stored(other, runs)
            ]
            cells.append("; ".join(others))
        seeds = " ".join(str(run["seed"]) for run in row_runs)
        left = len(row.seeds) - len(row_runs)
        cells += [row.published] * has_published + [seeds if left == 0 else f"{seeds} ({left} not run yet)"]
        if len(letters) > 1:
            cells.append(" ".join(sorted({letters[provenance(run)] for run in row_runs})))
        lines.append(line(cells))
    return [*lines, "", "```text", *dict.fromkeys(row.command for row in shown), "```"]


def headlines(runs):
    """Returns the table of results in README.md."""
    peers = PEERS.read_text()
    lines = [line(["what", "parameters", "gfn", "compared with"]), "|---" * 4 + "|"]
    for headline in HEADLINES:
        name, *column = headline["here"]
        row_runs, beside = runs_of(name, runs), headline["beside"]
        if not isinstance(beside, str):
            text, figures = beside
            if isinstance(figures, tuple):
                other, *theirs = figures
                beside = text.format(cell(runs_of(other, runs), *theirs))
            else:
                absent = [quoted for quoted in figures if quoted not in peers]
                if absent:
                    raise ResultsError(
                        f"docs/results/peers.md doesn't have the figures that README quotes from it: "
                        f"{absent}"
                    )
                beside = text.format(*figures)
        lines.append(
            line([headline["what"], cell(row_runs, "same", "params"), cell(row_runs, *column), beside])
        )
    return "\n".join(lines)


def readme(runs):
    """Returns the text of README.md with the current table of results."""
    text = README.read_text()
    if any(text.count(mark) != 1 for mark in BLOCK):
        raise ResultsError(f"README.md must have each of these lines once: {BLOCK}")
    before, rest = text.split(BLOCK[0])
    return f"{before}{BLOCK[0]}\n{headlines(runs)}\n{BLOCK[1]}{rest.split(BLOCK[1])[1]}"


def pages():
    runs = read_store()
    return {RESULTS: results(runs), README: readme(runs)}


def write(_):
    for path, text in pages().items():
        path.write_text(text)


def check(_):
    differing = [path.name for path, text in pages().items() if not path.exists() or path.read_text() != text]
    if differing:
        raise ResultsError(
            f"{' and '.join(differing)} differ from the tables of {STORE.name}; run scripts/results.py write"
        )
    print(f"{' and '.join(path.name for path in (RESULTS, README))} are what {STORE.name} gives.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(does=None)
    commands = parser.add_subparsers()
    for name, does in [("run", run), ("write", write), ("check", check)]:
        command = commands.add_parser(name)
        command.set_defaults(does=does)
        if does is run:
            command.add_argument(
                "--only",
                nargs="+",
                metavar="NAME",
                help="these rows of scripts/results_runs.py, by name or pattern, as 'speed-*'",
            )
            command.add_argument("--again", action="store_true", help="repeat stored runs")
            command.add_argument("--minutes", type=float, help="start no run after this time")
            command.add_argument(
                "--loaded", action="store_true", help="measure speeds even if other programs run"
            )
            command.add_argument("--binary", help="an existing `reproduce`")
            command.add_argument("--commit", help="the commit that it was built from")
    args = parser.parse_args()
    if args.does is None:
        parser.error("the command is missing, expected run, write or check")
    try:
        args.does(args)
    except ResultsError as wrong:
        sys.exit(f"results: error: {wrong}")


if __name__ == "__main__":
    main()
