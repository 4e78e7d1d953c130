window.BENCHMARK_DATA = {
  "lastUpdate": 1700000300000,
  "repoUrl": "https://example.org/p",
  "entries": {
    "C++ Benchmark": [
      {
        "commit": {"author": {"name": "n"}, "id": "1111111111111111111111111111111111111111", "message": "one",
                   "timestamp": "2023-11-14T22:13:20Z", "url": "https://example.org/p/commit/1111111111111111111111111111111111111111"},
        "date": 1700000000000,
        "tool": "googlecpp",
        "benches": [{"name": "fib/10", "value": 214.98, "unit": "ns/iter", "extra": "iterations: 3070566\ncpu: 213.65 ns\nthreads: 1"}]
      },
      {
        "commit": {"author": {"name": "n"}, "id": "2222222222222222222222222222222222222222", "message": "two",
                   "timestamp": "2023-11-14T23:18:20+01:00", "url": "https://example.org/p/commit/2222222222222222222222222222222222222222"},
        "date": 1700000300000,
        "tool": "googlecpp",
        "benches": [{"name": "fib/10", "value": 220.5, "unit": "ns/iter", "range": "± 3"}]
      }
    ],
    "Rates": [
      {
        "commit": {"id": "2222222222222222222222222222222222222222", "timestamp": "2023-11-14T22:18:20Z"},
        "date": 1700000300000,
        "tool": "customBiggerIsBetter",
        "benches": [{"name": "requests", "value": 5120.5, "unit": "req/s"}]
      }
    ]
  }
}
