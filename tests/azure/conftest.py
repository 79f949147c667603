"""These tests need Azurite, Microsoft's own emulator, which is an npm package of 190 MB: `make
test-azure` installs it and says where it is. Without that they are not collected."""

from __future__ import annotations

import os

collect_ignore = [] if "AZURITE" in os.environ else ["test_azure_store.py"]
