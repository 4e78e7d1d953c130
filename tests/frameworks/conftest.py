"""What takes long to fetch or to run, for `make test-frameworks`. Helpers are those of the end-to-end tests."""

import pytest


@pytest.fixture(scope="module")
def lab():
    """Two hosts on a switch."""
    import netns

    try:
        with netns.Lab(count=2) as made:
            yield made
    except netns.Unavailable as why:
        pytest.skip(f"network namespaces cannot be made here: {why}")
