#!/usr/bin/env python3
"""Attacks long runs of a built `reproduce`: python3 scripts/soak.py PROGRAM FOLDER MODE [--json]

    steps [--steps N]   many steps: memory and speed of the last tenth beside those of the second
    kills [--kills N]   runs that are killed at random moments and go on, beside runs that aren't: the same bits
    disks               disks that are full, folders that can't be written or vanish: an error that says so, and a run that goes on

A mode prints a table, with --json one line for programs, and ends with 1 if something is wrong. For Linux.
"""

import argparse
import collections
import contextlib
import csv
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

LONG = "hypergrid --ndim 1 --height 4 --batch 2 --embedding 4 --layers 1 --replay 100 --checkpoint-every 10000"
# The smallest piece of memory that is handed out has 32 bytes: one piece that is lost in each step makes 3.2 MB in so many steps.
GROWTH_MB, GROWTH_STEPS = 2, 100_000
# Steps in the processor's time that a fixed piece of work takes beside them: other programs slow both. Work that grows with the steps
# makes far more of a difference.
SPEED = 0.8


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("mode", choices=["steps", "kills", "disks"])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    asked.program, asked.folder = os.path.abspath(asked.program), asked.folder.absolute()
    asked.folder.mkdir(parents=True, exist_ok=True)
    found = globals()[asked.mode](asked)
    if asked.json:
        print(json.dumps({"mode": asked.mode, **found}))
    else:
        rows = [[str(cell) for cell in row] for row in found["table"]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        print("\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows))
    for problem in found["problems"]:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if found["problems"] else 0)


def told(words):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def start(program, flags, run, log, before=lambda: None, **more):
    """A run that writes what it says to a file."""

    def prepare():
        # What is started in the background ignores it, and hands that down.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        before()

    command = [program, *flags.split(), "--run", str(run)]
    with open(log, "w") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **{"stdout": file, "stderr": file, **more}, preexec_fn=prepare)


def step(run):
    """The last step that was written whole."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            whole = file.read().split(b"\n")[:-1]
        return json.loads(whole[-1])["step"] if whole else 0
    except FileNotFoundError:
        return 0


def proc(child):
    """What the system knows of a process; nothing once it has ended."""
    try:
        folder = pathlib.Path(f"/proc/{child.pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        used = (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return {
            "mb": int(status["VmRSS"].split()[0]) / 1024,
            "peak": int(status["VmHWM"].split()[0]) / 1024,
            "threads": int(status["Threads"]),
            "files": len(os.listdir(folder / "fd")),
            "cpu": sum(map(int, used)) / os.sysconf("SC_CLK_TCK"),
        }
    except (OSError, KeyError):
        return None


def ruler():
    """Seconds of the processor that a fixed piece of work takes."""
    begun = time.process_time()
    sorted(str(k) for k in range(20_000))
    return time.process_time() - begun


def steps(asked):
    run, log = asked.folder / "steps", asked.folder / "steps.log"
    shutil.rmtree(run, ignore_errors=True)
    child = start(asked.program, f"{LONG} --steps {asked.steps}", run, log)
    seen, last = [], time.monotonic()
    while child.poll() is None:
        now = proc(child)
        if now:
            seen.append({"step": step(run), "wall": time.monotonic(), "ruler": ruler(), **now})
            told(f"step {seen[-1]['step']} of {asked.steps}, {now['mb']:.1f} MB")
            last = seen[-1]["wall"] if seen[-1]["step"] != seen[max(0, len(seen) - 2)]["step"] else last
        time.sleep(0.5)
    if child.returncode != 0:
        return {"table": [["steps", step(run)]], "problems": [f"the run ended with {child.returncode}: {log.read_text()[-500:]}"]}

    def tenth(k):
        part = [one for one in seen if k <= 10 * one["step"] / asked.steps <= k + 1]
        made, first, end = part[-1]["step"] - part[0]["step"], part[0], part[-1]
        middle = {name: statistics.median(one[name] for one in part) for name in ("mb", "threads", "files", "ruler")}
        per_cpu_s = made / (end["cpu"] - first["cpu"])
        return {**middle, "per_cpu_s": per_cpu_s, "per_ruler": per_cpu_s * middle["ruler"], "per_s": made / (end["wall"] - first["wall"])}

    second, tenths = tenth(1), [tenth(k) for k in range(10)]
    growth = (tenths[9]["mb"] - second["mb"]) / (0.8 * asked.steps) * GROWTH_STEPS
    drift = tenths[9]["per_ruler"] / second["per_ruler"]
    problems = []
    if growth > GROWTH_MB:
        problems.append(f"memory grew by {growth:.1f} MB per {GROWTH_STEPS} steps: at most {GROWTH_MB} are allowed")
    if drift < SPEED:
        problems.append(f"the last tenth had {drift:.2f} of the second tenth's speed: at least {SPEED} is asked for")
    problems += [f"{name} that are open became more" for name in ("threads", "files") if tenths[9][name] > second[name]]
    names = {"mb": "memory, MB", "per_cpu_s": "steps per s of processor", "per_ruler": "steps per fixed work", "per_s": "steps per s", "threads": "threads", "files": "open files"}
    table = [[f"{asked.steps} steps", *(f"tenth {k + 1}" for k in range(10))]]
    table += [[words, *(f"{one[name]:.1f}" for one in tenths)] for name, words in names.items()]
    more = {
        "growth_mb": growth,
        "drift": drift,
        "peak_mb": max(one["peak"] for one in seen),
        "peak_training_mb": max(one["peak"] for one in seen if one["wall"] <= last),
        "after_last_step_s": seen[-1]["wall"] - last,
        "run_folder_mb": sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) / 2**20,
    }
    table += [[name, f"{value:.2f}"] + [""] * 9 for name, value in more.items()]
    return {"table": table, "steps": asked.steps, "tenths": tenths, **more, "problems": problems}


if __name__ == "__main__":
    main(sys.argv[1:])
