"""Detections published over MQTT, a message a frame, each acknowledged by the broker (QoS 1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptedge.errors import missing_extra
from ptedge.frames.address import foreign_text

from ..push_address import PushAddress, parse_push_address
from .faults import fault_text
from .transport import RefusedError

if TYPE_CHECKING:
    import paho.mqtt.client as paho

PORTS = {"mqtt": 1883, "mqtts": 8883}
TIMEOUT = 10.0  # seconds to connect, and for the broker to acknowledge
LOOK_EVERY = 0.05  # seconds between looks at what is acknowledged
MOST_HANGUPS = 3  # in a row, each at the first message: then it is the message that the broker does not want
# of the answers to CONNECT, those that mean "later"
LATER = ("Server unavailable", "Server busy", "Server shutting down", "Quota exceeded", "Connection rate exceeded")


class MqttTransport:
    """A :class:`ptedge.runtime.sinks.transport.Transport` to an MQTT broker.

    Each attempt that finds no connection makes one: when, is decided by who sends, not by paho.
    """

    def __init__(self, address: str) -> None:
        """Prepare; nothing is sent yet.

        Args:
            address: ``mqtt://[user:password@]host[:port]/topic``, or ``mqtts://`` for TLS.

        Raises:
            MissingExtraError: paho-mqtt is not installed.
        """
        try:
            import paho.mqtt.client  # noqa: F401
        except ModuleNotFoundError:
            raise missing_extra("paho-mqtt", "mqtt") from None
        self._given, self._to = address, parse_push_address(address)
        self._link: _Link | None = None
        self._hangups = 0
        self._closed = False

    def send(self, lines: Sequence[bytes]) -> None:
        """Publish lines and wait until the broker has them all."""
        deadline = time.monotonic() + TIMEOUT
        link = self._link
        if link is None or link.lost.is_set():
            self._drop()
            link = self._link = _Link(self._to, self._given)
        try:
            link.open(deadline)
            taken = link.publish(self._to.topic, lines, deadline)
        except BaseException:
            self._drop()
            raise
        finally:
            if self._closed:
                self._drop()
        self._hangups = self._hangups + 1 if taken == 0 and link.lost.is_set() else 0
        if taken == len(lines):
            return
        hung_up = link.lost.is_set()
        self._drop()
        if self._hangups >= MOST_HANGUPS:
            self._hangups = 0
            raise RefusedError("the broker closes the connection at every message. May this login write to the topic?")
        raise OSError("the broker closed the connection" if hung_up else "the broker does not acknowledge")

    def close(self) -> None:
        """Say goodbye."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


class _Link:
    """One connection, from its making to its end.

    Attributes:
        lost: set when it has ended.
    """

    def __init__(self, to: PushAddress, given: str) -> None:
        import paho.mqtt.client as paho
        from paho.mqtt.enums import CallbackAPIVersion

        self.lost = threading.Event()
        self._to, self._given, self._answer = to, given, ""
        self._answered = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        if to.user is not None:
            self._client.username_pw_set(to.user, to.password)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect

    def open(self, deadline: float) -> None:
        """Connect, unless that is done.

        Raises:
            OSError: it cannot be connected to now.
            RefusedError: the broker does not let this login in.
        """
        if self._answered.is_set():
            return
        try:
            if self._to.scheme == "mqtts":
                self._client.tls_set()
            self._client.connect_timeout = TIMEOUT
            self._client.connect(self._to.host, self._to.port or PORTS[self._to.scheme])
        except (OSError, ValueError) as error:
            raise OSError(f"no connection to the broker: {fault_text(error, self._given)}") from None
        self._client.loop_start()
        while not self._answered.is_set() and not self.lost.is_set() and time.monotonic() < deadline:
            self._answered.wait(LOOK_EVERY)
        if self._answer:
            text = f"the broker answers: {foreign_text(self._answer, self._given)}"
            raise OSError(text) if self._answer in LATER else RefusedError(f"{text}. Look at the login")
        if not self._answered.is_set():
            raise OSError("no connection to the broker: it does not answer")

    def publish(self, topic: str, lines: Sequence[bytes], deadline: float) -> int:
        """Publish lines; how many of them the broker has acknowledged by the deadline or the end."""
        sent: list[paho.MQTTMessageInfo] = []
        try:
            for line in lines:
                sent.append(self._client.publish(topic, line, qos=1))
            for message in sent:
                while not message.is_published() and not self.lost.is_set() and time.monotonic() < deadline:
                    message.wait_for_publish(LOOK_EVERY)
            return sum(message.is_published() for message in sent)
        except (RuntimeError, ValueError):  # the connection went away between two calls
            self.lost.set()
            return 0

    def close(self) -> None:
        """End it."""
        self._client.disconnect()
        self._client.loop_stop()

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._answer = str(reason) if reason.is_failure else ""
        self._answered.set()

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.lost.set()
