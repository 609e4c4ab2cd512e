"""Fixtures that several tests use."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def reproduce():
    """Returns a function that runs a task of the Rust program `reproduce`, and returns the program's result
    as read from JSON."""
    import json

    built = os.environ.get("GFN_REPRODUCE")
    places = (
        [built]
        if built
        else [
            str(ROOT / "target" / profile / "examples" / "reproduce")
            for profile in ("ci", "release", "debug")
        ]
    )
    program = next((place for place in places if Path(place).is_file()), None)
    if program is None:
        pytest.fail(
            f"none of {places} is there: cargo build --example reproduce, or name one by GFN_REPRODUCE"
        )

    def run(task, *flags):
        done = subprocess.run(
            [program, task, *map(str, flags), "--threads", "1", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    return run
