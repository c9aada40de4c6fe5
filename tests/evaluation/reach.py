"""Which alerts fire in no drill that is played, or are no scenario's own, and why: none without a reason."""

from __future__ import annotations

from collections.abc import Mapping

_SLOW = "its windows are longer than any trouble that is drilled: {}"
UNREACHED: Mapping[str, str] = {
    "SloFirstTokenBurnQuick": _SLOW.format("6 h and 15 min of waiting"),
    "SloFirstTokenBurnSlow": _SLOW.format("a day, and an hour of waiting"),
    "SloFirstTokenBurnCreeping": _SLOW.format("3 days, and 3 hours of waiting"),
    "SloTokenPaceBurnQuick": _SLOW.format("6 h and 15 min of waiting"),
    "SloTokenPaceBurnSlow": _SLOW.format("a day, and an hour of waiting"),
    "SloTokenPaceBurnCreeping": _SLOW.format("3 days, and 3 hours of waiting"),
    "PcieSaturatedBySwap": (
        "swapping has to fill 80 % of a GPU's own link for a minute: the incident's 1,420 blocks/s, 7.4 GB/s, were 12 %"
        " of its bus, and would fill four lanes of PCIe 4.0; the drill's offloading moves less, behind a switch that"
        " eight GPUs share, where no link of their own can be fuller than an eighth"
    ),
    "SidecarDown": "the drill's sidecar is always there: it is what writes the run",
    "FleetUnseen": "the same: the drill's sidecar is always there",
    "Watchdog": "it always fires, and is left out here",
}
"""By alert, why it fires in none of the runs. Tests of ``tests/alerts/rules`` have it fire in promtool."""
NOT_OWN: Mapping[str, str] = {
    "FleetProgressFalling": "the incident has it, explained by engines that are stuck",
    "TokensCrawl": "the incident on A100s has it for four minutes, explained by what is swapped",
    "UsersStillWait": "the incident has it once its engines have stopped swapping: it isn't over for its users",
    "ManyEnginesStuck": "for nobody: it explains others in every scenario that thrashes or stands still",
    "ManyEnginesGone": "for nobody: it explains others where engines are down",
}
"""By alert, why no scenario has it for its own though it fires in one."""
