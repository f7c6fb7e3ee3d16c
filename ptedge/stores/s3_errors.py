"""What a server of buckets answers, as kinds that the store acts on, and as sentences for people."""

from __future__ import annotations

from typing import Any, Literal

from ptedge.errors import StoreError
from ptedge.stores.s3_address import S3Address

Kind = Literal["absent", "exists", "conflict", "range", "unsupported", "denied", "broken", "other"]

_CODES: dict[str, Kind] = {
    **dict.fromkeys(("NoSuchKey", "404", "NotFound"), "absent"),
    **dict.fromkeys(("PreconditionFailed", "412"), "exists"),
    **dict.fromkeys(("ConditionalRequestConflict", "OperationAborted", "409"), "conflict"),
    **dict.fromkeys(("InvalidRange", "416"), "range"),
    **dict.fromkeys(("NotImplemented", "501"), "unsupported"),
    **dict.fromkeys(
        ("AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "403"), "denied"
    ),
}
_LONGEST = 200  # characters of what a server says


class RefusalError(StoreError):
    """A request that was not done as asked.

    Args:
        kind: what to do about it.
        text: for the user.
    """

    def __init__(self, kind: Kind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def refusal(error: Any, verb: str, key: str, where: S3Address, kind: Kind | None = None) -> RefusalError:
    """The error for what botocore raised.

    Args:
        error: a ClientError, which the server answered, or a BotoCoreError.
        verb: what was tried, as ``"put"``.
        key: of the object; empty where there is none.
        where: the store.
        kind: where it is known already.
    """
    tried = f"cannot {verb} {key or 'the store'}{f' in {where.shown}' if key else f' {where.shown}'}"
    if not hasattr(error, "response"):
        return RefusalError(kind or "other", f"{tried}: {_without_answer(error, where)}")
    about = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = str(about.get("Code") or status)
    if code == "NoSuchBucket":
        return RefusalError("other", f"{tried}: there is no bucket {where.bucket} at {_server(where)}. Make it first")
    found = kind or _CODES.get(code) or _CODES.get(str(status), "other")
    if found == "denied":
        advice = (
            "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), and what this key is allowed to do"
        )
        return RefusalError(found, f"{tried}: {_server(where)} refuses the access key ({code}). {advice}")
    return RefusalError(
        found, f"{tried}: {_server(where)} answers {code} {_one_line(about.get('Message', ''))}".rstrip()
    )


def _without_answer(error: Any, where: S3Address) -> str:
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return "no access key. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    if name == "NoRegionError":
        return "no region. Add ?region=NAME to the address of the store, or set AWS_REGION"
    if name in ("EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"):
        return f"{_server(where)} does not answer. Check the address and the network; what was sent stays sent"
    if name == "SSLError":
        return f"{_server(where)} does not prove who it is. For a certificate of your own, set AWS_CA_BUNDLE"
    return f"{_server(where)}: {_one_line(str(error))} ({name})"


def _server(where: S3Address) -> str:
    return where.endpoint or "S3"


def _one_line(text: str) -> str:
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
