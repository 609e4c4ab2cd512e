#!/usr/bin/env python3
"""Several runs of `reproduce`, each in a folder that its `--run` wrote.

    scripts/runs.py sweep TASK --runs FOLDER [--seeds N] [--first N] [--jobs N] -- FLAGS...
        runs a task under several seeds, in FOLDER/seed-0 and so on, and prints median, least and most of what came out; given again, it
        goes on with what is missing. Ctrl-C or SIGTERM ends its runs, too, which save first.
    scripts/runs.py compare FOLDER...
        prints in which flags runs differ, and their results

`--program PATH` names the program, target/release/examples/reproduce by default; `--json` prints one line for programs.
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
# Flags that say where a run is kept, not what it computes, and figures that say what it was.
ASIDE = {"run", "resume", "checkpoint-every", "tensorboard", "config", "json"}
OF_RUN = {"seed", "steps", "batch", "threads", "members", "params", "samples", "evaluated_samples"}
INTERRUPTED = 130


def read(folder):
    try:
        settings = json.loads((folder / "settings.json").read_text())
    except (OSError, ValueError):
        sys.exit(f"error: {folder}: it is no run folder: it has no settings.json")
    result = folder / "result.json"
    return settings, json.loads(result.read_text()) if result.exists() else None


def figures(results):
    """The names of the numbers that any of these results has, in order."""
    names = dict.fromkeys(name for result in results for name, value in result.items() if type(value) in (int, float))
    return [name for name in names if name not in OF_RUN]


def table(rows):
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))


def shown(value):
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def sweep(asked, flags):
    runs, seeds = pathlib.Path(asked.runs), range(asked.first, asked.first + asked.seeds)
    runs.mkdir(parents=True, exist_ok=True)

    def command(seed):
        return [asked.program, asked.task, *flags, "--seed", str(seed), "--run", str(runs / f"seed-{seed}")]

    missing = [seed for seed in seeds if not (runs / f"seed-{seed}/result.json").exists()]
    for seed in set(seeds) - set(missing):
        there = read(runs / f"seed-{seed}")[0]["command"]
        if there[1:] != command(seed)[1:]:
            sys.exit(f"error: {runs}/seed-{seed} holds another run: `{' '.join(there[1:])}`; give a new folder")
    running, failed, ended, told = {}, [], [], False
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.append(True))
    while running or (missing and not ended):
        while missing and len(running) < asked.jobs and not ended:
            seed = missing.pop(0)
            log = open(runs / f"seed-{seed}.log", "w")
            # In a session of its own: Ctrl-C at a terminal would end it twice, the second time without a checkpoint.
            running[seed] = subprocess.Popen(command(seed), stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        if ended and not told:
            # Once: a second signal would end them without a checkpoint.
            told, missing = True, []
            [program.terminate() for program in running.values()]
        time.sleep(0.02)
        for seed, code in [(seed, program.poll()) for seed, program in running.items()]:
            if code is not None:
                del running[seed]
                if code not in (0, INTERRUPTED):
                    failed.append({"seed": seed, "log": str(runs / f"seed-{seed}.log"), "code": code})
                print(f"seed {seed}: {'done' if code == 0 else f'ended with {code}'}", file=sys.stderr)
    results = {seed: read(runs / f"seed-{seed}")[1] for seed in seeds if (runs / f"seed-{seed}/result.json").exists()}
    if ended:
        print(f"interrupted: {len(results)} of {len(seeds)} seeds are done; the same command goes on", file=sys.stderr)
        sys.exit(INTERRUPTED)
    spreads = {}
    for name in figures(results.values()):
        values = [result[name] for result in results.values() if result.get(name) is not None]
        values = [value for value in values if math.isfinite(value)]
        if values:
            spreads[name] = {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}
    if asked.json:
        print(json.dumps({"task": asked.task, "seeds": list(seeds), "done": len(results), "figures": spreads, "failed": failed}))
    else:
        rows = [[name, *(shown(spread[key]) for key in ("median", "min", "max", "n"))] for name, spread in spreads.items()]
        table([[asked.task, "median", "least", "most", "seeds"], *rows])
    if failed:
        sys.exit(f"error: {len(failed)} of {len(seeds)} seeds came to no result; see {failed[0]['log']}, and give the same command again")


def compare(asked):
    runs = [read(pathlib.Path(folder)) for folder in asked.folders]
    flags = [{"task": settings["task"], **settings["flags"]} for settings, _ in runs]
    names = sorted(set().union(*flags) - ASIDE)
    differ = [name for name in names if any(one.get(name) != flags[0].get(name) for one in flags)]
    results = [result or {} for _, result in runs]
    if asked.json:
        print(json.dumps({"differ_in": differ, "runs": [{"flags": one, "result": result} for one, (_, result) in zip(flags, runs)]}))
        return
    rows = [["", *asked.folders]] + [["--" + name, *(shown(one.get(name)) for one in flags)] for name in differ]
    table(rows + [[name, *(shown(result.get(name)) for result in results)] for name in figures(results)])


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/reproduce"))
    parser.add_argument("--json", action="store_true")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("sweep")
    one.add_argument("task")
    one.add_argument("--runs", required=True)
    for flag, default in [("--seeds", 5), ("--first", 0), ("--jobs", 1)]:
        one.add_argument(flag, type=int, default=default)
    commands.add_parser("compare").add_argument("folders", nargs="+")
    end = words.index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:end])
    sweep(asked, words[end + 1 :]) if asked.command == "sweep" else compare(asked)


if __name__ == "__main__":
    main(sys.argv[1:])
