"""The statistics of `compare` against SciPy, on thousands of random samples."""

import itertools
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tree import helper

ORACLE = helper("stats_oracle")


def as_line(op, x, a, b):
    return " ".join([op, repr(x), str(len(a)), str(len(b)), *(f"{float(v)!r}".removesuffix(".0") for v in [*a, *b])])


def ask(questions):
    """Sends (op, x, a, b) tuples to the C code in one go; a list of numbers comes back for each."""
    lines = [as_line(*question) + "\n" for question in questions]
    done = subprocess.run([ORACLE], input="".join(lines), text=True, capture_output=True, check=True)
    answers = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


def close(ours, theirs, rel=1e-10):
    return ours == pytest.approx(theirs, rel=rel, abs=1e-14, nan_ok=True)


def sample(rng, n, ties):
    values = rng.lognormal(mean=rng.normal(), sigma=rng.uniform(0.01, 1), size=n)
    return np.round(values, 1) + 0.1 if ties else values


def test_descriptions_agree_with_scipy():
    rng = np.random.default_rng(1)
    questions = [("describe", rng.uniform(), sample(rng, rng.integers(1, 150), rng.random() < 0.3), [])
                 for _ in range(1000)]
    for (_, q, a, _), (mean, median, quantile, mad, stddev) in zip(questions, ask(questions)):
        assert close(mean, np.mean(a))
        assert close(median, np.median(a))
        assert close(quantile, np.quantile(a, q))
        assert close(mad, stats.median_abs_deviation(a))
        assert close(stddev, np.std(a, ddof=1) if len(a) > 1 else 0.0)


def test_normal_distribution_agrees_with_scipy():
    points = [*np.linspace(1e-4, 1 - 1e-4, 999), 1e-12, 1e-9, 1 - 1e-9]
    for p, (quantile, tail) in zip(points, ask([("normal", float(p), [10 * p - 5], []) for p in points])):
        assert close(quantile, stats.norm.ppf(p), rel=1e-9)
        assert close(tail, stats.norm.sf(10 * p - 5))


def test_median_interval_agrees_with_scipy():
    rng = np.random.default_rng(2)
    questions = [("interval", float(rng.choice([0.9, 0.95, 0.99])), sample(rng, rng.integers(3, 120), False), [])
                 for _ in range(1000)]
    for (_, confidence, a, _), (low, high) in zip(questions, ask(questions)):
        theirs = stats.quantile_test(a, q=0.0, p=0.5).confidence_interval(confidence)
        assert close(low, theirs.low) and close(high, theirs.high)


@pytest.mark.parametrize("ties", [False, True])
def test_signed_rank_agrees_with_scipy(ties):
    rng = np.random.default_rng(3)
    questions = []
    for _ in range(1000 if not ties else 300):
        n = rng.integers(1, 51 if not ties else 12)
        d = rng.normal(rng.normal(scale=0.3), 1, n)
        questions.append(("signed", 0.0, np.round(d, 1) + 0.05 if ties else d, []))
    for (_, _, d, _), (statistic, p, exact) in zip(questions, ask(questions)):
        assert exact
        if not ties:
            theirs = stats.wilcoxon(d, method="exact")
            assert min(statistic, len(d) * (len(d) + 1) / 2 - statistic) == theirs.statistic
            assert close(p, theirs.pvalue)
            continue
        # SciPy's exact method ignores ties; all sign patterns of the tied ranks do not.
        ranks = stats.rankdata(np.abs(d))
        patterns = (np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1
        sums = patterns @ ranks
        assert statistic == ranks[d > 0].sum()
        assert close(p, min(1, 2 * min((sums <= statistic).mean(), (sums >= statistic).mean())))


def test_signed_rank_leaves_zeros_out():
    (_, p, _), (_, all_zero, _) = ask([("signed", 0.0, [0, 0, 1, 2, 3, 4, 5, 6], []), ("signed", 0.0, [0, 0], [])])
    assert close(p, 2 / 2**6) and all_zero == 1


def test_signed_rank_of_large_samples_agrees_with_scipys_approximation():
    rng = np.random.default_rng(4)
    questions = [("signed", 0.0, np.round(rng.normal(0.05, 1, rng.integers(60, 200)), 2) + 0.005, [])
                 for _ in range(300)]
    for (_, _, d, _), (_, p, exact) in zip(questions, ask(questions)):
        assert not exact
        assert close(p, stats.wilcoxon(d, method="approx", correction=True).pvalue, rel=1e-9)


def test_rank_sum_agrees_with_scipy():
    rng = np.random.default_rng(5)
    questions = [("ranksum", 0.0, sample(rng, rng.integers(1, 31), False), sample(rng, rng.integers(1, 31), False))
                 for _ in range(1500)]
    for (_, _, a, b), (u, p, exact) in zip(questions, ask(questions)):
        theirs = stats.mannwhitneyu(a, b, method="exact")
        assert exact and u == theirs.statistic
        assert close(p, theirs.pvalue)


def test_rank_sum_with_ties_is_the_exact_permutation_distribution():
    # SciPy's exact method refuses ties: enumerate every split of its own tied ranks instead.
    rng = np.random.default_rng(6)
    questions = [("ranksum", 0.0, rng.integers(0, 6, rng.integers(1, 8)), rng.integers(1, 7, rng.integers(2, 8)))
                 for _ in range(500)]
    for (_, _, a, b), (u, p, exact) in zip(questions, ask(questions)):
        ranks = stats.rankdata([*a, *b])
        sums = np.array([sum(chosen) for chosen in itertools.combinations(ranks, len(a))])
        seen = ranks[: len(a)].sum()
        assert exact and u == stats.mannwhitneyu(a, b, method="asymptotic").statistic
        assert close(p, min(1, 2 * min((sums <= seen + 1e-9).mean(), (sums >= seen - 1e-9).mean())))


def test_rank_sum_of_large_samples_agrees_with_scipys_approximation():
    rng = np.random.default_rng(7)
    questions = [("ranksum", 0.0, sample(rng, rng.integers(60, 150), rng.random() < 0.5),
                  sample(rng, rng.integers(60, 150), rng.random() < 0.5)) for _ in range(500)]
    for (_, _, a, b), (u, p, exact) in zip(questions, ask(questions)):
        theirs = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=True)
        assert not exact and u == theirs.statistic
        assert close(p, theirs.pvalue, rel=1e-9)


def test_benjamini_hochberg_agrees_with_scipy():
    rng = np.random.default_rng(8)
    questions = [("bh", 0.0, rng.beta(0.5, 1, rng.integers(1, 300)), []) for _ in range(1000)]
    for (_, _, p, _), q in zip(questions, ask(questions)):
        assert close(q, list(stats.false_discovery_control(p, method="bh")))


def hodges_lehmann(values, confidence, reject):
    """An independent writing from all pairs; `reject(k)` is the chance that the statistic is below k."""
    values = np.sort(values)
    outside = 0
    while outside < len(values) // 2 and reject(outside + 1) <= (1 - confidence) / 2:
        outside += 1
    low, high = (values[outside - 1], values[-outside]) if outside else (-math.inf, math.inf)
    return [math.exp(np.median(values)), math.exp(low), math.exp(high)]


def test_unpaired_ratio_is_the_hodges_lehmann_estimate_with_the_interval_of_mann_whitney():
    rng = np.random.default_rng(9)
    questions = [("ratio", float(rng.choice([0.9, 0.95, 0.99])), sample(rng, rng.integers(2, 9), rng.random() < 0.3),
                  sample(rng, rng.integers(2, 9), rng.random() < 0.3)) for _ in range(300)]
    for (_, confidence, a, b), answer in zip(questions, ask(questions)):
        differences = np.subtract.outer(np.log(b), np.log(a)).ravel()
        m, n = len(a), len(b)
        ranks = [sum(chosen) - m * (m - 1) // 2 for chosen in itertools.combinations(range(m + n), m)]
        assert close(answer, hodges_lehmann(differences, confidence, lambda k: np.mean(np.array(ranks) < k)))


def test_paired_ratio_is_the_hodges_lehmann_estimate_with_the_interval_of_wilcoxon():
    rng = np.random.default_rng(10)
    sizes = range(1, 15)
    sums = {n: np.array([sum(s) for s in itertools.product(*[(0, i + 1) for i in range(n)])]) for n in sizes}
    questions = [("paired", float(rng.choice([0.9, 0.95, 0.99])), sample(rng, n, False), sample(rng, n, False))
                 for n in sizes for _ in range(20)]
    for (_, confidence, a, b), answer in zip(questions, ask(questions)):
        logs = np.log(b / a)
        n = len(logs)
        averages = [(logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n)]
        assert close(answer, hodges_lehmann(averages, confidence, lambda k: np.mean(sums[n] < k)))


def test_intervals_of_large_samples_end_where_the_test_begins_to_reject():
    rng = np.random.default_rng(12)
    questions = [(op, 0.95, a, 1.1 * b) for op in ("ratio", "paired") for n in (60, 150, 400)
                 for a, b in [(sample(rng, n, False), sample(rng, n, False)) for _ in range(10)]]
    for (op, _, a, b), (_, low, high) in zip(questions, ask(questions)):
        def p(factor):
            if op == "ratio":
                return stats.mannwhitneyu(a * factor, b, method="asymptotic").pvalue
            return stats.wilcoxon(np.log(b / a) - math.log(factor), correction=True, method="asymptotic").pvalue
        for bound, inward in ((low, 1 + 1e-9), (high, 1 - 1e-9)):
            assert p(bound * inward) > 0.05 > p(bound / inward ** 1e6)


@pytest.mark.parametrize("n", [5, 10, 20, 41])
@pytest.mark.parametrize("shape", ["lognormal", "one-sided", "heavy", "mixed", "bimodal"])
def test_intervals_cover_the_truth_as_often_as_they_say(n, shape):
    rng = np.random.default_rng(11)
    draw = {
        "lognormal": lambda: rng.lognormal(0, 0.1, n),
        "one-sided": lambda: 1 + rng.exponential(0.05, n),
        "heavy": lambda: 1 + np.abs(rng.standard_t(2, n)) * 0.02,
        "mixed": lambda: np.where(rng.random(n) < 0.2, rng.normal(1.1, 0.02, n), rng.normal(1, 0.02, n)),
        "bimodal": lambda: rng.choice([1, 1.2], n) * rng.lognormal(0, 0.01, n),
    }[shape]
    unpaired = ask([("ratio", 0.95, draw(), 1.07 * draw()) for _ in range(2000)])
    covered = np.mean([low <= 1.07 <= high for _, low, high in unpaired])
    assert covered > 0.94, covered
    paired = ask([("paired", 0.95, draw(), 1.07 * draw()) for _ in range(2000)])
    covered = np.mean([low <= 1.07 <= high for _, low, high in paired])
    assert covered > 0.94, covered


# ---- what SciPy does not have, written a second time ----


def inflation(rho, length):
    """Of the variance of a mean of `length` values of an AR(1) process, from the sum of all correlations."""
    if length <= 60:
        return 1 + 2 * sum((1 - k / length) * rho**k for k in range(1, int(length)))
    return (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**length) / (length * (1 - rho) ** 2)


def correlation(values, apart):
    away = values - values.mean()
    return (away[apart:] * away[: len(away) - apart]).sum() / (away**2).sum()


def serial(values, length):
    n = len(values)
    if np.ptp(values) == 0:
        return [0, 0, 0, 0, 1]
    first, second = (n * correlation(values, 1) + 1) / max(n - 3, 1), correlation(values, 2)
    waves = first
    if min(first, second) >= 2.5 / math.sqrt(n) and second > first * first:
        raised = 1 + 2 * first / (1 - min(second / first, 0.95))
        waves = (raised - 1) / (raised + 1)
    products = n * correlation(values, 1) + 1 if n >= 5 else 0
    drift = products / n if products > 3.5 * math.sqrt(n) and products / n > 0.15 else 0
    rho = min(max(first, 0), 0.95)
    return [rho, min(max(waves, 0), 0.95), drift, products, inflation(rho, length)]


def change(values, rho):
    """Scores of the ranks, the chance of any stretch or split, and of a split alone."""
    n = len(values)
    scores = stats.norm.ppf((stats.rankdata(values) - 0.5) / n)
    scores = np.zeros(n) if np.ptp(values) == 0 else scores * math.sqrt(n / (scores**2).sum())
    sums = np.concatenate([[0], np.cumsum(scores - scores.mean())])
    known = max(n - inflation(rho, n), 1) / n

    def found(z, chances):
        return min(1, 2 * chances * (1 + z * z) * stats.norm.sf(z))

    def lighter(p):
        return p ** (1 + 10 / n)

    split = 1
    for i in range(1, n):
        short = min(i, n - i)
        variance = short * (n - short) / (n * known)
        if sums[i] ** 2 >= 4 * variance:
            split = min(split, found(abs(sums[i]) / math.sqrt(variance * inflation(rho, short)), 2 * math.log(n)))
    p, step = split, 2
    while step <= n / 2:
        length = int(step)
        largest = max(abs(sums[i] - sums[i - length]) for i in range(length, n + 1))
        error = math.sqrt(length * (n - length) / (n * known) * inflation(rho, length))
        p = min(p, found(largest / error, max(1, math.log2(n) - 2) * n / length))
        step = max(step * math.sqrt(2), step + 1)
    p = lighter(p)
    if n <= 32:
        clean = [min(i, n - i) for i in range(1, n) if scores[:i].max() < scores[i:].min() or scores[:i].min() > scores[i:].max()]
        worth = 1 / inflation(rho, n)
        count, at = int(n * worth), int(max(clean, default=0) * worth)
        if 1 <= at < count:  # all ways to be as rare: a side is above or below, on the left or the right
            p = min(p, sum((2 if 2 * k == count else 4) / math.comb(count, k) for k in range(min(at, count - at), count // 2 + 1)))
    return [*scores, p, lighter(split)]


def noise(values, cpu, loaded):
    n = len(values)

    def spread_of(sample):
        return stats.median_abs_deviation(sample, scale="normal") / np.median(sample) if np.median(sample) > 0 else 0

    spread, cpu_spread = spread_of(values), spread_of(cpu) if len(cpu) else 0
    half = n // 2
    first, second = values[:half], values[n - half :]
    drift = np.median(second) / np.median(first) - 1
    (_, p, _), = ask([("ranksum", 0.0, sorted(first), sorted(second))])
    drifts = p < 0.01 and abs(drift) > spread
    waves = serial(values, 1)[2]
    outliers = sum(abs(values / np.median(values) - 1) > 5 * spread)
    kept = max(1 - 2 * outliers / n, 0.1)
    pair = stats.norm.ppf(0.975) * math.sqrt(2) * spread
    fair = spread > 0.01 or outliers / n > 0.1 or drifts or waves > 0
    grade = 2 if spread > 0.05 or outliers / n > 0.25 else int(fair)
    return [spread, cpu_spread, 0 < cpu_spread < spread / 2 and spread > 0.01, drift, p, drifts, waves, outliers, outliers / n > 0.1,
            math.ceil((pair / 0.01) ** 2 / kept), pair / math.sqrt(10 * kept), grade, grade > 0 and loaded >= n / 10 and loaded > 0, 0]


def of_our_own():
    """Questions that these answer: series with steps, waves, ties and outliers."""
    rng = np.random.default_rng(14)

    def walk(n, rho, sigma=0.03):
        values = rng.normal(0, sigma, n)
        for i in range(1, n):
            values[i] += rho * values[i - 1]
        return np.round(1 + values, 4)

    for n, rho in ((4, 0), (5, 0.5), (6, -0.8), (9, 0.2), (14, 0), (25, 0.9), (40, 0.6), (60, 0), (90, 0.95), (300, 0.1)):
        for length in (1, 2, 7, 100):
            a = walk(n, rho) if length > 1 else np.round(walk(n, rho) + np.repeat(rng.normal(0, 0.1, (n + 9) // 10), 10)[:n], 4)
            yield ("serial", float(length), a, []), serial(a, length)
    yield ("serial", 3.0, [2.0] * 6, []), serial(np.array([2.0] * 6), 3)
    for n in (4, 7, 8, 10, 12, 13, 20, 24, 25, 31, 32, 33, 60, 110):
        for size, rho in ((0, 0.0), (0.05, 0.0), (0.2, 0.3), (-0.3, 0.0)):
            a = walk(n, 0)
            at = int(rng.integers(1, n))
            a[at:] = np.round(a[at:] + size, 4)
            if n % 4 == 0:
                a = np.round(a, 2)
            if n in (13, 60):
                a[at:] = np.round(a[at:] - size, 4)
                a[n // 3 : n // 2] += size
            yield ("change", rho, a, []), change(a, rho)
    yield ("change", 0.0, [3.0] * 12, []), change(np.array([3.0] * 12), 0.0)
    for n, sigma, far, slope, cpu_sigma, loaded in (
            (10, 0.002, 0, 0, 0, 0), (10, 0.02, 0, 0, 0.004, 1), (11, 0.02, 1, 0, 0.03, 1), (20, 0.004, 3, 0, 0.001, 2), (20, 0.004, 2, 0, 0, 1),
            (20, 0.004, 6, 0, 0, 20), (24, 0.003, 0, 0.003, 0, 3), (30, 0.08, 0, 0, 0.01, 2), (31, 0.011, 1, 0, 0.004, 4), (40, 0.002, 0, 0.0002, 0, 4),
            (40, 0.003, 5, -0.004, 0.002, 0), (60, 0.004, 0, 0, 0.004, 60), (21, 0.004, 5, 0, 0, 2), (40, 0.03, 9, 0, 0.001, 3)):
        a = np.round(1 + rng.normal(0, sigma, n) + slope * np.arange(n), 5)
        a[rng.choice(n, far, replace=False)] += 0.5
        cpu = np.round(1 + rng.normal(0, cpu_sigma, n), 5) if cpu_sigma else np.array([])
        yield ("noise", float(loaded), a, cpu), noise(a, cpu, loaded)
    a = np.round(1 + 0.006 * np.sin(np.arange(60) / 4) + rng.normal(0, 0.001, 60), 5)
    yield ("noise", 6.0, a, []), noise(a, np.array([]), 6)


# ---- answers for those who have no SciPy ----

KEPT = Path(__file__).parents[2] / "data/statistics"


def rank_limits(m, n, alpha):
    """How many of the lowest values both tests reject, and the least p, from all that their statistics can be."""
    signed = np.array([sum(s) for s in itertools.product(*[(0, i + 1) for i in range(m)])])
    ranks = np.array([sum(c) - m * (m - 1) // 2 for c in itertools.combinations(range(m + n), m)])
    answer = []
    for sums, top in ((signed, m * (m + 1) // 2), (ranks, m * n // 2)):
        rejected = sum(1 for k in range(1, top + 1) if np.mean(sums < k) <= alpha / 2)
        answer += [rejected, min(1, 2 * np.mean(sums == 0))]
    return answer


def rank_limits_of_large_samples(m, n, alpha):
    """The same from the normal approximation, with its correction by half a step."""
    answer = []
    for mean, variance, least in ((m * (m + 1) / 4, m * (m + 1) * (2 * m + 1) / 24, 2.0 ** -m), (m * n / 2, m * n * (m + n + 1) / 12, 1 / math.comb(m + n, m))):
        rejected = sum(1 for value in range(int(mean)) if 2 * stats.norm.cdf((value + 0.5 - mean) / math.sqrt(variance)) <= alpha)
        answer += [rejected, 2 * least]
    return answer


def kept_questions():
    """(question, SciPy's answer): small ones of all kinds, with ties and without, and a few large ones."""
    rng = np.random.default_rng(13)

    def values(n, ties=False):
        return np.round(rng.lognormal(0, 0.5, n) + 0.05, 1 if ties else 4)

    for n in (1, 2, 3, 4, 5, 8, 13, 20):
        a, q = values(n, n % 2 == 0), round(float(rng.uniform()), 3)
        yield ("describe", q, a, []), [np.mean(a), np.median(a), np.quantile(a, q), stats.median_abs_deviation(a),
                                       np.std(a, ddof=1) if n > 1 else 0.0]
    a = values(7)
    for q in (0.0, 0.5, 1.0):
        yield ("describe", q, a, []), [np.mean(a), np.median(a), np.quantile(a, q), stats.median_abs_deviation(a), np.std(a, ddof=1)]
    for p in (1e-12, 1e-9, 1e-4, 0.01, 0.0243, 0.025, 0.2, 0.42, 0.5, 0.6, 0.9, 0.975, 0.98, 0.999, 1 - 1e-9):
        z = 10 * p - 5
        yield ("normal", p, [z], []), [stats.norm.ppf(p), stats.norm.sf(z)]
    for p, df, t in ((0.05, 1, 0.5), (0.05, 2, 2), (0.01, 2.5, 1), (0.5, 3, 0.1), (0.001, 4, 30), (0.1, 7.3, 1.9), (0.05, 10, -2.2),
                     (0.9, 12, 0), (0.05, 40, 2.02), (0.2, 150, 1e-3), (0.05, 1000, 3), (0.02, 0.7, 8), (0.05, 5, math.inf)):
        yield ("student", p, [df, t], []), [stats.t.isf(p / 2, df), 2 * stats.t.sf(abs(t), df)]
    for n in (3, 5, 6, 7, 8, 9, 12, 17, 40, 101):
        for confidence in (0.9, 0.95, 0.99):
            a = values(n)
            found = stats.quantile_test(a, q=0.0, p=0.5).confidence_interval(confidence)
            yield ("interval", confidence, a, []), [found.low, found.high]
    for n in (1, 2, 3, 4, 5, 6, 7, 9, 11):
        for ties in (False, True):
            d = np.round(rng.normal(0.4, 1, n), 1) if ties else np.round(rng.normal(0.4, 1, n), 4)
            used = d[d != 0]
            if not len(used):
                yield ("signed", 0.0, d, []), [0, 1, 1]
                continue
            ranks = stats.rankdata(np.abs(used))
            sums = ((np.arange(2 ** len(used))[:, None] >> np.arange(len(used))) & 1) @ ranks
            seen = ranks[used > 0].sum()
            yield ("signed", 0.0, d, []), [seen, min(1, 2 * min((sums <= seen).mean(), (sums >= seen).mean())), 1]
    for n in (49, 50, 51, 80):
        d = np.round(rng.normal(0.2, 1, n), 4 if n < 51 else 1) + (0.05 if n > 50 else 0)
        seen = stats.rankdata(np.abs(d))[d > 0].sum()
        found = stats.wilcoxon(d, method="exact" if n < 51 else "approx", correction=True)
        yield ("signed", 0.0, d, []), [seen, found.pvalue, n < 51]
    yield ("signed", 0.0, [0, 0], []), [0, 1, 1]
    for m, n in ((1, 1), (1, 4), (4, 1), (2, 3), (3, 3), (5, 2), (4, 6), (6, 5)):
        for ties in (False, True):
            a, b = (values(m, ties), values(n, ties))
            ranks = stats.rankdata([*a, *b])
            sums = np.array([sum(chosen) for chosen in itertools.combinations(ranks, m)])
            seen = ranks[:m].sum()
            p = min(1, 2 * min((sums <= seen + 1e-9).mean(), (sums >= seen - 1e-9).mean()))
            yield ("ranksum", 0.0, a, b), [stats.mannwhitneyu(a, b, method="asymptotic").statistic, p, 1]
    for m, n, ties in ((50, 50, False), (51, 50, False), (25, 100, False), (60, 40, True), (40, 61, True), (25, 101, False)):
        a, b = values(m, ties), values(n, ties)
        exact = m * n <= 2500 and len(set([*a, *b])) == m + n
        found = stats.mannwhitneyu(a, b, method="exact" if exact else "asymptotic")
        yield ("ranksum", 0.0, a, b), [found.statistic, found.pvalue, exact]
    yield ("ranksum", 0.0, [1] * 300, [1] * 300), [45000, 1, 0]
    for n in (1, 2, 3, 7, 20):
        p = np.round(rng.beta(0.5, 1, n), 5)
        yield ("bh", 0.0, p, []), list(stats.false_discovery_control(p, method="bh"))
    yield ("bh", 0.0, [0.01, math.nan, 0.04, 0.04], []), [0.03, math.nan, 0.04, 0.04]
    yield ("bh", 0.0, [math.nan], []), [math.nan]
    for m, n in ((1, 1), (1, 2), (2, 2), (2, 5), (3, 3), (5, 3), (4, 4), (6, 6), (8, 6), (9, 9)):
        for alpha in (0.01, 0.05, 0.1, 0.5):
            yield ("limits", alpha, [m, n], []), rank_limits(m, n, alpha)
    for m, n, alpha in ((51, 50, 0.05), (60, 45, 0.01), (100, 200, 0.1)):
        yield ("limits", alpha, [m, n], []), rank_limits_of_large_samples(m, n, alpha)
    for m, n in ((2, 2), (3, 5), (5, 3), (4, 4), (6, 7), (8, 8)):
        for ties in (False, True):
            a, b, confidence = values(m, ties), values(n, ties), float(rng.choice([0.9, 0.95, 0.99]))
            differences = np.subtract.outer(np.log(b), np.log(a)).ravel()
            ranks = np.array([sum(c) - m * (m - 1) // 2 for c in itertools.combinations(range(m + n), m)])
            yield ("ratio", confidence, a, b), hodges_lehmann(differences, confidence, lambda k: np.mean(ranks < k))
    for n in (1, 2, 3, 5, 6, 7, 10, 12):
        a, b, confidence = values(n), values(n), float(rng.choice([0.9, 0.95, 0.99]))
        logs = np.log(b / a)
        averages = [(logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n)]
        sums = np.array([sum(s) for s in itertools.product(*[(0, i + 1) for i in range(n)])])
        yield ("paired", confidence, a, b), hodges_lehmann(averages, confidence, lambda k: np.mean(sums < k))
    yield from of_our_own()


def test_answers_that_the_unit_test_expects_are_scipys():
    lines = KEPT.read_text().splitlines()
    kept = list(kept_questions())
    assert [line.partition(" =")[0] for line in lines] == [as_line(*question) for question, _ in kept]
    for line, (question, theirs) in zip(lines, kept):
        assert close([float(word) for word in line.partition(" =")[2].split()], [float(v) for v in theirs]), line
        assert close(ask([question])[0], [float(v) for v in theirs], rel=1e-9), line


if __name__ == "__main__":
    KEPT.write_text("".join(f"{as_line(*question)} = {' '.join(repr(float(v)) for v in theirs)}\n" for question, theirs in kept_questions()))
