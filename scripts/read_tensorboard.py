#!/usr/bin/env python3
"""Reads the event files of a run with TensorBoard's own reader: python3 scripts/read_tensorboard.py FOLDER
[METRICS.jsonl]

The script prints each tag with its number of steps and its last value. It fails if the steps of a tag don't
rise. If the metrics file of the same run is given, it also fails if a number in that file is missing in the
event files or differs. It needs `pip install tensorboard`.
"""

import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def to_single(value):
    """Rounds a number of the metrics file to single precision, in which TensorBoard stores numbers. null
    becomes NaN."""
    return math.nan if value is None else struct.unpack("f", struct.pack("f", value))[0]


def figures(path):
    """Returns the numbers of a metrics file, as a dictionary from tags to dictionaries from steps to
    numbers."""
    found = {}
    for line in map(json.loads, open(path, encoding="utf-8")):
        step, seconds = line.pop("step"), line.pop("seconds")
        line |= {f"seconds/{phase}": value for phase, value in seconds.items()}
        found |= {(tag, step): to_single(value) for tag, value in line.items()}
    return found


def main(folder, metrics=None):
    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    read = {}
    for tag in reader.Tags()["scalars"]:
        events = reader.Scalars(tag)
        steps = [event.step for event in events]
        print(f"{tag:24} {len(steps)} steps, {steps[0]} to {steps[-1]}, last value {events[-1].value:.6g}")
        if any(later <= earlier for earlier, later in zip(steps, steps[1:])):
            sys.exit(f"{tag}: the steps don't increase")
        read |= {(tag, event.step): event.value for event in events}
    if not read:
        sys.exit(f"{folder} has no scalars; give a folder that --tensorboard wrote")
    if metrics:
        in_file = figures(metrics)
        wrong = [key for key in in_file.keys() | read.keys() if repr(in_file.get(key)) != repr(read.get(key))]
        if wrong:
            sys.exit(f"{len(wrong)} figures differ from those in {metrics}, for example {min(wrong)}")
        print(f"all {len(read)} figures are those of {metrics}")


if __name__ == "__main__":
    main(*sys.argv[1:])
