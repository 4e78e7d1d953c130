"""Prints the work orders for `muster batch`: orders.py SNIPPETS.py REGION.so, one for every snippet and
number of threads. An order's name is the same for every version of the snippets, so that two results
can be compared."""

import json
import runpy
import sys
from pathlib import Path

snippets, region = sys.argv[1:]
matrix = runpy.run_path(snippets)
here = Path(__file__).resolve().parent
for name in matrix["SNIPPETS"]:
    for threads in matrix["THREADS"]:
        print(json.dumps({
            "id": f"{name}, {threads} thread{'s' if threads > 1 else ''}",
            "cmd": [sys.executable, str(here / "run_snippet.py"), snippets, region, name, str(threads)],
            "cores": threads,
            # Idle threads must not spin: valgrind would count that.
            "env": {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads),
                    "VALGRIND_OPTS": "--instr-atstart=no --fair-sched=yes"},
        }))
