"""The one process that knows where model servers are, and what workers and servers say to it."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.serving.replicas import Replica, Replicas

if TYPE_CHECKING:
    from ray.actor import ActorHandle

log = logging.getLogger(__name__)

_CALL_TIMEOUT_S = 10.0  # every call of the router takes milliseconds
_RESTART_TIMEOUT_S = 120.0  # servers need their answer, so they wait for a router that is being restarted
_PROBE_EVERY_S = 1.0
_PROBE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to send a call."""

    url: str
    """Before ``/chat/completions``."""
    key: str = field(repr=False)
    """What the server wants to see in ``Authorization``."""
    replica: int


class Router:
    """Assigns episodes to replicas and probes those that callers suspect. Runs as an actor; every call is short.

    Args:
        key: the key of all servers of this cluster.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._books = Replicas()
        self._lock = threading.Lock()
        threading.Thread(target=self._probe_suspects, name="probe", daemon=True).start()

    def assign(self, server: str, episode_id: str) -> Endpoint | None:
        """Where an episode's next call goes; None while no replica of the server is up."""
        with self._lock:
            replica = self._books.assign(server, episode_id)
            return Endpoint(replica.url, self._key, replica.number) if replica else None

    def release(self, server: str, episode_id: str) -> None:
        """An episode is over."""
        with self._lock:
            self._books.release(server, episode_id)

    def suspect(self, server: str, url: str) -> None:
        """A caller could not use a replica."""
        with self._lock:
            self._books.suspect(server, url)

    def starting(self, server: str, number: int) -> int:
        """A replica begins to start; returns how often it has been up before."""
        with self._lock:
            return self._books.starting(server, number)

    def up(self, server: str, number: int, url: str) -> None:
        """A replica can answer."""
        with self._lock:
            self._books.up(server, number, url)

    def alive(self, server: str, number: int, url: str) -> None:
        """A replica repeats where it is."""
        with self._lock:
            self._books.alive(server, number, url)

    def down(self, server: str, number: int, reason: str) -> None:
        """A replica has failed."""
        with self._lock:
            self._books.down(server, number, reason)

    def replicas(self, server: str) -> list[Replica]:
        """What is known of a server's replicas."""
        with self._lock:
            return self._books.of(server)

    def _probe_suspects(self) -> None:
        import httpx

        with httpx.Client(timeout=_PROBE_TIMEOUT_S, trust_env=False) as client:
            while True:
                time.sleep(_PROBE_EVERY_S)
                with self._lock:
                    suspects = self._books.suspects
                for server, url in suspects:
                    if _is_well(client, url):
                        with self._lock:
                            self._books.clear(server, url)


def _is_well(client: Any, url: str) -> bool:
    import httpx

    try:
        return bool(client.get(f"{url.removesuffix('/v1')}/health").is_success)
    except httpx.HTTPError:
        return False


class Endpoints:
    """What a worker knows of the router; small and picklable.

    Args:
        router: handle of the ``Router`` actor.
    """

    def __init__(self, router: ActorHandle[Any]) -> None:
        self._router = router

    def assign(self, server: str, episode_id: str) -> Endpoint | None:
        """Where the next call goes; None while no replica is up or the router does not answer."""
        endpoint: Endpoint | None = self._ask("assign", server, episode_id)
        return endpoint

    def release(self, server: str, episode_id: str) -> None:
        """An episode is over; not waited for."""
        self._router.release.remote(server, episode_id)

    def suspect(self, server: str, url: str) -> None:
        """The replica at ``url`` did not answer; it gets no more calls before it has proved to be well."""
        self._ask("suspect", server, url)

    def _ask(self, method: str, *arguments: Any) -> Any:
        import ray
        from ray.exceptions import GetTimeoutError, RayActorError

        try:
            return ray.get(getattr(self._router, method).remote(*arguments), timeout=_CALL_TIMEOUT_S)
        except (RayActorError, GetTimeoutError) as error:
            log.warning("the router of the model servers does not answer (%s)", type(error).__name__)
            return None


class Registry:
    """What a model server tells the router about itself.

    Args:
        router: handle of the ``Router`` actor.
        server: name of the server.
        number: of the replica.
    """

    def __init__(self, router: ActorHandle[Any], server: str, number: int) -> None:
        self._router = router
        self._server = server
        self._number = number

    def starting(self) -> int:
        """The server begins to start; returns how often it has been up before."""
        starts: int = self._tell("starting")
        return starts

    def up(self, url: str) -> None:
        """It can answer."""
        self._tell("up", url)

    def alive(self, url: str) -> None:
        """It still can; not waited for."""
        self._router.alive.remote(self._server, self._number, url)

    def down(self, reason: str) -> None:
        """It has failed, or cannot start."""
        self._tell("down", reason)

    def _tell(self, method: str, *arguments: Any) -> Any:
        import ray

        call = getattr(self._router, method).remote(self._server, self._number, *arguments)
        return ray.get(call, timeout=_RESTART_TIMEOUT_S)
