#!/usr/bin/env python3
"""Reads the event files of a run by TensorBoard's own reader: python3 scripts/read_tensorboard.py FOLDER [METRICS.jsonl]

Prints each tag with its steps and its last value, and fails unless each tag's steps rise. With a metrics file of the
same run it fails, too, unless every figure of every line is there. Needs `pip install tensorboard`.
"""

import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

PHASES = ["sample", "score", "backward", "update"]


def single(value):
    """A figure in single precision; a metrics file has null for what isn't finite."""
    return math.nan if value is None else struct.unpack("f", struct.pack("f", value))[0]


def expected(path):
    """The figures of a metrics file by tag and step."""
    found = {}
    for line in map(json.loads, open(path, encoding="utf-8")):
        step, seconds = line.pop("step"), line.pop("seconds")
        line |= {f"seconds/{phase}": value for phase, value in zip(PHASES, seconds)}
        found |= {(tag, step): single(value) for tag, value in line.items()}
    return found


def main(folder, metrics=None):
    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    got = {}
    for tag in reader.Tags()["scalars"]:
        events = reader.Scalars(tag)
        steps = [event.step for event in events]
        print(f"{tag:24} {len(steps)} steps, {steps[0]} to {steps[-1]}, last value {events[-1].value:.6g}")
        if any(later <= earlier for earlier, later in zip(steps, steps[1:])):
            sys.exit(f"{tag}: the steps don't rise")
        got |= {(tag, event.step): event.value for event in events}
    if not got:
        sys.exit(f"{folder}: no scalars")
    if metrics:
        wanted = expected(metrics)
        wrong = [key for key in wanted.keys() | got.keys() if repr(wanted.get(key)) != repr(got.get(key))]
        if wrong:
            sys.exit(f"{len(wrong)} figures aren't those of {metrics}, such as {min(wrong)}")
        print(f"all {len(got)} figures are those of {metrics}")


if __name__ == "__main__":
    main(*sys.argv[1:])
