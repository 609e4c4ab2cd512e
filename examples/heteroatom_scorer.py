"""The smallest scorer: 0.1 and the share of heavy atoms that aren't carbon, by Python's standard library
alone.

    echo CCO | python3 examples/heteroatom_scorer.py

One SMILES per line in, one number of 0 or more per line out, in the same order, flushed line by line. With a
number of milliseconds as argument it waits that long at each molecule: a stand-in for a slow program.
"""

import re
import sys
import time

# An atom in brackets with its element, or one without.
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
