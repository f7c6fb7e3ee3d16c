"""Detections published over MQTT, a message a frame, each acknowledged by the broker (QoS 1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ptedge.errors import missing_extra
from ptedge.frames.address import split_credentials

if TYPE_CHECKING:
    import paho.mqtt.client as paho

PORTS = {"mqtt": 1883, "mqtts": 8883}
TIMEOUT = 10.0  # seconds for the broker to acknowledge


class MqttTransport:
    """A :class:`ptedge.runtime.sinks.push.Transport` to an MQTT broker; paho connects, and connects again."""

    def __init__(self, address: str) -> None:
        """Begin to connect.

        Args:
            address: ``mqtt://[user:password@]host[:port]/topic``, or ``mqtts://`` for TLS.

        Raises:
            MissingExtraError: paho-mqtt is not installed.
        """
        try:
            import paho.mqtt.client as paho
            from paho.mqtt.enums import CallbackAPIVersion
        except ModuleNotFoundError:
            raise missing_extra("paho-mqtt", "mqtt") from None
        bare, user, password = split_credentials(address)
        parts = urlsplit(bare)
        self._topic = unquote(parts.path.strip("/"))
        self._lines: Sequence[bytes] | None = None
        self._sent: list[paho.MQTTMessageInfo] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        if user is not None:
            self._client.username_pw_set(user, password)
        if parts.scheme == "mqtts":
            self._client.tls_set()
        self._client.reconnect_delay_set(1, 30)
        self._client.on_connect = self._answered
        self._refusal = ""
        self._client.connect_async(parts.hostname or "", parts.port or PORTS[parts.scheme])
        self._client.loop_start()

    def send(self, lines: Sequence[bytes]) -> None:
        """Publish lines and wait until the broker has them all."""
        deadline = time.monotonic() + TIMEOUT
        while not self._client.is_connected():
            if time.monotonic() > deadline or self._refusal:
                raise OSError(self._refusal or "no connection to the broker")
            time.sleep(0.05)
        try:
            if lines is not self._lines:  # paho itself repeats what it has once taken
                self._sent = [self._client.publish(self._topic, line, qos=1) for line in lines]
                self._lines = lines
            for message in self._sent:
                message.wait_for_publish(max(0.0, deadline - time.monotonic()))
            if not all(message.is_published() for message in self._sent):
                raise OSError("the broker does not acknowledge")
        except (RuntimeError, ValueError) as error:  # the connection went away between the two calls
            self._lines = None
            raise OSError(str(error)) from None

    def close(self) -> None:
        """Say goodbye."""
        self._client.disconnect()
        self._client.loop_stop()

    def _answered(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._refusal = f"the broker answers: {reason}" if reason.is_failure else ""
