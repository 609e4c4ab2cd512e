#!/usr/bin/env python3
"""Starts several runs of `reproduce`, each in a run folder (`--run`), or compares them.

    scripts/runs.py sweep TASK --runs FOLDER [--seeds N] [--first N] [--jobs N] -- FLAGS...
        runs a task with several seeds, in FOLDER/seed-0 and so on, and prints median, minimum and maximum of
        the results. The same command continues with the seeds that are missing. Ctrl-C or SIGTERM ends the
        runs after they have saved a checkpoint.
    scripts/runs.py compare FOLDER...
        prints the flags in which the runs differ, and their results

`--program PATH` names the program; the default is target/release/examples/reproduce. `--json` prints one line
of JSON instead of tables.
"""

import argparse
import json
import math
import pathlib
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The flags that don't change the results of a run.
NOT_COMPARED = {"run", "resume", "checkpoint-every", "tensorboard", "config", "json"}
# The entries of a result that describe the run and aren't measured.
SIZES = {"seed", "seeds", "steps", "batch", "threads", "members", "params", "samples", "evaluated_samples"}
INTERRUPTED = 130


def read(folder):
    try:
        settings = json.loads((folder / "settings.json").read_text())
    except (OSError, ValueError):
        sys.exit(
            f"error: {folder} isn't the folder of a run: it has no settings.json that can be read; give a "
            "folder that --run wrote"
        )
    result = folder / "result.json"
    return settings, json.loads(result.read_text()) if result.exists() else None


def figures(results):
    """Returns the names of the measured numbers in these results, in the order of their first occurrence."""
    names = dict.fromkeys(
        name for result in results for name, value in result.items() if type(value) in (int, float)
    )
    return [name for name in names if name not in SIZES]


def table(rows):
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))


def format_value(value):
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def sweep(options, flags):
    runs, seeds = pathlib.Path(options.runs), range(options.first, options.first + options.seeds)
    runs.mkdir(parents=True, exist_ok=True)

    def command(seed):
        return [
            options.program,
            options.task,
            *flags,
            "--seed",
            str(seed),
            "--run",
            str(runs / f"seed-{seed}"),
        ]

    missing = [seed for seed in seeds if not (runs / f"seed-{seed}/result.json").exists()]
    for seed in set(seeds) - set(missing):
        there = read(runs / f"seed-{seed}")[0]["command"]
        if there[1:] != command(seed)[1:]:
            sys.exit(
                f"error: {runs}/seed-{seed} holds another run: `{' '.join(there[1:])}`; give a new folder by "
                "--runs"
            )
    running, failed, ended, terminated = {}, [], [], False
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.append(True))
    while running or (missing and not ended):
        while missing and len(running) < options.jobs and not ended:
            seed = missing.pop(0)
            log = open(runs / f"seed-{seed}.log", "w")
            # Each run gets a new session, so that Ctrl-C at the terminal doesn't reach it directly. A run
            # that gets a second signal ends without a checkpoint.
            running[seed] = subprocess.Popen(
                command(seed), stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        if ended and not terminated:
            # The runs get only one signal, because a second signal would end them without a checkpoint.
            terminated, missing = True, []
            [program.terminate() for program in running.values()]
        time.sleep(0.02)
        for seed, code in [(seed, program.poll()) for seed, program in running.items()]:
            if code is not None:
                del running[seed]
                if code not in (0, INTERRUPTED):
                    failed.append({"seed": seed, "log": str(runs / f"seed-{seed}.log"), "code": code})
                print(f"seed {seed}: {'done' if code == 0 else f'ended with {code}'}", file=sys.stderr)
    results = {
        seed: read(runs / f"seed-{seed}")[1] for seed in seeds if (runs / f"seed-{seed}/result.json").exists()
    }
    if ended:
        print(
            f"interrupted: {len(results)} of {len(seeds)} seeds are done; give the same command again to "
            "continue",
            file=sys.stderr,
        )
        sys.exit(INTERRUPTED)
    spreads = {}
    for name in figures(results.values()):
        values = [result[name] for result in results.values() if result.get(name) is not None]
        values = [value for value in values if math.isfinite(value)]
        if values:
            spreads[name] = {
                "median": statistics.median(values),
                "min": min(values),
                "max": max(values),
                "n": len(values),
            }
    if options.json:
        print(
            json.dumps(
                {
                    "task": options.task,
                    "seeds": list(seeds),
                    "done": len(results),
                    "figures": spreads,
                    "failed": failed,
                }
            )
        )
    else:
        rows = [
            [name, *(format_value(spread[key]) for key in ("median", "min", "max", "n"))]
            for name, spread in spreads.items()
        ]
        table([[options.task, "median", "least", "most", "seeds"], *rows])
    if failed:
        sys.exit(
            f"error: {len(failed)} of {len(seeds)} seeds failed; read {failed[0]['log']}, correct the cause, "
            "and give the same command again"
        )


def compare(options):
    runs = [read(pathlib.Path(folder)) for folder in options.folders]
    flags = [{"task": settings["task"], **settings["flags"]} for settings, _ in runs]
    names = sorted(set().union(*flags) - NOT_COMPARED)
    differ = [name for name in names if any(run_flags.get(name) != flags[0].get(name) for run_flags in flags)]
    results = [result or {} for _, result in runs]
    if options.json:
        print(
            json.dumps(
                {
                    "differ_in": differ,
                    "runs": [
                        {"flags": run_flags, "result": result} for run_flags, (_, result) in zip(flags, runs)
                    ],
                }
            )
        )
        return
    rows = [["", *options.folders]] + [
        ["--" + name, *(format_value(run_flags.get(name)) for run_flags in flags)] for name in differ
    ]
    table(
        rows + [[name, *(format_value(result.get(name)) for result in results)] for name in figures(results)]
    )


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/reproduce"))
    parser.add_argument("--json", action="store_true")
    commands = parser.add_subparsers(dest="command", required=True)
    subparser = commands.add_parser("sweep")
    subparser.add_argument("task")
    subparser.add_argument("--runs", required=True)
    for flag, default in [("--seeds", 5), ("--first", 0), ("--jobs", 1)]:
        subparser.add_argument(flag, type=int, default=default)
    commands.add_parser("compare").add_argument("folders", nargs="+")
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    sweep(options, words[end + 1 :]) if options.command == "sweep" else compare(options)


if __name__ == "__main__":
    main(sys.argv[1:])
