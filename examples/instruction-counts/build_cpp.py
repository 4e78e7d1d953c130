"""Makes one program of all C++ cases: `PROGRAM NAME count REPEATS | time SECONDS`, which does what run_python.py does.

    build_cpp.py FOLDER SHARED      the cases of FOLDER/cases.pickle
"""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

from definitions import Case

HEAD = """
#include <ATen/Parallel.h>
{jit}#include <torch/types.h>
#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
"""

# `make` returns the loop: a function that runs the statement so often.
CASE = """
static std::function<void(int64_t)> {name}()
{{
    {setup}
    {model}
    return [=](int64_t number) mutable {{
        for (int64_t i_ = 0; i_ < number; i_++) {{
            {statement}
        }}
    }};
}}
"""

MAIN = """
struct Case {{
    const char *name;
    std::function<void(int64_t)> (*make)();
    int threads;
    int64_t loops;
}};
static const Case cases[] = {{
{rows}
}};

static void count(const Case &chosen, const std::function<void(int64_t)> &run, int repeats)
{{
    for (int i = 0; i < repeats; i++) {{
        CALLGRIND_START_INSTRUMENTATION;
        run(chosen.loops);
        CALLGRIND_STOP_INSTRUMENTATION;
        CALLGRIND_DUMP_STATS;
    }}
}}

static void time(const std::function<void(int64_t)> &run, double seconds)
{{
    const char *separator = "[";
    int64_t size = 1;
    for (double spent = 0; spent < seconds;) {{
        auto start = std::chrono::steady_clock::now();
        run(size);
        double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (took < 0.005) {{
            size *= 10;
            continue;
        }}
        printf("%s%.9g", separator, took / double(size));
        separator = ", ";
        spent += took;
    }}
    puts("]");
}}

int main(int argc, char **argv)
{{
    for (const Case &chosen : cases) {{
        if (argc != 4 || strcmp(chosen.name, argv[1]) != 0)
            continue;
        at::set_num_threads(chosen.threads);
        auto run = chosen.make();
        run(10);
        if (strcmp(argv[2], "count") == 0)
            count(chosen, run, atoi(argv[3]));
        else
            time(run, atof(argv[3]));
        return 0;
    }}
    fprintf(stderr, "no case %s\\n", argc > 1 ? argv[1] : "");
    return 2;
}}
"""


def write_case(case: Case) -> str:
    statement, model = case.code["statement"], ""
    if case.runtime == "TorchScript":
        model = f'auto model = torch::jit::compile(R"script({case.script_source})script");'
        statement = f'auto {case.output} = model->run_method("f", {", ".join(case.arguments)}).toTensor();'
    if case.autograd == "Forward + Backward":
        statement += f"{case.output}.sum().backward();"
    return CASE.format(name=case.name, setup=case.code["setup"], model=model, statement=statement)


def build(cases: list[Case], folder: Path, shared: Path) -> None:
    """Compiles those of C++ with the torch of this interpreter, which takes a minute; nothing if there are none, or if
    another environment with the same torch has put the program into `shared`."""
    import torch

    ours = [case for case in cases if case.language == "C++"]
    if not ours:
        return
    rows = "\n".join(f'    {{ "{case.name}", {case.name}, {case.threads}, {case.loops} }},' for case in ours)
    once = dict.fromkeys(case.code["global"] for case in ours)
    jit = "#include <torch/jit.h>\n" if any(case.runtime == "TorchScript" for case in ours) else ""  # takes long to compile
    text = HEAD.format(jit=jit) + "".join(once) + "".join(map(write_case, ours)) + MAIN.format(rows=rows)
    place = Path(torch.__file__).parent
    hashed = hashlib.md5(f"{text}{place}{torch.__version__}".encode()).hexdigest()[:12]
    program, source = shared / f"cpp-{hashed}", folder / "cases.cpp"
    (folder / "cases").unlink(missing_ok=True)
    (folder / "cases").symlink_to(program)
    if program.exists():
        return
    source.write_text(text)
    subprocess.run(["g++", "-std=c++20", "-O1", f"-I{place}/include", f"-I{place}/include/torch/csrc/api/include",
                    "-o", program, source, f"-L{place}/lib", f"-Wl,-rpath,{place}/lib", "-Wl,--no-as-needed", "-ltorch",
                    "-ltorch_cpu", "-lc10"], check=True)


if __name__ == "__main__":
    with open(Path(sys.argv[1]) / "cases.pickle", "rb") as file:
        build(list(pickle.load(file).values()), Path(sys.argv[1]), Path(sys.argv[2]))
