"""Arrow's functions. It makes them when it is imported, where no type checker can see them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
