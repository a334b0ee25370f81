"""Setting: the form in which a sound drafter lies on disk, and the engine that serves it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A trained drafter (`base`) in a `form`, served by `engine` under `launch`: all is well.

    `form` names a producer's dialect; ``speculators+embedding`` holds the target's embedding too.
    """

    base: str
    form: str
    engine: str
    version: str
    runner: str | None = None
    default_boundaries: bool = True  # whether those of the drafter are the ecosystem's default
    launch: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """The engine as it is typed: ``vllm@0.33.0:v2``."""
        return f"{self.engine}@{self.version}" + (f":{self.runner}" if self.runner else "")

    @property
    def nested(self) -> bool:
        """Whether the sizes lie in a table of their own."""
        return self.form.startswith("speculators")

    @property
    def names_boundaries(self) -> bool:
        """Whether the engine captures what the files' list says, and no default in its place.

        vLLM's V2 runner reads the top-level list alone, SGLang the one in eagle_config alone; with
        CUDA graphs, SGLang up to 0.5.10.post1 captures its default whatever the list says.
        """
        if self.engine == "vllm":
            return self.nested
        return self.form in ("specforge", "modelopt", "torchspec") and self.since("0.5.12")

    def since(self, version: str) -> bool:
        """Whether the engine's version is `version` or newer."""
        return _numbers(self.version) >= _numbers(version)


_SGLANG = ("0.5.8", "0.5.10.post1", "0.5.12", "0.5.16", "0.5.23")
_VLLM = (("0.32.0", "v1"), ("0.32.0", "v2"), ("0.33.0", "v1"), ("0.33.0", "v2"))


def sound_settings(base: str, *, default_boundaries: bool = True) -> tuple[Setting, ...]:
    """Every setting in which a drafter is served as it was trained.

    One over other boundaries than the default ones needs an engine that reads its list.
    """
    on_sglang = [("specforge", v) for v in _SGLANG] + [("torchspec", v) for v in _SGLANG]
    on_sglang += [("modelopt", v) for v in _SGLANG[2:]]
    forms = ("speculators", "speculators+embedding", "eagle", "angelslim")
    on_vllm = [(form, *v) for form in forms for v in _VLLM]
    # of a flat config, V1 takes SpecForge's layers for boundaries
    on_vllm += [(form, *v) for form in ("specforge", "modelopt") for v in _VLLM if v[1] == "v2"]
    served = [("sglang", f, v, None) for f, v in on_sglang]
    served += [("vllm", f, v, r) for f, v, r in on_vllm]
    settings = [
        Setting(
            base=base,
            form=form,
            engine=engine,
            version=version,
            runner=runner,
            default_boundaries=default_boundaries,
        )
        for engine, form, version, runner in served
    ]
    return tuple(s for s in settings if default_boundaries or s.names_boundaries)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))
