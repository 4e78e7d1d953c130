"""Programs that launch workers with muster.launcher."""

import textwrap

# What most of them begin with.
HEAD = """
import json, os, sys
from muster.launcher import *

def config(nproc=2, **more):
    return LaunchConfig(**{**dict(min_nodes=1, max_nodes=1, nproc_per_node=nproc, run_id="job", max_restarts=0), **more})

def show(value):
    print(json.dumps(value))
"""


def launching_program(entries, main):
    """Functions for workers, and what runs only in the launcher."""
    main = textwrap.indent(textwrap.dedent(main), "    ")
    return f"{HEAD}\n{textwrap.dedent(entries)}\nif __name__ == '__main__':\n{main}"
