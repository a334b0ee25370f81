"""V4: what d2t and t2d say of the draft vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.unscaled import FLOATS
from eyas.checks.view import Trained
from eyas.errors import CheckpointError
from eyas.spec import Eagle3Spec, VocabMap


class MapMissing(TrainedRule):
    """A reduced draft vocabulary without a map.

    What it checks
        Whether a drafter whose vocabulary is smaller than the target's has a d2t tensor. A t2d
        alone marks the tokens, and no engine reads it.

    Why it matters
        Every engine then takes draft id i for target id i, without a word.

    How to fix it
        Take d2t from the training run. From a t2d it can be rebuilt where ids were sorted: d2t[i]
        is the i-th marked id minus i. From the weights alone it cannot.

    Example
        A trainer that keeps the map in a side file.
    """

    code = "V403"
    name = "map-missing"
    effect = "draft ids name other tokens (1.12 instead of 2.99 seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        held = set(trained.roles.values())
        if not isinstance(spec, Eagle3Spec) or "d2t" in held:
            return
        marked = "t2d" in held and spec.vocab_map.value is VocabMap.OFFSETS
        if spec.vocab_map.value is not VocabMap.PREFIX and not marked:
            return
        says = "t2d alone says which, which no engine reads" if marked else "no map says which"
        rebuilt = ", or write d2t[i] = (the i-th id that t2d marks) - i, if ids were sorted"
        yield self.finding(
            place=trained.checkpoint.place("d2t"),
            message=f"the draft vocabulary has {spec.draft_vocab_size.value} of"
            f" {spec.vocab_size.value} tokens, and {says}",
            expected="a tensor d2t with one offset for each draft id",
            found="no such tensor",
            advice=f"take d2t from the training run{rebuilt if marked else ''}",
        )


class MapBroken(TrainedRule):
    """A map that leaves the target's vocabulary, or names a token twice.

    What it checks
        That d2t holds whole numbers, one for each draft id; that each draft id i becomes a target
        id i + d2t[i] (in GGUF files d2t[i] itself) within the vocabulary, and no two the same.

    Why it matters
        An id beyond the vocabulary is an index error at the first request; a token named twice
        means that offsets and absolute ids were mixed up.

    How to fix it
        Write d2t as offsets, target id minus draft id; in a GGUF file as target ids.

    Example
        d2t with absolute ids, as GGUF keeps them, in a safetensors file.
    """

    code = "V404"
    name = "map-broken"
    effect = "draft ids name other tokens, or none: an index error at the first request"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        name = next((n for n, role in trained.roles.items() if role == "d2t"), None)
        if not isinstance(spec, Eagle3Spec) or name is None:
            return
        if trained.checkpoint.tensors[name].dtype in FLOATS:
            yield self.finding(
                place=trained.checkpoint.place(name),
                message=f"d2t holds {trained.checkpoint.tensors[name].dtype} numbers",
                expected="whole numbers (I64)",
                found=f"{trained.checkpoint.tensors[name].dtype} numbers",
                advice="write d2t as int64",
            )
            return
        try:
            offsets = trained.checkpoint.read_integers(name)
        except CheckpointError as error:
            yield self.skip(error.message)
            return
        rows = spec.draft_vocab_size
        if len(offsets) != rows.value:
            yield self.finding(
                place=trained.checkpoint.place(name),
                message=f"d2t has {len(offsets)} entries for {rows.value} draft ids",
                expected=f"{rows.value} entries ({rows.key})",
                found=f"{len(offsets)} entries",
                advice="take d2t from the training run that made lm_head",
            )
            return
        ids = offsets
        if spec.vocab_map.value is VocabMap.OFFSETS:
            ids = [i + offset for i, offset in enumerate(offsets)]
        size = spec.vocab_size.value
        outside = sum(not 0 <= i < size for i in ids)
        double = len(ids) - len(set(ids))
        if ids and (outside or double):
            wrong = []
            if outside:
                wrong.append(f"{outside} outside the vocabulary")
            if double:
                wrong.append(f"{double} to a token that another already names")
            yield self.finding(
                place=trained.checkpoint.place(name),
                message=f"of {len(ids)} draft ids, d2t sends {' and '.join(wrong)}",
                expected=f"{len(ids)} different ids from 0 to {size - 1}",
                found=f"ids from {min(ids)} to {max(ids)}",
                advice="write d2t as offsets (target id minus draft id)"
                if spec.vocab_map.value is VocabMap.OFFSETS
                else "write d2t as target ids, each once",
            )


class MaskDisagrees(TrainedRule):
    """A training mask that names other tokens than the map.

    What it checks
        Whether t2d has one entry for each token of vocab_size, and marks those that d2t maps to.

    Why it matters
        No engine reads t2d, so nothing is served wrongly; but a trainer that resumes from the
        checkpoint would label its targets by it.

    How to fix it
        Write t2d anew from d2t: true at each i + d2t[i].

    Example
        A vocabulary that was rebuilt in one of the two tensors alone.
    """

    code = "V406"
    name = "mask-disagrees"
    severity = Severity.WARNING
    effect = "none when served; training that resumes would be mislabelled"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        names = {role: name for name, role in trained.roles.items()}
        spec = trained.spec
        if not isinstance(spec, Eagle3Spec) or spec.vocab_map.value is not VocabMap.OFFSETS:
            return
        if "d2t" not in names or "t2d" not in names:
            return
        try:
            offsets = trained.checkpoint.read_integers(names["d2t"])
            mask = trained.checkpoint.read_integers(names["t2d"])
        except CheckpointError as error:
            yield self.skip(error.message)
            return
        size = spec.vocab_size
        if len(mask) != size.value:
            yield self.finding(
                place=trained.checkpoint.place(names["t2d"]),
                message=f"t2d marks tokens of a vocabulary of {len(mask)},"
                f" and vocab_size is {size.value}",
                expected=f"{size.value} entries ({size.key})",
                found=f"{len(mask)} entries",
                advice="write the target's vocab_size into the config, or t2d anew from d2t",
            )
            return
        marked = {i for i, flag in enumerate(mask) if flag}
        mapped = {i + offset for i, offset in enumerate(offsets)}
        if marked != mapped:
            wrong = []
            surplus, absent = len(marked - mapped), len(mapped - marked)
            if surplus:
                plural = "" if surplus == 1 else "s"
                wrong.append(f"marks {surplus} token{plural} that d2t does not map to")
            if absent:
                wrong.append(f"leaves out {absent} of the {len(mapped)} that d2t maps to")
            yield self.finding(
                place=trained.checkpoint.place(names["t2d"]),
                message=f"t2d {', and '.join(wrong)}",
                expected=f"the {len(mapped)} tokens of d2t",
                found=f"{len(marked & mapped)} of them among {len(marked)}",
                advice="write t2d anew from d2t, or drop it: no engine reads it",
            )


class MapImplausible(TrainedRule):
    """A map that no count of tokens can have made.

    What it checks
        Whether the drafter's reduced vocabulary is simply the first tokens of the target, or every
        second one without a t2d that marks them: what d2t is when nobody filled it in (zeros), or
        filled it with its own indices.

    Why it matters
        Draft vocabularies are the most frequent tokens of a corpus. The first N ids are special
        tokens and single bytes, so that most of what the target says cannot be drafted.

    How to fix it
        Take d2t from the training run. If training itself ran with this map, choose the vocabulary
        by frequency and train again.

    Example
        d2t left at zeros with draft_vocab_size 32000 of 128256.
    """

    code = "V407"
    name = "map-implausible"
    severity = Severity.WARNING
    effect = "if it is a placeholder, draft ids name other tokens (1.12 instead of 2.99 seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        names = {role: name for name, role in trained.roles.items()}
        if not isinstance(spec, Eagle3Spec) or "d2t" not in names:
            return
        rows, size = spec.draft_vocab_size.value, spec.vocab_size.value
        try:
            numbers = trained.checkpoint.read_integers(names["d2t"])
        except CheckpointError:
            return  # V404 tells it
        if len(numbers) != rows or not 1 < rows < size:
            return
        if numbers == [0] * rows:
            found = f"zeros: the first {rows} of {size} tokens"
        elif numbers == list(range(rows)) and "t2d" not in names:
            found = f"its own indices: every second of the first {2 * rows} tokens"
        else:
            return
        yield self.finding(
            place=trained.checkpoint.place(names["d2t"]),
            message=f"d2t holds {found}, which no count of tokens gives",
            expected="the tokens that were counted most often in training",
            found=found,
            advice="take d2t from the training run, and write it into the checkpoint",
        )


RULES = (MapMissing(), MapBroken(), MaskDisagrees(), MapImplausible())
