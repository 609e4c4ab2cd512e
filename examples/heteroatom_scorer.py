"""Scores molecules by 0.1 plus the share of heavy atoms that aren't carbon, with Python's standard library
alone. It is the smallest example of a scoring program.

    echo CCO | python3 examples/heteroatom_scorer.py

The program reads one SMILES per line, and writes a number of 0 or more per line, in the same order. Each line
of output is flushed. With a number of milliseconds as argument, the program waits that long for each
molecule, as a slow program would.
"""

import re
import sys
import time

# The pattern matches an atom in brackets, with its element as group 1, or an atom without brackets.
ATOM = re.compile(r"\[(?:\d*)([A-Z][a-z]?|[a-z]{1,2})[^\]]*\]|(Cl|Br|[BCNOFPSI]|[bcnops])")


def score(smiles):
    elements = [(inside or bare).lower() for inside, bare in ATOM.findall(smiles)]
    return 0.1 + sum(element != "c" for element in elements) / len(elements)


def main():
    seconds = float(sys.argv[1]) / 1e3 if len(sys.argv) > 1 else 0.0
    for line in sys.stdin:
        time.sleep(seconds)
        print(score(line.strip()), flush=True)


if __name__ == "__main__":
    main()
