"""The story that eyas exists for, planted whole.

A speculators checkpoint, its config already flattened to LlamaForCausalLMEagle3, with a layer
called layers.0, is served by SGLang 0.5.10.post1 under the algorithm EAGLE: the layer is skipped,
and fc never runs.
"""

from __future__ import annotations

from benchmarks.faults.catalogue import KINDS
from benchmarks.faults.planting import Plan
from benchmarks.faults.setting import Setting

_BOTH = ("layer-of-a-newer-engine", "launched-as-eagle")


def story(base: str) -> Plan:
    """Both faults, in the engine of those days."""
    kinds = {kind.name: kind for kind in KINDS}
    setting = Setting(base=base, form="specforge", engine="sglang", version="0.5.10.post1")
    return Plan(tuple(kinds[name] for name in _BOTH), setting)
