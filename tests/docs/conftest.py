import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Small models are quickest on one thread, and other tests may want the rest."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
