"""Files of the lake's own catalog: read anywhere, removed only below the lake's folder.

The metadata of a table names its files in full. Where somebody else prepared the lake, they chose these names: DROP TABLE,
expiry, and any commit of a table that asks for `write.metadata.delete-after-commit.enabled` would remove whatever files of this
machine the metadata lists. So files outside of the lake's folder are not removed, with a warning in the log.
"""

from __future__ import annotations

import os

from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO

# The folder of the lake, among the properties of its own catalog.
LAKE_FOLDER = "lakelet.lake-folder"
_LOCAL = ("", "file")


class LakeFileIO(PyArrowFileIO):
    """pyiceberg's FileIO, which removes no file outside of the lake's folder."""

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Removes a file; PermissionError for one of this machine that is not the lake's."""
        path = location if isinstance(location, str) else location.location
        if not self.may_remove(path):
            raise PermissionError(f"{path} is outside of the lake's folder, {self.properties[LAKE_FOLDER]}, and stays")
        super().delete(location)

    def may_remove(self, location: str) -> bool:
        """Whether a file is below the lake's folder, or on another machine."""
        scheme, _, path = self.parse_location(location, self.properties)
        if scheme not in _LOCAL:
            return True
        folder, name = os.path.split(os.path.abspath(path))
        root = os.path.realpath(str(self.properties[LAKE_FOLDER]))
        # A link is removed, and not its target: only the folders of the path are resolved.
        found = os.path.join(os.path.realpath(folder), name)
        return os.path.commonpath([root, found]) == root
