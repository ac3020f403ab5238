"""What a server is allowed to do, and where its limits are."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from locole.exceptions import LocoleError

__all__ = ["Settings", "is_loopback"]

# The names by which a browser on this machine calls a server that listens on loopback alone.
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """Limits and permissions of a server.

    Attributes
    ----------
    workers : int
        Threads that answer; each works on one batch at a time.
    batch_rows : int
        Texts or rows that are answered together at most.
    max_rows : int
        Of a request.
    max_chars : int
        Of a text.
    max_body_bytes : int
        Of a request.
    max_waiting : int
        Rows that may wait for an answer; with more, requests are refused with 503.
    timeout_s : float
        Seconds after which a request that is not answered is given up.
    reload_s : float
        Seconds between two looks at the folders of the models; 0 for never.
    token : str or None
        What clients must send as a bearer token.
    hosts : tuple of str
        Names by which the server may be called; empty for any.
    learn : bool
        Whether models may learn from requests.
    log_texts : bool
        Whether texts are written to the log.
    """

    workers: int = 1
    batch_rows: int = 64
    max_rows: int = 1000
    max_chars: int = 100_000
    max_body_bytes: int = 16 << 20
    max_waiting: int = 4096
    timeout_s: float = 30.0
    reload_s: float = 1.0
    token: str | None = None
    hosts: tuple[str, ...] = ()
    learn: bool = False
    log_texts: bool = False

    def __post_init__(self) -> None:
        if self.timeout_s <= 0:
            raise LocoleError("the time-out must be longer than 0 seconds.")
        if self.max_waiting < self.batch_rows:
            raise LocoleError(
                f"{self.max_waiting} waiting rows are too few: allow {self.batch_rows}, a batch."
            )

    @staticmethod
    def hosts_for(address: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Names by which a server on this address may be called.

        A page of somebody else can give its own name the address 127.0.0.1 and then read what a local
        server says (DNS rebinding). So a server on loopback answers to local names only, unless told
        otherwise.

        Examples
        --------
        >>> Settings.hosts_for("127.0.0.1", ("models.example.org",))
        ('localhost', '127.0.0.1', '[::1]', 'models.example.org')
        >>> Settings.hosts_for("0.0.0.0", ())
        ()
        """
        if "*" in allowed:
            return ()
        return (*_LOCAL_NAMES, *allowed) if is_loopback(address) or allowed else ()


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
