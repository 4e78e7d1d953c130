window.BENCHMARK_DATA = {
  "lastUpdate": 1700000301234,
  "repoUrl": "https://example.org/p",
  "entries": {
    "C++ Benchmark": [
      {
        "commit": {
          "author": {
            "email": "n@example.org",
            "name": "n",
            "username": "n"
          },
          "committer": {
            "email": "n@example.org",
            "name": "n",
            "username": "n"
          },
          "distinct": true,
          "id": "1111111111111111111111111111111111111111",
          "message": "one\n\nand `more` of \"it\"",
          "timestamp": "2023-11-14T22:13:20Z",
          "tree_id": "3333333333333333333333333333333333333333",
          "url": "https://example.org/p/commit/1111111111111111111111111111111111111111"
        },
        "date": 1700000000123,
        "tool": "googlecpp",
        "benches": [
          {
            "name": "fib<int, 10>/0",
            "value": 214.98000000000002,
            "unit": "ns/iter",
            "extra": "iterations: 3070566\ncpu: 213.65 ns\nthreads: 1"
          }
        ]
      },
      {
        "commit": {
          "author": {
            "email": "n@example.org",
            "name": "n"
          },
          "committer": {
            "email": "noreply@example.org",
            "name": "Action"
          },
          "id": "2222222222222222222222222222222222222222",
          "message": "two",
          "timestamp": "2023-11-14T23:18:20+01:00",
          "tree_id": "4444444444444444444444444444444444444444"
        },
        "date": 1700000300123,
        "tool": "cargo",
        "benches": [
          {
            "name": "fib<int, 10>/0",
            "value": 220,
            "range": "± 3",
            "unit": "ns/iter"
          }
        ]
      }
    ],
    "Rates": [
      {
        "commit": {
          "id": "2222222222222222222222222222222222222222",
          "timestamp": "2023-11-14T22:18:20Z"
        },
        "date": 1700000300123,
        "tool": "pytest",
        "benches": [
          {
            "name": "fib<int, 10>/0",
            "value": 5120.512345678901,
            "unit": "iter/sec",
            "range": "stddev: 0.00012345678901234567",
            "extra": "mean: 195.29299999999998 usec\nrounds: 1751"
          }
        ]
      }
    ]
  }
}