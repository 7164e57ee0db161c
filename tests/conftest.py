"""All tests: one thread, since small tensors gain nothing from more, and waiting threads take the time of others."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)
