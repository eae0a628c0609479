"""`Directory`: what a package holds, as a tree that can be printed."""

from __future__ import annotations


class Directory:
    """A folder or a file of a package; `print` draws the tree.

    Args:
        name: its name.
        is_dir: whether it is a folder.

    >>> import flambeau as torch
    >>> import io
    >>> buffer = io.BytesIO()
    >>> with torch.package.PackageExporter(buffer) as exporter:
    ...     exporter.save_text("notes", "today.txt", "rain")
    >>> _ = buffer.seek(0)
    >>> print(torch.package.PackageImporter(buffer).file_structure(include="notes/*"))
    ─── <binary>
        └── notes
            └── today.txt
    <BLANKLINE>
    """

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, file_path: str) -> None:
        *folders, last = file_path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[last] = Directory(last, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file or a folder of this path."""
        place = self
        for part in filename.split("/"):
            if part not in place.children:
                return False
            place = place.children[part]
        return True

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines("─── ", "    "))

    def _lines(self, branch: str, below: str) -> list[str]:
        lines = [branch + self.name]
        ordered = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in ordered:
            is_last = child is ordered[-1]
            deeper = below + ("    " if is_last else "│   ")
            lines += child._lines(below + ("└── " if is_last else "├── "), deeper)
        return lines
