"""A connection to the simulator's Java process; import it only where a simulator is about to run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from py4j.java_gateway import (
    GatewayClient,
    GatewayConnection,
    GatewayParameters,
    JavaGateway,
    JavaMember,
    JavaObject,
)
from py4j.protocol import (
    CALL_COMMAND_NAME,
    END_COMMAND_PART,
    ERROR_ON_SEND,
    MEMORY_COMMAND_NAME,
    MEMORY_DEL_SUBCOMMAND_NAME,
    Py4JNetworkError,
    get_return_value,
    is_fatal_error,
)

# Every failure reaches the caller as an exception; py4j would print a traceback of each besides.
logging.getLogger("py4j").setLevel(logging.CRITICAL)


class _OnceClient(GatewayClient):  # type: ignore[misc]  # py4j has no types
    """Sends every call once, over one connection.

    The stock client sends a call again after an empty answer, which could play an action twice, and reports a late
    answer as a nameless error. It also closes the connections that wait for an answer.
    """

    def __init__(self, parameters: GatewayParameters) -> None:
        super().__init__(gateway_parameters=parameters)
        self._made: list[GatewayConnection] = []

    def close(self) -> None:
        """Close every connection; a caller who waits on one gets ``Py4JNetworkError``."""
        self.deque.clear()
        while self._made:
            self._made.pop().close()

    def _create_connection(self) -> GatewayConnection:
        connection = super()._create_connection()
        self._made.append(connection)
        return connection

    def send_command(self, command: str, retry: bool = False, binary: bool = False) -> str:
        """The answer to one command. Raises ``Py4JNetworkError`` when it is late or the connection is gone."""
        return self.answer(self._get_connection(), command)

    def begin(self, command: str) -> GatewayConnection:
        """Send a command whose answer is read later, from the connection returned. Raises ``Py4JNetworkError``."""
        connection = self._get_connection()
        try:
            connection.socket.sendall(command.encode())
        except OSError as error:
            connection.close(reset=True)
            raise Py4JNetworkError("Error while sending", error, ERROR_ON_SEND) from error
        return connection

    def answer(self, connection: GatewayConnection, command: str = "") -> str:
        """Send a command, or nothing more after ``begin``, and wait for the answer. Raises ``Py4JNetworkError``."""
        try:
            answer: str = connection.send_command(command)
        except BaseException:
            connection.close(reset=True)
            raise
        if is_fatal_error(answer):
            connection.close()
        else:
            self._give_back_connection(connection)
        return answer


def begin(method: JavaMember) -> Callable[[], Any]:
    """Call a method without arguments and let it work; no other call may be made before its result is asked for.

    Several at once would not save time: Java's second answer waits for the first one to be acknowledged, about 45 ms.

    Args:
        method: of an object behind a gateway of ``connect``.

    Returns:
        What waits for the result and gives it. Raises like the call itself.

    Raises:
        Py4JNetworkError: the connection is gone.
    """
    client: _OnceClient = method.gateway_client
    connection = client.begin(CALL_COMMAND_NAME + method.command_header + END_COMMAND_PART)
    return lambda: get_return_value(client.answer(connection), client, method.target_id, method.name)


def release(java_object: JavaObject) -> None:
    """Let Java forget an object. Raises ``Py4JNetworkError``, which py4j's own way to do it would keep to itself."""
    client: _OnceClient = java_object._gateway_client
    client.send_command(
        f"{MEMORY_COMMAND_NAME}{MEMORY_DEL_SUBCOMMAND_NAME}{java_object._target_id}\n{END_COMMAND_PART}"
    )


def connect(port: int, token: str, deadline_s: float) -> JavaGateway:
    """A gateway with a connection of its own.

    py4j caches Java methods by class name for each connection, so worlds with classes of their own cannot share one.

    Args:
        port: where the Java process listens on the loopback interface.
        token: its password.
        deadline_s: seconds each answer may take.
    """
    parameters = GatewayParameters(
        port=port,
        auth_token=token,
        read_timeout=deadline_s,
        # Python would otherwise call the Java process while collecting garbage, also after that process has ended.
        enable_memory_management=False,
    )
    gateway = JavaGateway(gateway_parameters=parameters)
    gateway.set_gateway_client(_OnceClient(parameters))
    return gateway
