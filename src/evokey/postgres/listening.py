"""News from a database: whether somebody has committed, heard at once by LISTEN on a connection of its own.

Where that cannot be (a replica, PgBouncer in transaction mode, a connection that was lost), nothing is heard, and who
wants to know asks the database every so often. Whether news arrive is tried out with a message to itself: PgBouncer
takes LISTEN without an error, and then forgets it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid

import psycopg

from evokey.postgres.address import Address
from evokey.postgres.connections import OPTIONS, Connection

PROOF = 2.0
"""Seconds in which the message to itself must arrive."""
AGAIN = 5.0
"""Seconds after which it is tried again to listen; each time twice as many, up to LONGEST."""
LONGEST = 300.0
CHECKED = 20.0
"""Seconds without news after which the connection is tried out again."""
log = logging.getLogger("evokey")


class Listener:
    def __init__(self, address: Address, channel: str) -> None:
        self._address, self._channel = address, channel
        self.hears = False
        """Whether every commit from now on is heard."""
        self._news, self._ending = threading.Event(), threading.Event()
        self._news.set()
        self._thread = threading.Thread(target=self._run, name="evokey listener", daemon=True)
        self._thread.start()

    def take_news(self) -> bool:
        """Whether anything was heard since the last call, or may have been missed."""
        if self.hears and not self._news.is_set():
            return False
        self._news.clear()
        return True

    def close(self) -> None:
        self._ending.set()
        self._thread.join(5)

    def _run(self) -> None:
        pause = AGAIN
        while not self._ending.is_set():
            try:
                with psycopg.connect(self._address.url, **OPTIONS) as connection:
                    connection.execute(f'LISTEN "{self._channel}"')
                    if self._proves(connection):
                        pause = AGAIN
                        self._listen(connection)
            except psycopg.Error as error:
                log.debug("news of %s are not heard (%s)", self._address, type(error).__name__)
            self.hears = False
            self._news.set()
            self._ending.wait(pause)
            pause = min(2 * pause, LONGEST)

    def _listen(self, connection: Connection) -> None:
        self._news.set()
        self.hears = True
        heard = time.monotonic()
        while not self._ending.is_set():
            for _ in connection.notifies(timeout=0.5, stop_after=1):
                self._news.set()
                heard = time.monotonic()
            if time.monotonic() - heard > CHECKED:
                if not self._proves(connection):
                    return
                heard = time.monotonic()

    def _proves(self, connection: Connection) -> bool:
        """Whether a message to itself arrives."""
        mark, until = uuid.uuid4().hex, time.monotonic() + PROOF
        connection.execute("SELECT pg_notify(%s, %s)", (self._channel, mark))
        while time.monotonic() < until and not self._ending.is_set():
            for one in connection.notifies(timeout=0.2, stop_after=1):
                self._news.set()
                if one.payload == mark:
                    return True
        return False
