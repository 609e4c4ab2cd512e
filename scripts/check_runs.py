#!/usr/bin/env python3
"""Checks run folders, `compare` and `sweep` of a built `reproduce`: python3 scripts/check_runs.py PROGRAM FOLDER

Every run is a few steps long. Tables are read by Python's own csv, and compared with the lines of JSON beside them.
"""

import csv
import fcntl
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

PHASES = ["sample", "score", "backward", "update"]
GRID = ["hypergrid", "--height", "4", "--batch", "8", "--embedding", "16"]


def main(program, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def call(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        if done.returncode != code:
            sys.exit(f"{arguments}: ended with {done.returncode} in place of {code}\n{done.stdout}{done.stderr}")
        return done

    # A run folder holds everything, and the table says what the lines say.
    run = folder / "grid"
    printed = call(*GRID, "--steps", 6, "--run", run, "--json")
    assert json.loads(printed.stdout) == result(run), "result.json is the line of --json"
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    expected = {"settings.json", "metrics.jsonl", "metrics.csv", "result.json", "pictures/training.svg",
                "pictures/training.png", "checkpoint/manifest.json", "checkpoint/model.safetensors"}
    assert names == expected, names ^ expected
    assert all(str(run / name) in printed.stderr for name in expected if "checkpoint/" not in name), printed.stderr
    settings = json.load(open(run / "settings.json"))
    assert settings["task"] == "hypergrid" and settings["flags"]["height"] == 4 and settings["training"]["batch"] == 8
    assert settings["seed"] == 0 and settings["device"] == "cpu" and settings["version"] and settings["steps"] == 6
    assert rows(run) == lines(run) and len(rows(run)) == 6 and any("jsd" in row for row in rows(run)), rows(run)

    # It takes one run: not the same once more, not another, not beside other files, not where nothing can be written.
    for words, arguments in {
        "finished": [*GRID, "--steps", 6, "--run", run],
        "`seed` is 0 there, 1 here": [*GRID, "--steps", 6, "--run", run, "--seed", 1],
        "no run folder": [*GRID, "--steps", 6, "--run", folder],
        "/proc/nope": [*GRID, "--steps", 6, "--run", "/proc/nope"],
    }.items():
        said = call(*arguments, code=1).stderr
        assert words in said and "training" not in said, said
    assert "cannot be used with" in call(*GRID, "--run", folder / "x", "--out", folder / "y", code=2).stderr
    call(*GRID, "--steps", 9, "--run", run, "--resume", run / "checkpoint")
    assert [row["step"] for row in rows(run)] == list(range(1, 10)) and rows(run) == lines(run)

    # A run that is stopped goes on by the same command, to the result of one that wasn't.
    long = [*GRID, "--steps", 800, "--validate-every", 200]
    stopped = subprocess.Popen([program, *map(str, long), "--run", folder / "stopped"], stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    table = folder / "stopped/metrics.csv"
    while stopped.poll() is None and not (table.exists() and table.stat().st_size > 10_000):
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(60) == 130, stopped.returncode
    made = len(rows(folder / "stopped"))
    assert 0 < made < 800 and not (folder / "stopped/result.json").exists(), made
    call(*long, "--run", folder / "stopped")
    call(*long, "--run", folder / "whole")
    for key in ["log_z", "jsd", "tv", "loss", "mean_len", "distinct_share", "reward_calls"]:
        assert result(folder / "stopped")[key] == result(folder / "whole")[key], key
    assert [row["loss"] for row in rows(folder / "stopped")] == [row["loss"] for row in rows(folder / "whole")]
    assert picture(folder / "stopped") == picture(folder / "whole"), "curves are of all steps"

    # So does one that was killed between its last step and its result: what it says of training is in its metrics.
    before, drawn = result(folder / "whole"), picture(folder / "whole")
    (folder / "whole/result.json").unlink()
    assert "nothing is trained" in call(*long, "--run", folder / "whole").stderr
    after = result(folder / "whole")
    assert 0 <= after.pop("train_s") - before.pop("train_s") < 10
    # What is measured of the last batch, this process has none of.
    [told.pop(key) for told in (before, after) for key in ["products_ms", "products_share"]]
    assert after == before, (before, after)
    assert picture(folder / "whole") == drawn
    metrics = folder / "whole/metrics.jsonl"
    kept = metrics.read_text()
    (folder / "whole/result.json").unlink()
    metrics.write_text("".join(lines_of(metrics)[:-1]) + '{"step":800}\n')
    said = call(*long, "--run", folder / "whole", code=1).stderr
    assert "line 800 isn't a line of metrics: it has no `reward_calls`" in said, said
    assert not (folder / "whole/result.json").exists()
    # Lines behind the checkpoint's step are of a part that is made again.
    metrics.write_text(kept + '{"step":801}\n')
    call(*long, "--run", folder / "whole")
    assert metrics.read_text() == kept and result(folder / "whole")["loss"] == before["loss"]

    # Runs of different length and of different figures, one of them unfinished, are drawn together.
    call("line", "--steps", 4, "--samples", 100, "--run", folder / "line")
    (folder / "line/result.json").unlink()
    compared = call("compare", run, folder / "whole", folder / "line", "--out", folder / "compared").stdout
    assert all(words in compared for words in ["--steps", "TV", "grid", "whole", "line", "finished"]), compared
    for name in ["loss", "log_z", "jsd", "modes_found"]:
        assert (folder / f"compared/{name}.svg").stat().st_size > 1000, name
    pair = json.loads(call("compare", run, folder / "whole", "--out", folder / "compared", "--json").stdout)
    assert [found["result"]["tv"] for found in pair["runs"]] == [result(run)["tv"], result(folder / "whole")["tv"]]
    assert pair["differ_in"] == ["steps", "validate-every"], pair["differ_in"]
    assert "no run folder" in call("compare", run, folder, "--out", folder / "compared", code=1).stderr

    # A sweep: a run for each seed, and what is missing only once more.
    sweep = ["sweep", "hypergrid", "--runs", folder / "sweep", "--seeds", 3, "--jobs", 2, "--json", "--", *GRID[1:],
             "--steps", 4]
    # A file where the folder of a seed should be: that seed fails, and the others don't.
    (folder / "sweep").mkdir()
    (folder / "sweep/seed-1").mkdir()
    (folder / "sweep/seed-1/checkpoint").write_text("")
    said = call(*sweep, code=1)
    assert "no run folder" in said.stderr and not said.stdout, "a folder that holds something else is seen before"
    (folder / "sweep/seed-1/checkpoint").unlink()
    (folder / "sweep/seed-1/pictures").write_text("")
    (folder / "sweep/seed-1/settings.json").write_text(json.dumps(settings_of(folder, call, GRID)))
    said = call(*sweep, code=1)
    failed = json.loads(said.stdout)
    assert failed["done"] == 2 and [one["seed"] for one in failed["failed"]] == [1], failed
    assert "seed-1.log" in said.stderr and "seed 1" in said.stderr, said.stderr
    (folder / "sweep/seed-1/pictures").unlink()
    before = [(folder / f"sweep/seed-{seed}/result.json").stat().st_mtime_ns for seed in (0, 2)]
    whole = json.loads(call(*sweep).stdout)
    assert before == [(folder / f"sweep/seed-{seed}/result.json").stat().st_mtime_ns for seed in (0, 2)]
    tvs = sorted(result(folder / f"sweep/seed-{seed}")["tv"] for seed in range(3))
    found = whole["figures"]["tv"]
    assert (found["min"], found["median"], found["max"], found["n"]) == (*tvs, 3) and whole["failed"] == [], whole
    assert len(set(tvs)) == 3, "seeds differ"
    table = call(*[word for word in sweep if word != "--json"]).stdout
    assert "median" in table and all(name in table for name in ["L1", "TV", "JSD", "log Z", "iterations per s"]), table
    assert "`steps` is 4 there, 5 here" in call(*sweep[:-1], 5, code=1).stderr
    # Tasks that keep no run folder say so, and what does.
    for task, words in {"compare-objectives": "--json", "dag-from-csv": "bayesian-structure --data FILE --run FOLDER"}.items():
        said = call(task, "--run", folder / "none", code=2).stderr
        assert "--run" in said and words in said and "--run" not in call(task, "--help").stdout, said
    for task in ["sample", "compare-objectives", "dag-from-csv", "sweep"]:
        assert "takes --run" in call("sweep", task, "--runs", folder / "none", code=1).stderr
    assert not (folder / "none").exists(), "what is refused leaves nothing"
    assert "the last is 2^64 - 1" in call("sweep", "hypergrid", "--runs", folder / "none", "--first", 2**64 - 1, code=1).stderr
    assert "--heigth" in call("sweep", "hypergrid", "--runs", folder / "none", "--", "--heigth", 4, code=2).stderr

    # Ctrl-C at a terminal goes to the sweep and not to its runs, to which it passes it on once, so that they save; a sweep that is killed
    # leaves none behind, either.
    sweep = ["sweep", "hypergrid", "--runs", folder / "ended", "--seeds", 3, "--jobs", 2, "--", *GRID[1:], "--steps", 2000]
    for sent, code in [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]:
        made = {seed: step(folder / f"ended/seed-{seed}") for seed in (0, 1)}
        ended = subprocess.Popen([program, *map(str, sweep)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        until(lambda: all(step(folder / f"ended/seed-{seed}") > made[seed] + 50 for seed in (0, 1)), "runs begin")
        os.killpg(ended.pid, sent)
        said = ended.communicate(timeout=60)[1]
        assert ended.returncode == code, (ended.returncode, said)
        assert code < 0 or "0 of 3 seeds are done; the same command goes on" in said and "failed" not in said, said
        for seed in (0, 1):
            run = folder / f"ended/seed-{seed}"
            until(lambda: unlocked(run), "runs end")
            saved = json.load(open(run / "checkpoint/manifest.json"))["step"]
            assert made[seed] < saved == step(run) < 2000 and not (run / "result.json").exists(), (seed, saved, step(run))
        assert not (folder / "ended/seed-2").exists(), "none is begun once the sweep was asked to end"
    call(*sweep)
    call(*GRID, "--steps", 2000, "--run", folder / "unbroken")
    for key in ["tv", "loss", "log_z"]:
        assert result(folder / "ended/seed-0")[key] == result(folder / "unbroken")[key], key
    print("run folders, compare and sweep: ok")


def result(run):
    return json.load(open(run / "result.json"))


def picture(run):
    return (run / "pictures/training.svg").read_text()


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def step(run):
    """The last step that was written whole."""
    path = run / "metrics.jsonl"
    whole = [line for line in lines_of(path) if line.endswith("\n")] if path.exists() else []
    return json.loads(whole[-1])["step"] if whole else 0


def until(holds, what):
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"in a minute it didn't come to this: {what}")
        time.sleep(0.01)


def unlocked(run):
    """Whether no process writes the folder."""
    with open(run / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def settings_of(folder, call, grid):
    """The settings of seed 1 of the sweep, by a run of its own."""
    call(*grid, "--steps", 4, "--seed", 1, "--run", folder / "seed-1")
    return json.load(open(folder / "seed-1/settings.json"))


def rows(run):
    """The table as lines of JSON would have it: what is empty isn't there."""
    with open(run / "metrics.csv", newline="") as file:
        return [{name: known(float(cell)) for name, cell in row.items() if cell} for row in csv.DictReader(file)]


def known(number):
    """None for NaN, which isn't equal to itself."""
    return None if math.isnan(number) else number


def lines(run):
    found = []
    for line in map(json.loads, open(run / "metrics.jsonl")):
        seconds = line.pop("seconds")
        line |= {f"seconds/{phase}": value for phase, value in zip(PHASES, seconds)}
        found.append({name: None if value is None else float(value) for name, value in line.items()})
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
