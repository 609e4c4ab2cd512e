"""Messages of the library are put into Python's words by a table of phrases (`python/src/wording.rs`). A
phrase that no message contains any more would silently stop being replaced, so each phrase must occur in the
sources."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "python" / "src" / "wording.rs"
TEXT = r'"((?:[^"\\]|\\.|\\\n)*)"'
PAIR = re.compile(rf"\(\s*{TEXT},\s*{TEXT},?\s*\)")


def join_lines(text):
    """Joins the lines of string literals that a backslash at the end of a line continues."""
    return re.sub(r"\\\n\s*", "", text)


def missing(phrases, sources):
    return [phrase for phrase in phrases if phrase not in sources]


def test_every_phrase_occurs_in_a_message():
    table = TABLE.read_text()
    phrases = [join_lines(pair[0]) for pair in PAIR.findall(table[table.index("const PHRASES") :])]
    assert len(phrases) > 40
    files = [
        path for folder in ("src", "gym", "extras", "python/src") for path in (ROOT / folder).rglob("*.rs")
    ]
    sources = "".join(
        join_lines(path.read_text())
        for path in files
        if path != TABLE and "tests" not in path.relative_to(ROOT).parts
    )
    assert missing(phrases, sources) == []
    assert missing(["a phrase of no message"], sources) == ["a phrase of no message"]
