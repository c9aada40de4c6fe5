"""Names of alerts that explain others, by what has happened.

Alerts of files that come later in the catalogue are told by name; a test finds one that isn't there.
"""

from __future__ import annotations

THRASH = ("KvThrashing", "KvSequencesSwapped", "KvOffloadThrash")
"""An engine works for what it throws away. Somebody has to act at once, so it doesn't explain anything for long."""
STANDSTILL = ("EngineFrozen", "EngineDeadlocked")
"""An engine has stopped with requests in it. The same goes for it."""
GONE = ("EngineDown", "GpuLost", "EngineRestarting")
"""Capacity is gone, perhaps for days: that explains why the rest has more to do, but doesn't excuse that users wait.
"""
STUCK, REDUCED = "ManyEnginesStuck", "ManyEnginesGone"
"""The same of so many engines that it explains what their cluster suffers: one of a thousand doesn't."""
CAPACITY_GONE, CAPACITY_GONE_WITH_GPUS = "CapacityGone", "CapacityGoneWithGpus"
"""Somebody is awake because of engines that are down, and was told which; or which GPUs took them along."""
STILL = "UsersStillWait"
"""Many engines were stuck within the hour, are no more, and users wait all the same."""
STILL_BURN = 6.0
"""Times the budget's rate: of the page that is slower."""
STUCK_WIDE = (STUCK, STILL)
FLEET_WIDE = (*STUCK_WIDE, REDUCED)
KEPT_SECONDS = 900
"""How long what explains others goes on after its end: burn rates look up to ten minutes back and go on for two, and
who waited has to be served first."""
BACK_SECONDS = 600
"""The same of an engine that was down: it is started after what it is started for has ended, and isn't to outlast what
that explains."""
