#!/usr/bin/env python3
"""Checks the packages that will be published, on a clone of the last commit and without libtorch:
scripts/check_packages.py.

A package must have its metadata. It must be packed without unknown warnings, and without files that don't
belong in it. Its documentation must build as on docs.rs, which uses the feature `doc-only`. The build folder
is target/packages, or packages in CARGO_TARGET_DIR. If it is empty, the build takes some minutes of processor
time. The source distribution of the Python package must have all files that its build reads; pip fetches
maturin for this.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ["description", "license", "readme", "keywords", "categories", "rust_version"]
BELONGS = re.compile(
    r"Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json|README\.md|CHANGELOG\.md|CONTRIBUTING\.md"
    r"|LICENSE-(MIT|APACHE)|build\.rs"
    r"|src/.+\.(rs|txt)|shim/.+\.(cpp|h)|benches/.+\.rs|tests/.+\.rs|tests/golden/.+|data/.+"
)
# The size of the largest package that crates.io accepts, in bytes.
LARGEST = 10_000_000
# This warning of cargo is expected until the project has the address of a repository.
KNOWN = "manifest has no documentation, homepage or repository"


def cargo(clone, environment, *arguments):
    command = ["cargo", *arguments]
    done = subprocess.run(
        command, cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stderr[-4000:]}")
    return done


def check_source_distribution(clone, environment):
    """Builds the source distribution of the Python package, and reads the packages that it contains. Returns
    the files that are missing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / "bin"
        pip = [programs / "pip", "install", "--quiet", "--disable-pip-version-check", "maturin>=1.9,<2"]
        subprocess.run(pip, check=True)
        build = [programs / "maturin", "sdist", "--out", folder]
        built = subprocess.run(build, cwd=pathlib.Path(clone) / "python", stderr=subprocess.PIPE, text=True)
        if built.returncode != 0:
            sys.exit(f"maturin sdist failed with exit code {built.returncode}:\n{built.stderr[-4000:]}")
        (archive,) = folder.glob("*.tar.gz")
        print(f"{archive.name}: {archive.stat().st_size / 1e3:,.0f} kB")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        unpacked = folder / archive.name[: -len(".tar.gz")]
        # Cargo reads the manifests of all packages of the workspace, and the files that these name.
        cargo(unpacked, environment, "metadata", "--format-version", "1")
        needed = ["build_backend.py", "python/shim/torch_sys.h", "python/shim/tensors.cpp", "Cargo.lock",
            "package/gfn_rs/__init__.py", "package/gfn_rs/_gfn.pyi", "package/gfn_rs/py.typed"]
        return [f"{archive.name} lacks {name}" for name in needed if not (unpacked / name).is_file()]


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "packages"
    environment = {name: value for name, value in os.environ.items() if "LIBTORCH" not in name}
    environment["CARGO_TARGET_DIR"] = str(target)
    wrong = []
    with tempfile.TemporaryDirectory() as clone:
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        metadata = json.loads(
            cargo(clone, environment, "metadata", "--no-deps", "--format-version", "1").stdout
        )
        packages = [package for package in metadata["packages"] if package["publish"] != []]
        names = [package["name"] for package in packages]
        for package in packages:
            name = package["name"]
            wrong += [f"{name}: no {key} in Cargo.toml" for key in NEEDED if not package[key]]
            docs = ((package["metadata"] or {}).get("docs") or {}).get("rs") or {}
            if docs.get("features") != ["doc-only"]:
                wrong.append(f"{name}: [package.metadata.docs.rs] must have features = [\"doc-only\"]")
            listed = cargo(clone, environment, "package", "--list", "-p", name).stdout.split("\n")
            wrong += [
                f"the package {name} contains {file}, which doesn't belong to it"
                for file in listed
                if file and not BELONGS.fullmatch(file)
            ]
            wrong += [
                f"the package {name} doesn't contain {file}"
                for file in ("src/lib.rs", "README.md", "LICENSE-MIT", "LICENSE-APACHE")
                if file not in listed
            ]

        # All packages are packed by one command, because they depend on each other and none is published yet.
        chosen = [argument for name in names for argument in ("-p", name)]
        packed = cargo(clone, environment, "package", "--no-verify", *chosen)
        warnings = re.findall(r"^warning: (.+)$", packed.stderr, re.M)
        wrong += [f"cargo package warns: {warning}" for warning in warnings if not warning.startswith(KNOWN)]
        for package in packages:
            size = (target / "package" / f"{package['name']}-{package['version']}.crate").stat().st_size
            print(f"{package['name']}: {size / 1e3:,.0f} kB packed", flush=True)
            if size > LARGEST:
                wrong.append(f"{package['name']} has {size:,} bytes packed, expected at most {LARGEST:,}")

        wrong += check_source_distribution(clone, environment)

        # A build of documentation runs little of the code that it compiles: only procedural macros and build
        # scripts, and these only briefly. So optimising the dependencies gains nothing.
        quick = ["--config", 'profile.dev.package."*".opt-level=0']
        documented = {**environment, "RUSTDOCFLAGS": "-Dwarnings"}
        for name in names:
            began = time.monotonic()
            cargo(clone, documented, "doc", "--no-deps", "-p", name, "--features", "doc-only", *quick)
            print(
                f"{name}: documentation built without libtorch, {time.monotonic() - began:.0f} s", flush=True
            )
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(names)} packages could be published.")


main()
