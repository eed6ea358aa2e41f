import pytest

from hgmem.errors import UsageError
from hgmem.text.resources import resource


def test_a_shipped_file_is_found_wherever_the_package_lies() -> None:
    assert resource("docker", "compose.yaml").is_file()


def test_a_missing_one_is_named() -> None:
    with pytest.raises(UsageError, match="'docker/absent'"):
        resource("docker", "absent")
