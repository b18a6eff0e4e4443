"""No wrong argument ends in anything but an error that names it.

Everything that users call is given every wrong value for each of its parameters.
"""

import pytest

from tests.contract.arguments import core_calls
from tests.contract.arguments.calls import outcomes


@pytest.mark.parametrize("name", core_calls.CALLS)
def test_wrong_argument_is_named_or_allowed(name):
    seen, unclear = outcomes(core_calls.CALLS[name], core_calls.KINDS)
    assert not unclear, f"{name}, {dict(seen)}:\n" + "\n".join(unclear)
