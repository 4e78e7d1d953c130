"""The matrix: what is measured, in the manner of torch.utils.benchmark.Timer(stmt, setup)."""

THREADS = (1, 2)

# name: (setup, statement, how often it runs inside the counted region)
SNIPPETS = {
    "add": ("x = torch.ones(64, 64)", "x + 1", 200),
    "matmul": ("x = torch.ones(32, 32)", "x @ x", 200),
    "relu": ("x = torch.linspace(-1, 1, 4096)", "torch.relu(x)", 200),
    "sum": ("x = torch.ones(128, 128)", "x.sum()", 200),
}
