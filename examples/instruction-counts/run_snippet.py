"""Runs one snippet: run_snippet.py SNIPPETS.py REGION.so NAME THREADS. Only the repeated statement is
counted; importing torch, setting up and warming up are not."""

import ctypes
import gc
import runpy
import sys

import torch

snippets, region, name, threads = sys.argv[1:]
setup, statement, number = runpy.run_path(snippets)["SNIPPETS"][name]
torch.set_num_threads(int(threads))
scope = {"torch": torch}
exec(setup, scope)
exec(f"def run(number):\n    for _ in range(number):\n        {statement}", scope)
region = ctypes.PyDLL(region)
scope["run"](20)
gc.disable()
region.region_begin()
scope["run"](number)
region.region_end()
