"""Ctrl-C during a search; apart from coverage, whose own code an interrupt may hit."""

import _thread
import time

import numpy as np
import pytest

import metrics
from metrics import nearest


def test_a_sigint_stops_all_threads_of_a_search(monkeypatch):
    calls = []

    def select(*args):
        calls.append(args)
        if len(calls) == 1:
            _thread.interrupt_main()
        time.sleep(0.002)

    monkeypatch.setattr(metrics, "PAIRS_PER_THREAD", 1)
    monkeypatch.setattr(metrics, "BLOCK_BYTES", 1)
    monkeypatch.setattr(metrics, "_select", select)
    codes = np.zeros((20_000, 1), np.uint8)
    with pytest.raises(KeyboardInterrupt):
        nearest(codes[:1], codes, 1, n_threads=2)
    assert len(calls) < 20_000 / metrics.FEW / 2  # blocks of one thread
