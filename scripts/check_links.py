#!/usr/bin/env python3
"""Checks the links in all tracked Markdown files: scripts/check_links.py. Addresses on the web aren't
fetched.

A link to a file must lead to a tracked file, or to a folder with tracked files. A link to a heading must name
a heading of the file. The guide is a separate book. Its chapters may link only to other chapters, and
SUMMARY.md must list each chapter once.
"""

import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/guide/src"
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.M)


def prose(path):
    """Returns the text of a Markdown file without its code blocks and inline code."""
    text = re.sub(r"^(```+|~~~+).*?^\1[^\n]*$", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(path):
    """Returns the anchors of a file's headings. Anchors are formed as on GitHub and in mdBook: in lower case,
    with hyphens between words, and with -1 after a heading that is repeated."""
    found, counts = set(), {}
    text = re.sub(r"^(```+|~~~+).*?^\1[^\n]*$", "", path.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{anchor}-{counts[anchor]}" if anchor in counts else anchor)
        counts[anchor] = counts.get(anchor, 0) + 1
    return found


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    files = {ROOT / name for name in listed.split("\0") if name}
    return files, {folder for file in files for folder in file.parents}


def find_problem(path, link, files, folders):
    address = urllib.parse.urlsplit(link)
    if address.scheme:
        return (
            None if address.scheme in ("http", "https", "mailto") else f"an unknown scheme {address.scheme}"
        )
    target = path
    if address.path:
        name = urllib.parse.unquote(address.path)
        target = (ROOT / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve()
    if target not in files and target not in folders:
        return "no such tracked file"
    if BOOK in path.parents and BOOK not in target.parents:
        return "the target is outside of the book"
    if address.fragment and (target.suffix != ".md" or address.fragment not in anchors(target)):
        return "no such heading"
    return None


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    files, folders = tracked_files()
    pages, links, wrong = sorted(file for file in files if file.suffix == ".md"), 0, []
    for path in pages:
        for match in LINK.finditer(prose(path)):
            links += 1
            link = match[1] or match[2]
            problem = find_problem(path, link, files, folders)
            if problem:
                wrong.append(f"{path.relative_to(ROOT)} links to {link}: {problem}")
    listed = [match[1] for match in LINK.finditer((BOOK / "SUMMARY.md").read_text())]
    chapters = [path.name for path in pages if path.parent == BOOK and path.name != "SUMMARY.md"]
    wrong += [
        f"SUMMARY.md lists {name} {listed.count(name)} times, expected once"
        for name in chapters
        if listed.count(name) != 1
    ]
    if wrong:
        sys.exit("\n".join(wrong))
    print(
        f"{links} links of {len(pages)} Markdown files lead somewhere; {len(chapters)} chapters are in the "
        f"book."
    )


main()
