"""The last step: register the version in MLflow, and have an alias point to it, for those who use it."""

from __future__ import annotations

from typing import Any

from ptedge.config import to_dict
from ptedge.errors import missing_extra

from .learn import result_of
from .rounds import Record
from .work import StepFailedError, Work

ROUND_TAG = "ptedge.round"


def register(work: Work) -> Record:
    """Register the bundle as a model version, once a round.

    Raises:
        StepFailedError: the registry refuses.
        MissingExtraError: MLflow is asked for and not installed.
    """
    settings = work.place.site.mlflow
    if not settings.model:
        return Record("register", "skipped", "mlflow.model is not set")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ModuleNotFoundError:
        raise missing_extra("mlflow", "mlflow") from None
    tags = _tags(work)
    try:
        number = _registered(MlflowClient(settings.uri or None, settings.uri or None), work, tags)
    except MlflowException as error:
        raise StepFailedError(f"MLflow refuses: {str(error).splitlines()[0]}") from None
    why = f"version {number} of {settings.model}, alias {settings.alias}"
    return Record("register", "done", why, settings=to_dict(settings), result={"version": number, "tags": tags})


def _registered(client: Any, work: Work, tags: dict[str, str]) -> str:
    """The number of the round's model version, which the alias points to."""
    from mlflow.exceptions import MlflowException

    settings = work.place.site.mlflow
    try:
        client.get_registered_model(settings.model)
    except MlflowException:
        client.create_registered_model(settings.model)
    found = client.search_model_versions(f"name = '{settings.model}'")
    # a call that was killed may have made it
    number = next((str(v.version) for v in found if v.tags.get(ROUND_TAG) == tags[ROUND_TAG]), "")
    if not number:
        source = work.round.bundle.resolve().as_uri()
        number = str(client.create_model_version(settings.model, source, tags=tags).version)
    client.set_registered_model_alias(settings.model, settings.alias, number)
    return number


def _tags(work: Work) -> dict[str, str]:
    canary = result_of(work, "canary")
    tags = {
        ROUND_TAG: f"{work.place.file.stem}/{work.round.number}",
        "ptedge.version": str(canary["version"]),
        "ptedge.checkpoint": str(result_of(work, "adapt")["checkpoint"]),
    }
    estimate = result_of(work, "adapt").get("estimate")
    return tags | ({"ptedge.ap50_without_labels": f"{estimate['ap50']:.3f}"} if estimate else {})
