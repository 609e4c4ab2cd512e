#!/usr/bin/env python3
"""Builds and runs the README's example in a new crate: scripts/check_readme.py. Run `make setup` first.

The section "Your own crate" of docs/setup.md lists the files of a crate. The script writes them to an empty
folder, replaces /path/to/gfn by the path of this checkout, and uses the README's example as src/main.rs. The
program is run twice: by cargo, and directly, which works only if the run path is set.

The build folder is CARGO_TARGET_DIR or target/readme. The first build of libtorch's bindings takes minutes.
With `--shared` the crate uses the workspace's profile `ci`, Cargo.lock and target folder, and so reuses the
build of `.ci/run`.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def section(page, title):
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", (ROOT / page).read_text(), re.M | re.S)
    if not found:
        sys.exit(f"{page} has no section `{title}`")
    return found[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def expect_one(found, what):
    if len(found) != 1:
        sys.exit(f"{len(found)} blocks with {what} were found, expected one block")
    return found[0]


def check_packages(manifest):
    """Checks the paths of the optional packages in a manifest. Cargo doesn't check these paths, because they
    are in comments."""
    lines = re.findall(r'^# (gfn-\w+) = \{ path = "/path/to/gfn/([\w/]+)" \}$', manifest, re.M)
    if not lines:
        sys.exit(
            "docs/setup.md: the block of Cargo.toml has no commented lines for the optional packages, "
            "expected at least one line"
        )
    for name, path in lines:
        if f'name = "{name}"' not in (ROOT / path / "Cargo.toml").read_text():
            sys.exit(f"docs/setup.md: {path} isn't the package {name}")


def files():
    text = section("docs/setup.md", "Your own crate")
    toml = blocks(text, "toml")
    package = '[package]\nname = "own"\nversion = "0.1.0"\nedition = "2024"\n\n'
    return {
        "Cargo.toml": package
        + expect_one([block for block in toml if block.startswith("[dependencies]")], "dependencies"),
        ".cargo/config.toml": expect_one(
            [block for block in toml if block.startswith("[env]")], "environment"
        ),
        "build.rs": expect_one(blocks(text, "rust"), "a build script"),
        "src/main.rs": expect_one(blocks(section("README.md", "Example"), "rust"), "an example"),
    }


def main():
    shared = sys.argv[1:] == ["--shared"]
    if sys.argv[1:] and not shared:
        sys.exit(__doc__)
    target = pathlib.Path(
        os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / ("" if shared else "readme"))
    ).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        written = files()
        check_packages(written["Cargo.toml"])
        for name, text in written.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.replace("/path/to/gfn", str(ROOT)))
        if shared:
            shutil.copy(ROOT / "Cargo.lock", folder)
            profiles = re.findall(
                r"^\[profile\..*?(?=^\[|\Z)", (ROOT / "Cargo.toml").read_text(), re.M | re.S
            )
            # The crate's Cargo.toml, which is from docs/setup.md, may define some of the workspace's profiles
            # already. These aren't added, because a profile must not be defined twice.
            profiles = [
                profile for profile in profiles if profile.split("\n")[0] not in written["Cargo.toml"]
            ]
            with open(folder / "Cargo.toml", "a") as manifest:
                manifest.write("\n" + "".join(profiles))
                # gfn has the same settings as in the workspace, so that its build there is reused.
                manifest.write(
                    "\n[profile.ci.package.gfn]\nopt-level = 1\n\n[profile.ci.package.own]\nopt-level = 0\n"
                )
        environment = dict(os.environ, CARGO_TARGET_DIR=str(target))
        subprocess.run(
            ["cargo", "run", "--profile", "ci" if shared else "dev"], cwd=folder, env=environment, check=True
        )
        # The program is run without cargo, and without environment variables that name libtorch.
        environment = {
            name: value
            for name, value in os.environ.items()
            if "LIBTORCH" not in name and name != "LD_LIBRARY_PATH"
        }
        subprocess.run(
            [target / ("ci" if shared else "debug") / "own"], cwd=folder, env=environment, check=True
        )
    print("The README's example builds and runs in a crate of its own.")


main()
