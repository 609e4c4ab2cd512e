#!/usr/bin/env python3
"""How many mutants of the core its tests catch: scripts/mutants.py FOLDER [--share N] [--minutes N] [PATH...].

A copy of the checkout is made in FOLDER, with all mutants of the files of PATH (in `src`; those of ROOMS by default) in it, which one
build holds (tests/mutants); what doesn't compile is left out. Each test runs once by itself, and what it reaches is noted. Then each
mutant (with `--share N` one of N) meets the tests that reach it, those first that reach little else, until one fails or hangs. FOLDER/mutants.jsonl has a
line for each; a later call goes on there, with the same sources (give another FOLDER for others). Needs `make setup`, and CARGO_TARGET_DIR if compiled dependencies are to be used again.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ["distribution", "graph/action", "graph/symmetry", "objective", "rollout", "replay", "optim", "metrics/exact"]
BUILD = ["cargo", "test", "--profile", "ci", "--no-run", "--message-format=json"]
# Tests of the text of the sources, which a copy of them can't pass, and those that need more than the core.
NOT_OF_CODE = re.compile(r"^(style|rooms|example_results|run_folders|config_file|dag_from_csv|defaults|interrupted|leaks|every_setting)::")
# Seconds that a test may take in the first place, beside ten times its own time with a mutant.
LONGEST, BESIDE = 60, 10


def run(command, **settings):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings)


def files_of(paths):
    found = []
    for path in paths:
        at = ROOT / "src" / path
        found += sorted(at.rglob("*.rs")) if at.is_dir() else [at]
    return [str(path.relative_to(ROOT / "src")) for path in found]


def written(copy, generator, files, skipped):
    """Writes the mutants into a fresh copy of the core; a list of them."""
    run(["rm", "-rf", copy / "src"], check=True)
    run(["cp", "-r", ROOT / "src", copy / "src"], check=True)
    (copy / "skipped").write_text("\n".join(map(str, sorted(skipped))))
    made = run([generator, copy / "src", copy / "skipped", *files])
    if made.returncode:
        sys.exit(made.stdout)
    return [json.loads(line) for line in made.stdout.splitlines()]


def wrong_in(output, copy):
    """The mutants that the compiler names in its errors."""
    found = set()
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line).get("message") or {}
        if not isinstance(message, dict) or message.get("level") != "error":
            continue
        for span in message["spans"]:
            path = copy / span["file_name"]
            if not path.is_file():
                continue
            lines = path.read_text().split("\n")[: span["line_end"]]
            # The arm that it is in begins at the last mark before.
            for number in range(len(lines) - 1, -1, -1):
                mark = re.match(r"/\*mutant (\d+)\*/", lines[number])
                if mark:
                    found.add(int(mark[1]))
                    break
    return found


def built(copy, generator, files):
    """Builds the tests, leaving out what doesn't compile; mutants and programs."""
    kept = copy / "skipped"
    skipped = {int(word) for word in kept.read_text().split()} if kept.exists() else set()
    while True:
        mutants = written(copy, generator, files, skipped)
        # The library as it is, and with its own tests.
        checked = run(["cargo", "check", "--profile", "ci", "-p", "gfn", "--lib", "--tests", "--message-format=json"], cwd=copy)
        more = wrong_in(checked.stdout, copy) - skipped
        print(f"{len(mutants)} mutants, {len(more)} of them don't compile", file=sys.stderr)
        if checked.returncode == 0:
            break
        if not more:
            sys.exit(checked.stdout[-3000:])
        skipped |= more
    made = run([*BUILD, "-p", "gfn", "--lib", "-p", "gfn-tests", "--tests"], cwd=copy)
    if made.returncode:
        sys.exit(made.stdout[-3000:])
    messages = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]
    programs = [message["executable"] for message in messages if message.get("executable") and message.get("profile", {}).get("test")]
    return mutants, programs


def tests_of(programs, copy, seconds):
    """Each test's time, and the places that it reaches."""
    kept = copy / "tests.json"
    if kept.exists():
        return json.loads(kept.read_text())
    out, seen = [], copy / "seen"
    for program in programs:
        names = [line[: -len(": test")] for line in run([program, "--list"], cwd=copy).stdout.splitlines() if line.endswith(": test")]
        for name in names:
            if NOT_OF_CODE.match(name):
                continue
            seen.unlink(missing_ok=True)
            began = time.monotonic()
            try:
                ended = run([program, "--exact", name], cwd=copy, env={**os.environ, "GFN_MUTANTS_SEEN": str(seen)}, timeout=seconds)
            except subprocess.TimeoutExpired:
                print(f"{name}: longer than {seconds} s, left out", file=sys.stderr)
                continue
            if ended.returncode:
                print(f"{name}: fails without a mutant, left out", file=sys.stderr)
                continue
            reached = sorted({int(line) for line in seen.read_text().split()}) if seen.exists() else []
            out.append({"program": program, "name": name, "seconds": time.monotonic() - began, "reached": reached})
    kept.write_text(json.dumps(out))
    return out


def met(mutant, tests, copy, most):
    """The test that a mutant fails, if there is one: several at once, those first that reach little, of so many seconds in all."""
    size, at, reach = 4, 0, len(tests)
    while len(tests) > 1 and sum(test["seconds"] for test in tests) > most:
        tests = tests[:-1]
    while at < len(tests):
        group = list(itertools.takewhile(lambda test: test["program"] == tests[at]["program"], tests[at : at + size]))
        seconds = BESIDE + 10 * sum(test["seconds"] for test in group)
        command = [group[0]["program"], "--test-threads=1", "--exact", *(test["name"] for test in group)]
        try:
            ended = run(command, cwd=copy, env={**os.environ, "GFN_MUTANT": str(mutant["id"])}, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {"caught": True, "by": f"{group[0]['name']} or one behind it hangs"}
        if ended.returncode:
            failed = re.search(r"^test (\S+) \.\.\. FAILED", ended.stdout, re.M)
            return {"caught": True, "by": failed[1] if failed else "the process ended"}
        at, size = at + len(group), min(2 * size, 16)
    return {"caught": False, "tests": len(tests), "reach": reach}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", default=ROOMS)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seconds", type=float, default=60, help="of tests that a mutant meets at most")
    given = parser.parse_args()
    copy, began = given.folder.resolve(), time.monotonic()
    copy.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LIBTORCH", str(ROOT / ".libtorch/torch"))
    os.environ.setdefault("LD_LIBRARY_PATH", str(ROOT / ".libtorch/torch/lib"))
    kept = copy / "built.json"
    if not kept.exists():
        archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", copy], input=archive, check=True)
        subprocess.run(["cargo", "build", "--profile", "ci", "-p", "gfn-mutants"], cwd=ROOT, check=True)
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        kept.write_text(json.dumps(built(copy, target / "ci/gfn-mutants", files_of(given.paths))))
    mutants, programs = json.loads(kept.read_text())
    tests = tests_of(programs, copy, LONGEST)
    of_place = collections.defaultdict(list)
    # A test that reaches little is of what it reaches.
    for test in sorted(tests, key=lambda test: (test["seconds"] > 2, len(test["reached"]))):
        for place in test["reached"]:
            of_place[place].append(test)
    store = copy / "mutants.jsonl"
    done = {json.loads(line)["id"] for line in store.read_text().splitlines()} if store.exists() else set()
    with store.open("a") as out:
        # Neighbours are of one place: each takes its turn in a fixed but mixed order.
        for mutant in sorted(mutants, key=lambda mutant: mutant["id"] * 2654435761 % 2**32):
            if (mutant["id"] * 2654435761 % 2**32) * given.share >> 32 or mutant["id"] in done:
                continue
            if time.monotonic() - began > 60 * given.minutes:
                break
            out.write(json.dumps({**mutant, **met(mutant, of_place[mutant["first"]], copy, given.seconds)}) + "\n")
            out.flush()
    results = [json.loads(line) for line in store.read_text().splitlines()]
    survivors = [result for result in results if not result["caught"]]
    for result in sorted(survivors, key=lambda result: result["id"]):
        print(f"src/{result['file']}:{result['line']} {result['function']}: {result['what']} ({result['tests']} of {result['reach']} tests that reach it were run)")
    caught = len(results) - len(survivors)
    print(f"{caught} of {len(results)} mutants caught, {100 * caught / max(len(results), 1):.1f} %; {len(mutants)} in all")


if __name__ == "__main__":
    main()
