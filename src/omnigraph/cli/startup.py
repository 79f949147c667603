"""What a command does not need at its start: pandas, and garbage collections among modules.

    entry -> [startup] -> main

When pyarrow makes its first array it imports pandas, where that is installed, to know its values
when it sees them: a quarter of a second of every command, and no command passes such values.
So the first import fails, and pyarrow looks again as soon as pandas is really imported, by Spark
for example. Its C++ half does not look again: `pandas.NA` among plain objects stays unknown to it.
This is for the process of a command, where nothing makes such objects; programs that use the
library are not affected.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # They are empty here, and importing them would take longer than everything else.
    Loader = MetaPathFinder = object


_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def collect_less() -> None:
    """Collect garbage less often: imports make very many objects, and all of them stay.

    At the end they go with the process. Without ``freeze``, which is registered first and so called
    last, the interpreter would scan each of them several times before.
    """
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)


def defer_pandas() -> None:
    """Import pandas when it is used, and not because pyarrow is."""
    if "pandas" not in sys.modules and "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds both packages where they are, and acts after each of them is imported."""

    def __init__(self) -> None:
        self._denied = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pyarrow":
            return _followed(PathFinder.find_spec(fullname, path, target), self._hide_pandas)
        if fullname != "pandas":
            return None
        if self._denied:
            raise ModuleNotFoundError("pandas is not needed", name=fullname)
        return _followed(PathFinder.find_spec(fullname, path, target), self._reveal_pandas)

    def _hide_pandas(self) -> None:
        """Make pyarrow look for pandas now and find nothing; it remembers that."""
        self._denied = True
        try:
            sys.modules["pyarrow"].scalar(None)
        finally:
            self._denied = False

    def _reveal_pandas(self) -> None:
        """Pandas was imported: reading this attribute makes pyarrow look again.

        The name is not public; without it, pyarrow would look again by itself in ``to_pandas``.
        """
        sys.meta_path.remove(self)
        getattr(getattr(sys.modules["pyarrow.lib"], "_pandas_api", None), "pd", None)


def _followed(spec: ModuleSpec | None, then: Callable[[], None]) -> ModuleSpec | None:
    if spec is not None and spec.loader is not None:
        spec.loader = _Followed(spec.loader, then)
    return spec


class _Followed(Loader):
    """Loads as another loader does, gives the module back to it, and calls a function."""

    def __init__(self, loader: Loader, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()
