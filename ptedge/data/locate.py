"""Finding the image that an annotation names, where names and folders are not quite what they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ptedge.data.dataset import Dataset
from ptedge.errors import InputError
from ptedge.frames.images import is_image_name


class ImageFinder:
    """Looks for images in a few folders; a folder is listed once, and only if a name is not there as written.

    Args:
        folders: where to look, most likely first.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = list(folders)
        self._stems: dict[Path, dict[str, Path]] = {}

    def find(self, name: str) -> Path:
        """The file called ``name``, else one of the same stem (``a.png`` may have become ``a.jpg``).

        Args:
            name: file name, possibly with folders; backslashes count as slashes.

        Returns:
            An existing file, or where it was expected first.
        """
        relative = PurePosixPath(name.replace("\\", "/"))
        for i, folder in enumerate(self._folders):
            if (folder / relative).is_file():
                if i:  # the rest will most likely lie there, too
                    self._folders.insert(0, self._folders.pop(i))
                return folder / relative
        for folder in self._folders:
            found = self._by_stem(folder / relative.parent).get(relative.stem)
            if found is not None:
                return found
        return self._folders[0] / relative

    def _by_stem(self, folder: Path) -> dict[str, Path]:
        if folder not in self._stems:
            files = sorted(folder.iterdir()) if folder.is_dir() else []
            self._stems[folder] = {file.stem: file for file in files if is_image_name(file)}
        return self._stems[folder]


def check_images(dataset: Dataset) -> list[tuple[Path, str]]:
    """Image files of a data set that are not there, without opening any.

    Returns:
        (path, reason) for each.
    """
    return [(sample.path, "missing") for sample in dataset.samples if not sample.path.is_file()]


def require_images(dataset: Dataset) -> None:
    """Refuse, before any long work, a data set whose image files are not all there.

    Raises:
        InputError: with the count and the first few.
    """
    missing = check_images(dataset)
    if missing:
        names = ", ".join(str(path) for path, _ in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise InputError(
            f"{dataset.root}: {len(missing)} of {len(dataset)} image files are missing: {names}{more}. "
            "Put the images beside the annotations, or name their folder in a TOML description (images = ...)"
        )
