"""The token strings of a tokenizer.json, by id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eyas.checkpoint.json_file import read_json_object

_FILE = "tokenizer.json"
_MAX_BYTES = 64 * 2**20  # Gemma's, the largest in use, has some 33 MB


def token_strings(directory: Path) -> dict[int, str] | None:
    """Id → token of the tokenizer in `directory`, None where it has no tokenizer.json.

    Raises CheckpointError for a file that is unsound. The two layouts are those of the tokenizers
    library: a vocabulary of strings with their ids (BPE, WordPiece), or a list in the order of ids
    (Unigram); added tokens follow in a list of their own.
    """
    if not (directory / _FILE).is_file():
        return None
    hint = "fetch or export the tokenizer again"
    content = read_json_object(directory / _FILE, hint=hint, max_bytes=_MAX_BYTES)
    tokens: dict[int, str] = {}
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, Mapping):
        tokens |= {i: text for text, i in vocabulary.items() if isinstance(i, int)}
    elif isinstance(vocabulary, list):
        pairs = enumerate(vocabulary)
        tokens |= {i: str(pair[0]) for i, pair in pairs if isinstance(pair, list) and pair}
    added = content.get("added_tokens")
    for entry in added if isinstance(added, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int):
            tokens[entry["id"]] = str(entry.get("content"))
    return tokens
