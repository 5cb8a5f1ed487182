"""A card for tests: NumPy in its place."""

import pytest

from card_twins import TWINS
from host_card import HostCard
from mercer.engines.cuda import card as card_module


@pytest.fixture
def card():
    """A strict stand-in for a card."""
    return HostCard(twins=TWINS)


@pytest.fixture
def cuda(card, monkeypatch):
    """Machines with device='cuda' find the stand-in in the place of a card."""
    monkeypatch.setattr(card_module, "open_card", lambda index: card)
    return card
