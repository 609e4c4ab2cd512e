#!/usr/bin/env python3
"""Checks run folders (`--run`) of a built `reproduce`, and the script scripts/runs.py: python3
scripts/check_runs.py PROGRAM FOLDER

Most of the runs have only a few steps, so that the checks take little time.
"""

import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

GRID = ["hypergrid", "--height", "4", "--batch", "8", "--embedding", "16"]


def main(program, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    script = [sys.executable, str(pathlib.Path(__file__).with_name("runs.py")), "--program", program]

    def run_command(command, arguments, code):
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        if done.returncode != code:
            sys.exit(
                f"{arguments}: the exit code is {done.returncode}, expected "
                f"{code}\n{done.stdout}{done.stderr}"
            )
        return done

    def call(*arguments, code=0):
        return run_command([program], arguments, code)

    def runs(*arguments, code=0):
        return run_command(script, arguments, code)

    # The next checks are about the files of a run folder: settings, metrics, result, pictures and a
    # checkpoint.
    run = folder / "grid"
    printed = call(*GRID, "--steps", 6, "--run", run, "--json")
    assert json.loads(printed.stdout) == result(run), "result.json is the line of --json"
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    expected = {
        "settings.json",
        "metrics.jsonl",
        "result.json",
        "pictures/training.svg",
        "pictures/training.png",
        "checkpoint/manifest.json",
        "checkpoint/model.safetensors",
    }
    assert names == expected, names ^ expected
    assert all(
        str(run / name) in printed.stderr for name in expected if "checkpoint/" not in name
    ), printed.stderr
    settings = json.load(open(run / "settings.json"))
    assert (
        settings["task"] == "hypergrid"
        and settings["flags"]["height"] == 4
        and settings["training"]["batch"] == 8
    )
    assert (
        settings["seed"] == 0
        and settings["device"] == "cpu"
        and settings["version"]
        and settings["steps"] == 6
    )
    assert len(rows(run)) == 6 and any("jsd" in row for row in rows(run)), rows(run)

    # A run isn't started in a folder that holds a finished run, another run or other files, or that can't be
    # written.
    for words, arguments in {
        "finished": [*GRID, "--steps", 6, "--run", run],
        "`seed` is 0 in the folder, 1 in this command": [*GRID, "--steps", 6, "--run", run, "--seed", 1],
        "isn't the folder of a run": [*GRID, "--steps", 6, "--run", folder],
        "/proc/nope": [*GRID, "--steps", 6, "--run", "/proc/nope"],
    }.items():
        errors = call(*arguments, code=1).stderr
        assert words in errors and "training" not in errors, errors
    assert "cannot be used with" in call(*GRID, "--run", folder / "x", "--out", folder / "y", code=2).stderr
    call(*GRID, "--steps", 9, "--run", run, "--resume", run / "checkpoint")
    assert [row["step"] for row in rows(run)] == list(range(1, 10))

    # The same command resumes a run that was stopped. The result is that of an uninterrupted run.
    long = [*GRID, "--steps", 800, "--validate-every", 200]
    stopped = subprocess.Popen(
        [program, *map(str, long), "--run", folder / "stopped"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    metrics = folder / "stopped/metrics.jsonl"
    while stopped.poll() is None and not (metrics.exists() and metrics.stat().st_size > 10_000):
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(60) == 130, stopped.returncode
    n_steps = len(rows(folder / "stopped"))
    assert 0 < n_steps < 800 and not (folder / "stopped/result.json").exists(), n_steps
    call(*long, "--run", folder / "stopped")
    call(*long, "--run", folder / "whole")
    for key in ["log_z", "jsd", "tv", "loss", "mean_len", "distinct_share", "reward_calls"]:
        assert result(folder / "stopped")[key] == result(folder / "whole")[key], key
    assert [row["loss"] for row in rows(folder / "stopped")] == [
        row["loss"] for row in rows(folder / "whole")
    ]
    assert picture(folder / "stopped") == picture(folder / "whole"), "the curves have all steps"

    # A run may be killed after its last step and before it writes its result. The same command then takes the
    # statistics of training from the metrics file.
    before, drawn_before = result(folder / "whole"), picture(folder / "whole")
    (folder / "whole/result.json").unlink()
    assert "nothing is trained" in call(*long, "--run", folder / "whole").stderr
    after = result(folder / "whole")
    assert 0 <= after.pop("train_s") - before.pop("train_s") < 10
    assert after == before, (before, after)
    assert picture(folder / "whole") == drawn_before
    metrics = folder / "whole/metrics.jsonl"
    kept = metrics.read_text()
    (folder / "whole/result.json").unlink()
    metrics.write_text("".join(lines_of(metrics)[:-1]) + '{"step":800}\n')
    errors = call(*long, "--run", folder / "whole", code=1).stderr
    assert "line 800 isn't a line of metrics (missing field `reward_calls`" in errors, errors
    assert not (folder / "whole/result.json").exists()
    # The metrics file now has a line of a step after the checkpoint. A resumed run repeats this step, so it
    # drops the line.
    metrics.write_text(kept + '{"step":801}\n')
    call(*long, "--run", folder / "whole")
    assert metrics.read_text() == kept and result(folder / "whole")["loss"] == before["loss"]

    # Runs of different lengths and tasks can be compared, even if one of them is unfinished.
    call("line", "--steps", 4, "--samples", 100, "--run", folder / "line")
    (folder / "line/result.json").unlink()
    compared = runs("compare", run, folder / "whole", folder / "line").stdout
    assert all(words in compared for words in ["--steps", "--task", "tv", "grid", "whole", "line"]), compared
    pair = json.loads(runs("--json", "compare", run, folder / "whole").stdout)
    assert [found["result"]["tv"] for found in pair["runs"]] == [
        result(run)["tv"],
        result(folder / "whole")["tv"],
    ]
    assert pair["differ_in"] == ["steps", "validate-every"], pair["differ_in"]
    assert "isn't the folder of a run" in runs("compare", run, folder, code=1).stderr

    # A sweep makes a run for each seed. Repeating the sweep makes only the missing runs. A run that fails
    # doesn't affect the other runs.
    sweep = [
        "--json",
        "sweep",
        "hypergrid",
        "--runs",
        folder / "sweep",
        "--seeds",
        3,
        "--jobs",
        2,
        "--",
        *GRID[1:],
        "--steps",
        4,
    ]
    (folder / "sweep/seed-1").mkdir(parents=True)
    (folder / "sweep/seed-1/checkpoint").write_text("")
    process = runs(*sweep, code=1)
    failed = json.loads(process.stdout)
    assert failed["done"] == 2 and [one["seed"] for one in failed["failed"]] == [1], failed
    assert (
        "seed-1.log" in process.stderr
        and "isn't the folder of a run" in (folder / "sweep/seed-1.log").read_text()
    ), process.stderr
    (folder / "sweep/seed-1/checkpoint").unlink()
    before = [(folder / f"sweep/seed-{seed}/result.json").stat().st_mtime_ns for seed in (0, 2)]
    found = json.loads(runs(*sweep).stdout)["figures"]["tv"]
    assert before == [(folder / f"sweep/seed-{seed}/result.json").stat().st_mtime_ns for seed in (0, 2)]
    tvs = sorted(result(folder / f"sweep/seed-{seed}")["tv"] for seed in range(3))
    assert len(set(tvs)) == 3 and (found["min"], found["median"], found["max"], found["n"]) == (
        *tvs,
        3,
    ), found
    assert "median" in runs(*sweep[1:]).stdout
    # The task that doesn't have `--run` prints an error, which names the flag to use instead.
    task = "compare-objectives"
    errors = call(task, "--run", folder / "none", code=2).stderr
    assert "--run" in errors and "--json" in errors and "--run" not in call(task, "--help").stdout, errors
    # A sweep that gets a signal ends its runs after they have saved a checkpoint. The same command resumes
    # them.
    sweep = [
        "sweep",
        "hypergrid",
        "--runs",
        folder / "ended",
        "--seeds",
        3,
        "--jobs",
        2,
        "--",
        *GRID[1:],
        "--steps",
        2000,
    ]
    ended = subprocess.Popen(
        [*script, *map(str, sweep)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: all(step(folder / f"ended/seed-{seed}") > 50 for seed in (0, 1)), "runs begin")
    ended.send_signal(signal.SIGTERM)
    errors = ended.communicate(timeout=60)[1]
    assert ended.returncode == 130 and "0 of 3 seeds are done; give the same command again" in errors, (
        ended.returncode,
        errors,
    )
    for seed in (0, 1):
        run = folder / f"ended/seed-{seed}"
        saved = json.load(open(run / "checkpoint/manifest.json"))["step"]
        assert 50 < saved == step(run) < 2000 and not (run / "result.json").exists(), (seed, saved, step(run))
    assert not (folder / "ended/seed-2").exists(), "no run starts after the signal"
    runs(*sweep)
    call(*GRID, "--steps", 2000, "--run", folder / "unbroken")
    for key in ["tv", "loss", "log_z"]:
        assert result(folder / "ended/seed-0")[key] == result(folder / "unbroken")[key], key
    check_seeds(program, call, folder)
    print("run folders and scripts/runs.py: ok")


def check_seeds(program, call, folder):
    """Checks several seeds in one process (`--seeds`)."""
    grid, run = [*GRID, "--steps", 30], folder / "seeds"
    several = call(*grid, "--seeds", 3, "--seed", 4, "--threads", 2, "--run", run, "--json")
    line = json.loads(several.stdout)
    assert line == result(run) and (line["seed"], line["seeds"], line["threads"]) == (4, 3, 2), line
    singles = [json.loads(call(*grid, "--seed", seed, "--json").stdout) for seed in (4, 5, 6)]
    times = {"train_s", "its_per_s", "states_per_s", "phases_ms"}
    for single, one in zip(singles, line["per_seed"], strict=True):
        assert single.keys() == one.keys()
        assert all(single[key] == one[key] for key in single.keys() - times), (single, one)
        assert one == result(run / f"seed-{one['seed']}")
    for key in ["tv", "jsd", "loss", "log_z"]:
        values = [single[key] for single in singles]
        spread = line["spread"][key]
        assert len(set(values)) == 3 and (spread["min"], spread["max"]) == (min(values), max(values)), spread
        assert abs(spread["sd"] - statistics.stdev(values)) < 1e-12 and spread["mean"] == line[key], spread
        assert abs(line[key] - statistics.mean(values)) < 1e-12
    assert all(words in several.stderr for words in ["seed 5: wrote", "seed", "metric", "sd"]), several.stderr
    # A finished seed isn't trained again, and a seed without a result is.
    before = (run / "seed-4/metrics.jsonl").stat().st_mtime_ns
    same = [*grid, "--seeds", 3, "--seed", 4, "--run", run, "--json"]
    assert json.loads(call(*same).stdout) == line == result(run), "the times of the first command stay"
    (run / "seed-5/result.json").unlink()
    again = json.loads(call(*same).stdout)
    assert before == (run / "seed-4/metrics.jsonl").stat().st_mtime_ns and again["tv"] == line["tv"]
    assert [again[key] for key in ["train_s", "its_per_s", "states_per_s"]] == [None] * 3, again
    # Another command doesn't replace the result, except if it adds seeds. The error names the command that
    # resumes a seed with other settings.
    for words, flags in {
        "`seed` is 4 in the folder, 5 in this command": ["--steps", 30, "--seed", 5, "--seeds", 3],
        "`seeds` is 3 in the folder, 2 in this command": ["--steps", 30, "--seed", 4, "--seeds", 2],
        "`steps` is 30 in the folder, 40 in this command": ["--steps", 40, "--seed", 4, "--seeds", 3],
    }.items():
        errors = call(*GRID, *flags, "--run", run, code=1).stderr
        assert words in errors and "--run FOLDER/seed-N --resume FOLDER/seed-N/checkpoint" in errors, errors
    assert result(run) == again
    call(*grid, "--seed", 4, "--seeds", 4, "--run", run)
    assert result(run)["per_seed"][:3] == again["per_seed"] and result(run)["seeds"] == 4, result(run)
    alone = run / "seed-4"
    call(*GRID, "--steps", 40, "--seed", 4, "--run", alone, "--resume", alone / "checkpoint")
    assert step(alone) == 40
    errors = call(*grid, "--seed", 4, "--seeds", 4, "--run", run, code=1).stderr
    assert "`steps` is 40 in the folder, 30" in errors and "leave out --seeds" in errors, errors
    # Seeds that were trained further, each alone, are summarized again without the files of the first
    # command.
    for seed in (5, 6):
        alone = run / f"seed-{seed}"
        call(*GRID, "--steps", 40, "--seed", seed, "--run", alone, "--resume", alone / "checkpoint")
    (run / "settings.json").unlink()
    (run / "result.json").unlink()
    call(*GRID, "--steps", 40, "--seed", 4, "--seeds", 3, "--run", run)
    assert result(run)["per_seed"] == [result(run / f"seed-{seed}") for seed in (4, 5, 6)]
    # A signal ends all seeds, and the same command resumes them.
    long = [*GRID, "--steps", 2000, "--seeds", 5, "--threads", 2, "--run", folder / "many", "--json"]
    ended = subprocess.Popen(
        [program, *map(str, long)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: all(step(folder / f"many/seed-{seed}") > 50 for seed in (0, 1)), "seeds begin")
    ended.send_signal(signal.SIGTERM)
    errors = ended.communicate(timeout=60)[1]
    assert ended.returncode == 130 and "interrupted: 0 of 5 seeds are done" in errors, errors
    assert not (folder / "many/seed-2").exists() and not (folder / "many/result.json").exists()
    resumed = json.loads(call(*long).stdout)
    call(*GRID, "--steps", 2000, "--run", folder / "one")
    for key in ["tv", "loss", "log_z"]:
        assert resumed["per_seed"][0][key] == result(folder / "one")[key], key
    # After a signal, each seed can be continued alone by the command that is printed for it. The finished
    # seeds are reported.
    saved = [*GRID, "--steps", 2000, "--seeds", 2, "--save", folder / "saved", "--json"]
    ended = subprocess.Popen(
        [program, *map(str, saved), "--metrics", str(folder / "m.jsonl")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = folder / "m.seed-0.jsonl"
    wait_until(lambda: metrics.exists() and metrics.stat().st_size > 10_000, "a seed begins")
    ended.send_signal(signal.SIGTERM)
    output, errors = ended.communicate(timeout=60)
    line = json.loads(output)
    assert ended.returncode == 130 and line["per_seed"] == [] and "0 of 2 seeds" in line["error"], line
    words = errors.split("continue without --seeds, with ")[1].split("\n")[0].split()
    assert words[:3] == ["--seed", "0", "--save"], errors
    continued = json.loads(call(*GRID, "--steps", 2000, *words, "--json").stdout)
    assert continued["tv"] == result(folder / "one")["tv"]
    # A seed that fails is named, after the others have ended, whose reports are printed.
    (folder / "bad/seed-1").mkdir(parents=True)
    (folder / "bad/seed-1/checkpoint").write_text("")
    failed = call(*grid, "--seeds", 3, "--run", folder / "bad", "--json", code=1)
    line, problem = json.loads(failed.stdout), "the run with seed 1 failed (1 of 3 seeds failed)"
    assert problem in failed.stderr and problem in line["error"] and line["seeds"] == 3, failed.stderr
    assert line["per_seed"] == [result(folder / f"bad/seed-{seed}") for seed in (0, 2)], line
    table = call(*grid, "--seeds", 3, "--run", folder / "bad", code=1).stdout
    assert "tv" in table and "metric" in table, table
    assert (folder / "bad/seed-0/result.json").exists() and (folder / "bad/seed-2/result.json").exists()
    # Flags that make no sense with several seeds are refused.
    for words, flags in {
        "--resume is given": ["--resume", folder / "one/checkpoint"],
        "--threads-for is given": ["--threads-for", "replicas"],
        "`seeds` is 1 in the folder, 2 in this command": ["--run", folder / "one"],
    }.items():
        errors = call(*grid, "--seeds", 2, *flags, code=1).stderr
        assert words in errors, errors
    call(*grid, "--seeds", 0, code=2)
    # A search without a policy refuses the flags of networks and of training.
    peaks = ["peaks", "--ndim", 2, "--height", 8, "--peaks", 4, "--floor", 1e-2, "--steps", 2]
    structures = ["bayesian-structure", "--nodes", 3, "--edges", 2, "--graphs", 4, "--steps", 2]
    for search in [*peaks, "--by", "tempering"], [*structures, "--by", "greedy"]:
        call(*search, "--replay", 0)
        for flags in ["--replay", 9], ["--embedding", 16], ["--metrics", folder / "none.jsonl"]:
            errors = call(*search, *flags, code=1).stderr
            assert f"{flags[0]} is given" in errors and "--by policy" in errors, errors
    missing = ["offline", "--data", folder / "none.safetensors", "--steps", 2, "--seeds", 2]
    assert "create it by a run without --seeds" in call(*missing, code=1).stderr


def result(run):
    return json.load(open(run / "result.json"))


def picture(run):
    return (run / "pictures/training.svg").read_text()


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def step(run):
    """Returns the last step of a run whose line in the metrics file is complete."""
    path = run / "metrics.jsonl"
    whole = [line for line in lines_of(path) if line.endswith("\n")] if path.exists() else []
    return json.loads(whole[-1])["step"] if whole else 0


def wait_until(holds, what):
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"waited for a minute without success: {what}")
        time.sleep(0.01)


def rows(run):
    """Returns the lines of a run's metrics file. There is one line per step."""
    return [json.loads(line) for line in lines_of(run / "metrics.jsonl")]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
