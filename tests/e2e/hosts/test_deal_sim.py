"""The simulator of batches on many hosts finds seeded mistakes in core/deal.

A mutant is a line or two replaced by wrong ones. What they are in is compiled anew, into a program of its own."""

import os
import shlex
import subprocess

import pytest

from tree import BUILD, ROOT, SANITIZER
from waits import DEADLINE

WORLDS = 2000
CORE = ROOT / "src/core"

# name: lines of core as they are, and as they are not
MUTANTS = {
    "results-of-a-past-lease-count": [("deal/deal.c", "order->state == BATCH_GIVEN && order->lease == event->lease &&", "order->state == BATCH_GIVEN &&")],
    "orders-of-a-lost-host-are-forgotten": [("deal/deal.c", "\twhile (host->given_count > 0)\n\t\tlose_order", "\twhile (false)\n\t\tlose_order")],
    "given-up-before-the-lease-ends": [("deal/deal.c", "ns_add(host->heard_ns, deal->config.lost_after_ns)", "ns_add(host->heard_ns, deal->config.lost_after_ns / 2)")],
    "silence-is-never-a-loss": [("deal/deal.c", "\treturn ns_add(host->heard_ns, deal->config.lost_after_ns);", "\treturn NS_NEVER;")],
    "a-broken-link-is-a-death": [("deal/deal.c", "\tif (s->event->dead) {", "\tif (true) {")],
    "orders-that-never-arrived-are-believed": [("deal/deal.c", "\tmiss_orders(s, host);\n", "")],
    "takeover-without-waiting": [("deal/deal.c", "s->deal->list->stop == BATCH_GO && !worklist_is_held(s->deal->list);", "s->deal->list->stop == BATCH_GO;")],
    "own-slots-do-not-wait-after-a-takeover": [("dispatch/batch.c", "\treturn batch->list->stop == BATCH_GO && !worklist_is_held(batch->list) &&\n\t       batch->running", "\treturn batch->list->stop == BATCH_GO && batch->running")],
    "recalled-for-ever": [("deal/deal.c", "\tcase DEAL_EV_RECALLED:\n\t\thost->recalling = false;", "\tcase DEAL_EV_RECALLED:")],
    "what-is-returned-is-lost": [("deal/deal.c", "\tif (!order || order->started)\n\t\treturn;\n\ttake_back(s->deal, order);\n\twait_again(s->deal, order);",
                                  "\tif (!order || order->started)\n\t\treturn;\n\ttake_back(s->deal, order);\n\torder->state = BATCH_FAILED;")],
    "needs-do-not-matter": [("dispatch/needs.c", "(!needs_any(&kind->needs) ||", "(true ||")],
    "any-feature-will-do": [("dispatch/needs.c", "\t\tif (!has_feature(features, *feature))\n\t\t\treturn false;", "\t\tif (false)\n\t\t\treturn false;")],
    "ends-too-early": [("deal/deal.c", "if (deal->ended || deal_running(deal) > 0 ||", "if (deal->ended ||")],
    "what-has-begun-here-goes-on-elsewhere": [("deal/deal.c", "item->kind & WORKLIST_HERE || ", "")],
    "own-slots-do-not-share-the-memory": [("dispatch/batch.c", "batch->memory + kind->memory > batch->opts.facts.memory", "false")],
    "own-slots-take-what-they-cannot-serve": [("dispatch/batch.c", " || (kind && !needs_host_able(&batch->opts.facts, kind))", "")],
    "spares-for-ever": [("deal/deal.c", "if (host->spare && used < deal->config.max_hosts) {", "if (host->spare && false) {")],
    "orders-on-a-host-do-not-share-its-memory": [("deal/deal.c", "host->given_memory + kind->memory <= host->facts.memory", "kind->memory <= host->facts.memory")],
    "memory-of-orders-that-are-over-is-not-free": [("deal/deal.c", "\thost->given_memory -= kind->memory;\n", "")],
    "cores-of-orders-that-are-over-are-not-free": [("deal/deal.c", "\thost->given_width -= kind->width;\n", "")],
    "any-host-is-wide-enough": [("dispatch/needs.c", "kind->width <= facts->max_width &&", "")],
    "files-for-hosts-that-know-of-none": [("dispatch/needs.c", "(!kind->files || facts->files) &&", "")],
    "named-hosts-do-not-matter": [("dispatch/needs.c", "\tbool named = !needs->hosts;", "\tbool named = true;")],
    "overtaken-without-limit": [("batch/schedule.c", "if (taker->overtaken >= SCHEDULE_OVERTAKE * (size_t)taker->cores)", "if (false)")],
    "what-has-started-is-recalled": [("deal/deal.c", "\treturn MIN(surplus(host), (int64_t)(host->given_count - host->started_count));", "\treturn surplus(host);")],
    "failures-count-as-good": [("deal/deal.c", "worklist_settle(s->deal->list, order, event->ok);", "worklist_settle(s->deal->list, order, true);")],
    "the-first-result-of-a-lease-is-its-last": [("deal/deal.c", "\tif (!event->final)\n\t\treturn;\n\thost->done++;", "\thost->done++;")],
    "a-lease-twice": [("deal/deal.c", "order->lease = ++deal->last_lease;", "order->lease = deal->last_lease += deal->last_lease % 2 + (deal->last_lease < 8);")],
    "lease-from-the-welcome-on": [("deal/hand.c", "hand->answered_ns = MAX(hand->answered_ns, hand->hello_ns);", "hand->answered_ns = s->now_ns;")],
    "orders-outlive-the-lease": [("deal/hand.c", "ns_add(hand->answered_ns, hand->config.lease_ns)", "ns_add(hand->answered_ns, ns_add(hand->config.lease_ns, hand->config.lease_ns))")],
    "results-are-not-sent-again": [("deal/hand.c", "\t\tfor (uint32_t n = lease->confirmed; n < lease->results; n++)\n\t\t\tsend_result(s, lease, n);\n", "")],
    "orders-of-a-past-coordinator": [("deal/hand.c", "\tif (s->event->term != hand->term) {\n\t\twhile (hand->count > 0)", "\tif (s->event->term != hand->term) {\n\t\twhile (false)")],
    "no-beats": [("deal/hand.c", "\tact(s, HAND_DO_BEAT)->cookie = s->now_ns;", "")],
    "recall-is-not-answered": [("deal/hand.c", "\t\tact(s, HAND_DO_RECALLED);", "\t\t(void)0;")],
    "what-runs-is-returned": [("deal/hand.c", "\t\tif (lease->state > HAND_QUEUED)\n\t\t\tcontinue;", "")],
    "orders-run-before-their-files-are-there": [("deal/hand.c", "act_on(s, s->event->files ? HAND_DO_FETCH : HAND_DO_RUN, lease);", "act_on(s, HAND_DO_RUN, lease);")],
    "files-are-not-fetched-again": [("deal/hand.c", "\t\t\tact_on(s, HAND_DO_FETCH, lease); /* what was under way is gone */", "\t\t\t(void)0;")],
    "no-files-for-anybody": [("deal/deal.c", "\tif (!leased(s, host))\n\t\treturn;\n\tstruct deal_action *action = act_on(s, DEAL_DO_FEED", "\tif (leased(s, host))\n\t\treturn;\n\tstruct deal_action *action = act_on(s, DEAL_DO_FEED")],
}


def compile_mutant(directory, edits):
    for file, line, wrong in edits:
        changed = directory / file.replace("/", "-")
        source = (changed if changed.exists() else CORE / file).read_text()
        assert source.count(line) == 1, f"{file} has {source.count(line)} of: {line}"
        changed.write_text(source.replace(line, wrong))
    sources = sorted({str(directory / file.replace("/", "-")) for file, _, _ in edits})
    flags = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-w", "-I" + str(ROOT / "src"), "-pthread"]
    flags += ["-fsanitize=" + SANITIZER] if SANITIZER else []
    # What the mutant defines is not taken from the archive.
    objects = [BUILD / "obj/unit/deal_sim_test.o", BUILD / "unit.a", BUILD / "core.a"]
    packages = "check libevent_core libevent_extra hwloc libsodium".split()
    libraries = shlex.split(subprocess.run(["pkg-config", "--libs", *packages], stdout=subprocess.PIPE, text=True, check=True).stdout)
    program = directory / "deal_sim"
    subprocess.run(["gcc", *flags, "-o", str(program), *sources, *map(str, objects), *libraries, "-lm"], check=True)
    return program


def play(program, worlds=WORLDS):
    return subprocess.run([program], env=dict(os.environ, CK_FORK="no", DEAL_WORLDS=str(worlds)), text=True, timeout=DEADLINE,
                          stdout=subprocess.PIPE)


@pytest.mark.skipif(not (BUILD / "obj/unit/deal_sim_test.o").exists(), reason="the unit tests are not built: make unit")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_mistake_is_found(name, tmp_path):
    result = play(compile_mutant(tmp_path, MUTANTS[name]))
    assert result.returncode == 1 and "DEAL_SEED=" in result.stdout, f"{name} survives {WORLDS} worlds:\n{result.stdout}"
