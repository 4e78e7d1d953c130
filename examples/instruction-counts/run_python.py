"""Runs one Python case: run_python.py CASES.pickle NAME REGION.so count REPEATS | time SECONDS. Prints seconds per
statement as JSON when it measures times; a count is a dump of callgrind."""

import ctypes
import gc
import json
import pickle
import sys
import time

import torch

cases, name, region, mode, amount = sys.argv[1:]
with open(cases, "rb") as file:
    case = pickle.load(file)[name]
torch.set_num_threads(case.threads)
scope = {"torch": torch}
exec(case.code["global"] + case.code["setup"], scope)
statement = case.code["statement"]
if case.runtime == "TorchScript":
    scope["model"] = torch.jit.CompilationUnit(case.script_source).f
    statement = f"{case.output} = model({', '.join(case.arguments)})\n"
if case.autograd == "Forward + Backward":
    statement += f"{case.output}.sum().backward()\n"
exec("def run(number):\n    for _ in range(number):\n" + "".join(f"        {line}\n" for line in statement.splitlines()),
     scope)
run = scope["run"]
run(10)
gc.disable()
if mode == "count":
    library = ctypes.PyDLL(region)
    for _ in range(int(amount)):
        library.region_begin()
        run(case.loops)
        library.region_end()
else:
    times, size, spent = [], 1, 0.0
    while spent < float(amount):
        start = time.perf_counter()
        run(size)
        took = time.perf_counter() - start
        if took < 0.005:
            size *= 10
            continue
        times.append(took / size)
        spent += took
    print(json.dumps(times))
