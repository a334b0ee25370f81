"""The six acts of the story, each measured on the real model or judged by the real contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

from eyas import convert, engines
from eyas.checkpoint import (
    Checkpoint,
    TargetFacts,
    open_checkpoint,
    open_target,
)
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all, one_of_each
from eyas.decode.generation import Generation
from eyas.decode.greedy import generate
from eyas.decode.record import Record
from eyas.demo.kimi import TARGET_CONFIG, write_kimi_as_saved, write_kimi_drafter
from eyas.demo.views import flatten, label, lands_wholly, lost_tensors, read, verdict_of
from eyas.model.drafter import Drafter
from eyas.model.served import Fill, served_drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Eagle3Spec, LastState, Ownership, Served, Stage, VocabMap

OLD_SGLANG = "sglang@0.5.10.post1"
NEW_SGLANG = "sglang@0.5.23"
VLLM = "vllm@0.33.0"
EAGLE = "speculative_algorithm=EAGLE"
STEPS = 3
# The layer's tensors: four attention matrices, three of the MLP, three norms.
LAYER_TENSORS = 10
# What the drafter in assets/ must reach over the demo's prompts.
TAU_FLOOR = 1.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What one step of the demo showed. `passed` says whether it went as the story tells."""

    number: int
    title: str
    passed: bool
    verdict: str
    details: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Scene:
    """What the acts share: the models, the prompts, a folder to write into, a progress bar.

    `watch(what, prompts)` announces a number of answers; the function it returns is called after
    each of them.
    """

    target: Target  # float32, in which greedy output can be compared token for token
    fast_target: Target  # the same in bfloat16, for speed
    target_facts: TargetFacts
    checkpoint: Checkpoint
    prompts: Sequence[TokenisedPrompt]
    folder: Path
    max_new: int
    watch: Callable[[str, int], Callable[[], None]]
    sound: Answers | None = field(default=None)
    # what the acts measured on the first prompt of each category, for the comparison at the end
    measured: dict[str, tuple[Answers, ...]] = field(default_factory=dict)

    def answers(self, what: str, prompts: Sequence[TokenisedPrompt], drafter: Drafter) -> Answers:
        """Drafted answers to `prompts`, under a progress bar."""
        return answer_all(
            self.target,
            prompts,
            max_new=self.max_new,
            drafter=drafter,
            steps=STEPS,
            advance=self.watch(what, len(prompts)),
        )

    def side_by_side(
        self, what: str, prompts: Sequence[TokenisedPrompt], drafter: Drafter, target: Target
    ) -> tuple[Answers, Answers]:
        """Plain and drafted answers, prompt by prompt, so that both meet the same machine."""
        advance = self.watch(what, 2 * len(prompts))
        generations: tuple[list[Generation], list[Generation]] = ([], [])
        for prompt in prompts:
            for found, helper in zip(generations, (None, drafter), strict=True):
                steps = STEPS if helper else 0
                found.append(
                    generate(target, prompt.ids, max_new=self.max_new, drafter=helper, steps=steps)
                )
                advance()
        plain, drafted = (
            Answers(prompts=tuple(prompts), generations=tuple(found)) for found in generations
        )
        return plain, drafted


def tell(scene: Scene) -> Iterator[Act]:
    """The acts in order; each is computed when it is asked for."""
    flat = scene.folder / "flattened"
    yield alone_and_drafted(scene)
    yield as_saved(scene)
    yield flattened(scene, flat)
    yield wrong_algorithm(scene, open_checkpoint(flat))
    yield converted(scene, open_checkpoint(flat))
    yield at_full_size(scene.folder)


def alone_and_drafted(scene: Scene) -> Act:
    """Act 1: the target alone, then with the drafter as it was trained."""
    few = one_of_each(scene.prompts)
    drafter = trained_drafter(scene.checkpoint, scene.target)
    plain, drafted = scene.side_by_side(
        "alone and drafted, float32", scene.prompts, drafter, scene.target
    )
    scene.sound = drafted
    scene.measured["as trained"] = (sound_part(scene, few),)
    compared = drafted.compared_with(plain)
    fast_drafter = trained_drafter(scene.checkpoint, scene.fast_target)
    fast_plain, fast_drafted = scene.side_by_side(
        "alone and drafted, bfloat16", few, fast_drafter, scene.fast_target
    )
    return Act(
        number=1,
        title="SmolLM2 alone, then with the drafter that was trained here",
        passed=compared.exact and drafted.tau >= TAU_FLOOR,
        verdict=f"tau {drafted.tau:.2f}; {compared.equal} of {len(scene.prompts)} answers equal",
        details=(
            *compared.lines(),
            f"float32, {len(scene.prompts)} prompts: {speeds(plain, drafted)}",
            f"bfloat16, {len(few)} prompts: {speeds(fast_plain, fast_drafted)}",
            "tau by category: "
            + ", ".join(f"{name} {tau:.2f}" for name, tau in drafted.tau_by_category.items()),
            "accepted at draft position 1, 2, 3: "
            + ", ".join(f"{share:.0%}" for share in drafted.acceptance.cumulative),
        ),
    )


def speeds(plain: Answers, drafted: Answers) -> str:
    """Both rates, and the medians over the prompts of their ratio and of R.

    An answer's ratio is its tau over its R, up to the tokens that its last round runs past the end.
    """
    pairs = zip(drafted.generations, plain.generations, strict=True)
    records = [Record.of([together], [alone]) for together, alone in pairs]
    ratios = [record.speedup for record in records if record.speedup is not None]
    costs = [record.round_cost for record in records if record.round_cost is not None]
    alone = Record.of(plain.generations).pace.tokens_per_second
    together = Record.of(drafted.generations).pace.tokens_per_second
    return (
        f"alone {alone:.1f} tokens/s, drafted {together:.1f} ({median(ratios):.2f}x; "
        f"tau {drafted.acceptance.tau:.2f}, a round costs R = {median(costs):.2f} steps)"
    )


def as_saved(scene: Scene) -> Act:
    """Act 2: the drafter as the trainer saved it."""
    names = ("sglang@0.5.8", OLD_SGLANG, NEW_SGLANG, VLLM)
    views = [read(name, scene.checkpoint, scene.target_facts) for name in names]
    stages = [view.refusal.stage if view.refusal else None for view in views]
    refusing = [label(view) for view, stage in zip(views, stages, strict=True) if stage]
    loading = [label(view) for view, stage in zip(views, stages, strict=True) if not stage]
    return Act(
        number=2,
        title="As the trainer saved it: a nested speculators config",
        passed=stages == [Stage.CONFIG, Stage.CONFIG, Stage.CONFIG, None],
        verdict=f"refused by {', '.join(refusing) or 'none'}; "
        f"loaded by {', '.join(loading) or 'none'}",
        details=tuple(f"{label(view)}: {verdict_of(view)}" for view in views),
    )


def flattened(scene: Scene, directory: Path) -> Act:
    """Act 3: the config flattened by hand, the tensors still named ``layers.0.*``."""
    checkpoint = flatten(scene.checkpoint, directory)
    old = read(OLD_SGLANG, checkpoint, scene.target_facts)
    views = [old, *(read(name, checkpoint, scene.target_facts) for name in (NEW_SGLANG, VLLM))]
    lost = lost_tensors(views)
    prompts = one_of_each(scene.prompts)
    found = {}
    for fill in Fill:
        drafter = served_drafter(old, checkpoint, scene.target, fill=fill)
        found[fill] = scene.answers(f"without its layer ({fill})", prompts, drafter)
    scene.measured["its layer lost, SGLang 0.5.10.post1"] = tuple(found.values())
    taus = {fill: answers.tau for fill, answers in found.items()}
    low, high, sound = min(taus.values()), max(taus.values()), sound_part(scene, prompts).tau
    return Act(
        number=3,
        title="Flattened to LlamaForCausalLMEagle3, its layer still named layers.0.*",
        passed=lost == [LAYER_TENSORS, 0, 0] and high - 1 <= (sound - 1) / 2,
        verdict=f"SGLang 0.5.10.post1 loses {lost[0]} tensors in silence: "
        f"tau {low:.2f} to {high:.2f}",
        details=(
            *(f"{label(view)}: {verdict_of(view)}" for view in views),
            "run as 0.5.10.post1 has it, its lost matrices filled with "
            + ", ".join(f"{fill}: tau {tau:.2f}" for fill, tau in taus.items()),
        ),
    )


def wrong_algorithm(scene: Scene, checkpoint: Checkpoint) -> Act:
    """Act 4: launched as EAGLE, on an engine that lands every tensor."""
    launch = engines.Launch.parse([EAGLE])
    served = read(NEW_SGLANG, checkpoint, scene.target_facts, launch)
    prompts = one_of_each(scene.prompts)
    drafter = served_drafter(served, checkpoint, scene.target, fill=Fill.ZEROS)
    answers = scene.answers("launched as EAGLE", prompts, drafter)
    scene.measured["launched as EAGLE, SGLang 0.5.23"] = (answers,)
    tau, sound = answers.tau, sound_part(scene, prompts).tau
    faults = faults_of(served)
    return Act(
        number=4,
        title="Launched with speculative_algorithm=EAGLE",
        passed=len(faults) == 3 and lands_wholly(served) and tau < sound,
        verdict=f"{', '.join(faults) or 'nothing is wrong'}: tau {tau:.2f}",
        details=(
            f"{label(served)} starts without an error: {verdict_of(served)}",
            f"the same prompts give {sound:.2f} when it is launched as EAGLE3",
        ),
    )


def faults_of(served: Served) -> list[str]:
    """What an EAGLE launch changes in a drafter of three fused states, in the story's words."""
    spec = served.spec
    if not isinstance(spec, Eagle3Spec):
        return []
    found = {
        "one state of the target and fc bypassed": isinstance(spec.conditioning, LastState),
        "the target's head": spec.head.value is Ownership.TARGET,
        "no map": spec.vocab_map.value is VocabMap.PREFIX,
    }
    return [words for words, true in found.items() if true]


def converted(scene: Scene, checkpoint: Checkpoint) -> Act:
    """Act 5: converted for the old SGLang, re-checked, and run as that engine has it."""
    ref = engines.EngineRef.parse(OLD_SGLANG)
    out = scene.folder / "converted"
    convert.convert(checkpoint, out, ref, target=scene.target_facts)
    repaired = open_checkpoint(out)
    names = (OLD_SGLANG, NEW_SGLANG, VLLM)
    views = [read(name, repaired, scene.target_facts) for name in names]
    prompts = one_of_each(scene.prompts)
    drafter = served_drafter(views[0], repaired, scene.target, fill=Fill.ZEROS)
    answers = scene.answers("converted", prompts, drafter)
    scene.measured["converted, SGLang 0.5.10.post1"] = (answers,)
    tau, sound = answers.tau, sound_part(scene, prompts).tau
    whole = [label(view) for view in views if lands_wholly(view)]
    return Act(
        number=5,
        title=f"Converted: eyas convert DRAFT OUT --to {OLD_SGLANG} --target TARGET",
        passed=len(whole) == len(views) and tau == sound,
        verdict=f"all tensors land on {', '.join(whole) or 'none'}; "
        f"tau {tau:.2f}, as trained {sound:.2f}",
        details=tuple(f"{label(view)}: {verdict_of(view)}" for view in views),
    )


def at_full_size(folder: Path) -> Act:
    """Act 6: acts 2, 3 and 4 judged on a drafter of Kimi-K2.5's shape, from headers alone."""
    import json

    saved, flat = folder / "kimi-k2.5-as-saved", folder / "kimi-k2.5-flattened"
    target = folder / "kimi-k2.5"
    write_kimi_drafter(flat)
    write_kimi_as_saved(saved, open_checkpoint(flat))
    target.mkdir()
    (target / "config.json").write_text(json.dumps(TARGET_CONFIG))
    begun = perf_counter()
    nested, checkpoint, facts = open_checkpoint(saved), open_checkpoint(flat), open_target(target)
    refused = read(OLD_SGLANG, nested, facts)
    views = [read(name, checkpoint, facts) for name in (OLD_SGLANG, NEW_SGLANG, VLLM)]
    eagle = read(NEW_SGLANG, checkpoint, facts, engines.Launch.parse([EAGLE]))
    seconds = perf_counter() - begun
    bypassed = isinstance(eagle.spec, Eagle3Spec) and isinstance(eagle.spec.conditioning, LastState)
    same = refused.refusal is not None and lost_tensors(views) == [LAYER_TENSORS, 0, 0] and bypassed
    size = sum(header.nbytes for header in checkpoint.tensors.values())
    return Act(
        number=6,
        title="The same on a drafter of Kimi-K2.5's shape: fc 21504 → 7168",
        passed=same and seconds < 1,
        verdict=f"{'the same' if same else 'other'} verdicts in {seconds:.2f} s, "
        f"from the headers of {size / 1e9:.1f} GB",
        details=(
            f"as saved, {label(refused)}: {verdict_of(refused)}",
            *(f"flattened, {label(view)}: {verdict_of(view)}" for view in views),
            f"launched as EAGLE, {label(eagle)}: fc {'is bypassed' if bypassed else 'runs'}",
        ),
    )


def sound_part(scene: Scene, prompts: Sequence[TokenisedPrompt]) -> Answers:
    """The sound drafter's answers to a part of the prompts of act 1."""
    assert scene.sound is not None  # act 1 comes first
    chosen = set(prompts)
    pairs = zip(scene.sound.prompts, scene.sound.generations, strict=True)
    kept = [(prompt, generation) for prompt, generation in pairs if prompt in chosen]
    return Answers(prompts=tuple(p for p, _ in kept), generations=tuple(g for _, g in kept))
