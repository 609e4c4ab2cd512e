#!/usr/bin/env python3
"""Runs stress tests of a built `reproduce`, on Linux: python3 scripts/soak.py PROGRAM FOLDER MODE [--json]

    steps [--steps N]
        makes many steps, and compares memory and speed in the last tenth of the steps with the second tenth
    kills [--kills N]
        kills runs at random moments and resumes them; results must equal those of uninterrupted runs, bit
        for bit
    disks
        runs on full and read-only disks, and in folders that vanish; each must end with a clear error, and
        leave a run that can be resumed

Each mode prints a table or, with --json, one line of JSON. The exit code is 1 if a test has failed.
"""

import argparse
import atexit
import collections
import contextlib
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

LONG = (
    "hypergrid --ndim 1 --height 4 --batch 2 --embedding 4 --layers 1 --replay 100 --checkpoint-every 10000"
)
# A run's memory may grow by at most `GROWTH_MB` megabytes in `GROWTH_STEPS` steps. A leak of one smallest
# allocation (32 bytes) per step would be 3.2 MB in 100,000 steps.
GROWTH_MB, GROWTH_STEPS = 2, 100_000
# The smallest allowed speed in the last tenth of the steps, relative to the second tenth. A speed is the
# number of steps in the processor time that a fixed piece of work needs at that moment. Other programs slow
# down the steps and the work alike, so they don't change the speed. If the time of a step grew with the
# number of earlier steps, the speed would fall much further.
SPEED = 0.8
SHORTEST = 20_000

GRID = "hypergrid --ndim 2 --height 8 --batch 4 --embedding 16 --layers 1 --replay 100"
RING = ("ring --nodes 4 --directed --batch 4 --embedding 8 --layers 1 --replay 50 --threads 2 --threads-for "
    "replicas")
# The flags of the runs that are killed. Each run takes a few seconds, and is killed about ten times.
KILLED_RUNS = {
    "grid": f"{GRID} --steps 5000 --checkpoint-every 100",
    "ring": f"{RING} --steps 1500 --checkpoint-every 25",
}
SIGNALS = {signal.SIGKILL: 6, signal.SIGTERM: 2, signal.SIGINT: 2}
PHASES = ["starting", "training", "saving", "ending"]
# The exit code of a run that got a signal, and the number of seconds after which a run counts as hanging.
INTERRUPTED, PATIENCE = 130, 300
TIMES = {"train_s", "its_per_s", "states_per_s", "phases_ms"}

SHORT = f"{GRID} --steps 400 --checkpoint-every 20"
FULL, READ_ONLY, TOO_LARGE, NO_FOLDER = (
    "No space left",
    "Read-only file system",
    "File too large",
    "doesn't exist|No such file",
)
# The limit in bytes on the memory of a run that writes its metrics to the endless device /dev/full. If the
# run read this device to its end, it would otherwise use all memory of the machine.
MEMORY = 4 * 2**30


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("mode", choices=["steps", "kills", "disks"])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments of kills")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    if options.steps < SHORTEST:
        parser.error(
            f"--steps is {options.steps}, expected at least {SHORTEST}, because the second and the last "
            "tenth of the steps are compared"
        )
    options.program, options.folder = os.path.abspath(options.program), options.folder.absolute()
    options.folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    table, problems = {"steps": steps, "kills": kills, "disks": disks}[options.mode](options)
    show_status("")
    if options.json:
        rows = {str(row[0]): dict(zip(table[0][1:], row[1:])) for row in table[1:]}
        print(json.dumps({"mode": options.mode, "found": rows, "problems": problems}))
    else:
        rows = [[f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in table]
        widths = [max(map(len, column)) for column in zip(*rows)]
        print(
            "\n".join(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
            ),
            flush=True,
        )
        print("".join(f"error: {problem}\n" for problem in problems), end="", file=sys.stderr)
    sys.exit(1 if problems else 0)


def show_status(words):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def start(program, flags, log, before=lambda: None, **more):
    """Starts the program, which writes its output to the file `log`. `before` is called in the new
    process."""

    def prepare():
        # A program that was started in the background ignores SIGINT, and so do its child processes. The run
        # must not ignore SIGINT.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        before()

    with open(log, "w") as file:
        child = subprocess.Popen(
            [program, *flags],
            stdin=subprocess.DEVNULL,
            **{"stdout": file, "stderr": file, **more},
            preexec_fn=prepare,
        )
    # The run is killed when this script ends.
    atexit.register(child.kill)
    return child


def step(run):
    """Returns the last step of a run that the metrics file holds, or 0. An incomplete last line is
    left out."""
    try:
        with open(run / "metrics.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            whole = file.read().split(b"\n")[:-1]
        return json.loads(whole[-1])["step"] if whole else 0
    except FileNotFoundError:
        return 0


def saved_step(run):
    for folder in ("checkpoint", ".checkpoint.previous"):
        if (run / folder / "manifest.json").exists():
            return json.loads((run / folder / "manifest.json").read_text())["step"]
    return 0


# --- Many steps.


def steps(options):
    run, log, samples = options.folder / "steps", options.folder / "steps.log", []
    shutil.rmtree(run, ignore_errors=True)
    child = start(options.program, [*LONG.split(), "--steps", str(options.steps), "--run", str(run)], log)
    while child.poll() is None:
        now = process_usage(child)
        if now:
            samples.append({"step": step(run), "wall": time.monotonic(), "ruler": reference_work(), **now})
            show_status(f"step {samples[-1]['step']} of {options.steps}, {now['mb']:.1f} MB")
        time.sleep(0.5)
    if child.returncode != 0:
        return [["", "steps"], ["made", step(run)]], [
            f"the run ended with {child.returncode}: {log.read_text()[-500:]}"
        ]
    rows, ended = [], next(one for one in samples if one["step"] == samples[-1]["step"])
    for k in (1, 9):
        part = [
            one
            for one in samples
            if k <= 10 * one["step"] / options.steps <= k + 1 and one["wall"] <= ended["wall"]
        ]
        one = {
            name: statistics.median(one[name] for one in part) for name in ("mb", "threads", "files", "ruler")
        }
        made, per = part[-1]["step"] - part[0]["step"], {
            name: part[-1][name] - part[0][name] for name in ("cpu", "wall")
        }
        rows.append(
            [
                one["mb"],
                made / per["wall"],
                made / per["cpu"],
                made / per["cpu"] * one["ruler"],
                one["threads"],
                one["files"],
            ]
        )
    growth = (rows[1][0] - rows[0][0]) / (0.8 * options.steps) * GROWTH_STEPS
    drift, problems = rows[1][3] / rows[0][3], []
    if growth > GROWTH_MB:
        problems.append(
            f"memory grew by {growth:.1f} MB in {GROWTH_STEPS} steps: at most {GROWTH_MB} are allowed"
        )
    if drift < SPEED:
        problems.append(
            f"the last tenth had {drift:.2f} of the second tenth's speed: at least {SPEED} is expected"
        )
    problems += [
        f"there were more {name} in the end"
        for name, k in (("threads", 4), ("open files", 5))
        if rows[1][k] > rows[0][k]
    ]
    names = [
        "memory, MB",
        "steps per s",
        "steps per s of processor",
        "steps per fixed work",
        "threads",
        "open files",
    ]
    table = [
        [f"{options.steps} steps", "second tenth", "last tenth"],
        *([name, *pair] for name, *pair in zip(names, *rows)),
    ]
    table += [
        [f"growth, MB in {GROWTH_STEPS} steps", "", growth],
        ["speed, of the second tenth's", "", drift],
    ]
    table += [
        ["most memory, MB", "", max(one["peak"] for one in samples)],
        ["s after the last step", "", samples[-1]["wall"] - ended["wall"]],
    ]
    return (
        table + [["run folder, MB", "", sum(path.stat().st_size for path in run.rglob("*")) / 2**20]],
        problems,
    )


def process_usage(child):
    """Returns memory, threads, open files and processor time of a process. Returns None if the process has
    ended."""
    try:
        folder = pathlib.Path(f"/proc/{child.pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        memory, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        ticks = sum(map(int, (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        files = len(os.listdir(folder / "fd"))
        return {
            "mb": memory,
            "peak": peak,
            "threads": int(status["Threads"]),
            "files": files,
            "cpu": ticks / os.sysconf("SC_CLK_TCK"),
        }
    except (OSError, KeyError):
        return None


def reference_work():
    """Returns the processor seconds that a fixed piece of work takes now. This time shows how much other
    programs slow this machine down."""
    begun = time.process_time()
    sorted(str(k) for k in range(20_000))
    return time.process_time() - begun


# --- Kills.


def kills(options):
    rng, problems, counts = (
        random.Random(options.seed),
        [],
        {name: collections.Counter() for name in KILLED_RUNS},
    )
    for k, (name, flags) in enumerate(KILLED_RUNS.items()):
        target, count = (options.kills + k) // len(KILLED_RUNS), counts[name]
        while count["kills"] < target and len(problems) < 10:
            folder = options.folder / f"{name}-{count['runs']}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            whole, broken = folder / "whole", folder / "broken"
            seeded = [*flags.split(), "--seed", str(count["runs"]), "--run"]
            assert (
                start(options.program, [*seeded, str(whole)], folder / "whole.log").wait(PATIENCE) == 0
            ), f"{folder}/whole.log"
            problems += attack(options.program, [*seeded, str(broken)], broken, rng, target, count)
            compared, left, differences = compare(whole, broken)
            problems += [f"{broken}: {words}" for words in differences]
            count.update({"runs": 1, "files": compared, "differ": len(differences), "left behind": left})
    columns = [
        "runs",
        "kills",
        *(number.name for number in SIGNALS),
        *PHASES,
        "moved",
        "files",
        "differ",
        "left behind",
    ]
    return [
        ["", *columns],
        *([name, *(count[column] for column in columns)] for name, count in counts.items()),
    ], problems


def attack(program, flags, run, rng, target, count):
    """Kills a run and restarts it by the same command, until the run is complete. Returns a list of
    problems."""
    log, metrics, problems = run.with_suffix(".log"), run / "metrics.jsonl", []
    steps, every = (int(flags[flags.index(flag) + 1]) for flag in ("--steps", "--checkpoint-every"))
    while True:
        show_status(f"{run}: {count['kills']} of {target} kills, step {step(run)} of {steps}")
        before, written = saved_step(run), metrics.stat().st_mtime_ns if metrics.exists() else None
        child = start(program, flags, log)
        if count["kills"] >= target:
            code = child.wait(PATIENCE)
            return problems + ([f"{run}: ended with {code}: {log.read_text()[-500:]}"] if code else [])
        aim, deadline = rng.choice(["anywhere", "anywhere", "start", "save"]), time.monotonic() + rng.uniform(
            0.3, 2
        )
        if aim == "start":
            time.sleep(rng.uniform(0, 0.5))
        while aim != "start" and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0005 if aim == "save" else 0.01)
            if aim == "save" and step(run) > before and is_saving(run):
                time.sleep(rng.uniform(0, 0.003))
                break
        where = "saving" if is_saving(run) else "ending" if step(run) >= steps else "training"
        where = "starting" if not metrics.exists() or metrics.stat().st_mtime_ns == written else where
        number = rng.choices(*zip(*SIGNALS.items()))[0]
        child.send_signal(number)
        code = child.wait(PATIENCE)
        output, last, saved = log.read_text(), step(run), saved_step(run)
        if code == 0:
            return problems
        polite = code == INTERRUPTED and number != signal.SIGKILL
        if not (polite or code == -number) or "panicked at" in output:
            return [*problems, f"{run}: ended with {code} after {number.name} while {where}: {output[-500:]}"]
        if saved < before or last - saved > (0 if polite else every):
            problems.append(
                f"{run}: {number.name} while {where} left {saved} of {last} steps; {before} were saved before"
            )
        count.update({"kills": 1, number.name: 1, where: 1})
        if (run / "result.json").exists():
            # The run was already complete when it was killed.
            return problems
        # A save renames two folders. Random kills rarely hit the moment between the two renames, so the state
        # of this moment is made on purpose, once.
        if (
            count["moved"] == 0
            and saved > every
            and (run / "checkpoint").exists()
            and not (run / ".checkpoint.previous").exists()
        ):
            shutil.copytree(run / "checkpoint", run / ".checkpoint.partial", dirs_exist_ok=True)
            (run / "checkpoint").rename(run / ".checkpoint.previous")
            count["moved"] += 1


def is_saving(run):
    return any(run.glob(".checkpoint.*"))


def compare(whole, broken):
    """Compares the files of an uninterrupted run with those of a run that was killed. Returns the number of
    compared files, the number of files that only the killed run has, and a list of differences."""
    named = [
        {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} for run in (whole, broken)
    ]
    shown = [
        {name for name in names if not any(part.startswith(".") for part in name.split("/"))}
        for names in named
    ]
    both = sorted(shown[0] & shown[1])
    differences = [f"{name} is in one of two runs only" for name in sorted(shown[0] ^ shown[1])]
    differences += [
        f"{name} differs from that of {whole}"
        for name in both
        if comparable_content(whole / name) != comparable_content(broken / name)
    ]
    return len(both), len(named[1] - named[0]), differences


def comparable_content(path):
    """Returns the part of a file's content that must be equal for equal runs. Times, the name of the run's
    folder and the id of the run are left out."""
    if path.name == "metrics.jsonl":
        return re.sub(rb'"seconds":\{[^}]*\}', b"", path.read_bytes())
    if path.name == "result.json":
        return {name: value for name, value in json.loads(path.read_text()).items() if name not in TIMES}
    if path.name == "manifest.json":
        there = json.loads(path.read_text())
        return {**there, "checksum": None, "state": {**there["state"], "run_id": None}}
    if path.name == "settings.json":
        there = json.loads(path.read_text())
        return {**there, "command": None, "flags": {**there["flags"], "run": None}}
    return path.read_bytes()


# --- Disks.


def disks(options):
    table, problems, folder, log = [["", "tried", "right"]], [], options.folder, options.folder / "disks.log"
    whole, run, moved_run, mount = (folder / name for name in ("whole", "run", "away", "mount"))
    for old in (whole, run, moved_run):
        shutil.rmtree(old, ignore_errors=True)
    mount.mkdir(exist_ok=True)

    def begin(run, flags=SHORT, **more):
        return start(options.program, [*flags.split(), *(["--run", str(run)] if run else [])], log, **more)

    def check_failure(run, words, path=None, act=None, **more):
        """Waits until a run has ended, and checks that it ended with the expected error. Returns a
        description of the problem, or None."""
        child = begin(run, **more)
        try:
            if act:
                at_step(child, run, 100)
                act()
            code, output = child.wait(PATIENCE), log.read_text()
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return f"it hangs: {log.read_text()[-300:]}"
        error = next((line for line in reversed(output.splitlines()) if line.startswith("error: ")), "")
        right = (
            code == 1
            and "panicked at" not in output
            and re.search(words, error)
            and str(path or run) in error
        )
        return (
            None
            if right
            else (f"it ended with {code}: "
                f"{error or ' '.join(output[max(output.find('panicked at'), 0) :].split())[:300]}")
        )

    def check_resume(run):
        code = begin(run).wait(PATIENCE)
        return (
            f"it ended with {code} later: {log.read_text()[-400:]}"
            if code
            else "; ".join(compare(whole, run)[2])
        )

    def case(name, found):
        table.append([name, len(found), sum(not one for one in found)])
        problems.extend(f"{name}: {one}" for one in found if one)
        shutil.rmtree(run, ignore_errors=True)
        show_status(f"{name}: {table[-1][1:]}")

    assert begin(whole).wait(PATIENCE) == 0, log.read_text()
    paths = list(whole.rglob("*"))
    pages = sum(path.stat().st_size for path in paths) // 4096
    sizes = [
        f"size={4096 * count}"
        for count in sorted({1, 2, 3, 4, 5, 6, 8, 10, *(pages * k // 8 for k in range(1, 8))})
    ]
    names = [f"nr_inodes={count}" for count in range(2, len(paths) + 2)]
    with disk(mount) as there:
        if not there:
            table.append(["a disk of its own: only root may mount one", 0, 0])
        else:
            for name, options in [
                ("a disk of little space, and of more later", sizes),
                ("a disk of few files, and of more later", names),
            ]:
                found = []
                for option in options:
                    with disk(mount, option):
                        found.append(check_failure(mount / "run", FULL))
                        remount(mount, "size=64m" if "size" in option else "nr_inodes=999")
                        found.append(check_resume(mount / "run"))
                case(name, found)
            found = []
            for killed in (False, True):
                if killed:
                    child = begin(mount / "run")
                    at_step(child, mount / "run", 100)
                    child.kill()
                    child.wait()
                remount(mount, "ro")
                found.append(check_failure(mount / "run", READ_ONLY))
                remount(mount, "rw")
            case("a disk that is read-only, and isn't later", [*found, check_resume(mount / "run")])

    found = []
    for size in [4096, 8192, 20_000, 50_000, 100_000]:
        found += [check_failure(run, TOO_LARGE, before=lambda: limit_file_size(size)), check_resume(run)]
        shutil.rmtree(run)
    case("files of few bytes, and of more later", found)
    (folder / "file").write_text("")
    case("a folder in a file", [check_failure(folder / "file/run", "Not a directory")])
    found = [check_failure(run, NO_FOLDER, act=lambda: run.rename(moved_run))]
    shutil.rmtree(run, ignore_errors=True)
    moved_run.rename(run)
    case("a folder that is moved away, and back later", [*found, check_resume(run)])
    found = [check_failure(run, NO_FOLDER, act=lambda: shutil.rmtree(run, ignore_errors=True))]
    shutil.rmtree(run, ignore_errors=True)
    case("a folder that is removed", [*found, check_resume(run)])
    flags, memory = SHORT.partition("--checkpoint")[0], lambda: resource.setrlimit(
        resource.RLIMIT_AS, (MEMORY, MEMORY)
    )
    case(
        "metrics on a full device",
        [check_failure(None, FULL, "/dev/full", flags=f"{flags} --metrics /dev/full", before=memory)],
    )
    with open("/dev/full", "w") as device:
        case("standard output on a full device", [check_failure(run, FULL, "output", stdout=device)])
        # Standard error is full, so the run can't print an error. Only its exit code is checked.
        code = begin(run, stderr=device).wait(PATIENCE)
        case("standard error on a full device", [None if code in (0, 1) else f"it ended with {code}"])
    return table, problems


def at_step(child, run, target):
    while child.poll() is None and step(run) < target:
        time.sleep(0.001)


def limit_file_size(size):
    """Limits the size of the files that this process writes. Writing more is then an error, because the
    signal SIGXFSZ is ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextlib.contextmanager
def disk(folder, options="size=64m"):
    """Mounts a disk in memory at a folder, for the duration of the `with` block. Yields False if this user
    isn't allowed to mount a disk."""
    mounted = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", "none", str(folder)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
