"""T7: whether the target is the model that the drafter was trained for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.rules.target import unstated
from eyas.checks.view import Trained
from eyas.errors import CheckpointError
from eyas.spec import Eagle3Spec


class VocabularyMismatch(TrainedRule):
    """The target has another vocabulary than the drafter was trained for.

    What it checks
        vocab_size of the drafter against vocab_size of the target. Where both have a tokenizer.json
        with the same tokens, the difference is padding alone, and a warning.

    Why it matters
        Draft ids are the target's ids or are mapped to them: in another vocabulary they name other
        tokens, and nothing is accepted.

    How to fix it
        Name the target that the drafter was trained for.

    Example
        A drafter of Qwen3 (151,936 tokens) under Llama 3 (128,256).
    """

    code = "T702"
    name = "vocabulary-mismatch"
    effect = "draft ids name other tokens of the target; nothing is accepted"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec):
            return
        if target is None or target.vocab_size is None:
            yield self.skip(unstated(target, "vocab_size"))
        elif spec.vocab_size.value != target.vocab_size:
            size = spec.vocab_size
            tokens = shared_tokens(trained)
            padded = f" (the same {tokens} tokens, and padding of another size)" if tokens else ""
            yield self.finding(
                severity=Severity.WARNING if tokens else None,
                place=size.key,
                message=f"the drafter is for a vocabulary of {size.value} tokens,"
                f" the target has {target.vocab_size}{padded}",
                expected=f"a target with {size.value} tokens ({size.key})",
                found=f"vocab_size {target.vocab_size} ({target.location})",
                advice=f"eyas inspect {trained.draft}",
            )


class TokenizerDiffers(TrainedRule):
    """The same number of tokens, and other tokens.

    What it checks
        Where the drafter and the target each have a tokenizer.json, and vocabularies of the same
        size: whether each id is the same token string in both.

    Why it matters
        The drafter speaks in ids. Under another tokenizer they name other words, and nothing is
        accepted.

    How to fix it
        Name the target that the drafter was trained for.

    Example
        Two families that both pad to 128256 rows.
    """

    code = "T707"
    name = "tokenizer-differs"
    effect = "draft ids name other tokens of the target; nothing is accepted"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or target is None:
            return
        if spec.vocab_size.value != target.vocab_size:
            return  # T702 tells it
        try:
            both = tokens_of_both(trained)
        except CheckpointError as error:
            yield self.skip(error.message)
            return
        if both is None:
            return
        own, its = both
        other = sorted(i for i in own.keys() | its.keys() if own.get(i) != its.get(i))
        if other:
            first = other[0]
            yield self.finding(
                place=f"tokenizer.json :: {first}",
                message=f"{len(other)} ids name other tokens in {target.location}: {first} is"
                f" {_token(its, first)} there, and {_token(own, first)} beside the drafter",
                expected=f"the {len(own)} tokens of the drafter's tokenizer.json",
                found=f"{len(other)} other tokens",
                advice="name the target that the drafter was trained for after --target",
            )


class AnotherTarget(TrainedRule):
    """A target that is not the one the drafter names.

    What it checks
        Where the drafter's config names its target (speculators_config.verifier): its name against
        the one given, as far as that has a name on the Hub, and its architectures.

    Why it matters
        A drafter predicts one model. For a fine-tuned relative acceptance is lower; for another
        model it is gone.

    How to fix it
        Name the target that the drafter was trained for, or measure acceptance on this one.

    Example
        A drafter of Llama-3.1-8B-Instruct in front of its base model.
    """

    code = "T708"
    name = "another-target"
    severity = Severity.WARNING
    effect = "acceptance is lower for a relative of the target, and gone for another model"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or target is None:
            return
        name, verifier = spec.target_name, _verifier(trained)
        if name.value is not None and target.name is not None:
            if _bare(name.value) != _bare(target.name):
                yield self.finding(
                    place=name.key,
                    message=f"the drafter was trained for {name.value}, and the target is"
                    f" {target.name}",
                    expected=f"{name.value} ({name.key})",
                    found=target.name,
                    advice=f"name {name.value} after --target, or measure acceptance on this one",
                )
            return
        named = verifier.get("architectures")
        stated = {a for a in named if isinstance(a, str)} if isinstance(named, list) else set()
        if stated and target.architectures and stated.isdisjoint(target.architectures):
            place = f"{trained.checkpoint.config_file} :: speculators_config.verifier.architectures"
            yield self.finding(
                place=place,
                message=f"the drafter was trained for a {', '.join(sorted(stated))}, and the target"
                f" is a {target.architectures[0]}",
                expected=f"{', '.join(sorted(stated))} ({place})",
                found=f"{', '.join(target.architectures)} ({target.location})",
                advice="name the target that the drafter was trained for after --target",
            )


def shared_tokens(trained: Trained) -> int:
    """How many tokens both tokenizers have, 0 where they differ or are not at hand."""
    try:
        both = tokens_of_both(trained)
    except CheckpointError:
        return 0  # nothing is known of them, and the sizes differ
    return len(both[0]) if both is not None and both[0] == both[1] else 0


def tokens_of_both(trained: Trained) -> tuple[dict[int, str], dict[int, str]] | None:
    """The token strings beside the drafter and those of its target, where both are at hand."""
    from eyas.checkpoint.tokenizer import token_strings

    target = trained.target
    if target is None or target.directory == trained.checkpoint.directory:
        return None
    own = token_strings(trained.checkpoint.directory)
    its = None if own is None else token_strings(target.directory)
    return None if own is None or its is None else (own, its)


def _verifier(trained: Trained) -> Mapping[str, object]:
    section = trained.checkpoint.config.get("speculators_config")
    verifier = section.get("verifier") if isinstance(section, Mapping) else None
    return verifier if isinstance(verifier, Mapping) else {}


def _bare(name: str) -> str:
    """A model's name without its owner: copies of a model live under several."""
    return name.rstrip("/").rpartition("/")[2].casefold()


def _token(tokens: Mapping[int, str], index: int) -> str:
    return repr(tokens[index][:40]) if index in tokens else "no token"


RULES = (VocabularyMismatch(), TokenizerDiffers(), AnotherTarget())
