"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# an example's time is the machine's, not the code's; in CI hypothesis's own profile says so too
settings.register_profile("local", deadline=None)
if not os.environ.get("CI"):
    settings.load_profile("local")
