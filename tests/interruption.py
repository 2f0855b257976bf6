"""Interrupt what runs for minutes, as Ctrl-C does."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest


@contextmanager
def interrupted(after, handler=signal.default_int_handler, raises=KeyboardInterrupt):
    """Send SIGINT to this process ``after`` so many seconds: what is inside must raise within three more."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    try:
        threading.Thread(target=send).start()
        with pytest.raises(raises):
            yield
        assert time.perf_counter() - sent[0] < 3.0  # 0.02 s on a quiet machine, of minutes
    finally:
        signal.signal(signal.SIGINT, before)
