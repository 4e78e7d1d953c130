"""PyTorch's own tests of its launcher and store: what passes with torch's launcher passes with muster. What differs on purpose is listed here
and, with the reason, in docs/differences.md."""

import pytest

from frameworks import OFF, ON
from pytorch_tests import PytorchTests
from tree import ROOT

DIFFERENT = {
    "launcher/run_test.py": {
        "test_launch_elastic_agent_raise_exception", "test_launch_elastic_worker_raise_exception", "test_launch_shutdown"},
    "launcher/launch_test.py": set(),
    "launcher/api_test.py": {
        "test_launch_elastic_agent_raise_exception", "test_launch_elastic_worker_raise_exception", "test_launch_shutdown",
        "test_rdzv_handler_shutdown_on_agent_error", "test_rdzv_handler_shutdown_on_agent_signal"},
    "test_store.py": {"test_address_already_in_use", "test_multitenancy"},
}


@pytest.fixture(scope="module")
def tests():
    return PytorchTests()


def passed(ends):
    return {name for name, (end, _) in ends.items() if end == "passed"}


@pytest.mark.parametrize("file", DIFFERENT)
def test_what_passes_with_torchs_own_passes_with_muster(tests, file):
    torch, muster = tests.run(file, OFF), tests.run(file, ON)
    different = passed(torch) - passed(muster)
    assert different == DIFFERENT[file], "\n".join(muster[name][1][-1500:] for name in sorted(different - DIFFERENT[file]))


def test_each_difference_has_its_reason():
    text = (ROOT / "docs/differences.md").read_text()
    assert [name for names in DIFFERENT.values() for name in names if f"`{name}`" not in text] == []
